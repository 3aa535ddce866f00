//! Snapshots: visible ones whole and in a lineage, hidden ones somebody's work
//! or nobody's.

mod content;

use std::collections::BTreeSet;
use std::ops::Range;

use jvs_lock::history::LogLine;
use jvs_lock::{Hold, State};
use jvs_repo::audit::{Event, EventKind, EventPhase};
use jvs_repo::id::SnapshotId;
use jvs_repo::json::RecordError;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;
use jvs_repo::record::audit::Collected;
use jvs_repo::sabotage;
use jvs_snapshot::descriptor::Descriptor;
use jvs_snapshot::tombstones::Tombstones;

use super::staging::IN_FLIGHT;
use crate::check::Check;
use crate::finding::FindingCollector;
use crate::mutation::Rule;
use crate::proof::Proof;
use crate::read::Read;
use crate::rebuild;
use crate::remedy::Remedy;
use crate::survey::{BreakReason, Lineages, Snap, Survey};

/// The heads: a stat or two each.
pub(super) fn quick(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
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
                    format!("the head of worktree '{worktree}', {head}, is missing"),
                )
                .of(worktree)
                .advice(Next::RestoreOrChooseHead(worktree.clone()))
                .maybe(
                    rebuild::plan_chosen(survey, worktree, state)
                        .map(|rebuild| Remedy::Rebuild(Box::new(rebuild))),
                );
            continue;
        }
        let staged = !survey.is_missing(&layout::ready_staged(&dir));
        let described = survey.kin(head).is_some();
        let (check, message) = match staged {
            true => (Check::ReadyPending, format!("{head} is committed and not visible yet")),
            false => (Check::ReadyLost, format!("{head} is committed, and its READY is missing")),
        };
        let remedy = (staged || described).then(|| Remedy::Show {
            worktree: worktree.clone(),
            id: head,
            write: !staged,
        });
        report.add(check, &dir, message).of(worktree).advice(Next::AskDoctorForMore).maybe(remedy);
    }
}

pub(super) fn full(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    let lineages = Lineages::walk(survey);
    lineage(survey, &lineages, report);
    for (id, snap) in &survey.snapshots {
        content::look(survey, *id, snap, lineages.reaches(*id), report);
        if !snap.ready {
            hidden(survey, *id, snap, &lineages, report);
        }
    }
    unread_tombstones(survey, report);
    outside(survey, &lineages, report);
}

/// Files with tombstones that are not what was written.
fn unread_tombstones(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    for unread in survey.tombstones.unread() {
        let RecordError { path, reason: why } = &unread.error;
        if survey.is_unseen(path) {
            report.unreadable(path, why);
            continue;
        }
        let (check, message) = match unread.id {
            Some(id) => (
                Check::DescriptorCorrupt,
                format!("the tombstone of {id}, which was collected, cannot be read: {why}"),
            ),
            None => (
                Check::LedgerCorrupt,
                format!("what is left of snapshots that were collected cannot be read: {why}"),
            ),
        };
        report
            .add(check, path, message)
            .advice("restore it from a backup; its descendants' lineage needs it");
    }
}

/// Lineages that end too early.
fn lineage(survey: &Survey<'_, '_>, lineages: &Lineages, report: &mut FindingCollector) {
    for at in lineages.breaks() {
        let (id, child) = (at.id, at.child);
        match at.why {
            BreakReason::NotDescribed => broken(survey, &at.worktree, id, child, report),
            BreakReason::NotBefore { commit, commit_of_child } => {
                let message = format!(
                    "{id} counts as commit {commit}, and its child {child} as {commit_of_child}"
                );
                report
                    .add(Check::LineageCycle, layout::snapshot(id), message)
                    .of(&at.worktree)
                    .advice("restore the descriptors of both from a backup");
            }
        }
    }
}

fn broken(
    survey: &Survey<'_, '_>,
    worktree: &WorktreeName,
    id: SnapshotId,
    child: SnapshotId,
    report: &mut FindingCollector,
) {
    if is_collected_meanwhile(survey, id) || is_kept_from_us(survey, id) {
        return;
    }
    let tombstone = layout::tombstone(id);
    let (what, advice) = match (survey.snapshots.get(&id), collection_of(survey, id)) {
        (Some(_), _) => {
            ("cannot be read".to_owned(), "restore that directory from a backup".into())
        }
        (None, None) => (
            "is missing and was not collected".to_owned(),
            "restore that directory from a backup".into(),
        ),
        // A tombstone is the whole descriptor, and an event has the id alone. It names
        // what was to go, too, whether it went or was put back.
        (None, Some(place)) => (
            format!("is missing and has no tombstone, and a collection was to remove it: {place}"),
            format!(
                "restore {tombstone} or that directory from a backup: the log does not have the \
                 descriptor, so the tombstone cannot be recreated"
            ),
        ),
    };
    let message = format!("{id}, the parent of {child}, {what}");
    report
        .add(Check::LineageBroken, layout::snapshot(id), message)
        .of(worktree)
        .advice(format!("{advice}; newer snapshots can still be restored"));
}

/// A collection may have gone on since the tombstones were listed: is there one by now?
fn is_collected_meanwhile(survey: &Survey<'_, '_>, id: SnapshotId) -> bool {
    sabotage!(Rule::BrokenIsLookedAtAgain => false);
    !survey.tombstones.has(id)
        && (!survey.is_missing(&layout::tombstone(id)) || is_in_a_ledger(survey, id))
}

