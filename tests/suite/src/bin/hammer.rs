//! One contender for a lock: takes it, commits, renews, gives it back, as fast
//! as the library can, until its time is over or it is killed.
//!
//! `hammer ROOT SESSION MILLISECONDS`. Prints `TOKEN FROM UNTIL` for every hold,
//! in boot time, and `stumble` for every failure of the filesystem; ends with a
//! failure at anything that must not happen.

use std::io::{self, Write as _};
use std::process::ExitCode;

use jvs_lock::session::Purpose;
use jvs_lock::{Identity, Locks, Seams, Want};
use jvs_repo::audit::{Alone, Log, WriterId};
use jvs_repo::clock::{Clock as _, SystemClock};
use jvs_repo::code::Code;
use jvs_repo::entropy::{Entropy as _, SystemEntropy};
use jvs_repo::id::SnapshotId;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::{PosixStore, Store as _};
use jvs_world::any_error::AnyError;
use jvs_world::session::{identity, session};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [root, session, ms] = &args[..] else { return ExitCode::from(64) };
    match hammer(root, session, ms) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{session}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn below(n: u64) -> u64 {
    let mut bytes = [0; 8];
    SystemEntropy.fill(&mut bytes);
    u64::from_le_bytes(bytes) % n
}

fn boot_ms() -> u64 {
    SystemClock.now().boot.0
}

fn hammer(root: &str, id: &str, ms: &str) -> Result<(), Box<dyn std::error::Error>> {
    let end = boot_ms() + ms.parse::<u64>()?;
    let store = PosixStore::open(root.as_ref())?;
    let device = store.stat(&jvs_repo::layout::audit())?.device;
    let me = Identity {
        pid: std::process::id(),
        purpose: Purpose::Automated,
        ..identity(SystemClock.boot_id())
    };
    let session = session(id, me);
    // Every session has one process at a time.
    let log = Log::new(&store, &Alone, WriterId::derive(id.as_bytes(), device));
    let seams = Seams { store: &store, clock: &SystemClock, entropy: &SystemEntropy };
    let policy = jvs_repo::repo::Repo::open(root.as_ref())?.config()?.lock;
    let locks = Locks::new(seams, session, policy, log);
    while boot_ms() < end {
        match hold_once(&locks) {
            Ok(line) => writeln!(io::stdout(), "{line}")?,
            Err(error) => match error.code() {
                // Held by another, or lost because this process was stopped.
                Code::LockConflict
                | Code::LockExpired
                | Code::LockNotHeld
                | Code::FencingMismatch => {}
                Code::Io | Code::OutcomeUnknown => writeln!(io::stdout(), "stumble {error}")?,
                _ => return Err(error.to_string().into()),
            },
        }
        SystemClock.sleep_ms(1 + below(20));
    }
    Ok(())
}

/// Takes the lock, does something under it, gives it back.
fn hold_once(locks: &Locks<'_>) -> Result<String, AnyError> {
    let mut lease = locks.acquire(&WorktreeName::main(), Want::lease(300))?;
    // Clocks are cut to whole milliseconds: round against the claim.
    let (token, from) = (lease.token(), boot_ms() + 1);
    if below(4) == 0 {
        lease.renew()?;
    }
    if below(4) == 0 {
        let mut fence = lease.fence()?;
        let parent = fence.read()?.head;
        let head = SnapshotId::fresh(SystemClock.now().wall.0, &SystemEntropy);
        if let Err(error) = fence.commit(parent, head, &|| Ok(false)) {
            // Nobody shows a head here, so whoever was stopped right after its commit
            // cannot be told whether it stands; that the lock was lost is enough.
            lease.renew()?;
            return Err(error.into());
        }
    }
    let until = lease.belief().until().map_or(0, |until| until.0.min(boot_ms()));
    // Now and then it is forgotten, and simply expires.
    if below(200) > 0 {
        lease.release().map_err(|failed| failed.error)?;
    }
    Ok(format!("{token} {from} {until}"))
}
