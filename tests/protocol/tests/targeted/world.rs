//! A repository in a simulated world without a scheduler, and sessions that
//! work in it.

use std::sync::Arc;

use jvs_kit::sim::Solo;
use jvs_lock::history::{self, HistoryReport};
use jvs_lock::register::Register;
use jvs_lock::watching::Silently;
use jvs_lock::{Locks, Seams, State, View, Want};
use jvs_protocol_tests::{actor, stage};
use jvs_repo::name::WorktreeName;
use jvs_repo::store::Store;
use jvs_world::session;

/// Length of every lease here.
pub(crate) const LEASE_MS: u64 = 30_000;
/// When a lease that began now may be stolen: skew and grace included.
pub(crate) const STEALABLE_MS: u64 = LEASE_MS + 3_001;
/// What every acquire here asks for.
pub(crate) const LEASE: Want<'static> = Want::lease(LEASE_MS);

pub(crate) fn main() -> WorktreeName {
    WorktreeName::main()
}

/// Shared, so that what happens in the middle of a call can have it, too.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) solo: Arc<Solo>,
}

impl World {
    /// A repository with worktree `main`, free.
    pub(crate) fn new() -> Self {
        let solo = Solo::new();
        stage::repository(&solo);
        solo.forget_calls();
        World { solo: Arc::new(solo) }
    }

    /// The locks as a process of session `id` sees them.
    pub(crate) fn session(&self, id: &str) -> Locks<'_> {
        self.session_on(self.solo.store(), id)
    }

    /// The same through another store.
    pub(crate) fn session_on<'w>(&'w self, store: &'w dyn Store, id: &str) -> Locks<'w> {
        let (clock, entropy) = (self.solo.clock(), self.solo.entropy());
        locks(Seams { store, clock, entropy }, id)
    }

    /// Session `id` takes the lock, in whichever way that is possible, and the
    /// process that took it ends. The token.
    #[track_caller]
    pub(crate) fn takes(&self, id: &str) -> u64 {
        let patient = self.session(id).watching(Arc::new(Silently));
        let lease = patient.acquire(&main(), LEASE).expect("it may be taken");
        lease.token().0
    }

    /// The session `id` gives the lock back.
    #[track_caller]
    pub(crate) fn gives_back(&self, id: &str) {
        let locks = self.session(id);
        let lease = locks.resume(&main(), None).expect("it holds");
        lease.release().expect("released");
    }

    /// Time passes until a lease that began now may be stolen.
    pub(crate) fn lease_runs_out(&self) {
        // A renewal at the very moment of the grant ends a moment later.
        self.solo.pass_ms(STEALABLE_MS + 1);
    }

    /// The register: exactly one entry, or the test fails.
    #[track_caller]
    pub(crate) fn register(&self) -> State {
        Register::new(self.solo.store(), self.solo.clock(), main()).read().expect("one entry")
    }

    /// What a stranger sees.
    #[track_caller]
    pub(crate) fn view(&self) -> View {
        self.session("stranger").inspect(&main()).expect("seen")
    }

    /// Does the session `id` hold it, under `token`?
    pub(crate) fn is_held_by(&self, id: &str, token: u64) -> bool {
        let state = self.register();
        let nonce = actor::session(id, 7, self.solo.clock()).nonce();
        state.holder() == Some(nonce) && state.token.0 == token
    }

    /// Whose lock the record says it is, if it can be read.
    pub(crate) fn record_names(&self) -> Option<String> {
        self.view().found.record().map(|record| record.session_id.clone())
    }

    /// Checks the audit logs against the register.
    pub(crate) fn audit(&self) -> HistoryReport {
        let (store, clock) = (self.solo.store(), self.solo.clock());
        let (seen, logs) = history::witness(store, clock, [main()], |_| false).expect("seen");
        history::check(&seen, &logs.expect("read"))
    }

    /// The audit adds up, crashes aside.
    #[track_caller]
    pub(crate) fn audit_adds_up(&self) {
        let report = self.audit();
        assert!(report.first_bad_link().is_none(), "{:#?}", report.problems);
    }
}

/// The locks as a process of session `id` sees them.
pub(crate) fn locks<'w>(seams: Seams<'w>, id: &str) -> Locks<'w> {
    session::locks(seams, actor::session(id, 7, seams.clock))
}
