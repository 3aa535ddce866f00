//! What may come next on a command line that somebody is still typing: decided from the
//! same tree that is parsed. Nothing is looked up here.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, Command, CommandFactory as _};
use jvs_repo::config::{Consistency, Engine};
use jvs_repo::metadata::Purpose;

use super::{Args, Global, topic, typed};

/// The command that shells ask. Never typed.
pub(crate) const COMMAND: &str = "__complete";

/// The words so far, the one that is being typed last.
#[derive(Debug, clap::Args)]
pub(crate) struct CompleteArgs {
    /// As the shell has them, beginning with the name of this command
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<OsString>,
}

/// What a word may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// One of these, with what each is.
    Words(Vec<(String, String)>),
    Worktrees,
    Snapshots,
    /// One of them, or a file.
    SnapshotsAndFiles,
    Operations,
    Tags,
    Sessions,
    Keys,
    Files,
    Directories,
    /// A file of the snapshot that was named before.
    FilesOf(String),
    /// A program.
    Programs,
    /// Something that only the user knows.
    Anything,
}

/// What comes next, and in which repository.
#[derive(Debug)]
pub(crate) struct LineAsked {
    pub(crate) wanted: Wanted,
    /// What there is of the word, without what is before a value.
    pub(crate) begun: String,
    /// What is before a value: `--repo=`.
    pub(crate) before: String,
    pub(crate) global: Global,
}

/// What may be typed for an argument of a command, by their names; `None` if nobody has
/// thought of it yet.
fn kind(command: &str, arg: &str) -> Option<Wanted> {
    let words = |words: &[&str]| {
        let words = words.iter().map(|word| ((*word).to_owned(), String::new()));
        Wanted::Words(words.collect())
    };
    Some(match (command, arg) {
        ("create", "name") | ("hook", "event") => Wanted::Anything,
        ("undo", "op") => Wanted::Operations,
        ("restore", "words") => Wanted::SnapshotsAndFiles,
        (_, "worktree" | "old") | ("path" | "remove", "name") => Wanted::Worktrees,
        (_, "repo" | "second_mount" | "dir" | "tla") | ("init", "path") => Wanted::Directories,
        (_, "session" | "to" | "id") => Wanted::Sessions,
        (_, "snapshots" | "before" | "after" | "from" | "head") => Wanted::Snapshots,
        ("snapshot" | "tag", "note" | "message" | "tags" | "name") => Wanted::Anything,
        ("run" | "shell", "snapshot") => Wanted::Anything,
        (_, "snapshot") => Wanted::Snapshots,
        (_, "delete" | "keep_tag") => Wanted::Tags,
        (_, "key") => Wanted::Keys,
        (_, "path" | "paths" | "only" | "html") => Wanted::Files,
        ("schema", "words") => Wanted::Anything,
        ("run", "command") => Wanted::Programs,
        (_, "purpose") => words(Purpose::WORDS),
        (_, "consistency") => words(Consistency::WORDS),
        (_, "engine") => words(Engine::WORDS),
        ("init", "shared") => words(&["group", "all"]),
        (
            _,
            "lease" | "note" | "for_" | "while_" | "wait" | "reason" | "new" | "number" | "grep"
            | "into" | "keep_last" | "keep_hourly" | "keep_daily" | "keep_weekly" | "keep_monthly"
            | "keep_yearly" | "keep_within" | "value" | "since",
        ) => Wanted::Anything,
        _ => return None,
    })
}

/// Reads what was typed so far.
pub(crate) fn asked(words: &[OsString]) -> LineAsked {
    let last = words.last().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let before = words.get(..words.len().saturating_sub(1)).unwrap_or_default();
    let mut line = Line::new();
    for word in typed::meant(before.to_vec()).iter().skip(1) {
        line.take(&word.to_string_lossy());
    }
    line.next(last)
}

/// As far as a command line was read.
struct Line {
    command: Command,
    /// The positional arguments so far.
    plain: Vec<String>,
    /// The option whose value comes next.
    open: Option<Arg>,
    /// Only positional arguments from here on.
    ended: bool,
    /// The words are those of `jvs help`.
    helps: bool,
    global: Global,
}

impl Line {
    fn new() -> Self {
        let global = Global::default();
        let mut command = Args::command();
        command.build();
        Line { command, plain: Vec::new(), open: None, ended: false, helps: false, global }
    }

    fn take(&mut self, word: &str) {
        if let Some(open) = self.open.take() {
            return self.value(&open, word);
        }
        if self.is_of_another_program() {
            self.plain.push(word.to_owned());
        } else if self.ended || !word.starts_with('-') || word == "-" {
            self.plain_word(word);
        } else if word == "--" {
            self.ended = true;
        } else if let Some((name, value)) = word.split_once('=') {
            if let Some(arg) = self.option(name) {
                self.value(&arg, value);
            }
        } else {
            let takes = |it: &Arg| it.get_action().takes_values() && !it.is_require_equals_set();
            self.open = self.option(word).filter(takes);
        }
    }

