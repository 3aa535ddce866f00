//! `descriptor.json`: what is known about a snapshot besides its files.
//!
//! Invariants: written once, before the snapshot is committed; its bytes are the
//! canonical ones of what they say, so there is exactly one spelling;
//! `descriptor_checksum` is over the canonical bytes of everything else,
//! whatever fields there are, so a field that is added is protected without
//! anybody thinking of it.

use serde::{Deserialize, Serialize};

use super::ignore_rules::{self, IgnoreSource};
use super::seal::{Sealable, Sealed};
use super::{rfc3339, version};
use crate::clock::{BootId, WallMs};
use crate::config::Consistency;
use crate::digest::Digest;
use crate::id::{Epoch, FencingToken, Generation, SnapshotId};
use crate::json::Limits;
use crate::layout::staging::SnapshotBound;
use crate::name::{TagName, WorktreeName};
use crate::term::Term;

/// Longest note, in bytes.
pub const NOTE_MAX: usize = 4096;
/// What a descriptor may have at most: names of files are strings in it.
pub const LIMITS: Limits = Limits { size: 64 * 1024, depth: 16, string: NOTE_MAX };

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

/// Where a snapshot stands in the line of its worktree: the snapshots as people count them,
/// which is not always how one was committed on top of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineStanding {
    /// Is it beside the line? It keeps files, or says where the line goes on, and is no
    /// step of it.
    pub aside: bool,
    /// The snapshot before it on the line; of one beside it, the one that the line ends
    /// with.
    pub follows: Option<SnapshotId>,
}

/// What speaks for nobody having written while the files were captured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quiescence {
    /// Was every file the same before and after?
    pub proven: bool,
    /// Over what the kernel said of every file before.
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
    #[serde(with = "version")]
    version: u64,
    /// Its id.
    pub snapshot_id: SnapshotId,
    /// Whose head it became.
    pub worktree_id: WorktreeName,
    /// What it was taken on top of.
    pub parent: Option<SnapshotId>,
    /// Where it stands in the line, if not simply after its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<LineStanding>,
    /// When it was begun, on its maker's wall clock.
    #[serde(with = "rfc3339")]
    pub created_at: WallMs,
    /// A word to people.
    pub note: Option<String>,
    /// The tags that were asked for with it. Which it has now, the tags know.
    pub tags: Vec<TagName>,
    /// What was captured.
    #[serde(flatten)]
    pub content: Content,
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

/// What only the taker of a snapshot knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// When it was begun, on its maker's wall clock.
    pub created_at: WallMs,
    /// A word to people.
    pub note: Option<String>,
    /// The tags that were asked for with it.
    pub tags: Vec<TagName>,
    /// `host:user:pid:start_time` of the process that took it.
    pub holder_id: String,
    /// The session that took it.
    pub session_id: String,
    /// Where it stands in the line, if not simply after its parent.
    pub line: Option<LineStanding>,
}

/// What was captured: made by a capture, and written as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
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
    /// How ids of users and groups were spelled where it was taken, if not as the host
    /// spells them: owners seen elsewhere cannot be held against those in the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_map: Option<String>,
    /// By which rules files were left out, if there were any.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "ignore_rules::some"
    )]
    pub ignore_rules: Vec<IgnoreSource>,
    /// What copied the files.
    pub engine: String,
    /// What it could not preserve.
    pub degraded: Vec<Loss>,
    /// Regular files.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Equal for equal trees.
    pub payload_root_hash: Digest,
    /// Over the bytes of the manifest.
    pub manifest_hash: Digest,
}

impl Sealable for Descriptor {
    const CHECKSUM: &'static str = "descriptor_checksum";
    const LIMITS: Limits = LIMITS;
}

impl Descriptor {
    /// Shape of the file.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The descriptor of what was captured under `bound`.
    pub fn new(bound: &SnapshotBound, about: About, content: Content) -> Self {
        let About { created_at, note, tags, holder_id, session_id, line } = about;
        Descriptor {
            version: version::ONE,
            snapshot_id: bound.id,
            worktree_id: bound.worktree.clone(),
            parent: bound.parent,
            line,
            created_at,
            note,
            tags,
            content,
            holder_id,
            session_id,
            epoch: bound.term.epoch,
            fencing_token: bound.term.token,
            commit_seq: bound.generation.next(),
        }
    }

    /// What its taker knew, and what was captured: all that does not change if it is
    /// bound to another head, but for where it stands in the line.
    pub fn into_about_and_content(self) -> (About, Content) {
        let Descriptor { created_at, note, tags, content, holder_id, session_id, line, .. } = self;
        (About { created_at, note, tags, holder_id, session_id, line }, content)
    }

    /// Is it beside the line of its worktree?
    pub fn is_aside(&self) -> bool {
        self.line.is_some_and(|line| line.aside)
    }

    /// The snapshot before it on the line.
    pub fn before(&self) -> Option<SnapshotId> {
        self.line.map_or(self.parent, |line| line.follows)
    }

    /// What the line ends with while this is the head.
    pub fn line_head(&self) -> Option<SnapshotId> {
        if self.is_aside() { self.before() } else { Some(self.snapshot_id) }
    }

    /// The term it was committed in.
    pub fn term(&self) -> Term {
        Term { epoch: self.epoch, token: self.fencing_token }
    }

