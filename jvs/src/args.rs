//! What may be typed: raw clap types, not yet checked against anything.

mod agent;
mod audit;
mod completion;
mod config;
mod demo;
mod doctor;
mod events;
mod examples;
mod front;
mod hot;
mod init;
mod keeper;
mod lock;
mod page;
mod run;
mod schema;
mod session;
mod shell;
mod snapshot;
mod topic;
mod typed;
mod undo;
mod words;
mod worktree;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

pub(crate) use agent::{
    Agent, AgentCommand, AgentPlaceArgs, HookArgs, HookWays, InstallArgs, OnError, UninstallArgs,
};
pub(crate) use audit::AuditArgs;
pub(crate) use completion::{CompleteArgs, Wanted, asked};
pub(crate) use config::ConfigCommand;
pub(crate) use demo::DemoArgs;
pub(crate) use doctor::{DoctorArgs, ReportFormat};
pub(crate) use events::EventsArgs;
pub(crate) use examples::of as examples_of;
pub(crate) use init::InitArgs;
pub(crate) use keeper::{Follow, KeeperArgs, OnLoss};
pub(crate) use lock::{
    AcquireArgs, FreezeArgs, KeepArgs, LeaseArgs, LockCommand, ReclaimArgs, ReleaseArgs, StealArgs,
    TransferArgs, UnfreezeArgs,
};
pub(crate) use run::{Contain, GuardArgs, RunArgs, ShellArgs};
pub(crate) use schema::SchemaArgs;
pub(crate) use session::{SessionArgs, SessionCommand};
pub(crate) use shell::{CompletionsArgs, ManArgs};
pub(crate) use snapshot::{
    CatArgs, DiffArgs, ForgetArgs, GcArgs, HistoryArgs, InfoArgs, LsArgs, PathArgs, RestoreArgs,
    ShowArgs, SnapshotArgs, StatusArgs, TagArgs, VerifyArgs,
};
pub(crate) use topic::{TOPICS, Topic};
pub(crate) use undo::{RedoArgs, UndoArgs};
pub(crate) use worktree::{CreateArgs, RemoveArgs, RenameArgs, WorktreeCommand, WorktreeNameArg};

use crate::answer::Text;
use crate::answer::other::Version;
use crate::fail::{Failure, WrongUsage};
use crate::hint::{OwnNext, foreign};
use crate::near;
use crate::render::Done;

/// The environment variables, for `jvs --help`.
pub(crate) const ENVIRONMENT: &str = "\
Environment:
  JVS_SESSION_ID     The session's id; each agent or terminal has its own
  JVS_USER           The user on whose behalf it acts [default: the user of this process]
  JVS_ENVIRONMENT    The environment: local, ci, cloud or container [default: detected]
  JVS_KEEP_WHILE     Keep locks while this process runs [default: this terminal session]
  JVS_FENCING_TOKEN  The token that `lock renew` and `lock release` act on
  JVS_FENCING_EPOCH  The register epoch of that token
  JVS_WORKTREE       The worktree of that token
  JVS_FENCING_TOKENS The same for several worktrees: NAME:TOKEN:EPOCH, separated by spaces
  JVS_PAGER, PAGER   What shows long answers on a terminal [default: less]
  NO_COLOR           Disable colours";

/// The last line of the help of commands that take several worktrees.
const SEVERAL: &str = "\
To lock several worktrees, all or none: -w A -w B, in any order.";

