//! Tickets of waiters that are gone.

use jvs_lock::liveness::Here;
use jvs_lock::queue::{Queue, Waiter};
use jvs_repo::layout;

use crate::finding::{Check, Report};
use crate::proof::Proof;
use crate::remedy::Remedy;
use crate::survey::{Survey, is_absent, is_symlink};

pub(super) fn run(survey: &Survey<'_, '_>, report: &mut Report) {
    let clock = survey.patient.seams.clock.boot_clock();
    let around = &survey.patient.surroundings;
    let here = Here { clock: &clock, pid_namespace: around.pid_namespace };
    for worktree in survey.locks.iter().filter_map(|file| layout::worktree_of_queue(file)) {
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
            let Some(waiter) = entry.name.to_str().and_then(|name| name.parse::<Waiter>().ok())
            else {
                let name = entry.name.to_string_lossy();
                report
                    .add(Check::ForeignFile, format!("{dir}/{name}"), "it is not a ticket")
                    .advice("remove it if you know what it is");
                continue;
            };
            if !Queue::is_gone(&waiter, here, &around.lookup) {
                continue;
            }
            let Ok(path) = dir.child(&waiter.to_string()) else { continue };
            let message = format!("process {}, which waited here, has ended", waiter.pid);
            let proof = Proof::process_ended(waiter.pid);
            report
                .add(Check::TicketStale, &path, message)
                .of(&worktree)
                .remedy(Remedy::Remove { path: path.clone(), proof });
        }
    }
}