    fn plain_word(&mut self, word: &str) {
        if self.command.get_name() == "help" {
            self.helps = true;
        }
        match self.command.find_subcommand(word).filter(|_| !self.ended) {
            Some(below) => self.command = below.clone(),
            None => self.plain.push(word.to_owned()),
        }
    }

    /// From its first word on, what is run has words of its own.
    fn is_of_another_program(&self) -> bool {
        self.command.get_name() == "run" && !self.plain.is_empty()
    }

    fn value(&mut self, arg: &Arg, value: &str) {
        match arg.get_id().as_str() {
            "repo" => self.global.repo = Some(PathBuf::from(value)),
            "worktree" => self.global.worktree = vec![value.to_owned()],
            "session" => self.global.session = Some(value.to_owned()),
            _ => {}
        }
    }

    fn option(&self, word: &str) -> Option<Arg> {
        let mut all = self.command.get_arguments();
        let found = match word.strip_prefix("--") {
            Some(long) => all.find(|it| it.get_long() == Some(long)),
            None => all.find(|it| it.get_short() == word.chars().nth(1)),
        };
        found.cloned()
    }

    /// What the last word may be.
    fn next(self, last: String) -> LineAsked {
        let (wanted, before, begun) = match &self.open {
            Some(open) => (self.of(open), String::new(), last),
            None if self.ended || self.is_of_another_program() || !last.starts_with('-') => {
                (self.positional(), String::new(), last)
            }
            None => match last.split_once('=') {
                Some((name, value)) => {
                    let wanted = self.option(name).map(|arg| self.of(&arg));
                    let wanted = wanted.unwrap_or(Wanted::Anything);
                    (wanted, format!("{name}="), value.to_owned())
                }
                None => (self.options(), String::new(), last),
            },
        };
        LineAsked { wanted, begun, before, global: self.global }
    }

    fn of(&self, arg: &Arg) -> Wanted {
        let possible = arg.get_possible_values();
        if !possible.is_empty() {
            let shown = possible.iter().filter(|it| !it.is_hide_set());
            let told = |it: &clap::builder::PossibleValue| {
                let help = it.get_help().map(ToString::to_string).unwrap_or_default();
                (it.get_name().to_owned(), help)
            };
            return Wanted::Words(shown.map(told).collect());
        }
        let found = kind(self.command.get_name(), arg.get_id().as_str());
        match (found, self.plain.first()) {
            // What may be looked up without restoring it.
            (Some(Wanted::Files), Some(snapshot))
                if ["ls", "cat", "path"].contains(&self.command.get_name()) =>
            {
                Wanted::FilesOf(snapshot.clone())
            }
            (Some(Wanted::SnapshotsAndFiles), Some(_)) => Wanted::Files,
            (found, _) => found.unwrap_or(Wanted::Anything),
        }
    }

    fn positional(&self) -> Wanted {
        let is_help = self.command.get_name() == "help";
        if self.command.has_subcommands() && self.plain.is_empty() {
            let mut words: Vec<(String, String)> = Vec::new();
            for it in self.command.get_subcommands().filter(|it| !it.is_hide_set()) {
                let about = it.get_about().map(ToString::to_string).unwrap_or_default();
                words.push((it.get_name().to_owned(), about));
            }
            if is_help && !self.helps {
                let topics = topic::TOPICS.iter();
                words.extend(topics.map(|it| (it.name.to_owned(), it.about.to_owned())));
            }
            return Wanted::Words(words);
        }
        if self.is_of_another_program() {
            return Wanted::Files;
        }
        // What comes after `--` alone comes nowhere else.
        let all: Vec<&Arg> = self.command.get_positionals().collect();
        let has_last = all.iter().any(|it| it.is_last_set());
        let here = |it: &&&Arg| it.is_last_set() == (self.ended && has_last);
        let all: Vec<&&Arg> = all.iter().filter(here).collect();
        let arg = all.get(self.plain.len()).or(all.last().filter(|it| is_many(it)));
        arg.map_or(Wanted::Anything, |arg| self.of(arg))
    }

    fn options(&self) -> Wanted {
        let mut words = Vec::new();
        for arg in self.command.get_arguments().filter(|it| !it.is_hide_set()) {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let long = arg.get_long().map(|long| format!("--{long}"));
            let short = arg.get_short().map(|short| format!("-{short}"));
            words.extend(long.or(short).map(|name| (name, help)));
        }
        Wanted::Words(words)
    }
}

