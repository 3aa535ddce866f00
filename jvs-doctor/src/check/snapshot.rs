//! Snapshots: visible ones whole and in a lineage, hidden ones somebody's work
//! or nobody's.

use std::collections::{BTreeMap, BTreeSet};

use jvs_lock::Hold;
use jvs_lock::history::Place;
use jvs_repo::audit::{Event, Kind};
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::RepoPath;
use jvs_snapshot::garbage::Candidate;
use jvs_snapshot::gc::Dead;
use jvs_snapshot::hash::Digest;
use jvs_snapshot::ready;

use crate::finding::{Check, Report};
use crate::proof::Proof;
use crate::rebuild;
use crate::remedy::Remedy;
use crate::survey::{Snap, Survey, is_absent};

const CHUNK: usize = 1 << 20;

/// The heads: a stat or two each.
pub(super) fn heads(survey: &Survey<'_, '_>, report: &mut Report) {
    for (worktree, read) in &survey.registers {
        let Ok(state) = read else { continue };
        let Some(head) = state.head.filter(|_| state.hold != Hold::Retired) else { continue };
        let dir = layout::snapshot(head);
        if !survey.is_missing(&layout::ready(&dir)) {
            continue;
        }
        // Its publisher may be about to show it, or somebody may have moved on.
        if !survey.is_unchanged(worktree) || !survey.is_missing(&layout::ready(&dir)) {
            continue;
        }
        if survey.is_missing(&dir) {
            report
                .add(
                    Check::HeadMissing,
                    &dir,
                    format!("the head of worktree '{worktree}', {head}, is not there"),
                )
                .of(worktree)
                .advice(format!(
                    "restore that directory from a backup; if there is none, give up what it \
                     held: `jvs doctor --repair -w {worktree} --head ID`, with a snapshot of that \
                     worktree that is there, or with `none`"
                ))
                .maybe(
                    rebuild::plan_chosen(survey, worktree, state)
                        .map(|rebuild| Remedy::Rebuild(Box::new(rebuild))),
                );
            continue;
        }
        let staged = !survey.is_missing(&layout::ready_staged(&dir));
        let described = survey.descriptor(head).is_some();
        let (check, message) = match staged {
            true => (Check::ReadyPending, format!("{head} is committed and not visible yet")),
            false => (Check::ReadyLost, format!("{head} is committed, and its READY is gone")),
        };
        let remedy = (staged || described).then(|| Remedy::Show {
            worktree: worktree.clone(),
            id: head,
            write: !staged,
        });
        report
            .add(check, &dir, message)
            .of(worktree)
            .advice("`jvs doctor --strict` tells more")
            .maybe(remedy);
    }
}

pub(super) fn run(survey: &Survey<'_, '_>, report: &mut Report) {
    let lineages = Lineages::walk(survey, report);
    for (id, snap) in &survey.snapshots {
        content(survey, *id, snap, lineages.reached.contains(id), report);
        if !snap.ready {
            hidden(survey, *id, snap, &lineages, report);
        }
    }
    for (id, tombstone) in &survey.tombstones {
        if let Err(why) = tombstone {
            let path = layout::tombstone(*id);
            if survey.is_unseen(&path) {
                report.unreadable(&path, why);
                continue;
            }
            let message = format!("what is left of the collected {id} cannot be read: {why}");
            report
                .add(Check::DescriptorCorrupt, path, message)
                .advice("restore it from a backup; its descendants' lineage needs it");
        }
    }
    outside(survey, &lineages, report);
}

/// Is what a visible snapshot consists of what was written?
fn content(
    survey: &Survey<'_, '_>,
    id: SnapshotId,
    snap: &Snap,
    committed: bool,
    report: &mut Report,
) {
    let dir = layout::snapshot(id);
    let restore = "restore the snapshot's directory from a backup; nothing else can bring it back";
    let (descriptor, checksum) = match &snap.descriptor {
        Ok(read) => read,
        Err(why) if survey.is_unseen(&layout::descriptor(&dir)) => {
            report.unreadable(&layout::descriptor(&dir), why);
            return;
        }
        Err(why) => {
            if snap.ready {
                report
                    .add(
                        Check::DescriptorCorrupt,
                        layout::descriptor(&dir),
                        format!("the descriptor of {id} is not what was written: {why}"),
                    )
                    .advice(restore);
            }
            return;
        }
    };
    if !snap.ready {
        return;
    }
    let path = layout::ready(&dir);
    match survey.store().read(&path, 4096) {
        Ok(bytes) if bytes == ready::bytes(id, *checksum) => {}
        Ok(_) => {
            report
                .add(Check::ReadyMismatch, &path, format!("READY of {id} is not of its descriptor"))
                .advice(restore)
                .maybe(committed.then_some(Remedy::RestoreReady(id)));
        }
        Err(error) if survey.is_missing(&dir) => drop(error),
        Err(error) => report.unreadable(&path, &error),
    }
    if !snap.payload && !survey.is_missing(&dir) {
        let path = layout::snapshot_payload(&dir);
        report
            .add(Check::PayloadMissing, path, format!("the files of {id} are not there"))
            .advice(restore);
    }
    let path = layout::manifest(&dir);
    match hash(survey, &path) {
        Ok(found) if found == descriptor.manifest_hash => {}
        Ok(_) => {
            report
                .add(
                    Check::ManifestCorrupt,
                    &path,
                    format!("the manifest of {id} does not match its descriptor"),
                )
                .advice(restore);
        }
        Err(_) if survey.is_missing(&dir) => {}
        Err(error) if is_absent(&error) || error.kind() == std::io::ErrorKind::InvalidData => {
            report
                .add(
                    Check::ManifestCorrupt,
                    &path,
                    format!("the manifest of {id} cannot be read: {error}"),
                )
                .advice(restore);
        }
        // Nothing follows for what is there.
        Err(error) => report.unreadable(&path, &error),
    }
}

