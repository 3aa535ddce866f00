//! Publishes a snapshot of a worktree under a lock, verifies it and lists it.
#![expect(clippy::print_stdout, reason = "shows what it does")]
#![expect(clippy::disallowed_methods, reason = "writes a file of the worktree, as its user would")]

use std::error::Error;

use jvs_lock::session::{Environment, Purpose};
use jvs_lock::{Identity, Locks, Seams, Secret, Session, Want, worktrees};
use jvs_repo::audit::{Alone, Log, WriterId};
use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::config::LockPolicy;
use jvs_repo::entropy::SystemEntropy;
use jvs_repo::name::WorktreeName;
use jvs_repo::nursery::{Adopt, Unborn};
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::PosixStore;
use jvs_snapshot::Snapshots;
use jvs_snapshot::descriptor::About;
use jvs_snapshot::line::LinePlace;
use jvs_snapshot::progress::Silent;
use jvs_snapshot::stage::Options;
use jvs_snapshot::take::{Request, SnapshotHold, take};
use jvs_snapshot::verify::verify;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let main = WorktreeName::main();
    let unborn = Unborn::prepare(&dir.path().join("r"), Adopt::No)?;
    worktrees::create(&session(unborn.store())?, &main, Isolation::Exclusive)?;
    let repo = unborn.finish()?;
    let store = repo.store();
    let payload = repo.payload(&main)?;
    std::fs::write(payload.join("model.bin"), "weights")?;

    // Captured unseen; the rename of the lock's register makes it visible, and
    // only under a lease that is still live then.
    let locks = session(store)?;
    let mut lease = locks.acquire(&main, Want::lease(30_000))?;
    let about = About {
        created_at: SystemClock.now().wall,
        note: Some("the first".into()),
        tags: Vec::new(),
        holder_id: locks.session().holder_id(),
        session_id: locks.session().id().as_str().into(),
        line: None,
    };
    let request =
        Request { source: &payload, about, options: Options::default(), place: LinePlace::Next };
    let snapshots = Snapshots::new(locks.seams(), store);
    let ready = take(&snapshots, &mut SnapshotHold::Lease(&mut lease), request, &Silent)?.ready;
    lease.release().map_err(|failed| failed.error)?;
    println!("published {}: {} file(s)", ready.id(), ready.descriptor().content.files);

    // What the worktree becomes afterwards is nothing to the snapshot.
    std::fs::write(payload.join("model.bin"), "other weights")?;
    assert!(verify(store, ready.id(), &Silent)?.is_valid());
    println!("and every byte of it is what was published");
    Ok(())
}

/// A session: an id, a secret that proves it, and who it says it is.
fn session(store: &PosixStore) -> Result<Locks<'_>, Box<dyn Error>> {
    let identity = Identity {
        host: "example".into(),
        user: "ann".into(),
        account: jvs_repo::proc::account(),
        pid: std::process::id(),
        start_time: 0,
        pid_namespace: None,
        boot_id: SystemClock.boot_id(),
        environment: Environment::Local,
        purpose: Purpose::Interactive,
    };
    let session = Session::new("example".parse()?, &Secret([7; 32]), identity);
    let log = Log::new(store, &Alone, WriterId::derive(b"example", 0));
    let seams = Seams { store, clock: &SystemClock, entropy: &SystemEntropy };
    Ok(Locks::new(seams, session, LockPolicy::default(), log))
}

#[test]
fn it_runs() -> Result<(), Box<dyn Error>> {
    main()
}