/// May it be given more than once?
fn is_many(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|range| range.max_values() > 1)
        || matches!(arg.get_action(), clap::ArgAction::Append)
}

#[cfg(test)]
mod tests {
    use super::super::words_of;
    use super::*;

    fn ask(line: &str) -> LineAsked {
        asked(&words_of(line))
    }

    fn names(line: &str) -> Vec<String> {
        let Wanted::Words(words) = ask(line).wanted else { panic!("{line}") };
        words.into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn what_comes_next_is_known_from_what_stands_before() {
        for (line, wanted) in [
            ("jvs worktree path ", Wanted::Worktrees),
            ("jvs worktree rename m", Wanted::Worktrees),
            ("jvs worktree create x --from ", Wanted::Snapshots),
            ("jvs -w ", Wanted::Worktrees),
            ("jvs lock acquire --worktree=m", Wanted::Worktrees),
            ("jvs --session ", Wanted::Sessions),
            ("jvs session forget ", Wanted::Sessions),
            ("jvs --repo ", Wanted::Directories),
            ("jvs info ", Wanted::Snapshots),
            ("jvs restore ", Wanted::SnapshotsAndFiles),
            ("jvs restore @ ", Wanted::Files),
            ("jvs restore @ --in-place a ", Wanted::Files),
            ("jvs restore -- ", Wanted::Files),
            ("jvs undo --op ", Wanted::Operations),
            ("jvs cat @ s", Wanted::FilesOf("@".into())),
            ("jvs path ", Wanted::Snapshots),
            ("jvs path v1 s", Wanted::FilesOf("v1".into())),
            ("jvs diff @ ", Wanted::Snapshots),
            ("jvs diff @ -- s", Wanted::Files),
            ("jvs verify a ", Wanted::Snapshots),
            ("jvs tag --delete ", Wanted::Tags),
            ("jvs gc --keep-tag ", Wanted::Tags),
            ("jvs forget ", Wanted::Snapshots),
            ("jvs show -p ", Wanted::Snapshots),
            ("jvs history ", Wanted::Files),
            ("jvs config get ", Wanted::Keys),
            ("jvs run --wait ", Wanted::Programs),
            ("jvs run --note x -- ", Wanted::Programs),
            ("jvs run make -", Wanted::Files),
            ("jvs snapshot ", Wanted::Anything),
            ("jvs lock acquire --note ", Wanted::Anything),
        ] {
            assert_eq!(ask(line).wanted, wanted, "{line}");
        }
        let asked = ask("jvs --repo /r -w x info --session=s @");
        assert_eq!(asked.global.repo, Some(PathBuf::from("/r")));
        assert_eq!(
            (asked.global.worktree, asked.global.session),
            (vec!["x".into()], Some("s".into()))
        );
        let asked = ask("jvs info --repo=/r");
        assert_eq!((asked.before.as_str(), asked.begun.as_str()), ("--repo=", "/r"));
    }

    #[test]
    fn words_are_those_of_the_command_and_nothing_internal_is_among_them() {
        assert!(names("jvs ").contains(&"lock".to_owned()));
        assert!(names("jvs lock ").contains(&"acquire".to_owned()));
        assert!(names("jvs acquire --").contains(&"--wait".to_owned()));
        assert!(names("jvs help ").contains(&"agents".to_owned()));
        assert!(names("jvs help lock ").contains(&"acquire".to_owned()));
        assert!(names("jvs completions ").contains(&"fish".to_owned()));
        assert!(names("jvs run --on-loss ").contains(&"warn".to_owned()));
        assert!(
            Engine::WORDS.iter().all(|it| names("jvs snapshot --engine ").contains(&(*it).into()))
        );
        assert!(names("jvs lock acquire --").contains(&"--session".to_owned()));
        for line in ["jvs ", "jvs help "] {
            assert!(names(line).iter().all(|name| !name.starts_with('_')), "{line}");
        }
    }

    /// Of an argument that nobody has thought of, nothing is completed.
    #[test]
    fn every_value_has_a_kind() {
        fn each(command: &Command, missing: &mut Vec<String>) {
            for arg in command.get_arguments() {
                let (name, id) = (command.get_name(), arg.get_id().as_str());
                let takes = arg.get_action().takes_values() || arg.is_positional();
                if takes && arg.get_possible_values().is_empty() && kind(name, id).is_none() {
                    missing.push(format!("{name} {id}"));
                }
            }
            for it in command.get_subcommands().filter(|it| !it.is_hide_set()) {
                each(it, missing);
            }
        }
        let mut missing = Vec::new();
        each(&Args::command(), &mut missing);
        assert_eq!(missing, Vec::<String>::new(), "say in `kind` what they may be");
    }
}
