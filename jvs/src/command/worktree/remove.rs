//! `jvs worktree remove NAME`.

use std::path::Path;

use jvs_lock::worktrees;
use jvs_repo::id::OpNonce;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::quarantine;
use jvs_repo::store::Store;
use jvs_snapshot::compare::{Difference, Trust};
use jvs_snapshot::{Ready, diff};

use super::own_hold;
use crate::answer::worktree::RemovedWorktree;
use crate::args::RemoveArgs;
use crate::bar::Bar;
use crate::command::snapshots::head;
use crate::command::undo::UndoRefused;
use crate::context::{Context, Here};
use crate::fail::{Failure, Stuck};
use crate::hint::OwnNext;
use crate::render::{Done, shown};

/// Refuses a worktree that is not as it was made any more.
pub(super) fn check_unchanged(
    context: &Context<'_>,
    here: &Here,
    base: Option<&Ready>,
) -> Result<(), Failure> {
    let Here { worktree: name, .. } = here;
    let refused = |why: String| Err(UndoRefused::new(why, OwnNext::ListOperations).into());
    if head(context, here)? != base.map(Ready::id) {
        return refused(format!("snapshots of worktree {name} were taken since it was made"));
    }
    if differs(context, here, &here.repo.payload(name)?, base)? {
        return refused(format!("files of worktree {name} were changed since it was made"));
    }
    Ok(())
}

/// Are there files, or other ones than those of `base`?
fn differs(
    context: &Context<'_>,
    here: &Here,
    root: &Path,
    base: Option<&Ready>,
) -> Result<bool, Failure> {
    let Some(base) = base else {
        let files = here.repo.store().list(&layout::payload(&here.worktree));
        return Ok(!files.map_err(|error| Stuck::new("list the worktree", error))?.is_empty());
    };
    let bar = Bar::new(context, "comparing");
    let mut found = diff::since(here.repo.store(), base, root, Trust::Nothing, &bar)?;
    found.retain(Difference::is_of_substance);
    Ok(!found.is_empty())
}

/// Removes a worktree that is as it was made: without files, or with those of `base`.
pub(super) fn unchanged(
    context: &Context<'_>,
    here: &Here,
    base: Option<&Ready>,
) -> Result<Done, Failure> {
    check_unchanged(context, here, base)?;
    let store = here.repo.store();
    let Here { worktree: name, .. } = here;
    let acting = context.session(None)?;
    let removed = own_hold::retiring(context, here, &acting, |locks| {
        worktrees::remove(locks, name, base.is_some())
    })?;
    let done = Done::new(&RemovedWorktree { name: name.clone() });
    let Some(files) = removed.files else { return Ok(done) };
    // Out of everybody's way now; what somebody wrote meanwhile is not thrown away.
    let path = store.absolute(&files);
    if base.is_some() && differs(context, here, &path, base).unwrap_or(true) {
        let op = OpNonce::random(context.entropy());
        let aside = quarantine::set_aside(store, op, &files)
            .map_err(|error| Stuck::new(format!("set {files} aside"), error))?;
        let aside = shown(&store.absolute(&aside));
        let kept = format!("somebody wrote to its files meanwhile; they are in {aside}");
        return Ok(done.with_warning(kept));
    }
    let _ = store.remove_payload_tree(&files);
    Ok(done)
}

pub(super) fn run(context: &Context<'_>, args: &RemoveArgs) -> Result<Done, Failure> {
    let name: WorktreeName = args.name.parse()?;
    let here = Here { repo: context.repo()?, worktree: name };
    let acting = context.session(None)?;
    let removed = own_hold::retiring(context, &here, &acting, |locks| {
        worktrees::remove(locks, &here.worktree, args.force)
    })?;
    let Here { repo, worktree: name } = here;
    let text = format!("Removed worktree {name}\n");
    let done = Done::new(&RemovedWorktree { name }).with_text(text);
    // The worktree is gone; what may fail from here on is only tidying up.
    let Some(files) = removed.files else { return Ok(done) };
    Ok(match repo.store().remove_payload_tree(&files) {
        // A garbage collection or doctor took it over.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => done,
        Err(error) => done.with_warning(format!(
            "its files could not all be deleted ({error}): see what is left in {files}, then \
             `jvs gc`"
        )),
        Ok(()) => done,
    })
}
