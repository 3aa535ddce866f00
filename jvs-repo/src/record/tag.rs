//! `tags/<name>.json`: a name for a snapshot that stays until it is deleted.
//!
//! Invariants: the file's name is the tag, and the file repeats it; written whole,
//! never edited; its bytes are the canonical ones of what they say, with a checksum
//! over them.

use serde::{Deserialize, Serialize};

use super::seal::{Sealable, Sealed};
use super::{rfc3339, version};
use crate::clock::WallMs;
use crate::id::SnapshotId;
use crate::json;
use crate::name::TagName;

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tag {
    #[serde(with = "version")]
    version: u64,
    /// Its own name: a file that was copied to another name is no tag.
    name: TagName,
    /// What it stands for.
    pub snapshot_id: SnapshotId,
    /// When it was made, on its maker's wall clock.
    #[serde(with = "rfc3339")]
    pub created_at: WallMs,
    /// The session that made it.
    pub session_id: String,
}

impl Sealable for Tag {}

impl Tag {
    /// A tag for `snapshot_id`, made by `session_id` at `created_at`.
    pub fn new(
        name: TagName,
        snapshot_id: SnapshotId,
        created_at: WallMs,
        session_id: String,
    ) -> Self {
        Tag { version: version::ONE, name, snapshot_id, created_at, session_id }
    }

    /// Its bytes on disk.
    pub fn to_bytes(&self) -> Vec<u8> {
        Sealed::of(self.clone()).into_bytes()
    }

    /// Reads the tag of that name. The error says what is wrong.
    pub fn parse(name: &TagName, bytes: &[u8]) -> Result<Tag, String> {
        // Told apart before its seal is looked at: a process that renamed a tag by hand
        // edited it.
        let says: Tag = json::parse(bytes)?;
        if says.name != *name {
            return Err(format!("it says that it is tag '{}'", says.name));
        }
        let (tag, _) = Sealed::<Tag>::parse(bytes)?.into_parts();
        Ok(tag)
    }
}

/// What the audit log tells of one tag: all that there is to know of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LoggedTag {
    /// Its name.
    pub tag: TagName,
    /// What it stands for.
    pub snapshot_id: SnapshotId,
    /// When it was made.
    #[serde(with = "rfc3339")]
    pub created_at: WallMs,
    /// The session that made it.
    pub session_id: String,
}

impl From<Tag> for LoggedTag {
    fn from(tag: Tag) -> Self {
        let Tag { name, snapshot_id, created_at, session_id, .. } = tag;
        LoggedTag { tag: name, snapshot_id, created_at, session_id }
    }
}

impl LoggedTag {
    /// The tag's file, byte for byte.
    pub fn to_bytes(&self) -> Vec<u8> {
        let LoggedTag { tag, snapshot_id, created_at, session_id } = self.clone();
        Tag::new(tag, snapshot_id, created_at, session_id).to_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag() -> Tag {
        let snapshot_id = SnapshotId { created_ms: 1_763_283_600_123, random: 42 };
        Tag::new(name("v1.0"), snapshot_id, WallMs(1_763_283_700_000), "agent-1".into())
    }

    fn name(text: &str) -> TagName {
        text.parse().expect("valid")
    }

    #[test]
    fn the_bytes_of_a_tag_are_these() {
        let bytes = tag().to_bytes();
        assert_eq!(String::from_utf8_lossy(&bytes), include_str!("golden/tag.json"));
        assert_eq!(LoggedTag::from(tag()).to_bytes(), bytes, "as the audit log remembers it");
    }

    #[test]
    fn a_tag_is_read_under_its_own_name_and_torn_or_hostile_ones_are_refused() {
        let bytes = tag().to_bytes();
        assert_eq!(Tag::parse(&name("v1.0"), &bytes), Ok(tag()));
        assert!(Tag::parse(&name("v2"), &bytes).expect_err("a copy").contains("tag 'v1.0'"));
        for end in 0..bytes.len() {
            assert!(Tag::parse(&name("v1.0"), &bytes[..end]).is_err(), "the first {end} bytes");
        }
        let long = Tag { session_id: "x".repeat(257), ..tag() };
        assert!(Tag::parse(&name("v1.0"), &long.to_bytes()).is_err(), "a string without end");
    }
}
