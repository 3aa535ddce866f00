//! `worktrees/<name>.json`: what kind of worktree it is and where it came from.
//!
//! Invariants: the file's name is the worktree's name and nothing in the file
//! repeats it; written whole when the worktree is made, never edited; `version`
//! is 1; `created_at` is for people and decides nothing; `base` is the snapshot
//! it was made from; `label` is one printable line of at most [`LABEL_MAX`]
//! bytes; sealed with a checksum, which records of earlier versions lack; `op` is the
//! operation that made it and `maker` its process, which those of earlier versions
//! lack too. Who holds the worktree and what its head is, the register knows.
//!
//! `worktrees/<name>.tmp-<op>` is the note of an operation: the record that is to
//! be, on disk from before the operation's first step to its end, so that what was
//! interrupted can be told, and ended, by anybody.

use std::ffi::OsString;
use std::io;

use serde::{Deserialize, Deserializer, Serialize};

use crate::clock::{BootId, WallMs};
use crate::id::{OpNonce, SnapshotId};
use crate::json::{self, RecordError};
use crate::layout;
use crate::name::WorktreeName;
use crate::record::seal::{Sealable, Sealed};
use crate::record::version;
use crate::store::Store;

/// Longest label, in bytes.
pub const LABEL_MAX: usize = 256;

/// How writers of one worktree relate to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// One writer at a time: the one who holds the lock.
    Exclusive,
    /// Anyone writes; nobody is promised anything.
    Shared,
}

impl Isolation {
    /// The word in the record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Isolation::Exclusive => "exclusive",
            Isolation::Shared => "shared",
        }
    }
}

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeRecord {
    #[serde(with = "version")]
    version: u64,
    /// One writer or many.
    pub isolation: Isolation,
    /// When it was made, on its maker's wall clock.
    #[serde(with = "super::rfc3339")]
    pub created_at: WallMs,
    /// The snapshot it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<SnapshotId>,
    /// A word to people.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "one_line")]
    pub label: Option<String>,
    /// The operation that made it, or is at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<OpNonce>,
    /// The name that it had before that operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<WorktreeName>,
    /// The process of that operation: whether it can still go on, nobody else knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maker: Option<MakerProcess>,
}

/// A process of one boot of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MakerProcess {
    /// Which boot of which host.
    pub boot_id: BootId,
    /// The namespace that `pid` belongs to, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_namespace: Option<u64>,
    /// Process id.
    pub pid: u32,
    /// When it started, in clock ticks after boot.
    pub start_time: u64,
    /// The time namespace that `start_time` belongs to, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_namespace: Option<u64>,
}

impl Sealable for WorktreeRecord {}

impl WorktreeRecord {
    /// The record of a worktree made at `created_at` from nothing.
    pub fn new(isolation: Isolation, created_at: WallMs) -> Self {
        WorktreeRecord {
            version: version::ONE,
            isolation,
            created_at,
            base: None,
            label: None,
            op: None,
            renamed_from: None,
            maker: None,
        }
    }

    /// Its bytes on disk.
    pub fn to_bytes(&self) -> Vec<u8> {
        Sealed::of(self.clone()).into_bytes()
    }
}

fn one_line<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    let label = Option::<String>::deserialize(d)?;
    check_label(label.as_deref()).map_err(serde::de::Error::custom)?;
    Ok(label)
}

fn check_label(label: Option<&str>) -> Result<(), String> {
    match label {
        Some(text) if text.len() > LABEL_MAX => {
            Err(format!("the label is longer than {LABEL_MAX} bytes"))
        }
        Some(text) if text.chars().any(char::is_control) => {
            Err("the label has control characters".to_owned())
        }
        _ => Ok(()),
    }
}

/// What is in the directory of worktree records.
#[derive(Debug, Default)]
pub struct WorktreeListing {
    /// Each worktree, in the order of names, with its record, or why that cannot be used: one
    /// bad record does not hide the others.
    pub worktrees: Vec<(WorktreeName, Result<WorktreeRecord, RecordError>)>,
    /// Records that are being written, or whose writer died.
    pub unfinished: Vec<OsString>,
    /// What JVS did not put there. Nobody guesses what it means.
    pub foreign: Vec<OsString>,
}

impl WorktreeListing {
    /// The record of one worktree, or why it cannot be used; `None` if it has none.
    pub fn of(&self, name: &WorktreeName) -> Option<&Result<WorktreeRecord, RecordError>> {
        let at = self.worktrees.binary_search_by(|(other, _)| other.cmp(name)).ok()?;
        Some(&self.worktrees[at].1)
    }
}

/// Reads one record; `None` if there is no such worktree.
pub fn read(store: &dyn Store, name: &WorktreeName) -> Result<Option<WorktreeRecord>, RecordError> {
    json::read(store, &layout::worktree_record(name))
}

