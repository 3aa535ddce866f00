//! Moving directories under names that nobody else uses, and getting rid of
//! them: first out of sight in one step, then piece by piece.

use std::io;

use jvs_lock::Seams;
use jvs_lock::register::Answer;
use jvs_repo::id::OpNonce;
use jvs_repo::layout;
use jvs_repo::store::RepoPath;

use crate::publish::Snapshots;
use crate::staging_name::StagingName;
use crate::trees::Trees;

/// How often a move whose answer was lost is tried.
const TRIES: u32 = 4;
/// Between two tries.
const PAUSE_MS: u64 = 20;

/// Moves `from` to `to`, a name that nobody used before, and makes it durable.
/// An error leaves it where it was, or in doubt: then it is still at one of the
/// two, and both say whose it is.
pub(crate) fn move_dir(seams: Seams<'_>, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
    let store = seams.store;
    let is_there = |path: &RepoPath| store.stat(path).is_ok();
    for attempt in 1.. {
        match Answer::of(store.rename_new(from, to)) {
            Answer::Applied => break,
            Answer::Refused(error) => return Err(error),
            // Applied, with its answer lost: nobody else knows that name.
            Answer::Unknown(_) if is_there(to) && !is_there(from) => break,
            Answer::Unknown(error) if attempt == TRIES || !is_there(from) => return Err(error),
            Answer::Unknown(_) => seams.clock.sleep_ms(PAUSE_MS),
        }
    }
    let (from, to) = (from.parent(), to.parent());
    store.sync_dir(&to)?;
    if from == to { Ok(()) } else { store.sync_dir(&from) }
}

/// Removes a directory that is certainly nobody's work. It is moved out of sight first,
/// so that the name of what a killed process leaves says that it is garbage.
pub(crate) fn delete_dir(at: &Snapshots<'_>, dir: &RepoPath) -> io::Result<()> {
    let doomed = StagingName::Doomed { op: OpNonce::random(at.seams.entropy) }.path();
    match move_dir(at.seams, dir, &doomed) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => finish(at.trees, &doomed),
    }
}

/// Deletes what is out of sight already.
pub(crate) fn finish(trees: &dyn Trees, doomed: &RepoPath) -> io::Result<()> {
    debug_assert_eq!(doomed.parent(), layout::staging());
    match trees.remove(doomed) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        answer => answer,
    }
}
