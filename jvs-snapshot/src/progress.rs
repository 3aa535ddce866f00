//! How far a capture is, for bars, and whether it should go on.

use std::sync::{Mutex, PoisonError};

use jvs_repo::clock::{BootMs, Clock};

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CapturePhase {
    /// Looking at every name, before.
    Walk,
    /// Comparing with the parent snapshot.
    Plan,
    /// Copying or cloning.
    Clone,
    /// Reading what the engine did not read.
    Hash,
    /// Comparing the result with the source, and mending it.
    Fidelity,
    /// Looking at every name again.
    Prove,
    /// Writing the manifest.
    Manifest,
    /// Waiting for the disk.
    Sync,
}

impl CapturePhase {
    /// In a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Walk => "walk",
            Self::Plan => "plan",
            Self::Clone => "clone",
            Self::Hash => "hash",
            Self::Fidelity => "fidelity",
            Self::Prove => "prove",
            Self::Manifest => "manifest",
            Self::Sync => "sync",
        }
    }
}

/// Who is told. Called by several threads, often: it must be quick.
pub trait Progress: Sync {
    /// A phase begins.
    fn phase(&self, _phase: CapturePhase) {}

    /// What there is to do in this phase.
    fn total(&self, _files: u64, _bytes: u64) {}

    /// So much more is done.
    fn advance(&self, _files: u64, _bytes: u64) {}

    /// Asked now and then; false ends the capture, for example because the lease
    /// is lost.
    fn keep_going(&self) -> bool {
        true
    }
}

/// Nobody is told.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}

/// Tells and times the phases.
pub(crate) struct Phases<'c> {
    clock: &'c dyn Clock,
    progress: &'c dyn Progress,
    inner: Mutex<Timed>,
}

#[derive(Default)]
struct Timed {
    current: Option<(CapturePhase, BootMs)>,
    done: Vec<(CapturePhase, u64)>,
}

impl<'c> Phases<'c> {
    pub(crate) fn new(clock: &'c dyn Clock, progress: &'c dyn Progress) -> Self {
        Phases { clock, progress, inner: Mutex::default() }
    }

    /// The phase before this one is over.
    pub(crate) fn begin(&self, phase: CapturePhase) {
        self.progress.phase(phase);
        self.turn(Some(phase));
    }

    /// Milliseconds a phase, in order.
    pub(crate) fn end(self) -> Vec<(CapturePhase, u64)> {
        self.turn(None);
        self.inner.into_inner().unwrap_or_else(PoisonError::into_inner).done
    }

    fn turn(&self, next: Option<CapturePhase>) {
        let now = self.clock.now().boot;
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((phase, since)) = inner.current.take() {
            inner.done.push((phase, now.since(since)));
        }
        inner.current = next.map(|phase| (phase, now));
    }
}
