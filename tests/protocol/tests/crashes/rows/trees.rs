//! Worktrees that come, move and go, and files that are restored.

use jvs_lock::worktrees::{self, Base};
use jvs_lock::{Lease, Locks, Want};
use jvs_repo::code::Code;
use jvs_repo::id::OpNonce;
use jvs_repo::layout;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::Store as _;
use jvs_snapshot::restore::{Copied, RestoreRequest, replace};
use jvs_snapshot::trees::Trees as _;
use jvs_snapshot::{SnapshotError, Snapshots};
use jvs_world::any_error::AnyError;
use jvs_world::repository::main;
use jvs_world::sim::restoring::{self, Two, come_next, new_files, old_files};
use jvs_world::sim::ward::Ward;
use jvs_world::sim::{LEASE_MS, SimTrees};

use super::locking::locks;
use super::snapshots::ready;
use super::{Row, Told};
use crate::standing::{Standing, exists, kept, name, whole, write};

fn with_old(ward: &Ward<'_>) {
    worktrees::create(&locks(ward, "maker"), &name("old"), Isolation::Exclusive).expect("made");
    write(ward.store(), &kept("old"), "precious").expect("written");
}

fn is_made(ward: &Ward<'_>, _: &str, _: &Standing) -> bool {
    whole(ward, &name("new")).is_ok()
}

pub(crate) const CREATE: Row = Row {
    refusals: &[Code::Exists],
    ..Row::new(
        "worktree create",
        |ward, who| {
            worktrees::create(&locks(ward, who), &name("new"), Isolation::Exclusive)?;
            Ok(())
        },
        is_made,
    )
};

const RENAME: Row = Row {
    prepare: with_old,
    refusals: &[Code::NotFound],
    ..Row::new(
        "worktree rename",
        |ward, who| Ok(worktrees::rename(&locks(ward, who), &name("old"), &name("new"))?),
        |ward, _, _| {
            let old = layout::worktree_record(&name("old"));
            whole(ward, &name("new")).is_ok() && exists(ward, &kept("new")) && !exists(ward, &old)
        },
    )
};

/// As the command does it: what is removed is deleted.
fn removed(ward: &Ward<'_>, who: &str) -> Told {
    let removed = worktrees::remove(&locks(ward, who), &name("old"), true)?;
    if let Some(files) = removed.files {
        // What is not deleted is left to a collection.
        let _ = SimTrees(ward.store()).remove(&files);
    }
    Ok(())
}

pub(crate) const REMOVE: Row = Row {
    prepare: with_old,
    refusals: &[Code::NotFound],
    removes: true,
    ..Row::new("worktree remove", removed, |ward, _, _| {
        !exists(ward, &layout::worktree_record(&name("old"))) && !exists(ward, &kept("old"))
    })
};

/// Copies as the command does: under a name that says for whom.
fn restored_into(ward: &Ward<'_>, who: &str) -> Told {
    let locks = locks(ward, who);
    let source = ready(ward, ward.ids[0])?;
    let base = Base { head: source.id(), generation: source.descriptor().commit_seq };
    let begun = worktrees::begin_from(&locks, &name("new"), Isolation::Exclusive, base)?;
    let op = OpNonce::random(ward.solo.entropy());
    let copied = Copied::assume_equal(&name("new"), begun.state().term(), source.id(), op);
    let (store, dir, tree) = (ward.store(), copied.dir(), copied.tree());
    let made = store
        .make_dir(&dir)
        .and_then(|()| store.make_dir(&tree))
        .and_then(|()| write(store, &tree.child("copied")?, "copied"));
    if let Err(source) = made {
        begun.undo();
        let _ = SimTrees(store).remove(&dir);
        return Err(SnapshotError::Io { doing: "copy".into(), source }.into());
    }
    let finished = begun.finish(&tree);
    let _ = SimTrees(store).remove(&dir);
    finished?;
    Ok(())
}

