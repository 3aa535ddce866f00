//! `locks/<worktree>.lock.tmp`: the new record of a takeover by the letter of v6.3,
//! before it is renamed over the old one. JVS never writes one.

use serde::Deserialize;

use super::keeper::Keeper;
use crate::clock::BootId;
use crate::id::{FencingToken, strict_decimal};
use crate::json;

/// What is understood of it; every field may be missing.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names of the lock record")]
pub struct TakeoverRecord {
    pub fencing_token: Option<FencingToken>,
    pub holder_id: Option<String>,
    pub session_id: Option<String>,
    pub boot_id: Option<String>,
    pub pid_namespace: Option<u64>,
    pub time_namespace: Option<u64>,
}

impl TakeoverRecord {
    /// Reads one that is not torn. The error says what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        json::parse(bytes)
    }

    /// The process that wrote it, if it says which and where.
    pub fn writer(&self) -> Option<Keeper> {
        let mut parts = self.holder_id.as_deref()?.rsplit(':');
        let start_time = strict_decimal(parts.next()?)?;
        let pid = u32::try_from(strict_decimal(parts.next()?)?).ok()?;
        // Before them stand the user and the host: an id of any other form says nothing.
        let (_user, _host) = (parts.next()?, parts.next()?);
        let boot_id = BootId(self.boot_id.clone().filter(|id| !id.is_empty())?);
        let (pid_namespace, time_namespace) = (self.pid_namespace, self.time_namespace);
        Some(Keeper { pid, start_time, boot_id, pid_namespace, time_namespace })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_takeover_is_as_a_lock_record_and_a_torn_one_says_nothing() {
        let golden = include_str!("golden/lock.json");
        let takeover = TakeoverRecord::parse(golden.as_bytes()).expect("a record");
        assert_eq!(takeover.fencing_token, Some(FencingToken(1)));
        assert_eq!(takeover.writer().map(|writer| (writer.pid, writer.start_time)), Some((100, 5)));
        let end = golden.rfind('}').expect("an object");
        for length in 0..=end {
            assert!(TakeoverRecord::parse(&golden.as_bytes()[..length]).is_err(), "{length} bytes");
        }
        assert_eq!(TakeoverRecord::parse(b"{}"), Ok(TakeoverRecord::default()));
        for odd in ["h:u:+6:5", "h:u:06:5", "h:u:6:-5", "6", "6:34", "u:6:34"] {
            let holder_id = Some(odd.to_owned());
            let takeover = TakeoverRecord {
                holder_id,
                boot_id: Some("b".into()),
                ..TakeoverRecord::default()
            };
            assert_eq!(takeover.writer(), None, "{odd}");
        }
    }
}
