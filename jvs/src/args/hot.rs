//! The short way for commands that scripts run again and again.
//!
//! Building the whole tree of commands costs more than asking a lock how it
//! stands. So the words `lock …` are first tried on a tree of just that one
//! command; whatever it does not take, a wrong word or a call for help, goes
//! the long way, whose answer is the only one that users see.

use std::ffi::OsString;

use clap::{Args as _, FromArgMatches as _};

use super::lock::{AcquireArgs, ReleaseArgs, StealArgs};
use super::{Args, Global};

/// The command, if it is a hot one and the words are right.
pub(super) fn parse(words: &[OsString]) -> Option<Args> {
    let verb = match plain_words(words)? {
        ["lock", "acquire"] => AcquireArgs::augment_args(clap::Command::new("acquire")),
        ["lock", "steal"] => StealArgs::augment_args(clap::Command::new("steal")),
        ["lock", "renew"] => clap::Command::new("renew"),
        ["lock", "release"] => ReleaseArgs::augment_args(clap::Command::new("release")),
        ["lock", "status"] => clap::Command::new("status"),
        _ => return None,
    };
    let group = clap::Command::new("lock").subcommand(bare(verb)).subcommand_required(true);
    let tree = Global::augment_args(clap::Command::new("jvs").subcommand(bare(group)));
    let matches = bare(tree).subcommand_required(true).try_get_matches_from(words).ok()?;
    Args::from_arg_matches(&matches).ok()
}

fn bare(command: clap::Command) -> clap::Command {
    command.disable_help_flag(true).disable_help_subcommand(true).disable_version_flag(true)
}

/// The first two words that are neither options nor their values.
fn plain_words(words: &[OsString]) -> Option<[&str; 2]> {
    let mut plain = ["", ""];
    let mut found = 0;
    let mut words = words.iter().skip(1);
    while found < 2 {
        match words.next()?.to_str()? {
            "--repo" | "--worktree" | "-w" | "--session" => drop(words.next()?),
            option if option.starts_with('-') => {}
            word => {
                plain[found] = word;
                found += 1;
            }
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

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
        ] {
            let line = words(line);
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
        ] {
            assert!(parse(&words(line)).is_none(), "{line}");
        }
    }
}
