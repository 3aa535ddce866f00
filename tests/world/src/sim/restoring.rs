//! A restore in place, path by path: who begins it, and who comes next.

use std::collections::BTreeMap;
use std::io;

use jvs_kit::sim::{Ctx, Explorer, SimStore, Solo, View};
use jvs_lock::{Lease, Locks, Seams, Want};
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::store::{RepoPath, Store};
use jvs_snapshot::manifest::TreePath;
use jvs_snapshot::restore::{
    Copied, Deed, FinishedRestore, InPlace, RestoreError, RestorePlan, RestoreRequest,
    finish_interrupted, put,
};
use jvs_snapshot::{Catalog, SnapshotError, Snapshots};

use super::actors::told;
use super::{LEASE_MS, LONG_MS, SimTrees, World, furnish, seams, seams_of, snapshot};
use crate::repository::main;
use crate::session::locks_of;

/// Two snapshots: of the files as they are, and of those to be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Two {
    /// Of what is there.
    pub old: SnapshotId,
    /// Of what is to be there.
    pub new: SnapshotId,
}

/// The names of files, and what is in them.
pub type Files = BTreeMap<String, String>;

fn these(names: &[&str], text: &str) -> Files {
    names.iter().map(|name| ((*name).to_owned(), text.to_owned())).collect()
}

/// The files of the worktree before the restore.
pub fn old_files() -> Files {
    these(&["a", "d/b", "gone"], "old")
}

/// The files of the worktree after it.
pub fn new_files() -> Files {
    these(&["a", "added", "d/b"], "new")
}

fn payload() -> RepoPath {
    layout::payload(&main())
}

/// Makes a tree with these files, durably.
pub fn write(store: &SimStore, dir: &RepoPath, files: &Files) -> io::Result<()> {
    if store.stat(dir).is_err() {
        store.make_dir(dir)?;
    }
    let below = dir.child("d")?;
    store.make_dir(&below)?;
    for (name, text) in files {
        let file = store.create_new(&at(dir, name))?;
        file.write_at(0, text.as_bytes())?;
        file.sync()?;
    }
    store.sync_dir(&below)?;
    store.sync_dir(dir)?;
    store.sync_dir(&dir.parent())
}

fn at(dir: &RepoPath, path: &str) -> RepoPath {
    path.split('/').fold(dir.clone(), |dir, name| dir.child(name).expect("plain"))
}

/// The files of the worktree now.
pub fn files(store: &SimStore) -> Files {
    super::trees::files(store, &payload()).unwrap_or_default()
}

/// Two snapshots, and the old files.
pub fn furnished(solo: &Solo) -> Two {
    let locks = locks_of(seams_of(solo), "before");
    let mut lease = locks.acquire(&main(), Want::lease(LEASE_MS)).expect("free");
    let ids = ["new", "old"].map(|text| snapshot(solo, &mut lease, text).id());
    lease.release().expect("released");
    write(solo.store(), &payload(), &old_files()).expect("written");
    Two { new: ids[0], old: ids[1] }
}

fn plan() -> RestorePlan {
    let deeds = [
        ("a", Deed::Replace),
        ("added", Deed::Put),
        ("d/b", Deed::Replace),
        ("gone", Deed::Remove),
    ];
    let path = |name: &str| TreePath::new(name.as_bytes().to_vec()).expect("plain");
    RestorePlan::of(deeds.map(|(name, deed)| (path(name), deed)))
}

/// Makes a copy of what differs by hand, and puts it in its place.
pub fn restore(
    seams: Seams<'_>,
    store: &SimStore,
    locks: &Locks<'_>,
    lease: &mut Lease<'_>,
    two: Two,
) -> Result<InPlace, RestoreError> {
    let state = lease.fence()?.read()?;
    let op = OpNonce::random(seams.entropy);
    let copied = Copied::assume_equal(&main(), state.term(), two.new, op);
    store
        .make_dir(&copied.dir())
        .and_then(|()| write(store, &copied.tree(), &new_files()))
        .map_err(|source| SnapshotError::Io { doing: "copy".into(), source })?;
    let trees = SimTrees(store);
    let at = Snapshots::new(seams, &trees);
    let (source, kept) = (Catalog::new(store).open(two.new)?, Catalog::new(store).open(two.old)?);
    let wish =
        RestoreRequest { source: &source, kept: Some(&kept), chosen: None, reason: Some("a test") };
    put(&at, &trees, locks, lease, copied, &plan(), &wish)
}

/// What every command does that takes the lock: finishes what was begun before it.
pub fn come_next(
    seams: Seams<'_>,
    store: &SimStore,
    locks: &Locks<'_>,
    lease: &mut Lease<'_>,
) -> Result<Vec<FinishedRestore>, RestoreError> {
    let trees = SimTrees(store);
    finish_interrupted(&Snapshots::new(seams, &trees), &trees, locks, lease)
}

