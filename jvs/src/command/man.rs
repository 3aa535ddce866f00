//! `jvs man [DIR]`: the manual, made from the same words that are parsed.

use std::io;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use jvs_repo::code::Code;
use jvs_repo::layout;
use jvs_repo::store::{PosixStore, RepoPath, Store};

use crate::answer;
use crate::answer::other::{ManPage, ManPages};
use crate::args::{self, ManArgs};
use crate::fail::{Failure, Stuck};
use crate::render::{Done, shown};

mod roff;

use roff::Roff;

/// What is where, for the main page.
fn files() -> [(String, &'static str); 5] {
    let control = format!("{}/", layout::CONTROL_DIR);
    [
        (control, "In the root of a repository: registers, locks, snapshots and audit logs"),
        ("main/, worktrees/NAME/".to_owned(), "Beside it: the files of the worktrees"),
        (layout::config().to_string(), "The repository's policy, which jvs-config(1) changes"),
        ("$XDG_RUNTIME_DIR/jvs/".to_owned(), "The secrets of this user's sessions on this host"),
        ("$XDG_STATE_HOME/jvs-holds/".to_owned(), "What these sessions hold, for good"),
    ]
}

pub(crate) fn run(args: &ManArgs) -> Result<Done, Failure> {
    let mut tree = args::tree().disable_help_subcommand(true);
    tree.build();
    let Some(dir) = &args.dir else {
        let page = page(&tree, "").map_err(|error| Stuck::new("make the page", error))?;
        return Ok(Done::new(&ManPage { page: page.clone() }).with_text(page));
    };
    let mut pages = Vec::new();
    into_dir(dir)
        .and_then(|store| {
            write_pages(&store, &tree, "", &mut pages)?;
            args::TOPICS.iter().try_for_each(|topic| {
                let page = topic_page(topic);
                write(&store, format!("jvs-{}.7", topic.name), &page, &mut pages)
            })
        })
        .map_err(|error| Stuck::new(format!("write manual pages to {}", shown(dir)), error))?;
    let text = format!("Wrote {} manual pages to {}\n", pages.len(), shown(dir));
    let (dir, dir_bytes) = answer::path(dir);
    Ok(Done::new(&ManPages { pages, dir, dir_bytes }).with_text(text))
}

fn into_dir(dir: &Path) -> io::Result<PosixStore> {
    match std::fs::create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => PosixStore::open(dir),
    }
}

/// `name` is the command's without `jvs`; empty for `jvs` itself.
fn write_pages(
    store: &PosixStore,
    command: &Command,
    name: &str,
    written: &mut Vec<String>,
) -> io::Result<()> {
    write(store, format!("{}.1", file_name(name)), &page(command, name)?, written)?;
    command.get_subcommands().filter(|it| !it.is_hide_set()).try_for_each(|below| {
        let name = format!("{name} {}", below.get_name());
        write_pages(store, below, name.trim(), written)
    })
}

fn write(
    store: &PosixStore,
    name: String,
    page: &str,
    written: &mut Vec<String>,
) -> io::Result<()> {
    let at = |name: &str| RepoPath::root().child(name);
    let tmp = format!("{name}.tmp-{}", std::process::id());
    store.write_over(&at(&tmp)?, &at(&name)?, page.as_bytes())?;
    written.push(name);
    Ok(())
}

fn file_name(name: &str) -> String {
    format!("jvs {name}").trim().replace(' ', "-")
}

fn page(command: &Command, name: &str) -> io::Result<String> {
    let man = Man::new(command.clone()).title(file_name(name)).manual("JVS");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if !name.is_empty() {
        page.extend(global_options().into_bytes());
    }
    if command.get_subcommands().any(|it| !it.is_hide_set()) {
        let title = command.get_subcommand_help_heading().unwrap_or("COMMANDS");
        page.extend(commands(command, name, &title.to_uppercase()).into_bytes());
    }
    let mut rest = Roff::default();
    if name.is_empty() {
        rest.section("ENVIRONMENT");
        rest.literal(args::ENVIRONMENT.lines().skip(1));
    }
    exit_status(&mut rest, name);
    if name.is_empty() {
        rest.section("FILES");
        files().iter().for_each(|(path, what)| rest.item(path, what));
    }
    rest.section("EXAMPLES");
    for example in args::examples_of(name) {
        rest.paragraph(&format!("{}:", example.why));
        rest.literal([format!("    {}", example.line).as_str()]);
    }
    see_also(&mut rest, command, name);
    page.extend(rest.text().into_bytes());
    String::from_utf8(page).map_err(io::Error::other)
}

fn global_options() -> String {
    let mut roff = Roff::default();
    roff.section("OPTIONS OF EVERY COMMAND");
    roff.paragraph(
        "--repo PATH, -w NAME (--worktree NAME), --session ID, --json, --no-pager: see jvs(1).",
    );
    roff.text()
}

fn commands(command: &Command, name: &str, title: &str) -> String {
    let mut roff = Roff::default();
    roff.section(title);
    for it in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        let below = format!("{name} {}", it.get_name());
        let about = it.get_about().map(ToString::to_string).unwrap_or_default();
        roff.item(&format!("{}(1)", file_name(below.trim())), &about);
    }
    roff.text()
}

fn exit_status(roff: &mut Roff, name: &str) {
    roff.section("EXIT STATUS");
    match name {
        "run" | "shell" => roff.paragraph(
            "That of what was run, if it was run; 126 if it cannot be executed and 127 if there \
             is no such command. Otherwise that of the error, as jvs(1) lists them.",
        ),
        "" => {
            roff.item("0", "It was done.");
            let mut statuses: Vec<u8> = Code::ALL.iter().map(|code| code.exit()).collect();
            statuses.sort_unstable();
            statuses.dedup();
            for status in statuses {
                let codes = Code::ALL.iter().filter(|code| code.exit() == status);
                let codes: Vec<&str> = codes.map(|code| code.as_str()).collect();
                roff.item(&status.to_string(), &codes.join(", "));
            }
        }
        _ => roff.paragraph(
            "0 if it was done; otherwise that of the error, as jvs(1) lists them. The error's \
             code is printed in brackets, and is in error.code of --json.",
        ),
    }
}

/// The page above, those below, and what explains the ideas.
fn see_also(roff: &mut Roff, command: &Command, name: &str) {
    roff.section("SEE ALSO");
    let mut pages = Vec::new();
    if let Some((above, _)) = name.rsplit_once(' ') {
        pages.push(format!("{}(1)", file_name(above)));
    } else if !name.is_empty() {
        pages.push("jvs(1)".to_owned());
    }
    let below = command.get_subcommands().filter(|it| !it.is_hide_set());
    let below = below.map(|it| format!("{}-{}(1)", file_name(name), it.get_name()));
    pages.extend(below);
    pages.extend(args::TOPICS.iter().map(|topic| format!("jvs-{}(7)", topic.name)));
    roff.paragraph(&pages.join(", "));
}

fn topic_page(topic: &args::Topic) -> String {
    let mut roff = Roff::default();
    let name = format!("jvs-{}", topic.name);
    roff.title(&name, 7, "JVS");
    roff.section("NAME");
    roff.paragraph(&format!("{name} - {}", topic.about));
    roff.section("DESCRIPTION");
    roff.literal(topic.text.lines().skip(2));
    roff.section("SEE ALSO");
    roff.paragraph("jvs(1)");
    roff.text()
}
