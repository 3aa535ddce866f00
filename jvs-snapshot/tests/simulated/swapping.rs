//! Restored files take the place of others in one step, or not at all; and what
//! somebody wrote to the old ones is nowhere deleted.
#![allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]

use std::collections::BTreeSet;
use std::io;

use jvs_kit::sim::{Ctx, Errno, Explorer, Image, Process, SimStore, Solo, View, Way};
use jvs_lock::{Lease, Locks, Seams, Want};
use jvs_repo::code::{Code, Coded};
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::store::{DirEntryKind, RepoPath, Store};
use jvs_snapshot::chosen::ChosenPaths;
use jvs_snapshot::manifest::TreePath;
use jvs_snapshot::restore::{Copied, InPlace, RestoreError, RestoreRequest, replace};
use jvs_snapshot::{Catalog, SnapshotError, Snapshots, gc};
use jvs_world::repository::main;
use jvs_world::session::{forcing, locks_of};
use jvs_world::sim::actors::{collect, keep, told as facts};
use jvs_world::sim::{LEASE_MS, LONG_MS, SimTrees, World, furnish, seams, seams_of, snapshot};

mod power;

fn put(store: &SimStore, dir: &RepoPath, text: &str) -> io::Result<()> {
    if store.stat(dir).is_err() {
        store.make_dir(dir)?;
    }
    let file = store.create_new(&dir.child("file").expect("plain"))?;
    file.write_at(0, text.as_bytes())?;
    file.sync()?;
    store.sync_dir(dir)?;
    store.sync_dir(&dir.parent())
}

fn text(store: &SimStore, dir: &RepoPath) -> Option<String> {
    let bytes = store.read(&dir.child("file").expect("plain"), 100).ok()?;
    Some(String::from_utf8(bytes).expect("text"))
}

fn payload() -> RepoPath {
    layout::payload(&main())
}

/// Every text in a file below `dir`.
fn texts(store: &SimStore, dir: &RepoPath) -> Vec<String> {
    let mut found = Vec::new();
    for entry in store.list(dir).unwrap_or_default() {
        let path = dir.child(entry.name.to_str().expect("plain")).expect("plain");
        match store.stat(&path).map(|stat| stat.kind) {
            Ok(DirEntryKind::Directory) => found.extend(texts(store, &path)),
            Ok(_) => {
                let bytes = store.read(&path, 1_000).unwrap_or_default();
                found.extend(String::from_utf8(bytes));
            }
            Err(_) => {}
        }
    }
    found
}

/// Two snapshots: of the files as they are, and of those to be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Two {
    old: SnapshotId,
    new: SnapshotId,
}

/// The worktree has `there`, which may be another text than its snapshot's.
fn furnished(solo: &Solo, there: &str) -> Two {
    let locks = locks_of(seams_of(solo), "before");
    let mut lease = locks.acquire(&main(), Want::lease(LEASE_MS)).expect("free");
    let ids = ["new", "old"].map(|text| snapshot(solo, &mut lease, text).id());
    lease.release().expect("released");
    put(solo.store(), &payload(), there).expect("put");
    Two { new: ids[0], old: ids[1] }
}

/// Makes a copy of the snapshot `new` by hand, and swaps.
fn restore(
    seams: Seams<'_>,
    store: &SimStore,
    locks: &Locks<'_>,
    lease: &mut Lease<'_>,
    two: Two,
    chosen: Option<&ChosenPaths>,
) -> Result<InPlace, RestoreError> {
    let state = lease.fence()?.read()?;
    let op = OpNonce::random(seams.entropy);
    let copied = Copied::assume_equal(&main(), state.term(), two.new, op);
    store
        .make_dir(&copied.dir())
        .and_then(|()| put(store, &copied.tree(), "new"))
        .map_err(|source| SnapshotError::Io { doing: "copy".into(), source })?;
    let trees = SimTrees(store);
    let at = Snapshots::new(seams, &trees);
    let (source, kept) = (Catalog::new(store).open(two.new)?, Catalog::new(store).open(two.old)?);
    let wish =
        RestoreRequest { source: &source, kept: Some(&kept), chosen, reason: Some("a test") };
    replace(&at, &trees, locks, lease, copied, &wish)
}

