//! Which process keeps a lock renewed: a part of the lock record, and what the keeper
//! writes of itself into its session's private directory.

use serde::{Deserialize, Serialize};

use crate::clock::BootId;
use crate::json::{self, Limits};
use crate::term::Term;

/// More than any keeper writes; a file that is longer is none.
pub const LIMITS: Limits = Limits { size: 1024, ..Limits::RECORD };

/// The process that keeps renewing a lease. Its end means that nobody does any
/// more; a lease without one was taken by a command that ended by design.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Keeper {
    /// Process id.
    pub pid: u32,
    /// When it started, in clock ticks after boot.
    pub start_time: u64,
    /// Which boot.
    pub boot_id: BootId,
    /// The PID namespace that `pid` belongs to, if known.
    pub pid_namespace: Option<u64>,
    /// The time namespace that `start_time` belongs to, if there are any.
    #[serde(default)]
    pub time_namespace: Option<u64>,
}

/// What a keeper writes: who it is, and which hold it keeps.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The process.
    #[serde(flatten)]
    pub keeper: Keeper,
    /// The hold.
    #[serde(flatten)]
    pub term: Term,
}

impl Written {
    /// Its bytes on disk: one line without an end.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("it has only text as keys")
    }

    /// Reads what a keeper wrote. The error says what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        json::parse_within(bytes, LIMITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_what_a_keeper_writes_are_these() {
        let keeper = Keeper {
            pid: 7,
            start_time: 9,
            boot_id: BootId("boot-a".into()),
            pid_namespace: Some(1),
            time_namespace: None,
        };
        let written = Written { keeper, term: "1-00ff.3".parse().expect("a term") };
        let bytes = written.to_bytes();
        assert_eq!(String::from_utf8_lossy(&bytes), include_str!("golden/keeper.json"));
        assert_eq!(Written::parse(&bytes), Ok(written));
    }

    #[test]
    fn what_is_torn_or_too_long_says_nothing() {
        let whole = include_bytes!("golden/keeper.json");
        for end in 0..whole.len() {
            assert!(Written::parse(&whole[..end]).is_err(), "the first {end} bytes");
        }
        assert!(Written::parse(&[whole.as_slice(), &[b' '; 1024]].concat()).is_err());
        assert!(Written::parse(br#"{"pid":4294967296}"#).is_err());
    }
}
