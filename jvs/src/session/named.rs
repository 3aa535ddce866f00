//! Who is asking, and how that is known: said, told by what started us, or seen
//! from the terminal.
//!
//! A name that ends with the command is no name: a process that has neither a name nor a
//! terminal may work for the length of one command, and is promised nothing more.

use jvs_lock::session::{SESSION_ID_MAX, SessionId};
use jvs_repo::id::hex;

use super::{Unusable, terminal};
use crate::context::Env;
use crate::fail::Failure;
use crate::hint::OwnNext;

/// How a session's id was found. The order is the order of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whence {
    /// The option `--session`.
    Option,
    /// The variable `JVS_SESSION_ID`.
    Variable,
    /// The agent or CI system that this command was started by.
    Harness(&'static str),
    /// The terminal that it was typed at.
    Terminal,
    /// Nobody said, and there is no terminal: whatever leads this process session,
    /// which may be nothing but the shell of this one command.
    Leader,
}

impl Whence {
    /// Will the session's next command be the same session?
    pub(crate) fn lasts(self) -> bool {
        self != Whence::Leader
    }
}

/// A session's id, and how it was found.
pub(crate) struct NamedSession {
    pub(crate) id: SessionId,
    pub(crate) whence: Whence,
}

/// One system that runs commands for somebody, and how it tells whom.
struct Harness {
    name: &'static str,
    /// It is this one only if these say yes.
    is: &'static [&'static str],
    /// Together they name the session; those after the first may be missing.
    names: &'static [&'static str],
}

/// Agents before CI systems: two agents in one job are two sessions. The table in
/// `spec/holds.md` is this one.
const HARNESSES: &[Harness] = &[
    Harness { name: "claude-code", is: &[], names: &["CLAUDE_CODE_SESSION_ID"] },
    Harness { name: "codex", is: &[], names: &["CODEX_THREAD_ID"] },
    Harness { name: "ci", is: &["CI_SYSTEM"], names: &["CI_RUN_ID", "CI_SYSTEM"] },
    Harness {
        name: "github",
        is: &["GITHUB_ACTIONS"],
        names: &["GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "GITHUB_JOB"],
    },
    Harness { name: "gitlab", is: &["GITLAB_CI"], names: &["CI_JOB_ID"] },
    Harness { name: "buildkite", is: &["BUILDKITE"], names: &["BUILDKITE_JOB_ID"] },
    Harness { name: "circleci", is: &["CIRCLECI"], names: &["CIRCLE_WORKFLOW_JOB_ID"] },
    Harness { name: "jenkins", is: &["JENKINS_URL"], names: &["BUILD_TAG"] },
    Harness { name: "azure", is: &["TF_BUILD"], names: &["SYSTEM_JOBID"] },
];

/// Finds out. Makes nothing.
pub(super) fn find(given: Option<&str>, env: Env<'_>) -> Result<NamedSession, Failure> {
    if let Some(named) = said(given, env)? {
        return Ok(named);
    }
    let whence = if has_terminal() { Whence::Terminal } else { Whence::Leader };
    Ok(NamedSession { id: terminal::session_id()?.parse()?, whence })
}

/// The same, if somebody said so: the user, or what started this command.
pub(super) fn said(given: Option<&str>, env: Env<'_>) -> Result<Option<NamedSession>, Failure> {
    if let Some(id) = given {
        return Ok(Some(NamedSession { id: id.parse()?, whence: Whence::Option }));
    }
    if let Some(id) = env.text("JVS_SESSION_ID")? {
        return Ok(Some(NamedSession { id: id.parse()?, whence: Whence::Variable }));
    }
    Ok(harness(env)?.map(|(name, id)| NamedSession { id, whence: Whence::Harness(name) }))
}

/// The variables that the agent or CI system of that name tells whom by.
pub(crate) fn variables_of(system: &str) -> &'static [&'static str] {
    HARNESSES.iter().find(|it| it.name == system).map_or(&[], |it| it.names)
}

