//! The checks: one file a family, each a function from what was seen to what is
//! wrong with it.

pub(crate) mod control;

mod access;
mod audit;
mod clock;
mod filesystem;
mod lock;
mod queue;
mod record;
mod register;
mod seal;
mod snapshot;
mod staging;
mod tag;
mod takeover;
mod tmp;
mod worktree;

use crate::finding::{Depth, Report};
use crate::survey::Survey;

/// Checks that are made together.
pub(crate) struct Family {
    pub(crate) depth: Depth,
    pub(crate) run: fn(&Survey<'_, '_>, &mut Report),
}

const fn quick(run: fn(&Survey<'_, '_>, &mut Report)) -> Family {
    Family { depth: Depth::Quick, run }
}

const fn full(run: fn(&Survey<'_, '_>, &mut Report)) -> Family {
    Family { depth: Depth::Full, run }
}

/// All of them.
pub(crate) const FAMILIES: &[Family] = &[
    quick(control::run),
    quick(register::run),
    quick(record::run),
    quick(lock::run),
    quick(queue::run),
    quick(worktree::run),
    quick(clock::run),
    quick(filesystem::run),
    quick(snapshot::heads),
    full(register::entries),
    full(register::against_history),
    full(access::run),
    full(tmp::run),
    full(takeover::run),
    full(staging::run),
    full(snapshot::run),
    full(tag::run),
    full(worktree::inside),
    full(audit::run),
    full(seal::run),
    full(filesystem::trash),
];
