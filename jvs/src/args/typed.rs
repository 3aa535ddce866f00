//! What is typed in a way that the parser alone would not understand: `jvs acquire`,
//! `--wait 5s`, and which words of `jvs run` are its own.

use std::ffi::OsString;

use jvs_repo::duration::Period;

/// Options of `jvs run` and of every command that take the next word as their value.
const VALUED: &[&str] = &[
    "--repo",
    "-w",
    "--worktree",
    "--session",
    "--lease",
    "--on-loss",
    "--snapshot",
    "--purpose",
    "--contain",
    "--note",
];

/// Verbs of locks that are understood without `lock`.
const LOCK_VERBS: &[&str] = &["acquire", "release"];

/// Verbs that can wait.
const WAITING: &[&str] = &["lock", "run", "shell"];

/// The words as the parser understands them.
pub(super) fn meant(words: Vec<OsString>) -> Vec<OsString> {
    let Some(verb) = verb(&words) else { return words };
    let mut words = words;
    if LOCK_VERBS.iter().any(|it| words[verb] == *it) {
        words.insert(verb, "lock".into());
    }
    let waits = WAITING.iter().any(|it| words[verb] == *it);
    let own = own(&words).len();
    let apart = |at: &usize| waits && words[*at] == "--wait" && is_period(words.get(at + 1));
    let Some(at) = (verb..own.saturating_sub(1)).find(apart) else { return words };
    let span = words.remove(at + 1);
    words[at].push("=");
    words[at].push(span);
    words
}

/// Does this word come right after `--wait`, as its value would?
pub(super) fn follows_wait(words: &[OsString], word: &str) -> bool {
    words.windows(2).any(|pair| pair[0] == "--wait" && pair[1] == word)
}

/// The word right after `--wait` that is a time but for its unit: who types it means no
/// command of that name.
pub(super) fn wait_without_unit(words: &[OsString]) -> Option<&str> {
    let at = verb(words).filter(|at| WAITING.iter().any(|it| words[*at] == *it))?;
    // What is run has words of its own.
    let end = match words[at] == "run" {
        true => plain(words, at + 1).map_or(words.len(), |run| run + 1),
        false => words.len(),
    };
    let own = words[at..end].split(|word| word == "--").next().unwrap_or_default();
    let pair = own.windows(2).find(|pair| pair[0] == "--wait")?;
    let number = pair[1].to_str()?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    (is_number && number.starts_with(|c: char| c.is_ascii_digit())).then_some(number)
}

/// The words that are the command's own: up to `--`, or up to the command that is run.
pub(super) fn own(words: &[OsString]) -> &[OsString] {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let own = &words[..end];
    match verb(own).filter(|at| own[*at] == "run") {
        Some(run) => plain(own, run + 1).map_or(own, |at| &own[..at]),
        None => own,
    }
}

/// Where the verb is.
fn verb(words: &[OsString]) -> Option<usize> {
    plain(words, 1)
}

/// The first word from there on that is neither an option nor the value of one.
fn plain(words: &[OsString], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(word) = words.get(at) {
        let word = word.to_str().unwrap_or_default();
        match word {
            "--" => return None,
            "--wait" if is_period(words.get(at + 1)) => at += 2,
            option if VALUED.contains(&option) => at += 2,
            option if option.starts_with('-') => at += 1,
            _ => return Some(at),
        }
    }
    None
}

fn is_period(word: Option<&OsString>) -> bool {
    word.and_then(|word| word.to_str()).is_some_and(|word| word.parse::<Period>().is_ok())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::words_of;
    use super::*;

    #[test]
    fn what_is_typed_is_what_is_meant() {
        for (typed, understood) in [
            ("jvs acquire", "jvs lock acquire"),
            ("jvs -w x release --force", "jvs -w x lock release --force"),
            ("jvs acquire --wait 5s --note x", "jvs lock acquire --wait=5s --note x"),
            ("jvs lock acquire --wait 1h30m", "jvs lock acquire --wait=1h30m"),
            ("jvs lock acquire --wait", "jvs lock acquire --wait"),
            ("jvs lock acquire --wait=5s", "jvs lock acquire --wait=5s"),
            ("jvs lock acquire --wait soon", "jvs lock acquire --wait soon"),
            ("jvs run --wait 5s make", "jvs run --wait=5s make"),
            ("jvs run --wait make --wait 5s", "jvs run --wait make --wait 5s"),
            ("jvs run --join make --wait 5s", "jvs run --join make --wait 5s"),
            ("jvs run --wait -- 5s", "jvs run --wait -- 5s"),
            ("jvs run -- acquire --wait 5s", "jvs run -- acquire --wait 5s"),
            ("jvs run --note x --wait 5s -- y", "jvs run --note x --wait=5s -- y"),
            ("jvs snapshot acquire", "jvs snapshot acquire"),
            ("jvs --repo acquire status", "jvs --repo acquire status"),
            ("jvs", "jvs"),
        ] {
            assert_eq!(meant(words_of(typed)), words_of(understood), "{typed}");
        }
    }

    #[test]
    fn a_number_after_wait_is_a_time_whose_unit_is_missing() {
        for (line, number) in [
            ("jvs run --wait 5 make", Some("5")),
            ("jvs run --wait 1.5 make", Some("1.5")),
            ("jvs run --note x --wait 5 -- make", Some("5")),
            ("jvs shell --wait 10", Some("10")),
            ("jvs lock acquire --wait 5", Some("5")),
            ("jvs run --wait -- 5", None),
            ("jvs run --wait 5s 5", None),
            ("jvs run --wait 7z x", None),
            ("jvs run --wait make --wait 5", None),
            ("jvs run make --wait 5", None),
            ("jvs snapshot --wait 5", None),
        ] {
            assert_eq!(wait_without_unit(&words_of(line)), number, "{line}");
        }
    }

    #[test]
    fn the_words_of_what_is_run_are_not_the_commands_own() {
        for (line, own_words) in [
            ("jvs run make --json -w x", "jvs run"),
            ("jvs run --json --lease 3s make --json", "jvs run --json --lease 3s"),
            ("jvs run -w x -- --json", "jvs run -w x"),
            ("jvs run --wait 5s make", "jvs run --wait 5s"),
            ("jvs status --json x", "jvs status --json x"),
        ] {
            assert_eq!(own(&words_of(line)), words_of(own_words), "{line}");
        }
    }

    #[test]
    fn every_option_of_a_run_that_takes_a_value_is_known() {
        let tree = super::super::Args::command();
        let run = tree.find_subcommand("run").expect("a command");
        let options = run.get_arguments().chain(tree.get_arguments());
        let valued = options.filter(|it| {
            it.get_action().takes_values() && !it.is_positional() && !it.is_require_equals_set()
        });
        let mut all = Vec::new();
        for option in valued {
            all.extend(option.get_short().map(|short| format!("-{short}")));
            all.extend(option.get_long().map(|long| format!("--{long}")));
        }
        all.sort();
        all.dedup();
        let mut known = VALUED.to_vec();
        known.sort_unstable();
        assert_eq!(all, known);
    }
}
