//! Names for snapshots, which stay until they are deleted.
//!
//! A tag protects its snapshot from collection. A process that makes one looks at the
//! snapshot *after* the tag is there, and a process that collects looks at the tags
//! *after* the snapshot is out of sight: one of the two sees the other.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::io;

use jvs_lock::{Locks, Seams};
use jvs_repo::audit::{Event, EventKind, EventPhase};
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::json::{self, RecordError};
use jvs_repo::layout;
use jvs_repo::name::TagName;
pub use jvs_repo::record::tag::{LoggedTag, Tag};
use jvs_repo::store::{Removal, Store, in_doubt};

use crate::catalog::Catalog;
use crate::error::SnapshotError;
use crate::ready::Ready;

/// What is in the directory of tags.
#[derive(Debug, Default)]
pub struct Tags {
    /// Each tag, or why it cannot be used: one bad tag does not hide the others.
    pub tags: BTreeMap<TagName, Result<Tag, RecordError>>,
    /// What is no tag: being written, or not ours.
    pub foreign: Vec<OsString>,
}

impl Tags {
    /// The names of a snapshot, sorted.
    pub fn of(&self, id: SnapshotId) -> Vec<&TagName> {
        let stands_for = |tag: &Tag| tag.snapshot_id == id;
        self.tags
            .iter()
            .filter(|(_, tag)| tag.as_ref().is_ok_and(stands_for))
            .map(|(name, _)| name)
            .collect()
    }
}

/// Reads one tag; `None` if there is none of that name.
pub fn read(store: &dyn Store, name: &TagName) -> Result<Option<Tag>, RecordError> {
    let path = layout::tag(name);
    match store.read(&path, json::Limits::RECORD.size) {
        Ok(bytes) => {
            Tag::parse(name, &bytes).map(Some).map_err(|reason| RecordError::invalid(&path, reason))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(RecordError::io(&path, error)),
    }
}

/// All tags.
pub fn list(store: &dyn Store) -> Result<Tags, RecordError> {
    let dir = layout::tags();
    let mut tags = Tags::default();
    for entry in store.list(&dir).map_err(|error| RecordError::io(&dir, error))? {
        let Some(name) = entry.name.to_str().and_then(layout::tag_of_record) else {
            tags.foreign.push(entry.name);
            continue;
        };
        // `None` if it was deleted between the listing and the reading.
        if let Some(tag) = read(store, &name).transpose() {
            tags.tags.insert(name, tag);
        }
    }
    tags.foreign.sort();
    Ok(tags)
}

/// Gives a visible snapshot a name.
pub fn create(
    seams: Seams<'_>,
    name: &TagName,
    snapshot: &Ready,
    session_id: &str,
) -> Result<Tag, SnapshotError> {
    let now = seams.clock.now().wall;
    put(seams, Tag::new(name.clone(), snapshot.id(), now, session_id.to_owned()))
}

/// Writes a tag that is not there, to a snapshot that is.
fn put(seams: Seams<'_>, tag: Tag) -> Result<Tag, SnapshotError> {
    let LoggedTag { tag: name, snapshot_id: id, .. } = LoggedTag::from(tag.clone());
    check_name(&name)?;
    let store = seams.store;
    let tmp = layout::tag_tmp(&name, OpNonce::random(seams.entropy));
    let path = layout::tag(&name);
    let bytes = tag.to_bytes();
    match store.write_new(&tmp, &path, &bytes) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let there = read(store, &name)?;
            let id = there.map_or(id, |tag| tag.snapshot_id);
            return Err(SnapshotError::TagExists { tag: name, id });
        }
        Err(error) => return Err(RecordError::io(&path, error).into()),
    }
    let error = match Catalog::new(store).is_ready(id) {
        Ok(true) => return Ok(tag),
        Ok(false) => SnapshotError::Collected { id },
        Err(source) => SnapshotError::io("look at the snapshot again")(source),
    };
    let aside = layout::tag_tmp(&name, OpNonce::random(seams.entropy));
    let is_mine = |seen: &[u8]| seen == bytes;
    let taken_back = store
        .remove_meant(&path, &aside, json::Limits::RECORD.size, &is_mine)
        .and_then(|_| store.settle(&layout::tags()));
    Err(match (taken_back, error) {
        // A tag without its snapshot is doctor's to report.
        (_, gone @ SnapshotError::Collected { .. }) | (Ok(()), gone) => gone,
        (Err(source), _) => {
            RecordError::io(&path, in_doubt("perhaps the tag was made", source)).into()
        }
    })
}