    /// What the snapshot was bound to before it was committed.
    pub fn bound(&self) -> SnapshotBound {
        SnapshotBound {
            worktree: self.worktree_id.clone(),
            term: self.term(),
            parent: self.parent,
            // Commits are counted from 1, so this many came before.
            generation: Generation(self.commit_seq.0.saturating_sub(1)),
            id: self.snapshot_id,
        }
    }

    /// Its bytes on disk, and their checksum.
    pub fn seal(&self) -> (Vec<u8>, Digest) {
        let sealed = Sealed::of(self.clone());
        let checksum = sealed.checksum();
        (sealed.into_bytes(), checksum)
    }

    /// Reads what [`Descriptor::seal`] wrote. The error says what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<(Descriptor, Digest), String> {
        let (descriptor, checksum) = Sealed::<Descriptor>::parse(bytes)?.into_parts();
        if descriptor.commit_seq == Generation(0) {
            return Err("commit_seq counts from 1".to_owned());
        }
        ignore_rules::check(&descriptor.content.ignore_rules)?;
        Ok((descriptor, checksum))
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::json;

    const CHECKSUM: &str = Descriptor::CHECKSUM;

    fn bound(id: u64, parent: Option<u64>, generation: u64) -> SnapshotBound {
        let snapshot = |n: u64| SnapshotId { created_ms: n, random: n as u32 };
        SnapshotBound {
            worktree: WorktreeName::main(),
            term: Term { epoch: Epoch { counter: 1, salt: 0xbeef }, token: FencingToken(3) },
            parent: parent.map(snapshot),
            generation: Generation(generation),
            id: snapshot(id),
        }
    }

    fn about() -> About {
        About {
            created_at: WallMs(1_763_283_600_123),
            note: Some("naïve\nsecond line".into()),
            tags: vec!["v1".parse().expect("valid")],
            holder_id: "host:ann:1:2".into(),
            session_id: "agent-1".into(),
            line: None,
        }
    }

    fn content() -> Content {
        Content {
            consistency: Consistency::Quiesced,
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
            id_map: None,
            ignore_rules: Vec::new(),
            risk: None,
        }
    }

    fn descriptor() -> Descriptor {
        Descriptor::new(&bound(7, Some(6), 4), about(), content())
    }

    #[test]
    fn a_descriptor_is_read_back_with_its_checksum_and_its_bound() {
        let (bytes, checksum) = descriptor().seal();
        assert_eq!(Descriptor::parse(&bytes), Ok((descriptor(), checksum)));
        assert_eq!(descriptor().bound(), bound(7, Some(6), 4));
    }

    #[test]
    fn a_descriptor_beside_the_line_says_what_the_line_ends_with() {
        assert_eq!(descriptor().before(), descriptor().parent);
        assert_eq!(descriptor().line_head(), Some(descriptor().snapshot_id));
        let first = SnapshotId { created_ms: 2, random: 2 };
        for (aside, follows, head) in [
            (true, Some(first), Some(first)),
            (true, None, None),
            (false, Some(first), Some(descriptor().snapshot_id)),
        ] {
            let about = About { line: Some(LineStanding { aside, follows }), ..about() };
            let placed = Descriptor::new(&bound(7, Some(6), 4), about, content());
            assert_eq!((placed.before(), placed.line_head()), (follows, head));
            let (bytes, checksum) = placed.seal();
            assert_eq!(Descriptor::parse(&bytes), Ok((placed, checksum)));
        }
    }

    #[test]
    fn the_bytes_of_a_descriptor_and_of_its_mark_are_these() {
        let (bytes, checksum) = descriptor().seal();
        assert_eq!(String::from_utf8_lossy(&bytes), include_str!("golden/descriptor.json"));
        let ready = crate::record::ready::bytes(descriptor().snapshot_id, checksum);
        assert_eq!(String::from_utf8_lossy(&ready), include_str!("golden/READY.json"));
    }

    #[test]
    fn rules_are_read_back_and_a_descriptor_without_them_is_read_as_before() {
        let source = |from: &str, rules: &[&str]| IgnoreSource {
            from: from.into(),
            rules: rules.iter().map(ToString::to_string).collect(),
        };
        let ignore_rules =
            vec![source("snapshot.ignore", &["*.o"]), source("d/.jvsignore", &["!caf%E9"])];
        let content = Content { ignore_rules, ..content() };
        let with_rules = Descriptor::new(&bound(7, Some(6), 4), about(), content);
        let (bytes, checksum) = with_rules.seal();
        let value: Value = serde_json::from_slice(&bytes).expect("valid");
        let spelled = serde_json::json!([
            { "from": "snapshot.ignore", "rules": ["*.o"] },
            { "from": "d/.jvsignore", "rules": ["!caf%E9"] },
        ]);
        assert_eq!(value["ignore_rules"], spelled);
        assert_eq!(Descriptor::parse(&bytes), Ok((with_rules, checksum)));
        // The golden one has none.
        let old = include_bytes!("golden/descriptor.json");
        let (old, _) = Descriptor::parse(old).expect("as before");
        assert_eq!(old.content.ignore_rules, []);
        for wrong in [
            serde_json::json!([]),
            serde_json::json!([{ "from": "x", "rules": ["a"] }]),
            serde_json::json!([{ "from": ".jvsignore", "rules": [] }]),
            serde_json::json!([{ "from": ".jvsignore", "rules": ["%61"] }]),
        ] {
            let bytes =
                sealed_with(|fields| drop(fields.insert("ignore_rules".into(), wrong.clone())));
            assert!(Descriptor::parse(&bytes).is_err(), "{wrong}");
        }
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
