//! Who this server is to the lock: a session of its own, or the one that it was given.
//!
//! Two servers that speak for one session would use each other's locks, so a session that
//! was given is claimed, and the second server is told so.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::rand::{GetRandomFlags, getrandom};

/// How long a server that has just lost its client may take to release its locks: a
/// client that starts its server again is not refused.
const PREDECESSOR_ENDS: Duration = Duration::from_secs(5);
/// How often it is looked whether it has.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Where claims are kept, in the user's directory of state.
const DIR: &str = "jvs-mcp";

/// The session that this server speaks for.
pub(crate) struct OwnSession {
    pub(crate) id: String,
    /// Keeps others from speaking for it, for as long as this process is alive.
    _claim: Option<OwnedFd>,
}

/// Looks up a variable of the environment.
pub(crate) type Variables<'l> = &'l dyn Fn(&str) -> Option<OsString>;

/// Whom this server speaks for; why it must not, if another one already does.
pub(crate) fn of(lookup: Variables<'_>) -> Result<OwnSession, String> {
    let Some(given) = lookup("JVS_SESSION_ID").filter(|id| !id.is_empty()) else {
        return Ok(OwnSession { id: own_id(), _claim: None });
    };
    let id = given.into_string().map_err(|_| "JVS_SESSION_ID is not UTF-8".to_owned())?;
    let claim = claim(&id, lookup)?;
    Ok(OwnSession { id, _claim: Some(claim) })
}

/// A name that no other server has, on this host or another.
fn own_id() -> String {
    let mut random = [0_u8; 4];
    // If there are no random bytes, the process id still tells it from others of this host.
    let _ = getrandom(&mut random, GetRandomFlags::empty());
    format!("mcp:{}-{:08x}", std::process::id(), u32::from_be_bytes(random))
}

/// Where the user's state is kept.
fn state(lookup: Variables<'_>) -> Option<PathBuf> {
    let path = |name| lookup(name).map(PathBuf::from).filter(|path| path.is_absolute());
    path("XDG_STATE_HOME")
        .or_else(|| path("HOME").map(|home| home.join(".local/state")))
        .or_else(|| path("XDG_RUNTIME_DIR"))
}

/// Claims a session for this process.
fn claim(id: &str, lookup: Variables<'_>) -> Result<OwnedFd, String> {
    let state = state(lookup).ok_or_else(|| {
        format!(
            "session '{id}' cannot be claimed: HOME, XDG_STATE_HOME and XDG_RUNTIME_DIR are not \
             set; unset JVS_SESSION_ID, or set one of them"
        )
    })?;
    let dir = state.join(DIR);
    let trouble = |error: rustix::io::Errno| {
        let why = std::io::Error::from(error);
        let dir = dir.display();
        format!("session '{id}' cannot be claimed in {dir}: {why}; unset JVS_SESSION_ID")
    };
    make(&dir).map_err(trouble)?;
    let file = dir.join(&blake3::hash(id.as_bytes()).to_hex()[..32]);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(&file, flags, Mode::RUSR | Mode::WUSR).map_err(trouble)?;
    let mut left = PREDECESSOR_ENDS;
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(rustix::io::Errno::WOULDBLOCK) if left.is_zero() => {
                let who = owner(&file);
                return Err(format!(
                    "another jvs-mcp{who} already speaks for session '{id}': give each server a \
                     JVS_SESSION_ID of its own, or none"
                ));
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                std::thread::sleep(LOOK_AGAIN);
                left = left.saturating_sub(LOOK_AGAIN);
            }
            Err(error) => return Err(trouble(error)),
        }
    }
    // Best effort: only for the message of a second server.
    let _ = rustix::fs::ftruncate(&file, 0);
    let _ = rustix::io::pwrite(&file, std::process::id().to_string().as_bytes(), 0);
    Ok(file)
}

/// The process that has the claim, as far as it can be told.
fn owner(file: &OwnedFd) -> String {
    let mut bytes = [0_u8; 16];
    let read = rustix::io::pread(file, &mut bytes, 0).unwrap_or(0);
    let text = std::str::from_utf8(&bytes[..read]).unwrap_or_default();
    let is_pid = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_pid { format!(" (process {text})") } else { String::new() }
}

/// Makes a private directory, and those above it that are missing.
fn make(dir: &Path) -> rustix::io::Result<()> {
    match rustix::fs::mkdir(dir, Mode::RWXU) {
        Err(rustix::io::Errno::NOENT) => {
            let above = dir.parent().ok_or(rustix::io::Errno::NOENT)?;
            make(above)?;
            rustix::fs::mkdir(dir, Mode::RWXU)
        }
        Err(rustix::io::Errno::EXIST) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_a_name_is_a_session_of_its_own() {
        let nothing = |_: &str| None;
        let (one, other) = (of(&nothing).expect("a session"), of(&nothing).expect("a session"));
        assert_ne!(one.id, other.id);
        assert!(one.id.starts_with(&format!("mcp:{}-", std::process::id())), "{}", one.id);
    }

    #[test]
    fn a_session_that_was_given_is_claimed_and_its_end_frees_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = dir.path().as_os_str().to_owned();
        let lookup = |name: &str| match name {
            "HOME" => Some(home.clone()),
            "JVS_SESSION_ID" => Some(OsString::from("a/b:c")),
            _ => None,
        };
        let first = of(&lookup).expect("claimed");
        assert_eq!(first.id, "a/b:c");
        let refused = of(&lookup).err().expect("refused");
        let me = format!("(process {})", std::process::id());
        assert!(refused.contains(&me) && refused.contains("'a/b:c'"), "{refused}");
        drop(first);
        assert!(of(&lookup).is_ok());
    }

    #[test]
    fn without_a_place_for_claims_a_name_is_refused() {
        let lookup = |name: &str| (name == "JVS_SESSION_ID").then(|| OsString::from("a"));
        assert!(of(&lookup).err().expect("refused").contains("unset JVS_SESSION_ID"));
    }
}
