//! Who comes after a death: somebody who takes the lock, somebody who types the same
//! command again, and a doctor, in one order or the other.

use std::sync::Arc;

use jvs_lock::Want;
use jvs_lock::watching::Silently;
use jvs_repo::code::Code;
use jvs_repo::name::WorktreeName;
use jvs_snapshot::Snapshots;
use jvs_snapshot::restore::finish_interrupted;
use jvs_world::repository::main;
use jvs_world::sim::ward::{Ward, locks_of, told};
use jvs_world::sim::{LEASE_MS, LONG_MS, SimTrees};

use crate::rows::Row;
use crate::standing::{Standing, nothing_is_left, worktrees};

/// Who comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    SurvivorFirst,
    DoctorFirst,
}

/// Everybody comes. An error says what did not hold.
pub(crate) fn all_recover(
    ward: &Ward<'_>,
    row: &Row,
    standing: &Standing,
    order: Order,
) -> Result<(), String> {
    standing.is_kept(ward, row.removes).map_err(|why| format!("at once: {why}"))?;
    if order == Order::SurvivorFirst {
        // While the lease of the dead may be live: it may be refused, and breaks nothing.
        again(ward, row, standing, false)?;
        ward.solo.pass_ms(LONG_MS);
        takes_the_lock(ward, &main())?;
        (row.sound)(ward).map_err(|why| format!("survived: {why}"))?;
        standing.is_kept(ward, row.removes).map_err(|why| format!("survived: {why}"))?;
    }
    ward.solo.pass_ms(LONG_MS);
    is_repaired(ward, "doctor")?;
    standing.is_whole(ward, row.removes).map_err(|why| format!("repaired: {why}"))?;
    for of in worktrees(ward) {
        takes_the_lock(ward, &of)?;
    }
    (row.sound)(ward).map_err(|why| format!("repaired and survived: {why}"))?;
    again(ward, row, standing, true)?;
    ward.solo.pass_ms(LONG_MS);
    for of in worktrees(ward) {
        takes_the_lock(ward, &of)?;
    }
    is_repaired(ward, "last")?;
    let end = standing.is_whole(ward, row.removes).and_then(|()| nothing_is_left(ward));
    end.map_err(|why| format!("in the end: {why}"))
}

/// A lone survivor gets the lock, finishes what was begun, and gives it back.
fn takes_the_lock(ward: &Ward<'_>, of: &WorktreeName) -> Result<(), String> {
    let locks = locks_of(ward.seams(), "survivor").watching(Arc::new(Silently));
    let failed = |what: &str, why: &dyn std::fmt::Display| {
        format!("a lone survivor does not {what} {of}: {why}")
    };
    let lease = locks.acquire(of, Want::lease(LEASE_MS));
    let mut lease = lease.map_err(|error| failed("get", &error))?;
    let trees = SimTrees(ward.store());
    let at = Snapshots::new(ward.seams(), &trees);
    finish_interrupted(&at, &trees, &locks, &mut lease)
        .map_err(|error| failed("finish what was begun in", &error))?;
    lease.release().map_err(|error| failed("give back", &error.error))?;
    Ok(())
}

/// `doctor --strict --repair`, and then nothing is left to be found.
fn is_repaired(ward: &Ward<'_>, id: &str) -> Result<(), String> {
    let first = ward.repair(id);
    if !first.is_healthy() {
        return Err(format!("{id} does not help: {:#?}", told(&first)));
    }
    let again = ward.repair(id);
    match again.is_healthy() && again.applied.is_empty() {
        true => Ok(()),
        false => Err(format!("{id} has to come twice: {:#?}", told(&again))),
    }
}

/// The same command, of somebody else. In the end it works, or is refused for what has
/// happened already.
fn again(ward: &Ward<'_>, row: &Row, standing: &Standing, in_the_end: bool) -> Result<(), String> {
    match (row.act)(ward, "next") {
        Ok(()) if (row.done)(ward, "next", standing) => Ok(()),
        Ok(()) => Err("again: told done, and it is not".to_owned()),
        Err(error) => {
            let code = error.code();
            let broken = [Code::Internal, Code::FenceCorrupt, Code::UnsafeFilesystem, Code::Io];
            let expected = !in_the_end || row.refusals.contains(&code);
            match expected && !broken.contains(&code) {
                true => Ok(()),
                false => Err(format!("again: {code}: {error}")),
            }
        }
    }
}
