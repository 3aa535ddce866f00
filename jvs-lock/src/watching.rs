//! Watching a register: what was seen of it and since when, on this host's own
//! boot-time clock, and waiting until that is proof enough.
//!
//! A wall clock can delay a take-over and never cause one against a holder that
//! lives and renews: what looks abandoned by it counts only once the very same
//! name was seen for as long as the holder would have needed to renew.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use jvs_repo::clock::Reading;
use jvs_repo::name::WorktreeName;

use crate::decide;
use crate::error::{RegisterError, TakeOverError};
use crate::holder::Onlooker;
use crate::judge::Watch;
use crate::locks::Locks;
use crate::register::Register;
use crate::state::State;
use crate::view::{self, StatusWord, View};

/// What a session saw of the registers of one repository. A hint that may be
/// lost: then a watch begins again.
pub trait Sightings: Send + Sync {
    /// What was seen of the register of `worktree`, on clocks that are still ours.
    fn recall(&self, worktree: &WorktreeName) -> Option<Watch>;

    /// Remembers it.
    fn keep(&self, worktree: &WorktreeName, watch: &Watch);
}

/// Sightings that last as long as the process.
#[derive(Debug, Default)]
pub struct InMemory {
    seen: Mutex<HashMap<WorktreeName, Watch>>,
}

impl Sightings for InMemory {
    fn recall(&self, worktree: &WorktreeName) -> Option<Watch> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(worktree).cloned()
    }

    fn keep(&self, worktree: &WorktreeName, watch: &Watch) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(worktree.clone(), watch.clone());
    }
}

/// Where a watch stands.
#[derive(Debug, Clone, Copy)]
pub struct Watched<'w> {
    /// The lock as it was seen.
    pub view: &'w View,
    /// For how long it was seen so.
    pub watched_ms: u64,
    /// How long is needed.
    pub needed_ms: u64,
}

