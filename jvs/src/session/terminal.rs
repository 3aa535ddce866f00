//! The session id of those who did not say one: the terminal session they are
//! in. Each terminal is its own session, however many users or hosts share a
//! repository.

use jvs_repo::id::hex;
use jvs_repo::proc::{self, ProcessStat};

use super::Unusable;

/// The id of the terminal session that this process is in.
pub(super) fn session_id() -> Result<String, Unusable> {
    let me = proc::process_stat(std::process::id());
    let here = me.and_then(|me| LedSession::led_by(me.session_leader));
    here.and_then(|here| here.session_id(proc::process_stat)).ok_or_else(|| {
        Unusable::new(
            "cannot tell which terminal session this is: its leader cannot be seen from here",
            "say who you are: export JVS_SESSION_ID=NAME, one name for each agent or terminal",
        )
    })
}

/// What the id of a terminal session begins with.
const PREFIX: &str = "term:";

/// The process id of the leader that the id of a terminal session names.
pub(super) fn leader_in(id: &str) -> Option<u32> {
    let (_, rest) = id.strip_prefix(PREFIX)?.split_once(':')?;
    rest.split_once(':')?.0.parse().ok()
}

/// The terminal of the session `id`, if its leader is there and is the very process
/// that it was named after.
pub(super) fn of(id: &str) -> Option<String> {
    let leader = leader_in(id)?;
    is_open(id).then(|| proc::terminal_of(leader))?
}

/// Is the leader of the session `id` there, as seen from here?
pub(super) fn is_open(id: &str) -> bool {
    let same = leader_in(id).and_then(LedSession::led_by);
    same.and_then(|here| here.session_id(proc::process_stat)).is_some_and(|same| same == id)
}

/// Where this process stands.
#[derive(Clone)]
struct LedSession {
    host: String,
    boot: String,
    pid_namespace: u64,
    leader: u32,
}

impl LedSession {
    fn led_by(leader: u32) -> Option<Self> {
        let (boot, pid_namespace) = (proc::boot_id()?, proc::pid_namespace()?);
        Some(LedSession { host: proc::hostname(), boot, pid_namespace, leader })
    }

    /// `term:<host>:<leader pid>:<digest>`. The digest covers all that tells
    /// this terminal session from any other, ever: a pid alone comes back.
    ///
    /// `None` if the leader is not there to be told from a later one: it has
    /// ended, or lives outside this container, where its pid is 0.
    fn session_id(&self, lookup: impl Fn(u32) -> Option<ProcessStat>) -> Option<String> {
        let start = lookup(self.leader)?.start_ticks;
        let LedSession { host, boot, pid_namespace, leader } = self;
        let all = format!("{host}\n{boot}\n{pid_namespace}\n{leader}\n{start}");
        let digest = blake3::derive_key("jvs terminal session v1", all.as_bytes());
        let host: String = host.chars().filter(char::is_ascii_graphic).take(64).collect();
        Some(format!("{PREFIX}{host}:{leader}:{}", hex(&digest[..8])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(start_ticks: u64) -> impl Fn(u32) -> Option<ProcessStat> {
        let stat = ProcessStat { start_ticks, session_leader: 7, zombie: false };
        move |pid| (pid == 7).then_some(stat)
    }

    #[test]
    fn a_terminal_is_told_from_every_other_and_from_its_successors() {
        let here = LedSession { host: "h".into(), boot: "b".into(), pid_namespace: 1, leader: 7 };
        let id = here.session_id(started(5)).expect("told");
        assert!(id.starts_with("term:h:7:"), "{id}");
        assert_eq!(here.session_id(started(5)), Some(id.clone()));
        assert_ne!(here.session_id(started(6)), Some(id.clone()), "the pid was used again");
        let elsewhere = [
            LedSession { host: "other".into(), ..here.clone() },
            LedSession { boot: "later".into(), ..here.clone() },
            LedSession { pid_namespace: 2, ..here.clone() },
        ];
        for other in elsewhere {
            assert_ne!(other.session_id(started(5)), Some(id.clone()));
        }
    }

    #[test]
    fn a_leader_that_cannot_be_seen_gives_no_id() {
        let outside =
            LedSession { host: "h".into(), boot: "b".into(), pid_namespace: 1, leader: 0 };
        assert_eq!(outside.session_id(started(5)), None);
    }

    #[test]
    fn a_long_or_odd_host_name_still_makes_a_valid_id() {
        let host = "hö st".repeat(100);
        let here = LedSession { host, boot: "b".into(), pid_namespace: 1, leader: 7 };
        let id = here.session_id(started(5)).expect("told");
        assert!(id.parse::<jvs_lock::session::SessionId>().is_ok(), "{id}");
    }
}
