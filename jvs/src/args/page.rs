//! The pages of help: the command tree with examples, with what a duration is, and with
//! the options of every command after those of its own. Made only for somebody who asks.

use clap::{Arg, Command};

use super::{examples, topic};

/// What a command says of the options that every command has.
const GLOBAL: &str =
    "Options of every command: --repo PATH, -w NAME, --session ID, --json, --no-pager";

/// How time is written.
const DURATION: &str = "DUR is a length of time: 500ms, 30s, 10m, 1h30m, 7d.";

/// The tree as its pages show it.
pub(super) fn tree() -> Command {
    use clap::CommandFactory as _;
    let tree = super::Args::command();
    let global: Vec<Arg> = tree.get_arguments().filter(|it| it.is_global_set()).cloned().collect();
    below(with_end(tree, ""), "", &global)
}

fn below(mut command: Command, name: &str, global: &[Arg]) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    for verb in names {
        let name = if name.is_empty() { verb.clone() } else { format!("{name} {verb}") };
        command = command.mut_subcommand(verb, |below_it| {
            // An argument that is there already is not inherited.
            let own = global.iter().fold(below_it, |it, arg| it.arg(arg.clone().hide(true)));
            below(with_end(own, &name), &name, global)
        });
    }
    command
}

fn with_end(command: Command, name: &str) -> Command {
    let mut parts = Vec::new();
    if !name.is_empty() {
        let duration = has_duration(&command).then_some(DURATION);
        parts.push([Some(GLOBAL), duration].into_iter().flatten().collect::<Vec<_>>().join("\n"));
    }
    parts.extend(name.is_empty().then(topic::list));
    parts.extend(command.get_after_help().map(ToString::to_string));
    let shown = examples::of(name);
    if !shown.is_empty() {
        let lines = shown.iter().map(|it| format!("  # {}\n  {}", it.why, it.line));
        parts.push(format!("Examples:\n{}", lines.collect::<Vec<_>>().join("\n")));
    }
    command.after_help(parts.join("\n\n"))
}

/// Does one of its own options take a length of time?
fn has_duration(command: &Command) -> bool {
    let mut own = command.get_arguments().filter(|it| !it.is_global_set());
    own.any(|it| it.get_value_names().is_some_and(|names| names.iter().any(|name| *name == "DUR")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(command: &Command, name: &str, visit: &mut dyn FnMut(&Command, &str)) {
        visit(command, name);
        for it in command.get_subcommands().filter(|it| !it.is_hide_set()) {
            let name = format!("{name} {}", it.get_name());
            each(it, name.trim(), visit);
        }
    }

    #[test]
    fn every_page_has_an_example_and_no_line_of_one_wraps() {
        each(&tree(), "", &mut |_, name| {
            let shown = examples::of(name);
            assert!(!shown.is_empty(), "`jvs {name}` has no example");
            for it in shown {
                assert!(it.line.starts_with("jvs ") || it.line.contains("jvs "), "{}", it.line);
                assert!(it.line.len() + 2 < 80 && it.why.len() + 4 < 80, "{}", it.line);
            }
        });
    }

    #[test]
    fn a_page_shows_its_own_options_first() {
        each(&tree(), "", &mut |command, name| {
            if name.is_empty() {
                return;
            }
            let page = command.clone().render_long_help().to_string();
            let (own, after) = page.split_once(GLOBAL).expect("the options of every command");
            assert!(!own.contains("--session <ID>"), "{page}");
            assert!(after.contains("Examples:"), "{page}");
            assert_eq!(page.contains("<DUR>"), page.contains(DURATION), "{page}");
        });
    }
}
