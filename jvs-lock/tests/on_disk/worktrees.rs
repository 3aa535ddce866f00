use jvs_lock::{Hold, State, Want, worktrees};
use jvs_repo::code::{Code, Coded};
use jvs_repo::id::{Epoch, FencingToken, Generation, OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::{self as record, Isolation};
use jvs_repo::store::Store;
use jvs_world::repository::main;

use crate::world::World;

const LEASE: Want<'static> = Want::lease(30_000);

fn name(text: &str) -> WorktreeName {
    text.parse().expect("valid")
}

#[test]
fn a_worktree_is_made_with_its_register_its_directory_and_its_record() {
    let world = World::new();
    let ann = world.session("ann");
    worktrees::create(&ann, &name("side"), Isolation::Exclusive).expect("made");
    assert!(world.dir.path().join("worktrees/side").is_dir());
    assert_eq!(ann.inspect(&name("side")).expect("seen").state.hold, Hold::Free);
    let error = worktrees::create(&ann, &name("side"), Isolation::Shared).expect_err("there");
    assert_eq!(error.code(), Code::Exists);
}

#[test]
fn a_directory_with_files_is_not_taken_over() {
    let world = World::new();
    let at = world.dir.path().join("worktrees/side");
    fs_err::create_dir(world.dir.path().join("worktrees")).expect("made");
    fs_err::create_dir(&at).expect("made");
    fs_err::create_dir(at.join("mine")).expect("made");
    let ann = world.session("ann");
    let error = worktrees::create(&ann, &name("side"), Isolation::Exclusive).expect_err("files");
    assert_eq!(error.code(), Code::Exists);
    assert_eq!(world.names(&layout::locks()), ["main.fence"], "nothing was changed");
}

#[test]
fn a_renamed_worktree_keeps_its_files_its_head_and_its_token() {
    let world = World::new();
    let ann = world.session("ann");
    worktrees::create(&ann, &name("old"), Isolation::Exclusive).expect("made");
    fs_err::create_dir(world.dir.path().join("worktrees/old/kept")).expect("made");
    let mut lease = ann.acquire(&name("old"), LEASE).expect("free");
    let head = SnapshotId { created_ms: 1, random: 1 };
    lease.fence().expect("live").commit(None, head, &|| Ok(false)).expect("committed");
    lease.release().expect("held");
    worktrees::rename(&ann, &name("old"), &name("new")).expect("renamed");
    assert!(world.dir.path().join("worktrees/new/kept").is_dir());
    assert!(record::read(&world.store, &name("old")).expect("read").is_none());
    let state = ann.inspect(&name("new")).expect("seen").state;
    assert_eq!((state.head, state.generation.0), (Some(head), 1));
    let lease = ann.acquire(&name("new"), LEASE).expect("free");
    assert!(lease.token() > FencingToken(1), "{}", lease.token());
    assert_eq!(world.audit(&[&main(), &name("new")]).problems, []);
}

#[test]
fn a_rename_can_be_run_again_after_every_step() {
    let world = World::new();
    let ann = world.session("ann");
    let (old, new) = (name("old"), name("new"));
    worktrees::create(&ann, &old, Isolation::Exclusive).expect("made");
    worktrees::rename(&ann, &old, &new).expect("renamed");
    // As if it had died after the new record was written: the old record is still
    // there.
    let kept = record::read(&world.store, &new).expect("read").expect("there");
    let op = jvs_repo::id::OpNonce([1; 8]);
    record::create(&world.store, &old, &kept, op).expect("written");
    worktrees::rename(&ann, &old, &new).expect("completed");
    assert!(record::read(&world.store, &old).expect("read").is_none());
    assert!(ann.acquire(&new, LEASE).is_ok());
}

#[test]
fn a_name_that_is_used_again_goes_on_above_its_old_token() {
    let world = World::new();
    let ann = world.session("ann");
    let side = name("side");
    worktrees::create(&ann, &side, Isolation::Exclusive).expect("made");
    let lease = ann.acquire(&side, LEASE).expect("free");
    let (token, ticket) = (lease.token(), lease.ticket());
    lease.release().expect("held");
    let removed = worktrees::remove(&ann, &side, false).expect("empty");
    assert_eq!(removed.files, None, "an empty directory is removed at once");
    assert_eq!(ann.inspect(&side).expect("stays").state.hold, Hold::Retired);
    worktrees::create(&ann, &side, Isolation::Exclusive).expect("made again");
    let again = ann.acquire(&side, LEASE).expect("free");
    assert!(again.token() > token);
    assert_ne!(again.term().epoch, ticket.term.epoch);
    assert_eq!(
        ann.resume(&side, Some(&ticket)).expect_err("another life").code(),
        Code::FencingMismatch
    );
}

#[test]
fn a_name_has_one_register_however_often_it_is_used() {
    let world = World::new();
    let ann = world.session("ann");
    let side = name("side");
    let mut tokens = Vec::new();
    for _ in 0..20 {
        worktrees::create(&ann, &side, Isolation::Exclusive).expect("made");
        let lease = ann.acquire(&side, LEASE).expect("free");
        tokens.push(lease.token());
        lease.release().expect("held");
        let _ = worktrees::remove(&ann, &side, false).expect("empty");
    }
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    assert_eq!(world.names(&layout::locks()), ["main.fence", "side.fence"]);
    assert_eq!(world.names(&layout::worktree_records()), ["main.json"], "no note is left");
    assert_eq!(world.audit(&[&main(), &side]).problems, []);
}

#[test]
fn the_register_that_an_earlier_version_put_aside_is_gone_on_above() {
    let world = World::new();
    let ann = world.session("ann");
    let side = name("side");
    worktrees::create(&ann, &side, Isolation::Exclusive).expect("made");
    let _ = worktrees::remove(&ann, &side, false).expect("empty");
    let last = ann.inspect(&side).expect("stays").state;
    let grave = layout::buried_register(&side, last.epoch);
    world.store.rename_new(&layout::register(&side), &grave).expect("as it was done before");
    worktrees::create(&ann, &side, Isolation::Exclusive).expect("made again");
    let state = ann.inspect(&side).expect("seen").state;
    assert!(state.epoch.counter > last.epoch.counter && state.token >= last.token, "{state}");
}

#[test]
fn of_registers_put_aside_in_no_order_the_highest_token_is_gone_on_above() {
    for (low, high) in [(1, 2), (2, 1)] {
        let world = World::new();
        let ann = world.session("ann");
        let side = name("side");
        for (salt, token) in [(low, FencingToken(3)), (high, FencingToken(9))] {
            let epoch = Epoch { counter: 4, salt };
            let op = OpNonce([salt as u8; 8]);
            let last = State::rebuilt(epoch, token, Generation(0), None, op).retired(op);
            let grave = layout::buried_register(&side, epoch);
            world.store.make_dir(&grave).expect("made");
            let entry = grave.child(&last.to_string()).expect("plain");
            drop(world.store.create_new(&entry).expect("new"));
        }
        worktrees::create(&ann, &side, Isolation::Exclusive).expect("made");
        let state = ann.inspect(&side).expect("seen").state;
        assert!(state.epoch.counter > 4 && state.token >= FencingToken(9), "{state}");
    }
}

#[test]
fn files_are_removed_only_by_force_and_held_worktrees_not_at_all() {
    let world = World::new();
    let (ann, bob) = (world.session("ann"), world.session("bob"));
    let side = name("side");
    worktrees::create(&ann, &side, Isolation::Exclusive).expect("made");
    fs_err::create_dir(world.dir.path().join("worktrees/side/work")).expect("made");
    let error = worktrees::remove(&ann, &side, false).expect_err("files");
    assert_eq!(error.code(), Code::Exists);
    let lease = bob.acquire(&side, LEASE).expect("free");
    let error = worktrees::remove(&ann, &side, true).expect_err("held");
    assert_eq!(error.code(), Code::LockConflict);
    let error = worktrees::rename(&ann, &side, &name("x")).expect_err("held");
    assert_eq!(error.code(), Code::LockConflict);
    lease.release().expect("held");
    let removed = worktrees::remove(&ann, &side, true).expect("forced");
    let files = removed.files.expect("files");
    assert_eq!(world.names(&files), ["work"]);
    assert_eq!(worktrees::remove(&ann, &side, true).expect_err("gone").code(), Code::NotFound);
}

#[test]
fn no_worktree_hides_the_repository_from_those_beside_it() {
    let world = World::new();
    let ann = world.session("ann");
    worktrees::create(&ann, &name("side"), Isolation::Exclusive).expect("made");
    let hiding = name(layout::CONTROL_DIR);
    let base = worktrees::Base {
        head: SnapshotId { created_ms: 7, random: 7 },
        generation: Generation(1),
    };
    for error in [
        worktrees::create(&ann, &hiding, Isolation::Exclusive).err(),
        worktrees::begin_from(&ann, &hiding, Isolation::Shared, base).err(),
        worktrees::rename(&ann, &name("side"), &hiding).err(),
    ] {
        assert_eq!(error.expect("refused").code(), Code::NameInvalid);
    }
    assert_eq!(world.names(&layout::locks()), ["main.fence", "side.fence"]);
    assert_eq!(world.names(&layout::worktree_records()), ["main.json", "side.json"]);
}

#[test]
fn main_stays_where_it_is() {
    let world = World::new();
    let ann = world.session("ann");
    assert_eq!(worktrees::remove(&ann, &main(), true).expect_err("main").code(), Code::Usage);
    assert_eq!(worktrees::rename(&ann, &main(), &name("x")).expect_err("main").code(), Code::Usage);
}

#[test]
fn a_worktree_made_from_a_snapshot_begins_with_it_as_its_head_and_is_there_once_it_is_finished() {
    let world = World::new();
    let locks = world.session("a");
    let name: WorktreeName = "copy".parse().expect("valid");
    let head = SnapshotId { created_ms: 7, random: 7 };
    let base = worktrees::Base { head, generation: Generation(3) };
    let files = layout::staged("files").expect("plain");

    let begun = worktrees::begin_from(&locks, &name, Isolation::Exclusive, base).expect("begun");
    assert_eq!((begun.state().head, begun.state().generation), (Some(head), Generation(3)));
    assert!(world.names(&layout::worktree_records()).iter().all(|name| name != "copy.json"));
    begun.undo();
    assert_eq!(locks.inspect(&name).expect("seen").state.hold, Hold::Retired);

    let begun = worktrees::begin_from(&locks, &name, Isolation::Exclusive, base).expect("again");
    assert!(begun.state().token > FencingToken(0), "above what its name once stood for");
    world.store.make_dir(&files).expect("made");
    let record = begun.finish(&files).expect("finished");
    assert_eq!(record.base, Some(head));
    assert_eq!(locks.inspect(&name).expect("seen").state.head, Some(head));
    let again = worktrees::begin_from(&locks, &name, Isolation::Exclusive, base);
    assert_eq!(again.err().expect("is there").code(), Code::Exists);
    assert!(world.audit(&[&main(), &name]).problems.is_empty());
}