fn restore_in(world: &World, lease: &mut Lease<'_>, two: Two) -> Result<InPlace, RestoreError> {
    let (seams, locks) = (world.seams(), world.locks("s"));
    restore(seams, world.solo.store(), &locks, lease, two, None)
}

/// Collects all that the next holder leaves behind.
fn clean_up(world: &World) -> gc::Freed {
    world.solo.pass_ms(LONG_MS);
    world.lease("next").release().expect("released");
    let trees = world.trees();
    let at = Snapshots::new(world.seams(), &trees);
    let plan = gc::plan(&at, keep(100, 0)).expect("planned");
    gc::run(&at, &world.locks("collector"), &plan, &mut |_, _| {}).expect("collected")
}

/// Restores with every call made to be the last one, in both ways, and shows
/// `check` what is left, whether it was told that it was done, and which call it
/// was.
fn dying_anywhere(there: &str, mut check: impl FnMut(&World, bool, usize)) {
    let calls = {
        let world = World::new();
        let two = furnished(&world.solo, there);
        let mut lease = world.lease("s");
        world.solo.forget_calls();
        restore_in(&world, &mut lease, two).expect("swapped");
        world.solo.call_count()
    };
    assert!(calls > 30, "{calls}");
    for n in 0..=calls {
        for way in [Way::DiesFirst, Way::ThenDies] {
            let world = World::new();
            let two = furnished(&world.solo, there);
            let mut lease = world.lease("s");
            world.solo.inject(n, way);
            let ended = world.solo.run(|| restore_in(&world, &mut lease, two).expect("swapped"));
            let images = world.solo.crash_images();
            for image in
                [world.solo.image(), world.solo.crash_image(0), world.solo.crash_image(images / 2)]
            {
                check(&World::on(image), ended.is_some(), n);
            }
        }
    }
}

#[test]
fn a_kill_or_a_power_cut_at_any_call_of_a_swap_leaves_all_old_or_all_new_files() {
    let mut seen = BTreeSet::new();
    dying_anywhere("old", |left, done, n| {
        let store = left.solo.store();
        let now = text(store, &payload()).expect("one of the two, whole");
        assert!(now == "new" || !done, "reported at call {n}, so it lasts");
        let history = left.history();
        let freed = clean_up(left);
        assert_eq!(text(store, &payload()).as_ref(), Some(&now), "call {n}");
        assert_eq!(left.history(), history, "the history stays");
        assert_eq!(left.names(&layout::staging()), [""; 0], "call {n}");
        assert_eq!(freed.set_aside, [], "call {n}: a snapshot has all of it");
        assert_eq!(texts(store, &layout::quarantine()), [""; 0], "call {n}");
        left.assert_all_visible_are_whole();
        seen.insert(now);
    });
    assert_eq!(seen.len(), 2, "both outcomes were met");
}

#[test]
fn what_no_snapshot_has_survives_a_swap_that_dies_anywhere_and_the_collection_after_it() {
    let mut aside = 0;
    dying_anywhere("unsaved", |left, _, n| {
        let store = left.solo.store();
        let unsaved = || {
            let everywhere = [payload(), layout::staging(), layout::quarantine()];
            everywhere.iter().flat_map(|dir| texts(store, dir)).any(|text| text == "unsaved")
        };
        assert!(unsaved(), "call {n}");
        let freed = clean_up(left);
        assert!(unsaved(), "call {n}: collected");
        assert_eq!(left.names(&layout::staging()), [""; 0], "call {n}");
        for path in &freed.set_aside {
            assert_eq!(text(store, path).as_deref(), Some("unsaved"), "call {n}: what was said");
            aside += 1;
        }
        assert_eq!(clean_up(left), gc::Freed::default(), "call {n}: once is enough");
    });
    assert!(aside > 0, "some were set aside by the collection");
}