fn hash(survey: &Survey<'_, '_>, path: &RepoPath) -> std::io::Result<Digest> {
    let file = survey.store().open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut offset = 0;
    loop {
        let piece = file.read_range(offset, CHUNK)?;
        if piece.len() == CHUNK && piece.iter().all(|byte| *byte == 0) {
            // Every entry has a name: a hole is no manifest's, however long it is.
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "it has a hole"));
        }
        hasher.update(&piece);
        offset += piece.len() as u64;
        if piece.len() < CHUNK {
            return Ok(hasher.finalize().into());
        }
    }
}

/// Which snapshots descend to which heads.
struct Lineages {
    /// Ancestors of any head, heads included.
    reached: BTreeSet<SnapshotId>,
    /// Lives of each worktree that its lineage has part in.
    lives: BTreeMap<WorktreeName, BTreeSet<u32>>,
    /// Was every register read and every lineage whole?
    whole: bool,
}

impl Lineages {
    fn walk(survey: &Survey<'_, '_>, report: &mut Report) -> Self {
        let whole = survey.unseen.is_empty();
        let mut lineages = Lineages { reached: BTreeSet::new(), lives: BTreeMap::new(), whole };
        for (worktree, read) in &survey.registers {
            match read {
                Ok(state) => {
                    let lives = lineages.lives.entry(worktree.clone()).or_default();
                    lives.insert(state.epoch.counter);
                    let retired = state.hold == Hold::Retired;
                    lineages.follow(survey, worktree, state.head, !retired, report);
                }
                Err(_) => lineages.whole = false,
            }
        }
        for (worktree, graves) in &survey.buried {
            for (_, state) in graves {
                match state {
                    // A removed worktree's snapshots are collected in any order.
                    Some(state) => lineages.follow(survey, worktree, state.head, false, report),
                    None => lineages.whole = false,
                }
            }
        }
        lineages
    }

    fn follow(
        &mut self,
        survey: &Survey<'_, '_>,
        worktree: &WorktreeName,
        head: Option<SnapshotId>,
        tell: bool,
        report: &mut Report,
    ) {
        let mut next = head;
        let mut above: Option<(SnapshotId, u64)> = None;
        while let Some(id) = next {
            let Some(descriptor) = survey.descriptor(id) else {
                self.whole = false;
                if let (true, Some((child, _))) = (tell, above) {
                    broken(survey, worktree, id, child, report);
                }
                return;
            };
            let seq = descriptor.commit_seq.0;
            if let Some((child, of_child)) = above.filter(|(_, of_child)| seq >= *of_child) {
                self.whole = false;
                if tell {
                    let message =
                        format!("{id} counts as commit {seq}, and its child {child} as {of_child}");
                    report
                        .add(Check::LineageCycle, layout::snapshot(id), message)
                        .of(worktree)
                        .advice("restore the descriptors of both from a backup");
                }
                return;
            }
            if descriptor.worktree_id == *worktree {
                let lives = self.lives.entry(worktree.clone()).or_default();
                lives.insert(descriptor.epoch.counter);
            }
            // Met before: the rest was followed for another worktree.
            if !self.reached.insert(id) && self.whole {
                return;
            }
            above = Some((id, seq));
            next = descriptor.parent;
        }
    }
}

