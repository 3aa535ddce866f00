//! Worktrees: register, metadata and files belong together.

use std::collections::BTreeSet;
use std::io;

use jvs_lock::liveness::{Liveness, Unknowable};
use jvs_lock::register::{ReadError, Register};
use jvs_lock::worktrees::unfinished::{self, Doing};
use jvs_lock::{Hold, Seams};
use jvs_repo::json::{Limits, RecordError, UnusableReason};
use jvs_repo::layout;
use jvs_repo::name::{ShownName, WorktreeName};
use jvs_repo::next::Next;
use jvs_repo::store::{DirEntryKind, RepoPath};

use crate::check::seal::{self, Flip};
use crate::check::{Check, Severity};
use crate::finding::{FindingBuilder, FindingCollector};
use crate::remedy::Remedy;
use crate::survey::{Survey, is_absent, is_symlink};

enum Files {
    There,
    Missing,
    Symlink,
    Other,
}

fn files(survey: &Survey<'_, '_>, worktree: &WorktreeName) -> io::Result<Files> {
    match survey.store().stat(&layout::payload(worktree)) {
        Ok(stat) => Ok(match stat.kind {
            DirEntryKind::Directory => Files::There,
            DirEntryKind::Symlink => Files::Symlink,
            _ => Files::Other,
        }),
        Err(error) if is_absent(&error) => Ok(Files::Missing),
        Err(error) => Err(error),
    }
}

pub(super) fn quick(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    let recorded: BTreeSet<&WorktreeName> =
        survey.worktrees.worktrees.iter().map(|(name, _)| name).collect();
    for (worktree, record) in &survey.worktrees.worktrees {
        let path = layout::worktree_record(worktree);
        let alive = survey.state(worktree).is_some_and(|state| state.hold != Hold::Retired);
        if let Err(RecordError { reason: UnusableReason::Io(error), .. }) = record
            && !is_symlink(error)
        {
            // What is there may be whole: nothing is put in its place.
            report.unreadable(&path, error);
        } else if let Err(error) = record {
            let symlink =
                survey.store().stat(&path).is_ok_and(|stat| stat.kind == DirEntryKind::Symlink);
            let check = if symlink { Check::Symlink } else { Check::WorktreeRecordInvalid };
            let found = report.add(check, &path, error.to_string()).of(worktree);
            if alive {
                rewritten(survey, worktree, &path, found);
            } else {
                found.advice(Next::RepairRegisterFirst);
            }
        }
        payload(survey, worktree, report);
    }
    for (worktree, read) in &survey.registers {
        if recorded.contains(worktree) {
            continue;
        }
        unrecorded(survey, worktree, read.as_ref().ok().map(|state| state.hold), report);
    }
    unknown_payloads(survey, &recorded, report);
}

/// What can be done about a record that cannot be used, of a worktree that exists.
fn rewritten(
    survey: &Survey<'_, '_>,
    worktree: &WorktreeName,
    path: &RepoPath,
    found: FindingBuilder<'_>,
) {
    let seen = survey.store().read(path, Limits::RECORD.size).unwrap_or_default();
    let worktree = worktree.clone();
    match seal::flip(survey, path, &seen) {
        Flip::Found(remedy) => found.remedy(*remedy),
        Flip::None => found.remedy(Remedy::WriteWorktreeRecord { worktree, replace: true }),
        Flip::NotTried => found.advice(seal::NOT_TRIED),
    };
}

fn payload(survey: &Survey<'_, '_>, worktree: &WorktreeName, report: &mut FindingCollector) {
    let path = layout::payload(worktree);
    let state = survey.state(worktree);
    let retired = state.is_some_and(|state| state.hold == Hold::Retired);
    if retired {
        half_done(survey, worktree, report);
        return;
    }
    match files(survey, worktree) {
        Ok(Files::There) => {}
        Ok(Files::Symlink) => {
            report
                .add(Check::Symlink, &path, format!("the files of '{worktree}' are a symlink"))
                .of(worktree)
                .advice("put the real directory in its place");
        }
        Ok(Files::Other) => {
            report
                .add(Check::WorktreeNoFiles, &path, "it is not a directory")
                .of(worktree)
                .advice(Next::MoveAwayAndRepair);
        }
        Ok(Files::Missing) => {
            if !survey.is_unchanged(worktree)
                || survey.is_missing(&layout::worktree_record(worktree))
            {
                return;
            }
            // An empty directory where nothing was ever committed loses nothing;
            // elsewhere it would be taken for a deletion of all files.
            let empty = state.is_some_and(|state| state.head.is_none());
            let advice = match state.and_then(|state| state.head) {
                Some(head) => Next::RestoreLostFiles(path.clone(), worktree.clone(), head),
                None => Next::RepairRegisterFirst,
            };
            report
                .add(Check::WorktreeNoFiles, &path, format!("worktree '{worktree}' has no files"))
                .of(worktree)
                .advice(advice)
                .maybe(empty.then(|| Remedy::MakeDirectory(path.clone())));
        }
        Err(error) => report.unreadable(&path, &error),
    }
}