#[test]
fn a_collection_of_what_a_swap_left_that_dies_anywhere_deletes_nothing_that_no_snapshot_has() {
    let interrupted = || {
        let world = World::new();
        let two = furnished(&world.solo, "unsaved");
        let mut lease = world.lease("s");
        // Right after the exchange, before anything was compared.
        let exchange = {
            let probe = World::on(world.solo.image());
            let mut lease = probe.lease("s");
            probe.solo.forget_calls();
            restore_in(&probe, &mut lease, two).expect("swapped");
            let calls = probe.solo.calls();
            calls.iter().position(|call| call.contains("exchange")).expect("one")
        };
        world.solo.inject(exchange, Way::ThenDies);
        assert!(world.solo.run(|| restore_in(&world, &mut lease, two)).is_none());
        World::on(world.solo.image())
    };
    let calls = {
        let world = interrupted();
        world.solo.forget_calls();
        assert_eq!(clean_up(&world).set_aside.len(), 1);
        world.solo.call_count()
    };
    for n in 0..calls {
        let world = interrupted();
        world.solo.inject(n, Way::ThenDies);
        assert!(world.solo.run(|| clean_up(&world)).is_none(), "call {n} is the last");
        let images = world.solo.crash_images();
        for image in
            [world.solo.image(), world.solo.crash_image(0), world.solo.crash_image(images / 2)]
        {
            let left = World::on(image);
            clean_up(&left);
            let store = left.solo.store();
            assert_eq!(left.names(&layout::staging()), [""; 0], "call {n}");
            let kept = texts(store, &layout::quarantine());
            assert!(kept.contains(&"unsaved".to_owned()), "call {n}: {kept:?}");
        }
    }
}

#[test]
fn a_swap_whose_answers_are_lost_tells_the_truth() {
    for way in [Way::AppliedBut(Errno::IO), Way::Fails(Errno::IO), Way::Late] {
        for n in 0..80 {
            let world = World::new();
            let two = furnished(&world.solo, "old");
            let mut lease = world.lease("s");
            world.solo.inject(n, way);
            let told = restore_in(&world, &mut lease, two);
            world.solo.clear_injected();
            world.solo.land_late_renames();
            let store = world.solo.store();
            let now = text(store, &payload()).expect("whole");
            match told {
                Ok(_) => assert_eq!(now, "new", "{way:?} at call {n}"),
                Err(RestoreError::Half(half)) if half.certain => {
                    assert_eq!(now, "new", "{way:?} at call {n}: {half}");
                    assert_eq!(text(store, &half.old).as_deref(), Some("old"), "{half}");
                }
                Err(RestoreError::Half(_)) => {}
                Err(error) => assert_eq!(now, "old", "{way:?} at call {n}: {error}"),
            }
        }
    }
}

#[test]
fn a_lock_that_was_lost_swaps_nothing() {
    for paths in [None, ChosenPaths::new([TreePath::new(b"file".to_vec()).expect("plain")])] {
        let world = World::new();
        let two = furnished(&world.solo, "old");
        let mut lease = world.lease("s");
        forcing(world.locks("thief")).freeze(&main(), 1_000, "a test", true).expect("forced");
        let (seams, store, locks) = (world.seams(), world.solo.store(), world.locks("s"));
        let error =
            restore(seams, store, &locks, &mut lease, two, paths.as_ref()).expect_err("fenced");
        assert_eq!(error.code(), Code::FencingMismatch);
        assert_eq!(text(store, &payload()).as_deref(), Some("old"));
    }
}

