//! `descriptor.json`: what is known about a snapshot besides its files.
//!
//! Invariants: written once, before the snapshot is committed; its bytes are the
//! canonical ones of what they say, so there is exactly one spelling;
//! `descriptor_checksum` is over the canonical bytes of everything else,
//! whatever fields there are, so a field that is added is protected without
//! anybody thinking of it.

use jvs_repo::clock::{BootId, WallMs};
use jvs_repo::config::Consistency;
use jvs_repo::id::{Epoch, FencingToken, Generation, SnapshotId};
use jvs_repo::json::{self, Limits};
use jvs_repo::name::{TagName, WorktreeName};
use jvs_repo::record::rfc3339;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::hash::Digest;
use crate::staging_name::Bound;

/// Longest note, in bytes.
pub const NOTE_MAX: usize = 4096;
/// What a descriptor may have at most: names of files are strings in it.
pub const LIMITS: Limits = Limits { size: 64 * 1024, depth: 16, string: NOTE_MAX };

const CHECKSUM: &str = "descriptor_checksum";

/// Something about the files that the snapshot does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// What was lost, in a word: `owner`, `xattr`, `fifo`.
    pub what: String,
    /// Of how many files.
    pub count: u64,
    /// The first few of them.
    pub examples: Vec<String>,
}

/// What speaks for nobody having written while the files were captured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quiescence {
    /// Was every file the same before and after?
    pub proven: bool,
    /// Over what the kernel said of every file before.
    #[serde(with = "digest_text")]
    pub digest: Digest,
    /// How many files were looked at twice.
    pub compared: u64,
    /// How often the capture was begun.
    pub attempts: u32,
    /// The first few files that changed.
    pub changed: Vec<String>,
}

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    #[serde(deserialize_with = "version_one")]
    version: u64,
    /// Its id.
    pub snapshot_id: SnapshotId,
    /// Whose head it became.
    pub worktree_id: WorktreeName,
    /// What it was taken on top of.
    pub parent: Option<SnapshotId>,
    /// When it was begun, on its maker's wall clock.
    #[serde(with = "rfc3339")]
    pub created_at: WallMs,
    /// A word to people.
    pub note: Option<String>,
    /// The tags that were asked for with it. Which it has now, the tags know.
    pub tags: Vec<TagName>,
    /// What was promised about writers.
    pub consistency: Consistency,
    /// What to beware of, if anything.
    pub risk: Option<String>,
    /// What the promise rests on.
    pub quiescence: Quiescence,
    /// In which boot the change times in the manifest were seen; not in snapshots of
    /// before this was written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<BootId>,
    /// What copied the files.
    pub engine: String,
    /// What it could not preserve.
    pub degraded: Vec<Loss>,
    /// Regular files.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Equal for equal trees.
    #[serde(with = "digest_text")]
    pub payload_root_hash: Digest,
    /// Over the bytes of the manifest.
    #[serde(with = "digest_text")]
    pub manifest_hash: Digest,
    /// `host:user:pid:start_time` of the process that took it.
    pub holder_id: String,
    /// The session that took it.
    pub session_id: String,
    /// Life of the register it was committed in.
    pub epoch: Epoch,
    /// The token it was committed under.
    pub fencing_token: FencingToken,
    /// Which commit of its lineage it is, counted from 1.
    pub commit_seq: Generation,
}

/// What only the caller of a snapshot knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// When it was begun.
    pub created_at: WallMs,
    /// A word to people.
    pub note: Option<String>,
    /// Tags that were asked for.
    pub tags: Vec<TagName>,
    /// What is promised about writers.
    pub consistency: Consistency,
    /// `host:user:pid:start_time`.
    pub holder_id: String,
    /// The session.
    pub session_id: String,
}

/// What was captured, as the descriptor tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Regular files.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Over the tree.
    pub payload_root_hash: Digest,
    /// Over the manifest's bytes.
    pub manifest_hash: Digest,
    /// What copied the files.
    pub engine: String,
    /// What it could not preserve.
    pub degraded: Vec<Loss>,
    /// What speaks for nobody having written.
    pub quiescence: Quiescence,
    /// In which boot change times were seen.
    pub boot_id: Option<BootId>,
    /// What to beware of, if anything.
    pub risk: Option<String>,
}

