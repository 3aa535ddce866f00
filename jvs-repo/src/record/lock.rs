//! `locks/<worktree>.lock`: for people, other tools and details of the holder. Never
//! asked who holds: the register says that.
//!
//! Invariants: always of one width, so that a renewal is one write in place; every
//! string is cut so that the record fits; fields that records of earlier versions lack
//! are optional.

mod kept;
mod place;

use std::io;

use serde::{Deserialize, Serialize};

pub use self::kept::{Kept, With};
pub use self::place::{Place, Sort};
use super::keeper::Keeper;
use super::version;
use crate::clock::{BootId, BootMs, Reading, WallMs};
use crate::id::{Epoch, FencingToken, HolderNonce, OpNonce, Seq, hex};
use crate::json;
use crate::metadata::{Environment, Purpose};
use crate::name::WorktreeName;
use crate::term::Term;

/// Every record has this size, padded with spaces, so that a renewal is one
/// write in place and a reader never sees a mixture of lengths.
const WIDTH: usize = 4096;
/// Longest note, in bytes.
pub const NOTE_MAX: usize = 256;

/// Who holds and what for, as seed 002 has it: a closed list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of seed 002")]
pub struct Metadata {
    pub hostname: String,
    pub process_id: u32,
    pub user_identity: String,
    pub session_id: String,
    pub environment: Environment,
    pub purpose: Purpose,
}

/// The record: 14 fields of v6.3, and what else is worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// Shape of this file.
    #[serde(with = "version")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub version: u64,
    /// Names this acquisition.
    pub lock_id: OpNonce,
    /// The worktree.
    pub worktree_id: WorktreeName,
    /// The holder id, `host:user:pid:start_time`.
    pub holder_id: String,
    /// Public nonce of the holder.
    pub holder_nonce: HolderNonce,
    /// The session.
    pub session_id: String,
    /// Position in the register's history at which it was acquired.
    pub acquire_seq: Seq,
    /// When it was acquired.
    pub created_at: String,
    /// When it was last renewed.
    pub last_renewed_at: String,
    /// Length of the lease.
    pub lease_duration_ms: u64,
    /// How often it is renewed, if anybody does.
    pub renew_interval_ms: u64,
    /// Does anybody? Absent in records that do not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renews: Option<bool>,
    /// Policy of the holder.
    pub max_clock_skew_ms: u64,
    /// Policy of the holder.
    pub steal_grace_ms: u64,
    /// End of the lease on the holder's wall clock. Absent in records of older
    /// tools, which leave the sum to the reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_expires_at: Option<String>,
    /// The fencing token.
    pub fencing_token: FencingToken,
    /// Which epoch of the register the token belongs to.
    pub epoch: Epoch,
    /// Which boot the boot-time readings belong to.
    pub boot_id: BootId,
    /// Time namespace whose clock the boot-time readings are of, if there are any.
    #[serde(default)]
    pub time_namespace: Option<u64>,
    /// PID namespace of the holder's process.
    #[serde(default)]
    pub pid_namespace: Option<u64>,
    /// The holder's user to the kernel of its host. Absent in records of earlier versions,
    /// and where a user namespace maps it: then it is nobody's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Boot time at acquisition.
    pub created_boot_ms: BootMs,
    /// Boot time at the last renewal.
    pub renewed_boot_ms: BootMs,
    /// Who keeps it renewed, if anybody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeper: Option<Keeper>,
    /// Frozen rather than held.
    #[serde(default)]
    pub frozen: bool,
    /// In the holder's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Where people find the holder, as far as it said.
    #[serde(default, skip_serializing_if = "Place::is_unknown")]
    pub place: Place,
    /// Until when it is kept, as far as the process that keeps it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
    /// Who and what for.
    pub metadata: Metadata,
}

impl Record {
    /// What it is held for, in the holder's words.
    pub fn set_note(&mut self, note: Option<&str>) {
        self.note = note.map(|note| bounded(note, NOTE_MAX));
    }

    /// End of the lease on the holder's wall clock.
    pub fn expires(&self) -> Option<WallMs> {
        match &self.lease_expires_at {
            Some(text) => WallMs::parse_rfc3339(text),
            None => Some(self.last_renewed()?.plus(self.lease_duration_ms)),
        }
    }

