//! The session id of those who did not say one: the terminal session they are
//! in. Each terminal is its own session, however many users or hosts share a
//! repository.

use jvs_repo::id::hex;
use jvs_repo::proc;

use super::Unusable;

/// `term:<host>:<leader pid>:<digest>`. The digest covers all that tells this
/// terminal session from any other, ever: a pid alone comes back.
pub(super) fn session_id() -> Result<String, Unusable> {
    let unknown = || {
        Unusable::new(
            "cannot tell which terminal session this is: its leader cannot be seen from here",
            "say who you are: export JVS_SESSION_ID=NAME, one name for each agent or terminal",
        )
    };
    let me = proc::process_stat(std::process::id()).ok_or_else(unknown)?;
    // In a container the leader may live outside: pid 0, never found.
    let leader = proc::process_stat(me.session_leader).ok_or_else(unknown)?;
    let boot = proc::boot_id().ok_or_else(unknown)?;
    let namespace = proc::pid_namespace().ok_or_else(unknown)?;
    let host = proc::hostname();
    let (pid, start) = (me.session_leader, leader.start_ticks);
    let all = format!("{host}\n{boot}\n{namespace}\n{pid}\n{start}");
    let digest = blake3::derive_key("jvs terminal session v1", all.as_bytes());
    let host: String = host.chars().filter(char::is_ascii_graphic).take(64).collect();
    Ok(format!("term:{host}:{pid}:{}", hex(&digest[..8])))
}
