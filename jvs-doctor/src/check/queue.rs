//! Tickets whose waiter is gone, and files that are not tickets.

use jvs_lock::queue::Waiter;
use jvs_repo::layout;
use jvs_repo::name::{ShownName, WorktreeName};
use jvs_repo::store::DirEntry;

use crate::check::Check;
use crate::finding::FindingCollector;
use crate::proof::Proof;
use crate::remedy::Remedy;
use crate::survey::{Survey, is_absent, is_symlink};

pub(super) fn quick(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    for worktree in queues(survey) {
        let dir = layout::queue(&worktree);
        let entries = match survey.store().list(&dir) {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) || is_symlink(&error) => continue,
            Err(error) => {
                report.unreadable(&dir, &error);
                continue;
            }
        };
        for entry in entries {
            let Some(waiter) = waiter(&entry) else { continue };
            let Some(proof) = Proof::of_ticket(survey, &worktree, &waiter) else { continue };
            let message = format!("process {}, which waited here, has ended", waiter.pid);
            report
                .add(Check::TicketStale, &proof.thing().0, message)
                .of(&worktree)
                .remedy(Remedy::Remove(proof));
        }
    }
}

pub(super) fn full(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    for dir in queues(survey).map(|worktree| layout::queue(&worktree)) {
        // What cannot be listed is reported by the quick look.
        let entries = survey.store().list(&dir).unwrap_or_default();
        for entry in entries.iter().filter(|entry| waiter(entry).is_none()) {
            let name = ShownName::new(&entry.name);
            report
                .add(Check::ForeignFile, format!("{dir}/{name}"), "it is not a ticket")
                .advice("remove it if you know what it is");
        }
    }
}

fn queues(survey: &Survey<'_, '_>) -> impl Iterator<Item = WorktreeName> {
    survey.locks.iter().filter_map(|file| layout::worktree_of_queue(file))
}

fn waiter(entry: &DirEntry) -> Option<Waiter> {
    entry.name.to_str()?.parse().ok()
}
