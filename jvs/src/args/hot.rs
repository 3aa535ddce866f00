//! The short way for commands that scripts run again and again, and for those that
//! they start in turn.
//!
//! Building the whole tree of commands costs more than asking a lock how it
//! stands. So the words of some commands are first tried on a tree of just that one
//! command; whatever it does not take, a wrong word or a call for help, goes
//! the long way, whose answer is the only one that users see.

use std::ffi::OsString;

use clap::{Args as _, FromArgMatches as _};

use super::agent::HookArgs;
use super::completion::{COMMAND as COMPLETE, CompleteArgs};
use super::keeper::KeeperArgs;
use super::lock::{AcquireArgs, ReleaseArgs, StealArgs};
use super::run::RunArgs;
use super::{Args, Global};
use crate::keeper::COMMAND as KEEPER;

/// The command, if it is a hot one and the words are right.
pub(super) fn parse(words: &[OsString]) -> Option<Args> {
    let command = match plain_words(words) {
        ["hook", _] => HookArgs::augment_args(clap::Command::new("hook")),
        ["run", _] => RunArgs::augment_args(clap::Command::new("run")),
        [COMPLETE, _] => CompleteArgs::augment_args(clap::Command::new(COMPLETE)),
        [KEEPER, _] => KeeperArgs::augment_args(clap::Command::new(KEEPER)),
        ["lock", verb] => {
            let verb = match verb {
                "acquire" => AcquireArgs::augment_args(clap::Command::new("acquire")),
                "steal" => StealArgs::augment_args(clap::Command::new("steal")),
                "renew" => clap::Command::new("renew"),
                "release" => ReleaseArgs::augment_args(clap::Command::new("release")),
                "status" => clap::Command::new("status"),
                _ => return None,
            };
            clap::Command::new("lock").subcommand(bare(verb)).subcommand_required(true)
        }
        _ => return None,
    };
    let tree = Global::augment_args(clap::Command::new("jvs").subcommand(bare(command)));
    let matches = bare(tree).subcommand_required(true).try_get_matches_from(words).ok()?;
    Args::from_arg_matches(&matches).ok()
}

fn bare(command: clap::Command) -> clap::Command {
    command.disable_help_flag(true).disable_help_subcommand(true).disable_version_flag(true)
}

/// The first two words that are neither options nor their values; empty if there are
/// none, or none that is text.
fn plain_words(words: &[OsString]) -> [&str; 2] {
    let mut plain = ["", ""];
    let mut found = 0;
    let mut words = words.iter().skip(1).map(|word| word.to_str().unwrap_or_default());
    while let (true, Some(word)) = (found < 2, words.next()) {
        match word {
            "--repo" | "--worktree" | "-w" | "--session" => drop(words.next()),
            "--" => break,
            option if option.starts_with('-') => {}
            word => {
                plain[found] = word;
                found += 1;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::words_of;
    use super::*;

    #[test]
    fn the_short_way_reads_what_the_long_way_reads() {
        for line in [
            "jvs lock status",
            "jvs --json lock status",
            "jvs lock --json status",
            "jvs lock status --json -w x",
            "jvs -w x lock status",
            "jvs -wx lock status",
            "jvs --worktree=x --session s lock renew",
            "jvs --repo lock lock status",
            "jvs lock release --repo /r",
            "jvs lock acquire",
            "jvs lock acquire --lease 30s --note x --purpose automated --no-keeper",
            "jvs lock steal --reason x --observe --lease 1h",
            "jvs __complete -- jvs lock acquire --wa",
            "jvs hook claude",
            "jvs hook codex PreToolUse --auto --checkpoint --on-error allow",
            "jvs --session s hook gemini --on-error=deny",
            "jvs run -- true",
            "jvs run true",
            "jvs run --join make -j4 --help --json -w x",
            "jvs --json run -w x -w y --lease 3s --on-loss warn --contain reap -- run -- -x",
            "jvs -w x run --wait --join -v -- lock status --help",
            "jvs run --wait=5s --leave-background --snapshot run -- make",
            "jvs __keeper --repo /r --worktree x --session=-s --term=1-a3f0.7 --purpose automated",
            "jvs __keeper --session=s --term=1-a3f0.7 --confirmed=2.1-614c.2.6.free.-.0.0.0.none.a87fb3ff8b77aa54.01adad8e16eddbff:7:-",
            "jvs __keeper --repo /r --session=s --term=1-a3f0.7 --attached --guest --ends=/x --lease=0 --on-loss=warn",
        ] {
            let line = words_of(line);
            let short = parse(&line).expect("a hot command");
            let long = Args::try_parse_from(&line).expect("right words");
            assert_eq!(format!("{short:?}"), format!("{long:?}"));
        }
    }

    #[test]
    fn what_is_wrong_or_asks_for_help_goes_the_long_way() {
        for line in [
            "jvs",
            "jvs lock",
            "jvs lock status extra",
            "jvs lock status --help",
            "jvs lock help status",
            "jvs --version lock status",
            "jvs lock statu",
            "jvs lock steal",
            "jvs lock acquire --lease soon",
            "jvs -w",
            "jvs lock list",
            "jvs worktree list",
            "jvs run",
            "jvs run --help -- true",
            "jvs run --contain box -- true",
            "jvs help run",
            "jvs shell",
            "jvs hook",
            "jvs hook vi",
            "jvs hook claude --help",
            "jvs __keeper",
        ] {
            assert!(parse(&words_of(line)).is_none(), "{line}");
        }
    }
}