/// Watches a lock that looks abandoned before it is taken.
pub trait Patience: Send + Sync {
    /// Told where a watch stands, at each look; may stop it.
    fn tell(&self, watched: Watched<'_>) -> ControlFlow<()>;
}

/// The patience of one who tells nobody.
#[derive(Debug, Clone, Copy)]
pub struct Silently;

impl Patience for Silently {
    fn tell(&self, _watched: Watched<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// How a watch ended.
enum WatchEnd {
    /// It was seen for long enough, or it is another state altogether.
    TryAgain,
    /// Its holder renewed it: a clock is wrong.
    Renewed(Box<View>),
    /// The user said to stop.
    Stopped,
}

/// How often one who watches begins again because another came first.
const ROUNDS: u32 = 3;

impl<'r> Locks<'r> {
    /// The same, watching what looks abandoned by another host's clock for as
    /// long as it takes, and then taking it. Without this, it is refused at once.
    #[must_use]
    pub fn watching(self, patience: Arc<dyn Patience>) -> Self {
        Locks { patience: Some(patience), ..self }
    }

    /// The same, watching nothing: for those who wait in another way, or not at all.
    #[must_use]
    pub fn at_once(&self) -> Self {
        Locks { patience: None, ..self.clone() }
    }

    /// Takes in that the register is at `state`, READ after `before`. Answers
    /// with what is known of it from watching.
    pub(crate) fn saw(&self, worktree: &WorktreeName, state: &State, before: Reading) -> Watch {
        let after = self.seams.clock.now();
        let watch = match self.sightings.recall(worktree) {
            Some(mut watch) => {
                watch.look(*state, before, after);
                watch
            }
            None => Watch::start(*state, before, after),
        };
        self.sightings.keep(worktree, &watch);
        watch
    }

    /// Completes a READ that began after `before` to a view, with what watching
    /// taught about another's claim.
    pub(crate) fn examine(
        &self,
        register: &Register<'_>,
        state: &State,
        before: Reading,
    ) -> Result<View, RegisterError> {
        let me = Some(self.session.nonce());
        let anothers = state.hold.claim().is_some() && state.holder() != me;
        let watch = anothers.then(|| self.saw(register.worktree(), state, before));
        let (worktree, watch) = (register.worktree(), watch.as_ref());
        let view = view::complete(self.seams, &self.policy, worktree, *state, me, watch)?;
        Ok(view.seen_by(Onlooker::of(&self.session)))
    }

    /// Completes a READ to a view, and learns nothing from it.
    pub(crate) fn look_at(
        &self,
        worktree: &WorktreeName,
        state: &State,
    ) -> Result<View, RegisterError> {
        let me = Some(self.session.nonce());
        let view = view::complete(self.seams, &self.policy, worktree, *state, me, None)?;
        Ok(view.seen_by(Onlooker::of(&self.session)))
    }

    /// Tries `attempt`. If what it wants looks abandoned by another host's clock,
    /// watches for as long as its holder would have needed to renew, and tries
    /// again, if there is the patience for it.
    ///
    /// A renewal that is seen meanwhile proves that the clocks disagree.
    pub(crate) fn patiently<T, E>(&self, mut attempt: impl FnMut() -> Result<T, E>) -> Result<T, E>
    where
        E: From<RegisterError> + From<TakeOverError>,
        TakeOverError: TryFrom<E, Error = E>,
    {
        let Some(patience) = &self.patience else { return attempt() };
        for _ in 0..ROUNDS {
            let view = match attempt().map_err(TakeOverError::try_from) {
                Ok(done) => return Ok(done),
                Err(Ok(TakeOverError::Unproven(view))) => view,
                Err(Ok(error)) => return Err(error.into()),
                Err(Err(error)) => return Err(error),
            };
            match self.watch(&view, patience.as_ref())? {
                WatchEnd::TryAgain => {}
                WatchEnd::Stopped => return Err(TakeOverError::Unproven(view).into()),
                WatchEnd::Renewed(view) => {
                    let max_clock_skew_ms = self.policy.max_clock_skew_ms;
                    return Err(TakeOverError::ClockSkew { view, max_clock_skew_ms }.into());
                }
            }
        }
        attempt()
    }

    fn watch(&self, first: &View, patience: &dyn Patience) -> Result<WatchEnd, RegisterError> {
        let register = self.register(&first.worktree);
        loop {
            let before = self.seams.clock.now();
            let state = register.read()?;
            let view = self.examine(&register, &state, before)?;
            if state != first.state {
                let renewed = (state.epoch, state.token) == (first.state.epoch, first.state.token)
                    && state.holder().is_some()
                    && state.holder() == first.state.holder();
                let skew = view.judgement.as_ref().map_or(0, |judged| judged.observed_skew_ms);
                return Ok(match renewed && skew > self.policy.max_clock_skew_ms {
                    true => WatchEnd::Renewed(Box::new(view)),
                    false => WatchEnd::TryAgain,
                });
            }
            let left = view.judgement.as_ref().map_or(0, |judged| judged.watch_ms);
            if left == 0 {
                return Ok(WatchEnd::TryAgain);
            }
            let watched_ms = self.watched_ms(&view);
            let needed_ms = watched_ms.saturating_add(left);
            if patience.tell(Watched { view: &view, watched_ms, needed_ms }).is_break() {
                return Ok(WatchEnd::Stopped);
            }
            self.seams.clock.sleep_ms(left.min(pause_ms(needed_ms)).max(1));
        }
    }

    /// Watches the register until its holder is proven idle, without any wall
    /// clock: the exact name unchanged for a whole lease and the grace. `each`
    /// is told what was seen, for how long, and how long is needed; it may stop
    /// the watch, which then answers false.
    pub fn observe(
        &self,
        worktree: &WorktreeName,
        mut each: impl FnMut(Watched<'_>) -> ControlFlow<()>,
    ) -> Result<bool, RegisterError> {
        let register = self.register(worktree);
        loop {
            let before = self.seams.clock.now();
            let state = register.read()?;
            let view = self.examine(&register, &state, before)?;
            let Some(claim) = state.hold.claim() else { return Ok(true) };
            // Stealable by a wall clock that is in doubt, or that nobody has
            // checked by watching, is no proof: watch on.
            let proven = decide::may_take_over(&state, view.judgement.as_ref(), &self.policy);
            if view.mine || proven.is_ok() || view.word() == StatusWord::Free {
                return Ok(true);
            }
            let watched_ms = self.watched_ms(&view);
            let needed_ms = claim.lease_ms.saturating_add(self.policy.steal_grace_ms);
            if each(Watched { view: &view, watched_ms, needed_ms }).is_break() {
                return Ok(false);
            }
            let left = needed_ms.saturating_sub(watched_ms);
            self.seams.clock.sleep_ms(left.min(pause_ms(needed_ms)).max(1));
        }
    }

    fn watched_ms(&self, view: &View) -> u64 {
        let watch = self.sightings.recall(&view.worktree);
        watch.and_then(|watch| watch.unchanged_for(&view.state, view.at.boot)).unwrap_or(0)
    }

    /// How much longer a waiter must see `view` unchanged until it may take the
    /// lock, whatever clocks say of it.
    pub(crate) fn observed_in_ms(&self, view: &View) -> u64 {
        let lease_ms = view.state.hold.claim().map_or(0, |claim| claim.lease_ms);
        let needed = lease_ms.saturating_add(self.policy.steal_grace_ms);
        needed.saturating_sub(self.watched_ms(view))
    }
}

/// How long to wait between two looks of a watch of `needed_ms`.
fn pause_ms(needed_ms: u64) -> u64 {
    const LOOKS: u64 = 16;
    (needed_ms / LOOKS).clamp(20, 1_000)
}