/// The agent or CI system that this command runs under, no matter who named the session.
pub(super) fn agent(env: Env<'_>) -> Option<&'static str> {
    harness(env).ok().flatten().map(|(name, _)| name)
}

/// Is that id one that the agent or CI system of that name gave?
pub(super) fn is_called_by(id: &SessionId, agent: &str) -> bool {
    id.as_str().strip_prefix(agent).is_some_and(|rest| rest.starts_with(':'))
}

/// The session that the system of that name calls `run`.
pub(crate) fn id_of_run(system: &str, run: &str) -> SessionId {
    as_id(system, &[run.to_owned()])
}

fn harness(env: Env<'_>) -> Result<Option<(&'static str, SessionId)>, Failure> {
    for Harness { name, is, names } in HARNESSES {
        if !is.iter().all(|variable| env.says_yes(variable)) {
            continue;
        }
        let mut parts = Vec::new();
        for variable in *names {
            parts.extend(env.text(variable)?);
            if parts.is_empty() {
                break;
            }
        }
        if !parts.is_empty() {
            return Ok(Some((name, as_id(name, &parts))));
        }
    }
    Ok(None)
}

/// What a system calls its runs may be too long for an id, or of other characters:
/// then a digest stands for it.
fn as_id(name: &str, parts: &[String]) -> SessionId {
    let plain = format!("{name}:{}", parts.join(":"));
    plain.parse().unwrap_or_else(|_| {
        let digest = blake3::derive_key("jvs harness session v1", plain.as_bytes());
        let short = format!("{name}:{}", hex(&digest[..16]));
        debug_assert!(short.len() <= SESSION_ID_MAX);
        short.parse().expect("a plain word and hex digits")
    })
}

/// Does this process have a controlling terminal?
pub(crate) fn has_terminal() -> bool {
    std::fs::OpenOptions::new().read(true).open("/dev/tty").is_ok()
}

/// Refuses to promise what ends with this very command.
pub(crate) fn require_lasting(whence: Whence) -> Result<(), Unusable> {
    if whence.lasts() {
        return Ok(());
    }
    Err(Unusable::new(
        "there is no terminal and no session name, so a lock would be nobody's as soon as this \
         command ends",
        OwnNext::NameSessionOrRun,
    ))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn found(given: Option<&str>, variables: &[(&str, &str)]) -> (String, Whence) {
        let get = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let named = find(given, Env::new(&get)).expect("an id");
        (named.id.as_str().to_owned(), named.whence)
    }

    #[test]
    fn what_is_said_comes_before_what_is_seen() {
        let ci = [("CI_SYSTEM", "drone"), ("CI_RUN_ID", "7")];
        let all = [("JVS_SESSION_ID", "mine"), ci[0], ci[1]];
        assert_eq!(found(Some("told"), &all), ("told".into(), Whence::Option));
        assert_eq!(found(None, &all), ("mine".into(), Whence::Variable));
        assert_eq!(found(None, &ci), ("ci:7:drone".into(), Whence::Harness("ci")));
        assert!(harness(Env::new(&|_| None)).expect("readable").is_none());
    }

    #[test]
    fn the_steps_of_a_job_are_one_session_and_two_jobs_are_two() {
        let job = |run: &'static str, job: &'static str| {
            let variables =
                [("GITHUB_ACTIONS", "true"), ("GITHUB_RUN_ID", run), ("GITHUB_JOB", job)];
            found(None, &variables).0
        };
        assert_eq!(job("12", "build"), "github:12:build");
        assert_ne!(job("12", "build"), job("12", "test"));
        assert_ne!(job("12", "build"), job("13", "build"));
    }

    #[test]
    fn an_agent_in_a_job_is_its_own_session() {
        let variables =
            [("GITHUB_ACTIONS", "true"), ("GITHUB_RUN_ID", "12"), ("CODEX_THREAD_ID", "0199-ab")];
        assert_eq!(found(None, &variables).0, "codex:0199-ab");
    }

    #[test]
    fn a_variable_of_one_system_means_nothing_in_another() {
        let get = |name: &str| match name {
            "CI_JOB_ID" => Some(OsString::from("5")),
            "BUILD_TAG" => Some(OsString::from("x")),
            _ => None,
        };
        assert!(harness(Env::new(&get)).expect("readable").is_none());
    }

    #[test]
    fn odd_and_long_names_of_runs_become_ids_all_the_same() {
        for odd in ["a b", "\u{e9}", &"x".repeat(500)] {
            let (id, _) = found(None, &[("CLAUDE_CODE_SESSION_ID", odd)]);
            assert!(id.starts_with("claude-code:") && id.len() < 64, "{id}");
        }
    }

    #[test]
    fn nothing_is_promised_to_whom_the_next_command_is_not() {
        assert!(require_lasting(Whence::Terminal).is_ok());
        assert!(require_lasting(Whence::Leader).is_err());
    }
}