/// Workspaces on a shared filesystem, with a lock that cannot lie.
#[derive(Debug, Parser)]
#[command(name = "jvs", version, max_term_width = 100, after_help = ENVIRONMENT)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that every command takes, before or after its name.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Global {
    /// The repository [default: found from the current directory]
    #[arg(long, global = true, value_name = "PATH", value_parser = utf8_path)]
    pub(crate) repo: Option<PathBuf>,

    /// The worktree [default: the one the current directory is in, else main]
    #[arg(short, long, global = true, value_name = "NAME")]
    pub(crate) worktree: Vec<String>,

    /// The session's id [default: $JVS_SESSION_ID, else agent, CI run or terminal]
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) session: Option<String>,

    /// Print exactly one JSON document
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Show long answers without a pager
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(InitArgs),
    /// Create, list, rename and remove worktrees
    #[command(subcommand)]
    Worktree(WorktreeCommand),
    /// Take, renew, release and explain locks
    #[command(subcommand)]
    Lock(LockCommand),
    Run(RunArgs),
    Shell(ShellArgs),
    Session(SessionArgs),
    Snapshot(SnapshotArgs),
    Status(StatusArgs),
    #[command(visible_alias = "log")]
    History(HistoryArgs),
    Info(InfoArgs),
    Show(ShowArgs),
    Ls(LsArgs),
    Cat(CatArgs),
    Path(PathArgs),
    Tag(TagArgs),
    Diff(DiffArgs),
    Restore(RestoreArgs),
    Undo(UndoArgs),
    Redo(RedoArgs),
    Verify(VerifyArgs),
    Gc(GcArgs),
    Forget(ForgetArgs),
    Doctor(DoctorArgs),
    Audit(AuditArgs),
    Events(EventsArgs),
    /// Install hooks by which coding agents keep to the lock
    #[command(subcommand)]
    Agent(AgentCommand),
    Hook(HookArgs),
    /// Show and change the repository's policy
    #[command(subcommand)]
    Config(ConfigCommand),
    Completions(CompletionsArgs),
    Man(ManArgs),
    Schema(SchemaArgs),
    Demo(DemoArgs),
    #[command(name = completion::COMMAND, hide = true)]
    Complete(CompleteArgs),
    #[command(name = "__keeper", hide = true)]
    Keeper(KeeperArgs),
}

impl Command {
    /// The command's name as the JSON envelope has it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Command::Init(_) => "init",
            Command::Worktree(command) => command.name(),
            Command::Lock(command) => command.name(),
            Command::Snapshot(_) => "snapshot",
            Command::Status(_) => "status",
            Command::Diff(_) => "diff",
            Command::Restore(_) => "restore",
            Command::Undo(_) => "undo",
            Command::Redo(_) => "redo",
            Command::Verify(_) => "verify",
            Command::History(_) => "history",
            Command::Info(_) => "info",
            Command::Show(_) => "show",
            Command::Ls(_) => "ls",
            Command::Cat(_) => "cat",
            Command::Path(_) => "path",
            Command::Tag(_) => "tag",
            Command::Gc(_) => "gc",
            Command::Forget(_) => "forget",
            Command::Doctor(_) => "doctor",
            Command::Audit(_) => "audit",
            Command::Events(_) => "events",
            Command::Agent(command) => command.name(),
            Command::Hook(_) => "hook",
            Command::Config(command) => command.name(),
            Command::Completions(_) => "completions",
            Command::Man(_) => "man",
            Command::Schema(_) => "schema",
            Command::Demo(_) => "demo",
            Command::Run(_) => "run",
            Command::Shell(_) => "shell",
            Command::Session(args) => args.name(),
            Command::Complete(_) => completion::COMMAND,
            Command::Keeper(_) => "__keeper",
        }
    }

    /// Does it take several worktrees at once?
    fn takes_several(&self) -> bool {
        matches!(
            self,
            Command::Run(_)
                | Command::Shell(_)
                | Command::Lock(LockCommand::Acquire(_) | LockCommand::Release(_))
        )
    }
}

/// A path that a JSON document can name.
fn utf8_path(text: &str) -> Result<PathBuf, &'static str> {
    if text.is_empty() { Err("a path cannot be empty") } else { Ok(PathBuf::from(text)) }
}

/// What a command line turned out to be.
pub(crate) enum Words {
    /// A command.
    Command(Args),
    /// A call for help or for the version.
    Help { name: String, done: Done },
    /// A command line that cannot be parsed.
    Wrong { name: String, failure: Failure },
}