/// Acquires, finishes what was begun, restores, and says what it was told.
pub fn restorer(ctx: &Ctx, two: Two) -> Option<()> {
    let seams = seams(ctx);
    let locks = locks_of(seams, "restorer");
    let mut lease = locks.acquire(&main(), Want::lease(LEASE_MS)).ok()?;
    come_next(seams, ctx.store(), &locks, &mut lease).ok()?;
    ctx.append("restorer", lease.token().0.to_string());
    let outcome = match restore(seams, ctx.store(), &locks, &mut lease, two) {
        Ok(_) => "done",
        Err(RestoreError::Unfinished(_)) => "unfinished",
        Err(_) => "nothing",
    };
    ctx.append("told", outcome);
    Some(())
}

/// Acquires or steals, finishes what was begun, and says what it sees then.
pub fn onlooker<'c>(ctx: &'c Ctx, id: &str) -> Option<Lease<'c>> {
    let seams = seams(ctx);
    let (store, locks) = (ctx.store(), locks_of(seams, id));
    let mut lease = locks.acquire(&main(), Want::lease(LEASE_MS)).ok()?;
    come_next(seams, store, &locks, &mut lease).ok()?;
    ctx.append("successor", lease.token().0.to_string());
    ctx.append("saw", one_word(&files(store)));
    Some(lease)
}

/// An onlooker that then writes over two files, and says so.
pub fn successor(ctx: &Ctx) -> Option<()> {
    let store = ctx.store();
    let _lease = onlooker(ctx, "successor")?;
    let own = payload().child("own").expect("plain");
    let mine = store.create_new(&own).ok()?;
    mine.write_at(0, b"theirs").ok()?;
    store.rename(&own, &payload().child("a").expect("plain")).ok()?;
    ctx.append("wrote", "a");
    let gone = payload().child("gone").expect("plain");
    if let Ok(file) = store.create_new(&gone) {
        file.write_at(0, b"theirs").ok()?;
        ctx.append("wrote", "gone");
    }
    ctx.append("left", one_word(&files(store)));
    Some(())
}

fn one_word(files: &Files) -> String {
    match files {
        files if *files == old_files() => "old".to_owned(),
        files if *files == new_files() => "new".to_owned(),
        files => format!("{files:?}"),
    }
}

/// The next holder sees all old or all new files, and what it wrote stays; one that is
/// told that all is restored, or nothing, is told the truth.
pub fn nobody_sees_a_mixture(view: &View<'_>) -> Result<(), String> {
    let world = World::on(view.live().clone());
    let token = |key| told(view, key).first().and_then(|token| token.parse::<u64>().ok());
    if let (Some(other), Some(own)) = (token("successor"), token("restorer"))
        && other < own
    {
        // It came first, and has gone.
        return Ok(());
    }
    if let Some(mixed) = told(view, "saw").iter().find(|saw| *saw != "old" && *saw != "new") {
        return Err(format!("the next holder saw {mixed}"));
    }
    let now = files(world.solo.store());
    let wrote = told(view, "wrote");
    for name in &wrote {
        if now.get(name).map(String::as_str) != Some("theirs") {
            return Err(format!("what the next holder wrote to {name} is gone: {now:?}"));
        }
    }
    if let Some(left) = told(view, "left").first()
        && one_word(&now) != *left
    {
        return Err(format!("the next holder left {left}, and now there is {now:?}"));
    }
    finished(&world)?;
    if !wrote.is_empty() {
        let after = files(world.solo.store());
        return match after == now {
            true => Ok(()),
            false => Err(format!("the next holder's {now:?} became {after:?} with the next one")),
        };
    }
    let after = one_word(&files(world.solo.store()));
    match (told(view, "told").first().map(String::as_str), after.as_str()) {
        (Some("done"), "new") | (Some("nothing"), "old") => Ok(()),
        (None | Some("unfinished"), "old" | "new") => Ok(()),
        (told, after) => Err(format!("told {told:?}, and after the next command: {after}")),
    }
}

/// The next command, of somebody for whom the lock is free by now.
pub fn finished(world: &World) -> Result<(), String> {
    // Its clock begins anew, and time may have jumped before.
    world.solo.pass_ms(2 * LONG_MS);
    let (seams, locks) = (world.seams(), world.locks("next"));
    let mut lease = world.lease("next");
    come_next(seams, world.solo.store(), &locks, &mut lease).map_err(|error| error.to_string())?;
    lease.release().map_err(|error| error.error.to_string())?;
    Ok(())
}

/// A repository with the old files, and the two snapshots.
pub fn world() -> (Explorer<'static>, Two) {
    // Ids are the same in every world that is furnished alike.
    let two = furnished(&World::new().solo);
    let explorer = Explorer::new()
        .setup(move |solo| {
            furnish(solo);
            assert_eq!(furnished(solo), two);
        })
        .private(|path| {
            let record = layout::lock_record(&main());
            path.as_str().starts_with(record.as_str())
                || path.as_str().starts_with(layout::audit().as_str())
        })
        .time_jumps(1, [LONG_MS])
        .early_wakes(0)
        .max_calls(2_000);
    (explorer, two)
}