impl Descriptor {
    /// The descriptor of what was captured under `bound`.
    pub fn new(bound: &Bound, about: &About, content: &Content) -> Self {
        let (about, content) = (about.clone(), content.clone());
        Descriptor {
            version: 1,
            snapshot_id: bound.id,
            worktree_id: bound.worktree.clone(),
            parent: bound.parent,
            created_at: about.created_at,
            note: about.note,
            tags: about.tags,
            consistency: about.consistency,
            risk: content.risk,
            quiescence: content.quiescence,
            boot_id: content.boot_id,
            engine: content.engine,
            degraded: content.degraded,
            files: content.files,
            bytes: content.bytes,
            payload_root_hash: content.payload_root_hash,
            manifest_hash: content.manifest_hash,
            holder_id: about.holder_id,
            session_id: about.session_id,
            epoch: bound.epoch,
            fencing_token: bound.token,
            commit_seq: bound.generation.next(),
        }
    }

    /// What the snapshot was bound to before it was committed.
    pub fn bound(&self) -> Bound {
        Bound {
            worktree: self.worktree_id.clone(),
            epoch: self.epoch,
            token: self.fencing_token,
            parent: self.parent,
            generation: Generation(self.commit_seq.0.saturating_sub(1)),
            id: self.snapshot_id,
        }
    }

    /// Its bytes on disk, and their checksum.
    pub fn seal(&self) -> (Vec<u8>, Digest) {
        let mut value = serde_json::to_value(self).expect("a descriptor has only text as keys");
        let checksum = Digest::of(&json::canonical(&value));
        if let Value::Object(fields) = &mut value {
            fields.insert(CHECKSUM.to_owned(), checksum.to_string().into());
        }
        (json::canonical(&value), checksum)
    }

    /// Reads what [`Descriptor::seal`] wrote: every field is there, spelled as it is
    /// written. Fields that a later version added are allowed, under the checksum. The
    /// error says what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<(Descriptor, Digest), String> {
        let mut value: Value = json::parse_within(bytes, LIMITS)?;
        if json::canonical(&value) != bytes {
            return Err("it is not spelled as it was written".to_owned());
        }
        let stated = value.as_object_mut().and_then(|fields| fields.remove(CHECKSUM));
        let stated: Digest = stated
            .as_ref()
            .and_then(Value::as_str)
            .ok_or_else(|| format!("it has no {CHECKSUM}"))?
            .parse()
            .map_err(|error| format!("{CHECKSUM}: {error}"))?;
        if Digest::of(&json::canonical(&value)) != stated {
            return Err("its content does not match its checksum".to_owned());
        }
        let descriptor: Descriptor =
            serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
        let written = serde_json::to_value(&descriptor).map_err(|error| error.to_string())?;
        for (name, field) in written.as_object().into_iter().flatten() {
            if value.get(name) != Some(field) {
                return Err(format!("{name} is not spelled as it was written"));
            }
        }
        if descriptor.commit_seq == Generation(0) {
            return Err("commit_seq counts from 1".to_owned());
        }
        Ok((descriptor, stated))
    }
}

/// Is it a note that can be written and shown?
pub fn check_note(note: &str) -> Result<(), String> {
    if note.len() > NOTE_MAX {
        return Err(format!("the note has {} bytes; at most {NOTE_MAX} are allowed", note.len()));
    }
    if note.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        return Err("the note has control characters".to_owned());
    }
    Ok(())
}

fn version_one<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
    match u64::deserialize(d)? {
        1 => Ok(1),
        other => Err(serde::de::Error::custom(format_args!("version {other}; 1 is the only one"))),
    }
}