/// Is one JSON document wanted? Asked before parsing, so that a command line
/// that is wrong is told so in the form that its caller reads.
pub(crate) fn asks_for_json(words: &[OsString]) -> bool {
    let mut words = typed::own(words).iter().skip(1);
    while let Some(word) = words.next() {
        let says = |text: &str| word == text;
        let follows = says("--format") && words.clone().next().is_some_and(|next| next == "json");
        if says("--json") || says("--format=json") || follows {
            return true;
        }
    }
    false
}

/// Is a pager not wanted?
pub(crate) fn asks_for_no_pager(words: &[OsString]) -> bool {
    typed::own(words).iter().any(|word| word == "--no-pager")
}

/// Reads the command line. `columns` is how wide the environment says that lines may be.
pub(crate) fn parse(words: Vec<OsString>, columns: Option<&OsStr>) -> Words {
    if let Some(page) = front::asked(&words, columns) {
        return page;
    }
    let words = typed::meant(words);
    if let Some(number) = typed::wait_without_unit(&words) {
        let name = named_command(&words);
        let failure = no_duration(number, &name);
        return Words::Wrong { name, failure };
    }
    if let Some(args) = hot::parse(&words) {
        return checked(args, &words);
    }
    if let Some(topic) = topic::asked(&words) {
        let done = Done::new(&Text { text: topic.text.to_owned() }).with_text(topic.text).paged();
        return Words::Help { name: "help".to_owned(), done };
    }
    let error = match Args::try_parse_from(&words) {
        Ok(args) => return checked(args, &words),
        Err(error) => with_page(error, &words),
    };
    let name = named_command(&words);
    let text = error.render();
    match error.kind() {
        ErrorKind::DisplayHelp => {
            let done = Done::new(&Text { text: text.to_string() })
                .with_help(text.to_string(), text.ansi().to_string());
            Words::Help { name, done }
        }
        ErrorKind::DisplayVersion => {
            let version = env!("CARGO_PKG_VERSION");
            let done = Done::new(&Version { version });
            Words::Help { name, done: done.with_text(text.to_string()) }
        }
        _ => {
            let failure = wrong_usage(&error, &name, &words);
            Words::Wrong { name, failure }
        }
    }
}

/// An error that shows help shows the whole page, which is only made for it.
fn with_page(error: clap::Error, words: &[OsString]) -> clap::Error {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            tree().try_get_matches_from(words).err().unwrap_or(error)
        }
        _ => error,
    }
}

/// Worktrees are named as often as the command takes them, and all in one place: of
/// those before and after a command's name only the latter would count.
fn checked(args: Args, words: &[OsString]) -> Words {
    let named = typed::own(words).iter().skip(1).filter(|word| {
        let word = word.to_string_lossy();
        word == "--worktree" || word.starts_with("--worktree=") || word.starts_with("-w")
    });
    let (several, apart) =
        (args.global.worktree.len() > 1, named.count() > args.global.worktree.len());
    if !apart && (!several || args.command.takes_several()) {
        return Words::Command(args);
    }
    let name = args.command.name().to_owned();
    let wrong = match args.command.takes_several() {
        true => WrongUsage::new(
            "worktrees are named before and after the command",
            OwnNext::NameAllAfter(name.clone()),
        ),
        false => WrongUsage::new(
            format!("`jvs {name}` takes one worktree"),
            "name one with `-w`; several are for `run`, `shell`, `lock acquire` and `lock release`",
        ),
    };
    Words::Wrong { name, failure: wrong.into() }
}

/// The longest run of subcommands that the words begin with; `jvs` if none.
fn named_command(words: &[OsString]) -> String {
    let mut known = Args::command();
    let mut name = Vec::new();
    for word in words.iter().skip(1).take_while(|word| *word != "--") {
        let Some(next) = known.find_subcommand(word) else { continue };
        name.push(next.get_name().to_owned());
        known = next.clone();
    }
    if name.is_empty() { "jvs".to_owned() } else { name.join(" ") }
}

