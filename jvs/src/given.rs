//! What is typed again after an answer: the commands in hints and warnings say `--repo`
//! and `--session` if the command line did, or they would be about another repository
//! and of another session.

use std::borrow::Cow;
use std::ffi::OsStr;

use jvs_repo::name::ShownName;

use crate::args::Global;

/// Words after `jvs` that are about no repository, or about a new one.
const ELSEWHERE: [&str; 3] = ["init", "demo", "help"];

/// What the command line said that every other one has to say, too.
#[derive(Debug, Clone, Default)]
pub(crate) struct GivenOptions {
    repo: Option<String>,
    session: Option<String>,
}

impl GivenOptions {
    pub(crate) fn of(global: &Global) -> Self {
        let option =
            |name: &str, value: &OsStr| format!(" --{name} {}", ShownName::new(value).typed());
        GivenOptions {
            repo: global.repo.as_ref().map(|path| option("repo", path.as_os_str())),
            session: global.session.as_ref().map(|id| option("session", id.as_ref())),
        }
    }

    /// The text, with all of its commands complete.
    pub(crate) fn complete<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let GivenOptions { repo, session } = self;
        if repo.is_none() && session.is_none() {
            return text.into();
        }
        let mut whole = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("jvs ") {
            let (before, after) = rest.split_at(at + "jvs".len());
            whole += before;
            rest = after;
            if !is_command(&whole, after) {
                continue;
            }
            // Up to the next of them: an option that is there is not said twice.
            let own = after.split(" jvs ").next().unwrap_or(after);
            for (name, option) in [("--repo", repo), ("--session", session)] {
                whole += option.as_deref().filter(|_| !own.contains(name)).unwrap_or_default();
            }
        }
        (whole + rest).into()
    }
}

/// Is it the program, with one of its commands, and not a part of another word?
fn is_command(until: &str, after: &str) -> bool {
    let starts = until.strip_suffix("jvs").is_some_and(|before| {
        before.chars().next_back().is_none_or(|c| c.is_whitespace() || "`('\"".contains(c))
    });
    let word: String = after.trim_start().chars().take_while(|c| c.is_ascii_lowercase()).collect();
    let is_verb = crate::args::is_command(&word);
    starts && is_verb && !ELSEWHERE.contains(&word.as_str())
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    ShownName::new(word).typed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(repo: Option<&str>, session: Option<&str>) -> GivenOptions {
        let (repo, session) = (repo.map(Into::into), session.map(str::to_owned));
        GivenOptions::of(&Global { repo, session, ..Global::default() })
    }

    #[test]
    fn a_hint_says_again_which_repository_and_session_were_meant() {
        let both = given(Some("/r s"), Some("a"));
        for (said, typed) in [
            ("jvs lock release", "jvs --repo '/r s' --session a lock release"),
            (
                "wait: jvs lock acquire --wait -w m, or see: jvs lock why -w m",
                "wait: jvs --repo '/r s' --session a lock acquire --wait -w m, or see: jvs --repo \
                 '/r s' --session a lock why -w m",
            ),
            ("`jvs config list` shows", "`jvs --repo '/r s' --session a config list` shows"),
            ("jvs lock renew --session b", "jvs --repo '/r s' lock renew --session b"),
            ("make one: jvs init PATH", "make one: jvs init PATH"),
            ("a bug in jvs; report it", "a bug in jvs; report it"),
            ("ended by jvs because", "ended by jvs because"),
            ("my-jvs status", "my-jvs status"),
        ] {
            assert_eq!(both.complete(said), typed);
        }
        assert_eq!(given(None, None).complete("jvs status"), "jvs status");
        assert_eq!(given(None, Some("x")).complete("jvs status"), "jvs --session x status");
    }
}
