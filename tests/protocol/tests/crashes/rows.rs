//! The rows of the matrix: what each command does, and how one sees that it was done.

pub(crate) mod locking;
pub(crate) mod snapshots;
pub(crate) mod trees;

use jvs_repo::code::Code;
use jvs_world::any_error::AnyError;
use jvs_world::sim::ward::Ward;

use crate::standing::Standing;

pub(crate) type Told = Result<(), AnyError>;

/// A command that is struck.
pub(crate) struct Row {
    /// Its name, as the command line has it.
    pub(crate) command: &'static str,
    /// What else it is told; for people.
    pub(crate) with: &'static str,
    /// Makes a world in which it can succeed.
    pub(crate) prepare: fn(&Ward<'_>),
    /// One process of that session does it.
    pub(crate) act: fn(&Ward<'_>, &str) -> Told,
    /// Is it done, and seen to be?
    pub(crate) done: fn(&Ward<'_>, &str, &Standing) -> bool,
    /// Does what was done outlast a power cut, once it was told?
    pub(crate) is_durable: bool,
    /// Of several steps some may be done although it failed; the error says so.
    pub(crate) in_steps: bool,
    /// What somebody who types it again may be told in the end.
    pub(crate) refusals: &'static [Code],
    /// May the worktree `old` be gone?
    pub(crate) removes: bool,
    /// What else must be true once somebody else has had the lock.
    pub(crate) sound: fn(&Ward<'_>) -> Result<(), String>,
}

impl Row {
    /// A command of one step, in a world where nothing need be prepared.
    const fn new(
        command: &'static str,
        act: fn(&Ward<'_>, &str) -> Told,
        done: fn(&Ward<'_>, &str, &Standing) -> bool,
    ) -> Self {
        Row {
            command,
            with: "",
            prepare: |_| {},
            act,
            done,
            is_durable: true,
            in_steps: false,
            refusals: &[],
            removes: false,
            sound: |_| Ok(()),
        }
    }
}

/// All rows.
pub(crate) fn all() -> impl Iterator<Item = &'static Row> {
    let families = [locking::ROWS, trees::ROWS, trees::RESTORES, snapshots::ROWS, snapshots::CARE];
    families.into_iter().flatten()
}