/// A [`Digest`] as text.
pub(crate) mod digest_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::hash::Digest;

    pub(crate) fn serialize<S: Serializer>(digest: &Digest, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(digest)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Digest, D::Error> {
        String::deserialize(d)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn bound(id: u64, parent: Option<u64>, generation: u64) -> Bound {
        let snapshot = |n: u64| SnapshotId { created_ms: n, random: n as u32 };
        Bound {
            worktree: WorktreeName::main(),
            epoch: Epoch { counter: 1, salt: 0xbeef },
            token: FencingToken(3),
            parent: parent.map(snapshot),
            generation: Generation(generation),
            id: snapshot(id),
        }
    }

    pub(crate) fn about() -> About {
        About {
            created_at: WallMs(1_763_283_600_123),
            note: Some("naïve\nsecond line".into()),
            tags: vec!["v1".parse().expect("valid")],
            consistency: Consistency::Quiesced,
            holder_id: "host:ann:1:2".into(),
            session_id: "agent-1".into(),
        }
    }

    pub(crate) fn content() -> Content {
        Content {
            files: 2,
            bytes: 30,
            payload_root_hash: Digest::of(b"tree"),
            manifest_hash: Digest::of(b"manifest"),
            engine: "copy".into(),
            degraded: vec![Loss { what: "fifo".into(), count: 1, examples: vec!["p".into()] }],
            quiescence: Quiescence {
                proven: true,
                digest: Digest::of(b"looks"),
                compared: 3,
                attempts: 1,
                changed: vec![],
            },
            boot_id: Some(BootId("boot".into())),
            risk: None,
        }
    }

    fn descriptor() -> Descriptor {
        Descriptor::new(&bound(7, Some(6), 4), &about(), &content())
    }

    #[test]
    fn a_descriptor_is_read_back_with_its_checksum_and_its_bound() {
        let (bytes, checksum) = descriptor().seal();
        assert_eq!(Descriptor::parse(&bytes), Ok((descriptor(), checksum)));
        assert_eq!(descriptor().bound(), bound(7, Some(6), 4));
    }

    #[test]
    fn a_change_of_any_byte_of_a_descriptor_is_noticed() {
        let (bytes, _) = descriptor().seal();
        for at in 0..bytes.len() {
            for flip in [0x01, 0x20, 0x80] {
                let mut bad = bytes.clone();
                bad[at] ^= flip;
                assert!(Descriptor::parse(&bad).is_err(), "byte {at}");
            }
            let mut cut = bytes.clone();
            cut.remove(at);
            assert!(Descriptor::parse(&cut).is_err(), "without byte {at}");
            assert!(Descriptor::parse(&bytes[..at]).is_err(), "the first {at} bytes");
        }
        let more = [bytes.as_slice(), b" "].concat();
        assert!(Descriptor::parse(&more).is_err(), "something after its end");
    }

    /// The same descriptor with one field changed, under a checksum of its own.
    fn sealed_with(change: impl FnOnce(&mut serde_json::Map<String, Value>)) -> Vec<u8> {
        let (bytes, _) = descriptor().seal();
        let mut value: Value = serde_json::from_slice(&bytes).expect("valid");
        let fields = value.as_object_mut().expect("object");
        fields.remove(CHECKSUM);
        change(fields);
        let checksum = Digest::of(&json::canonical(&value));
        value[CHECKSUM] = checksum.to_string().into();
        json::canonical(&value)
    }

    #[test]
    fn a_descriptor_is_spelled_as_it_is_written_and_in_no_other_way() {
        assert!(Descriptor::parse(&sealed_with(|_| {})).is_ok());
        let odd_time = sealed_with(|fields| {
            let at = fields["created_at"].as_str().expect("text").replace('T', "t");
            fields.insert("created_at".into(), at.into());
        });
        assert!(Descriptor::parse(&odd_time).is_err(), "a time that nobody writes");
        for optional in ["risk", "note", "parent", "degraded", "tags"] {
            let without = sealed_with(|fields| drop(fields.remove(optional)));
            assert!(Descriptor::parse(&without).is_err(), "without {optional}");
        }
    }

    #[test]
    fn the_checksum_protects_fields_that_this_version_does_not_know() {
        let (bytes, _) = descriptor().seal();
        let mut value: Value = serde_json::from_slice(&bytes).expect("valid");
        let fields = value.as_object_mut().expect("object");
        fields.remove(CHECKSUM);
        fields.insert("later".into(), 1.into());
        let checksum = Digest::of(&json::canonical(&value));
        let sealed = |later: u64| {
            let mut value = value.clone();
            let fields = value.as_object_mut().expect("object");
            fields.insert("later".into(), later.into());
            fields.insert(CHECKSUM.into(), checksum.to_string().into());
            json::canonical(&value)
        };
        assert_eq!(Descriptor::parse(&sealed(1)), Ok((descriptor(), checksum)));
        assert!(Descriptor::parse(&sealed(2)).expect_err("tampered").contains("checksum"));
    }

    #[test]
    fn notes_are_text_of_bounded_length() {
        assert_eq!(check_note("one\ntwo\tthree"), Ok(()));
        assert!(check_note("\x1b[2J").is_err());
        assert!(check_note(&"x".repeat(NOTE_MAX + 1)).is_err());
        assert!(check_note(&"x".repeat(NOTE_MAX)).is_ok());
    }
}
