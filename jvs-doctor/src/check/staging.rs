//! Work in progress, and what is left of work that is over.

use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_snapshot::Snapshots;
use jvs_snapshot::garbage::Candidate;
use jvs_snapshot::gc::Dead;
use jvs_snapshot::restore::leftover::{self, Worth};
use jvs_snapshot::staging_name::StagingName;

use crate::finding::{Check, Report};
use crate::proof::Proof;
use crate::remedy::Remedy;
use crate::survey::Survey;

pub(super) fn run(survey: &Survey<'_, '_>, report: &mut Report) {
    for name in &survey.staging {
        let shown = format!("{}/{}", layout::staging(), name.to_string_lossy());
        let Some(parsed) = name.to_str().and_then(|name| name.parse::<StagingName>().ok()) else {
            unknown(survey, name.to_str().unwrap_or_default(), shown, report);
            continue;
        };
        match &parsed {
            StagingName::Snapshot(bound) => {
                let parent_ready = bound.parent.is_some_and(|parent| survey.was_ready(parent));
                let candidate = Candidate::new(bound, false, parent_ready);
                let judging = survey.judging(&bound.worktree);
                match judging.and_then(|state| Proof::garbage(state, &candidate)) {
                    Some(proof) => {
                        let message = format!("a snapshot that can never be committed: {proof}");
                        let dead = Dead::Draft(parsed.clone());
                        report
                            .add(Check::StagedDead, shown, message)
                            .of(&bound.worktree)
                            .remedy(Remedy::Collect { dead, proof });
                    }
                    None => {
                        let message = format!(
                            "a snapshot of worktree '{}' that somebody may still commit",
                            bound.worktree
                        );
                        report
                            .add(Check::StagedInFlight, shown, message)
                            .of(&bound.worktree)
                            .advice("wait: the next change of holder proves it dead if it is");
                    }
                }
            }
            StagingName::Restore { worktree, epoch, token, .. }
            | StagingName::Swap { worktree, epoch, token, .. } => {
                let judging = survey.judging(worktree);
                match judging.and_then(|state| Proof::fenced(state, *epoch, *token)) {
                    Some(proof) => dead_restore(survey, &parsed, worktree, proof, shown, report),
                    None => {
                        report
                            .add(Check::StagedInFlight, shown, "a restore that may be under way")
                            .of(worktree)
                            .advice("wait: the next change of holder proves it dead if it is");
                    }
                }
            }
            StagingName::Condemned { id, .. } => {
                let message = format!("garbage collection set {id} aside and did not decide");
                report
                    .add(Check::GcUnfinished, shown, message)
                    .remedy(Remedy::FinishGc(parsed.clone()));
            }
            StagingName::Doomed { .. } => {
                report
                    .add(Check::GcUnfinished, shown, "it was being deleted")
                    .remedy(Remedy::FinishGc(parsed.clone()));
            }
        }
    }
}

/// A copy that was never offered for a swap is nobody's. A swap may hold the files
/// that were swapped out, with what somebody wrote to them last.
fn dead_restore(
    survey: &Survey<'_, '_>,
    name: &StagingName,
    worktree: &WorktreeName,
    proof: Proof,
    shown: String,
    report: &mut Report,
) {
    let at = Snapshots::new(survey.patient.seams, survey.patient.payloads);
    let (message, remedy) = match name {
        StagingName::Swap { .. } => match leftover::worth_of(&at, name) {
            Worth::Nothing => {
                let message = format!(
                    "an interrupted restore left it, and snapshots have all that is in it: {proof}"
                );
                (message, Remedy::Collect { dead: Dead::Swap(name.clone()), proof })
            }
            Worth::Something(paths) => {
                let first = paths.first().map(ToString::to_string).unwrap_or_default();
                let message = format!(
                    "an interrupted restore left it, with files that no snapshot has \
                     ({first}): {proof}"
                );
                (message, Remedy::Quarantine { path: name.path() })
            }
            Worth::Unproven(why) => {
                let message = format!(
                    "an interrupted restore left it, and what it holds cannot be told ({why}): \
                     {proof}"
                );
                (message, Remedy::Quarantine { path: name.path() })
            }
        },
        _ => {
            let message = format!("a copy for a restore that did not take place: {proof}");
            (message, Remedy::Collect { dead: Dead::Restore(name.clone()), proof })
        }
    };
    report.add(Check::RestoreDead, shown, message).of(worktree).remedy(remedy);
}

fn unknown(survey: &Survey<'_, '_>, name: &str, shown: String, report: &mut Report) {
    if let (Some((worktree, epoch, op)), Ok(files)) =
        (layout::removed_of(name), layout::staged(name))
    {
        let judging = survey.judging(&worktree);
        let remedy = judging
            .and_then(|state| Proof::removed(state, epoch, op))
            .map(|proof| Remedy::Collect { dead: Dead::Removed(files), proof });
        report
            .add(Check::RemovedFiles, &shown, "files of a worktree that was removed by force")
            .of(&worktree)
            .advice("look what is in it: nothing tells that its worktree was removed")
            .maybe(remedy);
    } else if layout::is_removing(name) {
        report
            .add(Check::RemovedFiles, shown, "files that a removal took away without deciding")
            .advice("look what is in it: its worktree may have been brought back without them");
    } else {
        report
            .add(Check::StagedUnknown, shown, "its name says nothing about whose it is")
            .advice("if no jvs is running anywhere, move it away");
    }
}