    /// When it was last renewed, on the holder's wall clock.
    pub fn last_renewed(&self) -> Option<WallMs> {
        WallMs::parse_rfc3339(&self.last_renewed_at)
    }

    /// When it was acquired, on the holder's wall clock.
    pub fn created(&self) -> Option<WallMs> {
        WallMs::parse_rfc3339(&self.created_at)
    }

    /// Both of the holder's clocks at the last renewal.
    pub fn renewed_at(&self) -> Option<Reading> {
        Some(Reading { wall: self.last_renewed()?, boot: self.renewed_boot_ms })
    }

    /// Both of the holder's clocks at the acquisition.
    pub fn created_reading(&self) -> Option<Reading> {
        Some(Reading { wall: self.created()?, boot: self.created_boot_ms })
    }

    /// The term of its claim.
    pub fn term(&self) -> Term {
        Term { epoch: self.epoch, token: self.fencing_token }
    }

    /// Its bytes on disk.
    pub fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        if bytes.len() >= WIDTH {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "lock record is too large"));
        }
        bytes.resize(WIDTH - 1, b' ');
        bytes.push(b'\n');
        Ok(bytes)
    }
    /// Reads a record, whichever worktree it is of. The error says what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err("it is empty".to_owned());
        }
        let record: Record = json::parse(bytes)?;
        let times = [record.created(), record.last_renewed(), record.expires()];
        if times.iter().any(Option::is_none) {
            return Err("a time in it cannot be read".to_owned());
        }
        Ok(record)
    }
}

/// `text` cut to at most `max` bytes, at a character boundary.
pub fn bounded(text: &str, max: usize) -> String {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// A host's name as a record carries it.
pub fn host_as_recorded(host: &str) -> String {
    bounded(host, 64)
}

/// A user's name as a record carries it. One that is too long keeps its beginning
/// for people and gets a digest of the whole: cut short alone, it would be the
/// name of another user that equals its beginning.
pub fn user_as_recorded(user: &str) -> String {
    const MAX: usize = 64;
    const DIGITS: usize = 16;
    if user.len() <= MAX {
        return user.to_owned();
    }
    let digest = blake3::derive_key("jvs user name v1", user.as_bytes());
    format!("{}~{}", bounded(user, MAX - 1 - DIGITS), hex(&digest[..DIGITS / 2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: [&str; 2] =
        [include_str!("golden/lock.json"), include_str!("golden/lock_plain.json")];

    #[test]
    fn the_bytes_of_a_record_are_these() {
        for golden in GOLDEN {
            let record = Record::parse(golden.as_bytes()).expect("a record");
            let bytes = record.to_bytes().expect("fits");
            assert_eq!(bytes.len(), WIDTH);
            assert_eq!(String::from_utf8_lossy(&bytes), golden);
        }
    }

    #[test]
    fn torn_oversized_and_hostile_records_are_refused() {
        let golden = GOLDEN[0];
        let end = golden.rfind('}').expect("an object");
        for length in 0..=end {
            assert!(Record::parse(&golden.as_bytes()[..length]).is_err(), "{length} bytes");
        }
        let with = |field: &str, value: &str| {
            let mut changed: serde_json::Value = serde_json::from_str(golden).expect("valid");
            changed[field] = serde_json::from_str(value).expect("a value");
            Record::parse(&json::canonical(&changed))
        };
        assert!(with("note", "null").is_ok() && with("later", "[1]").is_ok());
        let long = format!("\"{}\"", "x".repeat(257));
        for (field, value) in [
            ("version", "2"),
            ("note", long.as_str()),
            ("created_at", "\"noon\""),
            ("last_renewed_at", "\"noon\""),
            ("lease_expires_at", "\"noon\""),
            ("lease_duration_ms", "-1"),
            ("fencing_token", "18446744073709551616"),
            ("worktree_id", "\"../x\""),
            ("metadata", "{}"),
        ] {
            assert!(with(field, value).is_err(), "{field}: {value}");
        }
        let twice = golden.replacen("{\n", "{\n  \"version\": 1,\n", 1);
        assert!(Record::parse(twice.as_bytes()).expect_err("twice").contains("twice"));
        assert!(Record::parse(&vec![b' '; 10 << 20]).is_err());
    }
}