fn broken(
    survey: &Survey<'_, '_>,
    worktree: &WorktreeName,
    id: SnapshotId,
    child: SnapshotId,
    report: &mut Report,
) {
    let tombstone = layout::tombstone(id);
    let (what, advice) = match (survey.snapshots.get(&id), collection_of(survey, id)) {
        (Some(_), _) => {
            ("cannot be read".to_owned(), "restore that directory from a backup".into())
        }
        (None, None) => (
            "is neither there nor was it collected".to_owned(),
            "restore that directory from a backup".into(),
        ),
        // A tombstone is the whole descriptor, and an event has the id alone. It names
        // what was to go, too, whether it went or was put back.
        (None, Some(place)) => (
            format!(
                "is not there and has no tombstone, and a collection was to remove it: {place}"
            ),
            format!(
                "restore {tombstone} or that directory from a backup: the log does not hold the \
                 descriptor, so the tombstone cannot be written anew"
            ),
        ),
    };
    let message = format!("{id}, the parent of {child}, {what}");
    report
        .add(Check::LineageBroken, layout::snapshot(id), message)
        .of(worktree)
        .advice(format!("{advice}; newer snapshots can still be restored"));
}

/// Where a log says that a collection was to remove it.
fn collection_of<'s>(survey: &'s Survey<'_, '_>, id: SnapshotId) -> Option<&'s Place> {
    let id = id.to_string();
    let names = |event: &Event| {
        let ids = event.details.as_ref()?.get("snapshots")?.as_array()?;
        ids.iter().any(|named| named.as_str() == Some(&id)).then_some(())
    };
    let mut collections = survey.logs.events.iter().filter(|logged| logged.event.kind == Kind::Gc);
    collections.find(|logged| names(&logged.event).is_some()).map(|logged| &logged.place)
}

/// A snapshot that nobody sees.
fn hidden(
    survey: &Survey<'_, '_>,
    id: SnapshotId,
    snap: &Snap,
    lineages: &Lineages,
    report: &mut Report,
) {
    let dir = layout::snapshot(id);
    let is_head = survey.registers.values().flatten().any(|state| state.head == Some(id));
    if is_head {
        return; // the heads' check tells
    }
    if lineages.reached.contains(&id) {
        // Every proper ancestor of a head was visible.
        let remedy = snap.described().map(|_| Remedy::RestoreReady(id));
        report
            .add(Check::ReadyLost, &dir, format!("{id} is an ancestor of a head without READY"))
            .advice("restore the snapshot's directory from a backup")
            .maybe(remedy);
        return;
    }
    let Some(descriptor) = snap.described() else {
        report
            .add(Check::SnapshotUnknown, &dir, format!("nothing tells what {id} is"))
            .advice("if no jvs is running anywhere, move it away");
        return;
    };
    let bound = descriptor.bound();
    let parent_ready = bound.parent.is_some_and(|parent| survey.was_ready(parent));
    let candidate = Candidate::new(&bound, false, parent_ready);
    // Without READY.staged it was visible once, and somebody took READY away:
    // not what the rules for work in progress are about. The same if it could be
    // an ancestor that a broken lineage does not lead to.
    let proof = survey
        .judging(&bound.worktree)
        .filter(|_| snap.staged && lineages.whole)
        .and_then(|state| Proof::garbage(state, &candidate));
    match proof {
        Some(proof) => {
            let message = format!("a snapshot that can never be committed: {proof}");
            report
                .add(Check::StagedDead, &dir, message)
                .of(&bound.worktree)
                .remedy(Remedy::Collect { dead: Dead::Hidden(id), proof });
        }
        None if snap.staged => {
            let message =
                format!("a snapshot of worktree '{}' that somebody may commit", bound.worktree);
            report
                .add(Check::StagedInFlight, &dir, message)
                .of(&bound.worktree)
                .advice("wait: the next change of holder proves it dead if it is");
        }
        None => {
            report
                .add(Check::SnapshotUnknown, &dir, format!("{id} has neither READY nor its draft"))
                .advice("move it away, or restore its READY from a backup");
        }
    }
}

/// Visible, of a life that a worktree's lineage has part in, and no ancestor of
/// any head.
fn outside(survey: &Survey<'_, '_>, lineages: &Lineages, report: &mut Report) {
    if !lineages.whole {
        return;
    }
    for (id, snap) in survey.snapshots.iter().filter(|(_, snap)| snap.ready) {
        let Some(descriptor) = snap.described() else { continue };
        let worktree = &descriptor.worktree_id;
        let lives = lineages.lives.get(worktree);
        if lineages.reached.contains(id)
            || !lives.is_some_and(|lives| lives.contains(&descriptor.epoch.counter))
        {
            continue;
        }
        // Newer than the register is the register's fault, and a snapshot that
        // was committed since the READ is nobody's.
        let Some(state) = survey.state(worktree) else { continue };
        let ahead = (descriptor.epoch.counter, descriptor.commit_seq)
            > (state.epoch.counter, state.generation);
        if ahead || !survey.is_unchanged(worktree) {
            continue;
        }
        let dir = layout::snapshot(*id);
        let message =
            format!("{id} is visible, but worktree '{worktree}' does not descend from it");
        report
            .add(Check::ReadyOutside, &dir, message)
            .of(worktree)
            .remedy(Remedy::Quarantine { path: dir.clone() });
    }
}
