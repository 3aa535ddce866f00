//! Work in progress, and what is left of work that is over.

use jvs_lock::Hold;
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::term::Term;
use jvs_snapshot::Snapshots;
use jvs_snapshot::restore::RestoreJournal;
use jvs_snapshot::restore::leftover::{self, Worth};
use jvs_snapshot::staging_name::StagingName;

use crate::check::Check;
use crate::finding::FindingCollector;
use crate::proof::Proof;
use crate::read::Read;
use crate::remedy::Remedy;
use crate::survey::{StagedEntry, Survey};

/// What to do about work that may still be somebody's.
pub(super) const IN_FLIGHT: &str =
    "wait: once the lock changes hands, doctor can tell whether it is dead";

pub(super) fn full(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    for staged in &survey.staging {
        match staged.parsed() {
            None => unknown(survey, staged, report),
            Some(StagingName::Snapshot(bound)) => {
                draft(survey, staged, &bound.worktree, report);
            }
            Some(
                name @ (StagingName::Restore { worktree, .. } | StagingName::Swap { worktree, .. }),
            ) => restore(survey, staged, name, worktree, report),
            Some(StagingName::Patch { worktree, term, source, .. }) => {
                patch(survey, staged, worktree, *term, *source, report);
            }
            Some(StagingName::Condemned { id, .. }) => {
                let message = format!("a garbage collection set {id} aside and was interrupted");
                uncollected(staged, message, report);
            }
            Some(StagingName::Doomed { .. }) => {
                uncollected(staged, "it was being deleted".to_owned(), report);
            }
        }
    }
}

fn draft(
    survey: &Survey<'_, '_>,
    staged: &StagedEntry,
    worktree: &WorktreeName,
    report: &mut FindingCollector,
) {
    match Proof::of_draft(survey, staged) {
        Some(proof) => {
            let message = format!("a snapshot that can never be committed: {proof}");
            report
                .add(Check::StagedDead, staged.shown(), message)
                .of(worktree)
                .remedy(Remedy::Collect(proof));
        }
        None => {
            let message =
                format!("a snapshot of worktree '{worktree}' that somebody may still commit");
            report
                .add(Check::StagedInFlight, staged.shown(), message)
                .of(worktree)
                .advice(IN_FLIGHT);
        }
    }
}

fn uncollected(staged: &StagedEntry, message: String, report: &mut FindingCollector) {
    report
        .add(Check::GcUnfinished, staged.shown(), message)
        .maybe(Proof::of_collection(staged).map(Remedy::FinishGc));
}

/// A copy that was never offered for a swap is nobody's. A swap may hold the files
/// that were swapped out, with what somebody wrote to them last.
fn restore(
    survey: &Survey<'_, '_>,
    staged: &StagedEntry,
    name: &StagingName,
    worktree: &WorktreeName,
    report: &mut FindingCollector,
) {
    let Some(proof) = Proof::of_restore(survey, staged) else {
        report
            .add(Check::StagedInFlight, staged.shown(), "a restore that may be under way")
            .of(worktree)
            .advice(IN_FLIGHT);
        return;
    };
    let at = Snapshots::new(survey.patient.seams, survey.patient.payloads);
    let quarantine = || Remedy::Quarantine { path: name.path() };
    let (message, remedy) = match name {
        StagingName::Swap { .. } => match leftover::worth_of(&at, name) {
            Worth::Nothing => (
                format!(
                    "an interrupted restore left it, and snapshots have everything in it: {proof}"
                ),
                Remedy::Collect(proof),
            ),
            Worth::Something(paths) => {
                let first = paths.first().map(ToString::to_string).unwrap_or_default();
                let message = format!(
                    "an interrupted restore left it, with files that no snapshot has \
                     ({first}): {proof}"
                );
                (message, quarantine())
            }
            Worth::Unproven(why) => {
                let message = format!(
                    "an interrupted restore left it, and its content cannot be compared with \
                     snapshots ({why}): {proof}"
                );
                (message, quarantine())
            }
        },
        _ => (
            format!("a copy for a restore that did not take place: {proof}"),
            Remedy::Collect(proof),
        ),
    };
    report.add(Check::RestoreDead, staged.shown(), message).of(worktree).remedy(remedy);
}

/// A committed restore: the next holder of the lock finishes it, and so can doctor.
fn patch(
    survey: &Survey<'_, '_>,
    staged: &StagedEntry,
    worktree: &WorktreeName,
    term: Term,
    id: SnapshotId,
    report: &mut FindingCollector,
) {
    let held = |read: &Read| read.term() == term && matches!(read.hold, Hold::Held(_));
    if survey.judging(worktree).is_some_and(held) {
        report
            .add(Check::StagedInFlight, staged.shown(), "a restore that may be under way")
            .of(worktree)
            .advice(IN_FLIGHT);
        return;
    }
    let message = format!(
        "restoring {id} was interrupted: some files of worktree '{worktree}' may be old and some \
         new, until the next command that uses its lock finishes it"
    );
    let finding = report.add(Check::RestoreUnfinished, staged.shown(), message).of(worktree);
    let dir = staged.parsed().map(StagingName::path);
    match dir.and_then(|dir| RestoreJournal::advice_if_unusable(survey.store(), &dir)) {
        Some(advice) => finding.advice(advice),
        None => finding.remedy(Remedy::FinishRestore { worktree: worktree.clone(), id }),
    };
}

fn unknown(survey: &Survey<'_, '_>, staged: &StagedEntry, report: &mut FindingCollector) {
    let (name, shown) = (staged.text().unwrap_or_default(), staged.shown());
    if let Some((worktree, ..)) = layout::removed_of(name) {
        report
            .add(Check::RemovedFiles, shown, "files of a worktree that was removed by force")
            .of(&worktree)
            .advice("look at what is in it: nothing shows that its worktree was removed")
            .maybe(Proof::of_removed(survey, staged).map(Remedy::Collect));
    } else if layout::is_removing(name) {
        report
            .add(Check::RemovedFiles, shown, "files that an interrupted removal moved away")
            .advice("look at what is in it: its worktree may have been brought back without them");
    } else {
        report
            .add(Check::StagedUnknown, shown, "its name does not say whose it is")
            .advice("if no jvs is running anywhere, move it away");
    }
}