/// All records, sorted by name.
pub fn list(store: &dyn Store) -> Result<WorktreeListing, RecordError> {
    let dir = layout::worktree_records();
    let mut names = Vec::new();
    let mut listing = WorktreeListing::default();
    for entry in store.list(&dir).map_err(|error| RecordError::io(&dir, error))? {
        let text = entry.name.to_str();
        if let Some(name) = text.and_then(layout::worktree_of_record) {
            names.push(name);
        } else if text.is_some_and(layout::is_worktree_record_tmp) {
            listing.unfinished.push(entry.name);
        } else {
            listing.foreign.push(entry.name);
        }
    }
    names.sort();
    for name in names {
        match read(store, &name) {
            Ok(Some(record)) => listing.worktrees.push((name, Ok(record))),
            // Removed between the listing and the reading.
            Ok(None) => {}
            Err(error) => listing.worktrees.push((name, Err(error))),
        }
    }
    listing.unfinished.sort();
    listing.foreign.sort();
    Ok(listing)
}

/// Writes the record of a worktree that has none: `E_EXISTS` if it has.
pub fn create(
    store: &dyn Store,
    name: &WorktreeName,
    record: &WorktreeRecord,
    op: OpNonce,
) -> Result<(), RecordError> {
    let (tmp, path) = (layout::worktree_record_tmp(name, op), layout::worktree_record(name));
    check_label(record.label.as_deref()).map_err(|reason| RecordError::invalid(&path, reason))?;
    store.write_new(&tmp, &path, &record.to_bytes()).map_err(|error| RecordError::io(&path, error))
}

/// Writes the note of operation `op`, durably: the record that `name` is to have.
/// What is left to do needs no more room, so a full disk shows before anything else
/// was made.
pub fn write_note(
    store: &dyn Store,
    name: &WorktreeName,
    record: &WorktreeRecord,
    op: OpNonce,
) -> Result<(), RecordError> {
    let path = layout::worktree_record(name);
    check_label(record.label.as_deref()).map_err(|reason| RecordError::invalid(&path, reason))?;
    let tmp = layout::worktree_record_tmp(name, op);
    let written = store.write_tmp(&tmp, &record.to_bytes()).and_then(|_| {
        store.sync_dir(&tmp.parent()).inspect_err(|_| {
            let _ = store.unlink(&tmp);
        })
    });
    written.map_err(|error| RecordError::io(&path, error))
}

/// The note of an operation: for which worktree, and what it says. One that was cut
/// short by a crash says nothing.
pub type Note = (WorktreeName, Option<WorktreeRecord>);

/// The note of operation `op`, withdrawn or not, if it is at work or was interrupted.
pub fn note_of(store: &dyn Store, op: OpNonce) -> Result<Option<Note>, RecordError> {
    let dir = layout::worktree_records();
    for entry in store.list(&dir).map_err(|error| RecordError::io(&dir, error))? {
        let Some((name, of)) = entry.name.to_str().and_then(layout::note_of) else { continue };
        if of == op || of == op.withdrawn() {
            let said = json::read(store, &layout::worktree_record_tmp(&name, of));
            return Ok(Some((name, said.ok().flatten())));
        }
    }
    Ok(None)
}

