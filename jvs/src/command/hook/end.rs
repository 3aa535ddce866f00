//! What is done at the end of a turn and of a session, for all that it holds.

use std::path::Path;

use jvs_repo::name::WorktreeName;
use jvs_snapshot::compare::{Difference, Trust};
use jvs_snapshot::{Catalog, diff};

use super::in_words;
use super::who::Asker;
use crate::args::{LockCommand, ReleaseArgs, SnapshotArgs};
use crate::bar::Bar;
use crate::command::{lock, session, snapshot};
use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::harness::HookVerdict;

/// Takes a snapshot of each worktree that the session holds, where something changed.
pub(super) fn checkpoint(context: &Context<'_>, asker: &Asker) -> Result<HookVerdict, Failure> {
    for_each_held(context, asker, |root, worktree| {
        keep(context, asker, root, worktree).map_err(|failure| {
            format!("no snapshot of worktree '{worktree}': {}", in_words(&failure))
        })
    })
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
    for_each_held(context, asker, |root, worktree| {
        let there = asker.at(context, root, Some(worktree));
        let released = lock::run(&there, &LockCommand::Release(ReleaseArgs { force: false }));
        released.map(drop).map_err(|failure| {
            format!("worktree '{worktree}' was not released: {}", in_words(&failure))
        })
    })
}

fn for_each_held(
    context: &Context<'_>,
    asker: &Asker,
    mut act: impl FnMut(&Path, &WorktreeName) -> Result<(), String>,
) -> Result<HookVerdict, Failure> {
    let held = session::held(context, &asker.id)?;
    let problems = held.iter().filter_map(|(root, worktree)| act(root, worktree).err());
    let problems: Vec<String> = problems.collect();
    Ok(match problems.is_empty() {
        true => HookVerdict::Pass,
        false => HookVerdict::Tell(format!("jvs: {}", problems.join("; "))),
    })
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
