//! What is done at the end of a turn and of a session, for all that it holds.

use std::path::Path;

use jvs_repo::code::Code;
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;
use jvs_snapshot::compare::{Difference, Trust};
use jvs_snapshot::{Catalog, diff};

use super::in_words;
use super::who::Asker;
use crate::args::{LockCommand, ReleaseArgs, SnapshotArgs};
use crate::bar::Bar;
use crate::command::session::{self, SessionLocks};
use crate::command::{lock, snapshot};
use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::harness::HookVerdict;
use crate::hint::spell;

/// Takes a snapshot of each worktree that the session holds, where something changed; tells of
/// those that were taken from it.
pub(super) fn checkpoint(context: &Context<'_>, asker: &Asker) -> Result<HookVerdict, Failure> {
    let SessionLocks { held, lost } = session::locks_of(context, &asker.id)?;
    let unkept = held.iter().filter_map(|(root, worktree)| {
        let failure = keep(context, asker, root, worktree).err()?;
        Some(format!("no snapshot of worktree '{worktree}': {}", in_words(&failure)))
    });
    let lost = lost.iter().map(|(root, worktree)| {
        let how = spell(&Next::LookAndAcquire(worktree.clone()));
        let how = asker.options(Some(root.clone())).complete(&how).into_owned();
        format!("no snapshot of worktree '{worktree}': its lock was lost; {how}")
    });
    Ok(told(unkept.chain(lost).collect()))
}

/// The same of one.
pub(super) fn keep(
    context: &Context<'_>,
    asker: &Asker,
    root: &Path,
    worktree: &WorktreeName,
) -> Result<(), Failure> {
    let there = asker.at(context, root, Some(worktree));
    if !has_changed(&there)? {
        return Ok(());
    }
    let note = Some(format!("checkpoint, {}", asker.harness.title()));
    snapshot::run(&there, &SnapshotArgs { note, ..SnapshotArgs::default() }).map(drop)
}

/// Releases everything that the session holds.
pub(super) fn release(context: &Context<'_>, asker: &Asker) -> Result<HookVerdict, Failure> {
    let held = session::locks_of(context, &asker.id)?.held;
    let kept = held.iter().filter_map(|(root, worktree)| {
        let there = asker.at(context, root, Some(worktree));
        let released = lock::run(&there, &LockCommand::Release(ReleaseArgs { force: false }));
        let failure = released.err()?;
        let why = in_words(&failure);
        // Nobody is there any more who would release it once its commands have ended.
        Some(match failure.code() == Code::LockConflict && lock::let_go(&there).is_ok() {
            true => {
                format!("worktree '{worktree}' is released once its commands have ended: {why}")
            }
            false => format!("worktree '{worktree}' was not released: {why}"),
        })
    });
    Ok(told(kept.collect()))
}

/// Tells of what could not be done, if there is any.
fn told(problems: Vec<String>) -> HookVerdict {
    match problems.is_empty() {
        true => HookVerdict::Pass,
        false => HookVerdict::Tell(format!("jvs: {}", problems.join("; "))),
    }
}

/// Is there anything that the head of the worktree has not?
pub(super) fn has_changed(context: &Context<'_>) -> Result<bool, Failure> {
    let here = context.here()?;
    let store = here.repo.store();
    let catalog = Catalog::new(store);
    let stuck = |error| Stuck::new("look at the head", error);
    let Some(head) = lock::look(context, &here)?.state.head else { return Ok(true) };
    // A head that nobody has shown yet is the next snapshot's to show.
    if !catalog.is_ready(head).map_err(stuck)? {
        return Ok(true);
    }
    let head = catalog.open(head)?;
    let payload = here.repo.payload(&here.worktree)?;
    let bar = Bar::new(context, "comparing");
    let trust: Trust = diff::trust(&head, &payload, &context.clock().boot_id());
    let changes = diff::since(store, &head, &payload, trust, &bar)?;
    Ok(changes.iter().any(Difference::is_of_substance))
}