/// Removes a record; false if there was none.
pub fn remove(store: &dyn Store, name: &WorktreeName) -> Result<bool, RecordError> {
    let path = layout::worktree_record(name);
    match store.unlink(&path).and_then(|()| store.sync_dir(&path.parent())) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(RecordError::io(&path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{Code, Coded};
    use crate::store::{PosixStore, RepoPath};

    const OP: OpNonce = OpNonce([7; 8]);

    fn store() -> (tempfile::TempDir, PosixStore) {
        let dir = tempfile::tempdir().expect("tempdir");
        let store = PosixStore::open(dir.path()).expect("open");
        store.make_dir(&layout::control_dir()).expect("mkdir");
        store.make_dir(&layout::worktree_records()).expect("mkdir");
        (dir, store)
    }

    fn name(text: &str) -> WorktreeName {
        text.parse().expect("valid")
    }

    fn put(store: &PosixStore, file: &str, content: &[u8]) {
        let at = layout::worktree_records().child(file).expect("plain");
        let tmp = RepoPath::root().child("tmp").expect("plain");
        store.write_over(&tmp, &at, content).expect("written");
    }

    #[test]
    fn a_record_is_created_once_read_back_and_removed() {
        let (_dir, store) = store();
        let record = WorktreeRecord {
            base: Some(SnapshotId { created_ms: 5, random: 6 }),
            label: Some("naïve".into()),
            ..WorktreeRecord::new(Isolation::Shared, WallMs(1_763_283_600_123))
        };
        assert_eq!(read(&store, &name("a")).expect("read"), None);
        create(&store, &name("a"), &record, OP).expect("created");
        assert_eq!(read(&store, &name("a")).expect("read"), Some(record.clone()));
        let again = create(&store, &name("a"), &record, OP).expect_err("is there");
        assert_eq!(again.code(), Code::Exists);
        assert!(remove(&store, &name("a")).expect("removed"));
        assert!(!remove(&store, &name("a")).expect("nothing to remove"));
        assert!(list(&store).expect("list").unfinished.is_empty(), "no tmp file is left");
    }

    #[test]
    fn bad_records_are_named_and_do_not_hide_good_ones() {
        let (_dir, store) = store();
        let good = WorktreeRecord::new(Isolation::Exclusive, WallMs(0));
        create(&store, &name("good"), &good, OP).expect("created");
        let at = r#""created_at":"2025-11-16T09:00:00.123Z""#;
        let bad = [
            ("torn", r#"{"version":1,"#.to_owned()),
            ("later", format!(r#"{{"version":2,"isolation":"shared",{at}}}"#)),
            ("word", format!(r#"{{"version":1,"isolation":"sometimes",{at}}}"#)),
            ("time", r#"{"version":1,"isolation":"shared","created_at":"noon"}"#.to_owned()),
            ("base", format!(r#"{{"version":1,"isolation":"shared",{at},"base":"../x"}}"#)),
            ("label", format!(r#"{{"version":1,"isolation":"shared",{at},"label":"a\u001b[2J"}}"#)),
        ];
        for (file, content) in &bad {
            put(&store, &format!("{file}.json"), content.as_bytes());
        }
        let listing = list(&store).expect("list");
        assert_eq!(listing.worktrees.len(), bad.len() + 1);
        for (name, record) in listing.worktrees {
            match record {
                Ok(record) => assert_eq!((name.as_str(), record), ("good", good.clone())),
                Err(error) => {
                    assert_eq!(error.code(), Code::RecordInvalid);
                    assert!(error.to_string().contains(name.as_str()), "{error}");
                }
            }
        }
    }

    fn full() -> WorktreeRecord {
        WorktreeRecord {
            base: Some("1763283600123-0000002a".parse().expect("an id")),
            label: Some("na\u{ef}ve \"label\"".into()),
            op: Some(OP),
            renamed_from: Some(name("before")),
            maker: Some(MakerProcess {
                boot_id: BootId("boot-a".into()),
                pid_namespace: Some(1),
                pid: 100,
                start_time: 5,
                time_namespace: Some(2),
            }),
            ..WorktreeRecord::new(Isolation::Exclusive, WallMs(1_763_283_600_123))
        }
    }

    #[test]
    fn the_bytes_of_a_record_are_these() {
        let bytes = full().to_bytes();
        assert_eq!(String::from_utf8_lossy(&bytes), include_str!("golden/worktree.json"));
    }

    #[test]
    fn the_bytes_of_a_record_that_says_little_are_these() {
        let bytes = WorktreeRecord::new(Isolation::Shared, WallMs(0)).to_bytes();
        assert_eq!(String::from_utf8_lossy(&bytes), include_str!("golden/worktree_plain.json"));
    }

    #[test]
    fn files_that_are_no_records_are_foreign_not_guessed_at() {
        use std::os::unix::ffi::OsStrExt;
        let (dir, store) = store();
        let records = dir.path().join(layout::worktree_records().as_str());
        for file in ["notes.txt", ".json", "a b.json", "..json", "a.json.bak", "a.tmp-xyz"] {
            put(&store, file, b"{}");
        }
        std::os::unix::fs::symlink("x", records.join(std::ffi::OsStr::from_bytes(b"\xff.json")))
            .expect("symlink");
        put(&store, "a.tmp-0707070707070707", b"{");
        let listing = list(&store).expect("list");
        assert_eq!(listing.unfinished, ["a.tmp-0707070707070707"]);
        assert_eq!(listing.foreign.len(), 7, "{:?}", listing.foreign);
        assert!(listing.worktrees.is_empty(), "{:?}", listing.worktrees);
    }

    #[test]
    fn a_label_that_could_not_be_read_back_is_not_written() {
        let (_dir, store) = store();
        for label in ["x".repeat(LABEL_MAX + 1), "two\nlines".into()] {
            let record = WorktreeRecord {
                label: Some(label),
                ..WorktreeRecord::new(Isolation::Exclusive, WallMs(0))
            };
            let error = create(&store, &name("a"), &record, OP).expect_err("refused");
            assert_eq!(error.code(), Code::RecordInvalid);
        }
        assert_eq!(read(&store, &name("a")).expect("read"), None);
    }
}
