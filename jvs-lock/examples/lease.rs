//! Takes a lock, is refused a second one, commits under it and gives it back.
#![expect(clippy::print_stdout, reason = "shows what it does")]

use std::error::Error;

use jvs_lock::session::{Environment, Purpose};
use jvs_lock::{Identity, Locks, Seams, Secret, Session, Want, worktrees};
use jvs_repo::audit::{Alone, Log, WriterId};
use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::config::LockPolicy;
use jvs_repo::entropy::SystemEntropy;
use jvs_repo::id::SnapshotId;
use jvs_repo::name::WorktreeName;
use jvs_repo::nursery::{Adopt, Unborn};
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::PosixStore;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let main = WorktreeName::main();
    let unborn = Unborn::prepare(&dir.path().join("r"), Adopt::No)?;
    worktrees::create(&session(unborn.store(), "maker")?, &main, Isolation::Exclusive)?;
    let repo = unborn.finish()?;

    let ann = session(repo.store(), "ann")?;
    let bob = session(repo.store(), "bob")?;
    let mut lease = ann.acquire(&main, Want::lease(30_000))?;
    println!("ann holds {main} with token {}", lease.token());

    // The refusal says who has it; its code says what a script may do.
    let refused = bob.acquire(&main, Want::lease(30_000)).err().ok_or("two holders")?;
    println!("bob: {refused}");

    // The check of the token and the move of the head are one rename.
    let head = SnapshotId::fresh(SystemClock.now().wall.0, &SystemEntropy);
    lease.fence()?.commit(None, head, &|| Ok(false))?;
    lease.release().map_err(|failed| failed.error)?;

    let lease = bob.acquire(&main, Want::lease(30_000))?;
    println!("bob holds {main} with token {} and finds ann's commit", lease.token());
    assert_eq!(lease.head(), Some(head));
    lease.release().map_err(|failed| failed.error)?;
    Ok(())
}

/// A session: an id, a secret that proves it, and who it says it is.
fn session<'r>(store: &'r PosixStore, id: &str) -> Result<Locks<'r>, Box<dyn Error>> {
    let identity = Identity {
        host: "example".into(),
        user: id.into(),
        account: jvs_repo::proc::account(),
        pid: std::process::id(),
        start_time: 0,
        pid_namespace: None,
        boot_id: SystemClock.boot_id(),
        environment: Environment::Local,
        purpose: Purpose::Interactive,
    };
    let mut secret = [0; 32];
    secret[..id.len()].copy_from_slice(id.as_bytes());
    let session = Session::new(id.parse()?, &Secret(secret), identity);
    let log = Log::new(store, &Alone, WriterId::derive(id.as_bytes(), 0));
    let seams = Seams { store, clock: &SystemClock, entropy: &SystemEntropy };
    Ok(Locks::new(seams, session, LockPolicy::default(), log))
}

#[test]
fn it_runs() -> Result<(), Box<dyn Error>> {
    main()
}