/// Is its tombstone in a ledger by now, or may it be in one that cannot be read?
fn is_in_a_ledger(survey: &Survey<'_, '_>, id: SnapshotId) -> bool {
    let may_be_in_one = |all: &Tombstones| all.unread().iter().any(|unread| unread.id.is_none());
    survey.tombstones_by_now().is_some_and(|all| all.has(id) || may_be_in_one(all))
}

/// What may not be read is reported as that, and breaks no lineage.
fn is_kept_from_us(survey: &Survey<'_, '_>, id: SnapshotId) -> bool {
    let dir = layout::snapshot(id);
    [layout::descriptor(&dir), dir, layout::tombstone(id)].iter().any(|path| survey.is_unseen(path))
}

/// Where a log says that a collection was to remove it.
fn collection_of<'s>(survey: &'s Survey<'_, '_>, id: SnapshotId) -> Option<&'s LogLine> {
    let names = |event: &Event| {
        event.details_as::<Collected>().is_some_and(|told| told.snapshots.contains(&id))
    };
    let mut collections =
        survey.logs.events.iter().filter(|logged| logged.event.kind == EventKind::Gc);
    collections.find(|logged| names(&logged.event)).map(|logged| &logged.place)
}

/// What is described and has the draft that becomes its READY: that is written again only
/// where there is none.
fn with_draft_of_ready(snap: &Snap) -> Option<&Descriptor> {
    sabotage!(Rule::DraftOfReadyIsUsed => None);
    snap.described().filter(|_| snap.staged)
}

/// A snapshot that nobody sees.
fn hidden(
    survey: &Survey<'_, '_>,
    id: SnapshotId,
    snap: &Snap,
    lineages: &Lineages,
    report: &mut FindingCollector,
) {
    let dir = layout::snapshot(id);
    let has_it = |state: &Read| state.hold != Hold::Retired && state.head == Some(id);
    if survey.registers.values().flatten().any(has_it) {
        return; // reported by the quick look
    }
    if lineages.reaches(id) {
        // Its worktree was removed before anybody came to show it.
        if let Some(descriptor) = with_draft_of_ready(snap) {
            let worktree = &descriptor.worktree_id;
            report
                .add(Check::ReadyPending, &dir, format!("{id} is committed and not visible yet"))
                .of(worktree)
                .remedy(Remedy::ShowCommitted { worktree: worktree.clone(), id });
            return;
        }
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
            .add(Check::SnapshotUnknown, &dir, format!("{id} has no descriptor that can be read"))
            .advice("if no jvs is running anywhere, move it away");
        return;
    };
    let worktree = &descriptor.worktree_id;
    if let Some(proof) = Proof::of_hidden(survey, lineages, id) {
        let message = format!("a snapshot that can never be committed: {proof}");
        report.add(Check::StagedDead, &dir, message).of(worktree).remedy(Remedy::Collect(proof));
    } else if snap.staged {
        let message = format!("a snapshot of worktree '{worktree}' that somebody may still commit");
        report.add(Check::StagedInFlight, &dir, message).of(worktree).advice(IN_FLIGHT);
    } else {
        report
            .add(Check::SnapshotUnknown, &dir, format!("{id} has neither READY nor its draft"))
            .advice("move it away, or restore its READY from a backup");
    }
}

/// Visible, of an epoch that a worktree's lineage has part in, and no ancestor of
/// any head.
fn outside(survey: &Survey<'_, '_>, lineages: &Lineages, report: &mut FindingCollector) {
    if !lineages.is_whole() {
        return;
    }
    let rebuilt = rebuilt(survey);
    for (id, snap) in survey.snapshots.iter().filter(|(_, snap)| snap.ready) {
        let Some(descriptor) = snap.described() else { continue };
        let worktree = &descriptor.worktree_id;
        if lineages.reaches(*id) || !lineages.has_part_in(worktree, descriptor.epoch.counter) {
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
        let epochs = descriptor.epoch.counter..state.epoch.counter;
        if !was_only_rebuilt_in(&rebuilt, worktree, epochs) {
            continue;
        }
        let dir = layout::snapshot(*id);
        let message =
            format!("{id} is visible, but is not an ancestor of the head of worktree '{worktree}'");
        report
            .add(Check::ReadyOutside, &dir, message)
            .of(worktree)
            .remedy(Remedy::Quarantine { path: dir.clone() });
    }
}

/// Which epochs of which worktrees began with a register that was rebuilt, as the logs
/// say. Read once: there may be as many strays as events.
fn rebuilt<'s>(survey: &'s Survey<'_, '_>) -> BTreeSet<(&'s WorktreeName, u32)> {
    let events = survey.logs.events.iter().map(|logged| &logged.event);
    events
        .filter(|event| event.kind == EventKind::Rebuild && event.phase == EventPhase::Done)
        .filter_map(|event| {
            let state: State = event.to.as_ref()?.parse().ok()?;
            Some((event.worktree.as_ref()?, state.epoch.counter))
        })
        .collect()
}

/// Did the register go from the first to the last of these epochs by being rebuilt alone?
/// A name that was used again began with any snapshot or none, and what its former
/// worktree had published after that one is a branch of its own, not a mistake. Who cannot
/// tell leaves it.
fn was_only_rebuilt_in(
    rebuilt: &BTreeSet<(&WorktreeName, u32)>,
    worktree: &WorktreeName,
    mut epochs: Range<u32>,
) -> bool {
    sabotage!(Rule::FormerWorktreesAreLeft => true);
    epochs.all(|before| rebuilt.contains(&(worktree, before + 1)))
}
