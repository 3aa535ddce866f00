//! Those who speak for a session.

use jvs_lock::session::{Environment, Purpose};
use jvs_lock::{Identity, Locks, Seams, Secret, Session};
use jvs_repo::account::Account;
use jvs_repo::audit::{Alone, Log, WriterId};
use jvs_repo::clock::BootId;
use jvs_repo::config::{LockPolicy, ReclaimRules};

/// Process 1 of Ann on a host in this boot. Whoever needs another one says what is
/// different: `Identity { pid: 7, ..identity(boot) }`.
pub fn identity(boot_id: BootId) -> Identity {
    Identity {
        host: "host".into(),
        user: "ann".into(),
        account: Some(Account { uid: 1000, gids: vec![1000] }),
        pid: 1,
        start_time: 1,
        pid_namespace: Some(1),
        boot_id,
        environment: Environment::Local,
        purpose: Purpose::Interactive,
    }
}

/// The secret of the session `id`: another for each id.
pub fn secret(id: &str) -> Secret {
    let mut bytes = [0; 32];
    bytes[..id.len()].copy_from_slice(id.as_bytes());
    Secret(bytes)
}

/// The session `id`, for which `identity` speaks.
pub fn session(id: &str, identity: Identity) -> Session {
    Session::new(id.parse().expect("a session's id"), &secret(id), identity)
}

/// The locks as `session` sees them. Its log is its own: nobody takes turns on it.
pub fn locks<'s>(seams: Seams<'s>, session: Session) -> Locks<'s> {
    locks_with_log(seams, session, 0)
}

/// As [`locks`], with the `nth` log of the session: taking turns on one is the command's
/// business, so processes that are there at once have one each.
pub fn locks_with_log<'s>(seams: Seams<'s>, session: Session, nth: u64) -> Locks<'s> {
    let writer = WriterId::derive(session.id().as_str().as_bytes(), nth);
    let log = Log::new(seams.store, &Alone, writer);
    Locks::new(seams, session, LockPolicy::default(), log)
}

/// The locks as the session `id` sees them, on the host whose clock is in `seams`.
pub fn locks_of<'s>(seams: Seams<'s>, id: &str) -> Locks<'s> {
    locks(seams, session(id, identity(seams.clock.boot_id())))
}

/// The same in a repository that allows emergencies, so that a freeze can be forced.
pub fn forcing(locks: Locks<'_>) -> Locks<'_> {
    let rules = ReclaimRules { emergency_override: true, ..ReclaimRules::default() };
    locks.ruled_by(rules, &|_| None)
}