/// A register without metadata.
fn unrecorded(
    survey: &Survey<'_, '_>,
    worktree: &WorktreeName,
    hold: Option<Hold>,
    report: &mut FindingCollector,
) {
    if half_done(survey, worktree, report) {
        return;
    }
    let register = layout::register(worktree);
    let has_files = matches!(files(survey, worktree), Ok(Files::There));
    match hold {
        Some(_) if !survey.is_unchanged(worktree) => {}
        _ if has_files || worktree.is_main() => {
            // A worktree that is being made has its metadata written last.
            let fresh = survey.state(worktree).is_some_and(|state| state.is_birth());
            if fresh && !worktree.is_main() {
                half_made(worktree, &register, report);
                return;
            }
            let remedy = hold.map(|_| Remedy::WriteWorktreeRecord {
                worktree: worktree.clone(),
                replace: false,
            });
            report
                .add(
                    Check::WorktreeNoRecord,
                    layout::worktree_record(worktree),
                    format!("worktree '{worktree}' has no metadata"),
                )
                .of(worktree)
                .advice(Next::RepairRegisterFirst)
                .maybe(remedy);
        }
        _ => half_made(worktree, &register, report),
    }
}

/// Tells of what was begun with a worktree and not ended. False if nothing was.
fn half_done(
    survey: &Survey<'_, '_>,
    worktree: &WorktreeName,
    report: &mut FindingCollector,
) -> bool {
    if let Some(Err(_)) = survey.registers.get(worktree) {
        return unread(survey, worktree, report);
    }
    let found = match unfinished::look(survey.patient.seams, worktree) {
        Ok(Some(found)) if survey.is_unchanged(worktree) => found,
        Ok(found) => return found.is_some(),
        Err(error) => {
            report.unreadable(&layout::register(worktree), &error);
            return true;
        }
    };
    let (check, what) = match &found.doing {
        Doing::Renaming { to } => (
            Check::WorktreeHalfRemoved,
            format!("worktree '{worktree}' is being renamed to '{to}'"),
        ),
        Doing::Removing | Doing::Changing => {
            (Check::WorktreeHalfRemoved, format!("worktree '{worktree}' is being removed"))
        }
        Doing::Making => {
            (Check::WorktreeHalfMade, format!("worktree '{worktree}' is being created"))
        }
    };
    let (liveness, pid) = match &found.maker {
        Some(maker) => (survey.maker_liveness(maker), maker.pid),
        None => (Liveness::Unknown(Unknowable::NoProcess), 0),
    };
    let remedy = Remedy::EndUnfinished(worktree.clone());
    let path = layout::register(worktree);
    match liveness {
        Liveness::Alive => {
            report
                .add(check, path, format!("{what}, by process {pid} of this host"))
                .of(worktree)
                .severity(Severity::Notice)
                .advice("wait until it has ended");
        }
        Liveness::Dead => {
            report
                .add(check, path, format!("{what}, and process {pid}, which did so, has ended"))
                .of(worktree)
                .severity(Severity::Warning)
                .remedy(remedy);
        }
        Liveness::Unknown(_) => {
            report
                .add(check, path, format!("{what}, or was interrupted"))
                .of(worktree)
                .remedy(remedy);
        }
    }
    true
}

/// Tells of a register that made no sense: it was waited for when it was surveyed, and
/// is not again. False if there is none.
fn unread(survey: &Survey<'_, '_>, worktree: &WorktreeName, report: &mut FindingCollector) -> bool {
    let Seams { store, clock, .. } = survey.patient.seams;
    match Register::new(store, clock, worktree.clone()).read_once() {
        Err(ReadError::Missing { .. }) => false,
        Err(error) => {
            report.unreadable(&layout::register(worktree), &error);
            true
        }
        // Somebody has just mended it.
        Ok(_) => true,
    }
}

fn half_made(worktree: &WorktreeName, register: &RepoPath, report: &mut FindingCollector) {
    report
        .add(
            Check::WorktreeHalfMade,
            register,
            format!("worktree '{worktree}' has a register and no metadata"),
        )
        .of(worktree)
        .advice(Next::CreateWorktreeAgain(worktree.clone()));
}

fn unknown_payloads(
    survey: &Survey<'_, '_>,
    recorded: &BTreeSet<&WorktreeName>,
    report: &mut FindingCollector,
) {
    let some: WorktreeName = match "x".parse() {
        Ok(name) => name,
        Err(_) => return,
    };
    let dir = layout::payload(&some).parent();
    let Ok(entries) = survey.store().list(&dir) else { return };
    for entry in entries {
        let name = entry.name.to_str().and_then(|name| name.parse::<WorktreeName>().ok());
        let known = name
            .as_ref()
            .is_some_and(|name| recorded.contains(name) || survey.registers.contains_key(name));
        if !known {
            let path = format!("{dir}/{}", ShownName::new(&entry.name));
            report
                .add(Check::PayloadUnknown, path, "it is not the directory of any worktree")
                .advice("move it out of the repository if nobody is creating that worktree");
        }
    }
}

/// Control directories inside payloads: commands run below one talk to
/// another repository.
pub(super) fn full(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    for (worktree, _) in &survey.worktrees.worktrees {
        let payload = layout::payload(worktree);
        let found = survey.patient.payloads.find_directory(&payload, layout::CONTROL_DIR);
        if let Ok(Some(found)) = found {
            let path = format!("{payload}/{}", ShownName::new(&found));
            report
                .add(
                    Check::ControlInPayload,
                    path,
                    format!("a control directory inside the files of '{worktree}'"),
                )
                .of(worktree)
                .advice(
                    "move that repository out of the worktree: commands that run below it \
                     use that one instead of this one",
                );
        }
    }
}