/// Acquires, restores, and says what it was told.
fn restorer(two: Two) -> Process {
    Process::new("restorer", move |ctx: &Ctx| {
        let seams = seams(ctx);
        let locks = locks_of(seams, "restorer");
        let Ok(mut lease) = locks.acquire(&main(), Want::lease(LEASE_MS)) else { return };
        ctx.append("token", lease.token().0.to_string());
        let told = match restore(seams, ctx.store(), &locks, &mut lease, two, None) {
            Ok(_) => "done".to_owned(),
            Err(error @ RestoreError::Half(_)) => format!("half {}", error.code()),
            Err(_) => "nothing".to_owned(),
        };
        ctx.append("told", told);
    })
}

/// Acquires or steals, writes a file of its own, and says which files it saw
/// before and after.
fn thief() -> Process {
    Process::new("thief", |ctx: &Ctx| {
        let seams = seams(ctx);
        let locks = locks_of(seams, "thief");
        let Ok(lease) = locks.acquire(&main(), Want::lease(LEASE_MS)) else { return };
        ctx.append("token", lease.token().0.to_string());
        let look = || ctx.append("saw", text(ctx.store(), &payload()).unwrap_or_default());
        look();
        let path = payload().child("theirs").expect("plain");
        let Ok(file) = ctx.store().create_new(&path) else { return };
        if file.write_at(0, b"theirs").is_ok() {
            ctx.append("wrote", "theirs");
        }
        look();
    })
}

fn collector() -> Process {
    Process::new("gc", |ctx: &Ctx| {
        let _ = collect(ctx, keep(100, 0));
    })
}

/// Whoever was told that all went well swapped under nobody's feet; what the
/// thief wrote is somewhere.
fn nobody_is_lied_to(view: &View<'_>) -> Result<(), String> {
    let image: Image = view.live().clone();
    let world = World::on(image);
    let store = world.solo.store();
    let told = facts(view, "told");
    let saw = facts(view, "saw");
    let now = text(store, &payload()).ok_or("the worktree has no files")?;
    // Restorer and thief, in this order. A thief that was first is none.
    let tokens = facts(view, "token");
    let under_its_feet =
        saw.len() == 2 && saw[0] != saw[1] && tokens.len() == 2 && tokens[0] < tokens[1];
    match told.first().map(String::as_str) {
        Some("done") if under_its_feet => {
            return Err(format!("told that it was done, under the thief's feet: {saw:?}"));
        }
        Some("nothing") if now != "unsaved" => {
            return Err(format!("told that nothing was done, and the files are {now}"));
        }
        Some(half) if half.starts_with("half") && half != "half E_FENCING_MISMATCH" => {
            return Err(format!("not told that the lock was lost: {half}"));
        }
        _ => {}
    }
    let everywhere = [payload(), layout::staging(), layout::quarantine()];
    let found: Vec<String> = everywhere.iter().flat_map(|dir| texts(store, dir)).collect();
    let wrote = facts(view, "wrote");
    for wanted in wrote.iter().map(String::as_str).chain(["unsaved"]) {
        if !found.iter().any(|text| text == wanted) {
            return Err(format!("'{wanted}' is nowhere: {found:?}"));
        }
    }
    Ok(())
}

fn world() -> (Explorer<'static>, Two) {
    // Ids are the same in every world that is furnished alike.
    let two = furnished(&World::new().solo, "unsaved");
    let explorer = Explorer::new()
        .setup(move |solo| {
            furnish(solo);
            assert_eq!(furnished(solo, "unsaved"), two);
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

#[test]
fn a_swap_and_a_thief_at_any_two_points_of_each_other() {
    let (world, two) = world();
    let world = world.process(restorer(two)).process(thief()).at_end(nobody_is_lied_to);
    let report = world.preemptions(2).run();
    eprintln!("a swap and a thief: {report}");
    report.holds();
}

#[test]
fn a_swap_a_thief_and_a_collector() {
    let (world, two) = world();
    let world = world.process(restorer(two)).process(thief()).process(collector());
    let report = world.preemptions(2).at_end(nobody_is_lied_to).run();
    eprintln!("a swap, a thief, a collector: {report}");
    report.holds();
}
