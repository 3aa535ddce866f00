//! What a snapshot has at a path, in a few bytes: to see in which of many snapshots a path
//! changed, with no more in memory than one entry, and without reading any file.

use jvs_repo::store::Store;

use crate::compare::IdMap;
use crate::error::SnapshotError;
use crate::hash::Digest;
use crate::look;
use crate::manifest::{Entry, EntryKind, TreePath};
use crate::ready::Ready;

/// What is at a path and below it, but for times and which other names it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imprint {
    content: Digest,
    owners: Digest,
    /// Where owners are spelled.
    id_map: IdMap,
    /// Bytes of the files there.
    pub bytes: u64,
    /// How many paths there are, the path itself included.
    pub paths: u64,
}

/// How what is at a path differs from what was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It was not there.
    Added,
    /// It was another.
    Changed,
    /// It is not there any more.
    Removed,
}

impl Change {
    /// In a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Change::Added => "added",
            Change::Changed => "changed",
            Change::Removed => "removed",
        }
    }

    /// From `before` to `after`; nothing if they are the same.
    pub fn between(before: Option<&Imprint>, after: Option<&Imprint>) -> Option<Self> {
        match (before, after) {
            (None, None) => None,
            (None, Some(_)) => Some(Change::Added),
            (Some(_), None) => Some(Change::Removed),
            (Some(a), Some(b)) => (!a.is_like(b)).then_some(Change::Changed),
        }
    }
}

impl Imprint {
    /// The same, as far as they can be compared: between two spellings, owners say nothing.
    fn is_like(&self, other: &Imprint) -> bool {
        self.content == other.content
            && (self.id_map != other.id_map || self.owners == other.owners)
    }

    /// Reads the imprint of `path` off a snapshot's manifest, up to its proven end; nothing
    /// if the snapshot has no such path.
    pub fn of(
        store: &dyn Store,
        snapshot: &Ready,
        path: &TreePath,
    ) -> Result<Option<Imprint>, SnapshotError> {
        let mut press = Press::new();
        look::each_at(store, snapshot, path, &mut |entry| press.take(entry))?;
        Ok(press.imprint(snapshot.descriptor().content.id_map.clone()))
    }
}

/// An imprint in the making.
struct Press {
    content: blake3::Hasher,
    owners: blake3::Hasher,
    bytes: u64,
    paths: u64,
}

impl Press {
    fn new() -> Self {
        let (content, owners) = (blake3::Hasher::new(), blake3::Hasher::new());
        Press { content, owners, bytes: 0, paths: 0 }
    }

    /// The next entry in the order of paths. Every field has its length before it, so that
    /// no two entries look like one.
    fn take(&mut self, entry: &Entry) {
        let mut field = |bytes: &[u8]| {
            self.content.update(&(bytes.len() as u64).to_le_bytes());
            self.content.update(bytes);
        };
        field(entry.path.as_bytes());
        field(entry.kind.noun().as_bytes());
        match &entry.kind {
            EntryKind::File { size, hash } => {
                field(&size.to_le_bytes());
                field(&hash.0);
                self.bytes = self.bytes.saturating_add(*size);
            }
            EntryKind::Symlink { target } => field(target),
            EntryKind::CharDevice(device) | EntryKind::BlockDevice(device) => {
                field(&device.major.to_le_bytes());
                field(&device.minor.to_le_bytes());
            }
            EntryKind::Directory | EntryKind::Fifo | EntryKind::Socket => {}
        }
        // A symlink's mode means nothing on Linux.
        if !matches!(entry.kind, EntryKind::Symlink { .. }) {
            field(&entry.mode.to_le_bytes());
        }
        field(&(entry.xattrs.len() as u64).to_le_bytes());
        for xattr in &entry.xattrs {
            field(&xattr.name);
            field(&xattr.value);
        }
        self.owners.update(&entry.uid.to_le_bytes());
        self.owners.update(&entry.gid.to_le_bytes());
        self.paths += 1;
    }

    fn imprint(self, id_map: IdMap) -> Option<Imprint> {
        let (content, owners) = (self.content.finalize().into(), self.owners.finalize().into());
        let Press { bytes, paths, .. } = self;
        (paths > 0).then_some(Imprint { content, owners, id_map, bytes, paths })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Timestamp, Xattr};

    fn entry(path: &str, kind: EntryKind) -> Entry {
        Entry {
            path: TreePath::new(path.as_bytes().to_vec()).expect("plain"),
            kind,
            mode: 0o644,
            uid: 1,
            gid: 1,
            mtime: Timestamp { seconds: 0, nanos: 0 },
            link_group: None,
            xattrs: Vec::new(),
        }
    }

    fn file(path: &str, hash: u8) -> Entry {
        entry(path, EntryKind::File { size: 3, hash: Digest([hash; 32]) })
    }

    fn imprint(entries: &[Entry], id_map: Option<&str>) -> Option<Imprint> {
        let mut press = Press::new();
        entries.iter().for_each(|entry| press.take(entry));
        press.imprint(id_map.map(str::to_owned))
    }

    #[test]
    fn whatever_a_comparison_would_tell_changes_an_imprint_and_a_time_does_not() {
        let plain = file("a", 1);
        let of = |entry: &Entry| imprint(std::slice::from_ref(entry), None);
        let base = of(&plain);
        let changed = |entry: Entry| Change::between(base.as_ref(), of(&entry).as_ref());
        let later = Timestamp { seconds: 9, nanos: 9 };
        assert_eq!(changed(Entry { mtime: later, ..plain.clone() }), None);
        assert_eq!(changed(Entry { link_group: Some(0), ..plain.clone() }), None);
        let xattr = Xattr { name: b"user.x".to_vec(), value: b"1".to_vec() };
        for other in [
            file("a", 2),
            file("b", 1),
            entry("a", EntryKind::Symlink { target: b"b".to_vec() }),
            Entry { mode: 0o755, ..plain.clone() },
            Entry { uid: 2, ..plain.clone() },
            Entry { xattrs: vec![xattr], ..plain.clone() },
        ] {
            assert_eq!(changed(other.clone()), Some(Change::Changed), "{other:?}");
        }
        let link = entry("a", EntryKind::Symlink { target: b"b".to_vec() });
        let other_mode = Entry { mode: 0o777, ..link.clone() };
        assert_eq!(Change::between(of(&link).as_ref(), of(&other_mode).as_ref()), None);
    }

    #[test]
    fn what_comes_goes_or_is_in_another_place_is_a_change() {
        let (one, two) =
            (imprint(&[file("d", 1)], None), imprint(&[file("d", 1), file("d/e", 1)], None));
        assert_eq!(Change::between(None, one.as_ref()), Some(Change::Added));
        assert_eq!(Change::between(one.as_ref(), None), Some(Change::Removed));
        assert_eq!(Change::between(one.as_ref(), two.as_ref()), Some(Change::Changed));
        assert_eq!(Change::between(None, None), None);
        assert_eq!(imprint(&[], None), None);
        assert_eq!(two.map(|it| (it.paths, it.bytes)), Some((2, 6)));
    }

    #[test]
    fn owners_that_are_spelled_in_two_ways_are_not_compared() {
        let other = Entry { uid: 100_001, ..file("a", 1) };
        let (here, there) =
            (imprint(&[file("a", 1)], None), imprint(std::slice::from_ref(&other), Some("0 1 2")));
        assert_eq!(Change::between(here.as_ref(), there.as_ref()), None);
        let same = imprint(&[other], None);
        assert_eq!(Change::between(here.as_ref(), same.as_ref()), Some(Change::Changed));
    }
}