pub(crate) const RESTORE_INTO: Row = Row {
    with: " --into",
    refusals: &[Code::Exists],
    ..Row::new("restore", restored_into, |ward, who, before| {
        let file = layout::payload(&name("new")).child("copied").expect("plain");
        is_made(ward, who, before) && exists(ward, &file)
    })
};

/// The two snapshots that [`restoring::furnished`] took after those of the ward.
fn two(ward: &Ward<'_>, lease: &mut Lease<'_>) -> Result<Two, AnyError> {
    let old = lease.fence()?.read()?.head.expect("there are snapshots");
    let new = ready(ward, old)?.descriptor().parent.expect("it has one");
    Ok(Two { old, new })
}

fn furnished(ward: &Ward<'_>) {
    restoring::furnished(&ward.solo);
}

fn restored(ward: &Ward<'_>, _: &str, _: &Standing) -> bool {
    restoring::files(ward.store()) == new_files()
}

fn all_old_or_all_new(ward: &Ward<'_>) -> Result<(), String> {
    let files = restoring::files(ward.store());
    match files == old_files() || files == new_files() {
        true => Ok(()),
        false => Err(format!("a mixture: {files:?}")),
    }
}

/// Takes the lock, finishes what was begun, restores, gives it back.
fn under_lock(
    ward: &Ward<'_>,
    who: &str,
    act: fn(&Ward<'_>, &Locks<'_>, &mut Lease<'_>) -> Told,
) -> Told {
    let locks = locks(ward, who);
    let mut lease = locks.acquire(&main(), Want::lease(LEASE_MS))?;
    let finished = come_next(ward.seams(), ward.store(), &locks, &mut lease).map(drop);
    let told = match finished {
        Ok(()) => act(ward, &locks, &mut lease),
        Err(error) => Err(error.into()),
    };
    let released = lease.release();
    told?;
    drop(released);
    Ok(())
}

const RESTORE_PATH_BY_PATH: Row = Row {
    with: " --in-place",
    prepare: furnished,
    in_steps: true,
    sound: all_old_or_all_new,
    ..Row::new(
        "restore",
        |ward, who| {
            under_lock(ward, who, |ward, locks, lease| {
                let two = two(ward, lease)?;
                restoring::restore(ward.seams(), ward.store(), locks, lease, two)?;
                Ok(())
            })
        },
        restored,
    )
};

fn swapped(ward: &Ward<'_>, locks: &Locks<'_>, lease: &mut Lease<'_>) -> Told {
    let Two { old, new } = two(ward, lease)?;
    let state = lease.fence()?.read()?;
    let op = OpNonce::random(ward.solo.entropy());
    let copied = Copied::assume_equal(&main(), state.term(), new, op);
    let store = ward.store();
    store
        .make_dir(&copied.dir())
        .and_then(|()| restoring::write(store, &copied.tree(), &new_files()))
        .map_err(|source| SnapshotError::Io { doing: "copy".into(), source })?;
    let trees = SimTrees(store);
    let at = Snapshots::new(ward.seams(), &trees);
    let (source, kept) = (ready(ward, new)?, ready(ward, old)?);
    let wish =
        RestoreRequest { source: &source, kept: Some(&kept), chosen: None, reason: Some("a test") };
    replace(&at, &trees, locks, lease, copied, &wish)?;
    Ok(())
}

const RESTORE_ATOMICALLY: Row = Row {
    with: " --in-place --atomic",
    prepare: furnished,
    in_steps: true,
    sound: all_old_or_all_new,
    ..Row::new("restore", |ward, who| under_lock(ward, who, swapped), restored)
};

/// Worktrees that come, move and go.
pub(crate) const ROWS: &[Row] = &[CREATE, RENAME, REMOVE, RESTORE_INTO];
/// Files that are replaced.
pub(crate) const RESTORES: &[Row] = &[RESTORE_PATH_BY_PATH, RESTORE_ATOMICALLY];
