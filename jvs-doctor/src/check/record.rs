//! Lock records: details of the holder, never asked who holds.

use jvs_lock::legacy;
use jvs_lock::record::{FoundRecord, Meaning, Record};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::{DirEntryKind, RepoPath};

use crate::check::{Check, Severity};
use crate::finding::FindingCollector;
use crate::proof::Proof;
use crate::remedy::Remedy;
use crate::survey::Survey;

pub(super) fn quick(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    legacy_locks(survey, report);
    for (worktree, view) in &survey.views {
        let path = layout::lock_record(worktree);
        let held = view.state.hold.claim().is_some();
        let quarantine = || (!held).then(|| Remedy::Quarantine { path: path.clone() });
        match &view.found {
            FoundRecord::Nothing if held => {
                // Its holder may be about to write it.
                if !still_missing(survey, worktree) {
                    continue;
                }
                report
                    .add(
                        Check::RecordMissing,
                        &path,
                        "the lock is held or frozen, but has no record",
                    )
                    .of(worktree)
                    .advice(
                        "nothing needs to be done: the register names the holder, and the next \
                         renewal writes the record",
                    );
            }
            FoundRecord::Nothing => {}
            FoundRecord::Record(record) if record.is_of(&view.state) => {}
            FoundRecord::Record(record) => stale(survey, worktree, record, report),
            FoundRecord::Unreadable(_) if is_legacy(survey, worktree) => {}
            // It keeps nobody out, and a full examination tells of every symlink.
            FoundRecord::Unreadable(_) if is_symlink(survey, &path) => {}
            FoundRecord::Refused(why) => {
                report
                    .add(Check::Unreadable, &path, format!("it cannot be read: {why}"))
                    .of(worktree)
                    .severity(Severity::Warning)
                    .advice(
                        "nothing needs to be done: the register names the holder, and the next one \
                         replaces it",
                    )
                    .maybe(quarantine());
            }
            FoundRecord::Unreadable(why) => {
                let bytes = survey.store().read(&path, 64 * 1024).unwrap_or_default();
                let other = Record::parse(&bytes).ok();
                let (check, message) = match other {
                    Some(record) if record.worktree_id != *worktree => (
                        Check::RecordForeign,
                        format!("the lock record describes worktree '{}'", record.worktree_id),
                    ),
                    _ => (Check::RecordTorn, format!("the lock record cannot be read: {why}")),
                };
                report
                    .add(check, &path, message)
                    .of(worktree)
                    .advice(
                        "nothing needs to be done while the lock is held: the next renewal or \
                         holder rewrites it",
                    )
                    .maybe(quarantine());
            }
        }
    }
    for file in &survey.locks {
        let Some(worktree) = layout::worktree_of_lock(file) else { continue };
        if !survey.registers.contains_key(&worktree) {
            let path = layout::lock_record(&worktree);
            report
                .add(Check::RecordForeign, &path, "a lock record of a worktree that does not exist")
                .remedy(Remedy::Quarantine { path: path.clone() });
        }
    }
}

fn is_symlink(survey: &Survey<'_, '_>, path: &RepoPath) -> bool {
    survey.store().stat(path).is_ok_and(|stat| stat.kind == DirEntryKind::Symlink)
}

fn still_missing(survey: &Survey<'_, '_>, worktree: &WorktreeName) -> bool {
    const MOMENT_MS: u64 = 50;
    survey.patient.seams.clock.sleep_ms(MOMENT_MS);
    survey.is_missing(&layout::lock_record(worktree)) && survey.is_unchanged(worktree)
}

fn stale(
    survey: &Survey<'_, '_>,
    worktree: &WorktreeName,
    record: &Record,
    report: &mut FindingCollector,
) {
    let Ok(read) = survey.read_again(worktree) else { return };
    if record.is_of(&read) {
        return;
    }
    let message = format!(
        "the lock record describes token {} of session {}, whose hold is over",
        record.fencing_token, record.session_id
    );
    report
        .add(Check::RecordStale, layout::lock_record(worktree), message)
        .of(worktree)
        .advice("nothing needs to be done: the next holder replaces it")
        .maybe(Proof::of_record(&read, record).map(Remedy::RemoveRecord));
}

fn is_legacy(survey: &Survey<'_, '_>, worktree: &WorktreeName) -> bool {
    legacy::find(survey.store(), worktree).is_ok_and(|found| !found.locks.is_empty())
}

fn legacy_locks(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    for worktree in survey.registers.keys() {
        let ours = layout::lock_record(worktree);
        let theirs = layout::legacy_lock(worktree);
        let there = |path: &jvs_repo::store::RepoPath| survey.locks.contains(path.split().1);
        if !there(&ours) && !there(&theirs) {
            continue;
        }
        let others = legacy::find(survey.store(), worktree).unwrap_or_default();
        if let Some(why) = &others.unread {
            report
                .add(Check::Unreadable, &theirs, format!("it cannot be read: {why}"))
                .of(worktree)
                .advice(
                    "it may be a lock of another tool; if that tool is gone for good, remove it",
                );
        }
        for lock in others.locks {
            let message = lock.sentence(worktree, survey.began.wall);
            report
                .add(Check::RecordLegacy, &lock.path, message)
                .of(worktree)
                .remedy(Remedy::Migrate(worktree.clone()));
        }
    }
}