fn wrong_usage(error: &clap::Error, name: &str, typed: &[OsString]) -> Failure {
    let help = |similar| OwnNext::Help(name.to_owned(), similar);
    let command = if name == "jvs" { name.to_owned() } else { format!("jvs {name}") };
    let text = error.render().to_string();
    let needs_a_command = || WrongUsage::new(format!("`{command}` needs a command"), help(None));
    match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            return Failure::from(needs_a_command()).preceded_by(text + "\n");
        }
        ErrorKind::MissingSubcommand => return needs_a_command().into(),
        _ => {}
    }
    // The first paragraph is the sentence; later ones are usage and tips.
    let sentence = text.split("\n\n").next().unwrap_or_default();
    let sentence = sentence.strip_prefix("error: ").unwrap_or(sentence);
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let wrong = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg];
    let wrong = wrong.into_iter().find_map(|kind| error.get(kind)).map(ToString::to_string);
    if let Some(word) = wrong.as_ref().filter(|word| typed::follows_wait(typed, word)) {
        return no_duration(word, name);
    }
    let next = match wrong.as_ref().and_then(|word| foreign::answer(name, word)) {
        Some(answer) => OwnNext::InOwnWords(answer),
        None => help(similar(error, name)),
    };
    WrongUsage::new(words.join(" "), next).into()
}

fn no_duration(word: &str, name: &str) -> Failure {
    let message = format!("'{word}' after --wait is no duration, such as 30s, 10m or 1h30m");
    WrongUsage::new(message, OwnNext::WaitThisLong(name.to_owned())).into()
}

/// What is spelled much like the word that is wrong, the likeliest first.
fn similar(error: &clap::Error, name: &str) -> Option<String> {
    let Some(word) = error.get(ContextKind::InvalidSubcommand) else {
        return error.get(ContextKind::SuggestedArg).map(|it| quoted(&[&it.to_string()]));
    };
    let mut known = Args::command();
    for verb in name.split(' ').filter(|verb| *verb != "jvs") {
        known = known.find_subcommand(verb)?.clone();
    }
    let verbs = known.get_subcommands().filter(|verb| !verb.is_hide_set());
    let names: Vec<&str> = verbs.flat_map(clap::Command::get_name_and_visible_aliases).collect();
    let near = near::nearest(&word.to_string(), names);
    (!near.is_empty()).then(|| quoted(&near))
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ")
}

/// Is there a command of that name?
pub(crate) fn is_command(word: &str) -> bool {
    Args::command().find_subcommand(word).is_some()
}

/// The whole command tree as its pages show it, for help and manual pages.
pub(crate) fn tree() -> clap::Command {
    page::tree()
}

/// A command line as its words, for tests.
#[cfg(test)]
fn words_of(line: &str) -> Vec<OsString> {
    line.split(' ').map(OsString::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_tree_is_sound() {
        tree().debug_assert();
    }

    #[test]
    fn json_is_asked_for_anywhere_before_the_childs_own_words_of() {
        for (line, asked) in [
            ("jvs --json worktree list", true),
            ("jvs worktree list --json", true),
            ("jvs nonsense --json", true),
            ("jvs worktree list", false),
            ("jvs run -- make --json", false),
            ("jvs run make --json", false),
            ("jvs run --json make", true),
            ("--json", false),
        ] {
            assert_eq!(asks_for_json(&words_of(line)), asked, "{line}");
        }
    }

    #[test]
    fn the_named_command_is_what_parsing_would_name() {
        for (line, name) in [
            ("jvs", "jvs"),
            ("jvs nonsense", "jvs"),
            ("jvs --json worktree list", "worktree list"),
            ("jvs worktree create", "worktree create"),
        ] {
            assert_eq!(named_command(&words_of(line)), name, "{line}");
        }
        for command in ["init p", "worktree list", "config get k", "man", "completions bash"] {
            let line = words_of(&format!("jvs {command}"));
            let Words::Command(args) = parse(line.clone(), None) else {
                panic!("{command} parses")
            };
            assert_eq!(args.command.name(), named_command(&line));
        }
    }
}