/// Makes a tag that was deleted once more, byte for byte.
pub fn make_again(locks: &Locks<'_>, was: &LoggedTag) -> Result<Tag, SnapshotError> {
    let LoggedTag { tag, snapshot_id, created_at, session_id } = was.clone();
    let seams = locks.seams();
    let tag = put(seams, Tag::new(tag, snapshot_id, created_at, session_id))?;
    // Best effort: the tag is there, and counts without it.
    let _ = note(locks, EventKind::Tag, EventPhase::Done, OpNonce::random(seams.entropy), &tag);
    Ok(tag)
}

/// [`create`] by a session that writes down what it does, so that a tag that gets
/// lost is missed.
pub fn make(locks: &Locks<'_>, name: &TagName, snapshot: &Ready) -> Result<Tag, SnapshotError> {
    let seams = locks.seams();
    let tag = create(seams, name, snapshot, locks.session().id().as_str())?;
    // Best effort: the tag is there, and counts without it.
    let _ = note(locks, EventKind::Tag, EventPhase::Done, OpNonce::random(seams.entropy), &tag);
    Ok(tag)
}

/// [`delete`] by a session that writes down what it does, before it does it.
pub fn take_away(locks: &Locks<'_>, name: &TagName) -> Result<Option<Tag>, SnapshotError> {
    let seams = locks.seams();
    let Some(tag) = read(seams.store, name)? else { return Ok(None) };
    let op = OpNonce::random(seams.entropy);
    note(locks, EventKind::Untag, EventPhase::Intent, op, &tag)
        .map_err(SnapshotError::io("write the audit log"))?;
    let deleted = delete(seams, name)?;
    let _ = note(locks, EventKind::Untag, EventPhase::Done, op, &tag);
    Ok(deleted)
}

fn note(
    locks: &Locks<'_>,
    kind: EventKind,
    phase: EventPhase,
    op: OpNonce,
    tag: &Tag,
) -> io::Result<()> {
    locks.note(kind, phase, op, None, None, Some(LoggedTag::from(tag.clone()).into()))
}

/// The tags that were made and not deleted, by what `events` tell. One that was deleted may
/// have been made again as it was.
pub fn remembered<'e>(events: impl IntoIterator<Item = &'e Event>) -> Vec<LoggedTag> {
    let mut made: Vec<LoggedTag> = Vec::new();
    let mut deleted: HashMap<LoggedTag, HashSet<OpNonce>> = HashMap::new();
    for event in events {
        // About to be deleted is as good as deleted: it was meant to go.
        let makes = match (event.kind, event.phase) {
            (EventKind::Tag, EventPhase::Done) => true,
            (EventKind::Untag, _) => false,
            _ => continue,
        };
        match event.details_as::<LoggedTag>() {
            // An anchor says again what a log that it stands for says.
            Some(told) if makes && made.contains(&told) => {}
            Some(told) if makes => made.push(told),
            Some(told) => drop(deleted.entry(told).or_default().insert(event.op)),
            None => {}
        }
    }
    let mut there = Vec::new();
    for tag in made {
        // Each deletion is of one of those that are alike.
        match deleted.get_mut(&tag).and_then(|ops| ops.iter().next().copied().map(|op| (ops, op))) {
            Some((ops, op)) => drop(ops.remove(&op)),
            None => there.push(tag),
        }
    }
    there
}

/// Can it be a tag, given that ids and tags are named in one place?
pub fn check_name(name: &TagName) -> Result<(), SnapshotError> {
    let text = name.as_str();
    let (digits, rest) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    if !digits.is_empty() && rest.starts_with('-') && text.parse::<SnapshotId>().is_ok() {
        let problem = format!("'{name}' looks like a snapshot's id and cannot be a tag");
        return Err(SnapshotError::Invalid { problem });
    }
    Ok(())
}

/// Takes a tag away; what it stood for, or `None` if there was none, or it stands for
/// something else by now.
pub fn delete(seams: Seams<'_>, name: &TagName) -> Result<Option<Tag>, SnapshotError> {
    let (store, path) = (seams.store, layout::tag(name));
    let Some(tag) = read(store, name)? else { return Ok(None) };
    // What another session tagged under the same name meanwhile is not what was meant.
    let is_meant = |bytes: &[u8]| Tag::parse(name, bytes).is_ok_and(|seen| seen == tag);
    let aside = layout::tag_tmp(name, OpNonce::random(seams.entropy));
    let removed = store
        .remove_meant(&path, &aside, json::Limits::RECORD.size, &is_meant)
        .and_then(|removal| store.settle(&layout::tags()).map(|()| removal));
    match removed.map_err(|error| RecordError::io(&path, error))? {
        Removal::Removed => Ok(Some(tag)),
        Removal::Gone | Removal::Another => Ok(None),
    }
}
