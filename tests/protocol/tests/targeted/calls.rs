//! Which calls each operation makes, one by one. On JuiceFS every one of them
//! is a round trip to the metadata engine or the object store, so a new one has
//! to be justified here.

use jvs_lock::State;
use jvs_repo::id::SnapshotId;

use crate::world::{LEASE, World, main};

const X: SnapshotId = SnapshotId { created_ms: 7, random: 7 };

/// A call as a person wants to see it: the register's states by their word,
/// logs and tmp files without their marks, no answers.
fn shown(call: &str) -> String {
    let (name, rest) = call.split_once('(').expect("a call has arguments");
    let (arguments, _) = rest.split_once(") = ").expect("a call has an answer");
    let paths = arguments.split(", ").next().expect("a path");
    let short = |path: &str| {
        let file = path.rsplit('/').next().expect("a path has a last part");
        match file.parse::<State>() {
            Ok(state) => match state.hold.claim() {
                Some(_) => "held".to_owned(),
                None => "free".to_owned(),
            },
            Err(_) if file.ends_with(".jsonl") => "log".to_owned(),
            Err(_) if file.starts_with("main.tmp-") => "tmp".to_owned(),
            Err(_) => file.to_owned(),
        }
    };
    let paths: Vec<String> = paths.split(" -> ").map(short).collect();
    format!("{name} {}", paths.join(" -> "))
}

#[track_caller]
fn makes(world: &World, expected: &[&str]) {
    let calls: Vec<String> = world.solo.calls().iter().map(|call| shown(call)).collect();
    assert_eq!(calls, expected, "{:#?}", world.solo.calls());
    world.solo.forget_calls();
}

#[test]
fn acquire_and_release_by_two_processes() {
    let world = World::new();
    world.takes("A");
    makes(
        &world,
        &[
            "first_batch main.fence",
            // Does another tool hold it?
            "open main.lock",
            "open main.json",
            // The session's first event here.
            "open_writable log",
            "create_new log",
            "sync_dir audit",
            "links log",
            "size log",
            "read log",
            // The intent, on disk before the CAS.
            "write_at log",
            "sync log",
            "rename free -> held",
            "size log",
            "write_at log",
            "create_new main.lock",
            "write_at main.lock",
            "sync main.lock",
            "sync_dir locks",
            // No token is granted twice, not even over a power cut.
            "sync_dir main.fence",
        ],
    );
    world.gives_back("A");
    makes(
        &world,
        &[
            // Whose hold it is, and its record by its own descriptor.
            "first_batch main.fence",
            "open_writable main.lock",
            "read main.lock",
            // Always READ right before a CAS.
            "first_batch main.fence",
            "open_writable log",
            "links log",
            "size log",
            "read log",
            "write_at log",
            "sync log",
            "rename held -> free",
            "size log",
            "write_at log",
            // Removed only if it is still this hold's, and looked at once more where
            // nobody else puts anything: by now it may be a lock of another tool.
            "inode main.lock",
            "stat main.lock",
            "rename_new main.lock -> tmp",
            "stat tmp",
            "unlink tmp",
            // Given back for good, before anybody is told.
            "sync_dir main.fence",
        ],
    );
}

#[test]
fn a_renewal_is_one_read_one_rename_one_write_in_place_and_one_line_in_the_log() {
    let world = World::new();
    let locks = world.session("A");
    let mut lease = locks.acquire(&main(), LEASE).expect("free");
    world.solo.forget_calls();
    lease.renew().expect("held");
    makes(
        &world,
        &[
            "first_batch main.fence",
            "rename held -> held",
            // Of descriptors: did another process of this session append, and
            // does the record still have its name?
            "size log",
            "write_at log",
            "links main.lock",
            "write_at main.lock",
        ],
    );
}

#[test]
fn a_steal_replaces_the_record_whole() {
    let world = World::new();
    world.takes("B");
    world.gives_back("B");
    world.takes("A");
    world.lease_runs_out();
    world.solo.forget_calls();
    world.takes("B");
    makes(
        &world,
        &[
            "first_batch main.fence",
            // By which clock the old lease is over.
            "open main.lock",
            "read main.lock",
            "open main.json",
            "open_writable log",
            "links log",
            "size log",
            "read log",
            "write_at log",
            "sync log",
            "rename held -> held",
            "size log",
            "write_at log",
            "create_new main.lock",
            // Not over what another tool put there meanwhile.
            "open main.lock",
            "read main.lock",
            "create_new tmp",
            "write_at tmp",
            "sync tmp",
            "inode tmp",
            "rename tmp -> main.lock",
            "sync_dir locks",
            "sync_dir main.fence",
        ],
    );
}

#[test]
fn a_look_and_a_conflict_change_nothing() {
    let world = World::new();
    world.view();
    makes(&world, &["first_batch main.fence", "open main.lock", "open main.json"]);
    world.takes("A");
    world.solo.forget_calls();
    let look = ["first_batch main.fence", "open main.lock", "read main.lock", "open main.json"];
    world.view();
    makes(&world, &look);
    world.session("B").acquire(&main(), LEASE).expect_err("held");
    makes(&world, &look);
}

#[test]
fn a_commit_is_one_rename_made_durable_and_read_back() {
    let world = World::new();
    let locks = world.session("A");
    let mut lease = locks.acquire(&main(), LEASE).expect("free");
    world.solo.forget_calls();
    let mut fence = lease.fence().expect("live");
    fence.commit(None, X, &|| Ok(false)).expect("committed");
    makes(
        &world,
        &[
            "first_batch main.fence",
            "size log",
            "write_at log",
            "sync log",
            "rename held -> held",
            "size log",
            "write_at log",
            "sync_dir main.fence",
            "first_batch main.fence",
        ],
    );
}
