//! `jvs path SNAPSHOT`: where its files are, for programs that read them without a restore.

use jvs_repo::layout;
use jvs_snapshot::look;
use jvs_snapshot::manifest::TreePath;

use super::restore::UserPlace;
use super::snapshots::find;
use crate::answer;
use crate::answer::snapshot::SnapshotPath;
use crate::args::PathArgs;
use crate::context::Context;
use crate::fail::Failure;
use crate::render::Done;

pub(crate) fn run(context: &Context<'_>, args: &PathArgs) -> Result<Done, Failure> {
    let here = context.here()?;
    let ready = find(context, &here, &args.snapshot)?;
    let store = here.repo.store();
    let place = UserPlace::find(context, &here.repo.payload(&here.worktree)?)?;
    let path = match &args.path {
        Some(path) => place.inside(path)?,
        None => TreePath::root(),
    };
    // By the manifest: what is merely there is not what was published.
    look::entries(store, &ready, &path, false)
        .map_err(|error| place.suggesting(store, &ready, args.path.as_slice(), error))?;
    let tree = store.absolute(&layout::snapshot_payload(&ready.dir()));
    let whole = if path.is_root() { tree } else { tree.join(path.as_path()) };
    let (text, path_bytes) = answer::path(&whole);
    let answer = SnapshotPath { snapshot_id: ready.id(), path: text, path_bytes };
    Ok(Done::new(&answer).with_path(&whole))
}
