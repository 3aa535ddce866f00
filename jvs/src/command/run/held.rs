//! The locks that a command runs under: all of them or none.

use std::os::fd::BorrowedFd;
use std::process::Command;

use jvs_lock::hold::{Ask, Entered, HoldError, Stake};
use jvs_lock::kept::Kept;
use jvs_lock::record::renew_interval_ms;
use jvs_lock::{Lease, LeaseError, Ticket};
use jvs_repo::clock::BootMs;
use jvs_repo::config::LockPolicy;

use super::give_back;
use super::watch::Guarded;
use crate::answer::run::{Under, UnderEach, UnderOne, UnderSeveral};
use crate::args::OnLoss;
use crate::command::lock::turn::LockTurn;
use crate::context::Context;
use crate::fail::Failure;
use crate::keeper::{self, Attached, LeaseEnds, Order, Started, Starting};
use crate::session::Acting;

/// A lock that the command runs under.
pub(super) struct RunLock<'h, 'r> {
    pub(super) turn: &'h LockTurn<'h, 'r>,
    pub(super) lease: Lease<'r>,
    stake: Stake,
    /// The session held it before.
    joined: bool,
}

/// What became of one of them.
pub(super) struct HoldOutcome {
    /// Others of the session still need it.
    pub(super) kept: bool,
    /// Why it is lost, if it is.
    pub(super) lost: Option<String>,
    /// Was that noticed only when the command had ended?
    pub(super) overruled: bool,
    /// Was it given back, and if not, why not? `None` for what was lost.
    pub(super) released: Option<Option<String>>,
}

impl HoldOutcome {
    /// It may still be held: `problem` came in between.
    pub(super) fn not_released(problem: String) -> Self {
        Self { kept: false, lost: None, overruled: false, released: Some(Some(problem)) }
    }
}

impl<'h, 'r> RunLock<'h, 'r> {
    pub(super) fn all(turns: &'h [LockTurn<'h, 'r>], entered: Vec<Entered<'r>>) -> Vec<Self> {
        let each = turns.iter().zip(entered);
        each.map(|(turn, Entered { lease, stake, joined })| RunLock { turn, lease, stake, joined })
            .collect()
    }

    /// The command is about to begin, and is told what it holds.
    pub(super) fn answer(&mut self, ask: &Ask) -> Result<(), HoldError> {
        self.turn.locks.answer(self.turn.holds, ask, &mut self.stake)
    }

    /// Whoever was overruled between two renewals must not pass for one who held.
    fn overruled(&self, ticket: &Ticket) -> Option<String> {
        match self.turn.locks.is_held_under(&self.turn.here.worktree, ticket) {
            Err(error @ LeaseError::Fenced { .. }) => Some(error.to_string()),
            _ => None,
        }
    }

    /// Until when the session keeps it without this command, if that can be seen.
    pub(super) fn kept(&self) -> Option<Kept> {
        let policy = self.turn.here.repo.config().ok()?.lock;
        let idle_ms = Some(policy.idle_release_ms).filter(|ms| *ms > 0);
        keeper::kept(self.turn.holds, self.lease.term(), idle_ms).map(|(kept, _)| kept)
    }

    /// Gives it back, unless it is lost or somebody of `left` still writes.
    pub(super) fn end(
        &self,
        mut guarded: Guarded<'_>,
        left: Option<&str>,
    ) -> Result<HoldOutcome, Failure> {
        let LockTurn { locks, holds, .. } = self.turn;
        let noticed = guarded.lost.take();
        let overruled = match noticed {
            Some(_) => None,
            None => self.overruled(&guarded.order.ticket),
        };
        // First the stake, then the word to the keeper: it looks at what is left.
        holds.remove(&self.stake);
        let kept = self.joined && holds.is_needed(&self.stake)?;
        let released = match guarded.keeper.take() {
            Some(keeper) if noticed.is_none() && left.is_none() => match give_back(keeper)? {
                // Nobody may be there to do it, or what is there may be stopped.
                Some(problem) if locks.leave(holds, &self.stake).is_err() => Some(Some(problem)),
                _ => Some(None),
            },
            Some(keeper) if noticed.is_none() => {
                // It goes on ending them, and gives the lock back when they have.
                keeper.abandon();
                left.map(|left| Some(format!("{left} cannot be ended")))
            }
            Some(keeper) => {
                keeper.reap();
                None
            }
            None => None,
        };
        let (by_others, lost) = (overruled.is_some(), noticed.or(overruled));
        Ok(HoldOutcome { kept, lost, overruled: by_others, released })
    }
}

/// The keeper of a lock that the command runs under, while it begins.
pub(super) struct Beginning<'h> {
    order: Order<'h>,
    keeper: Result<Starting, Failure>,
}

/// Has a keeper begin for each, which knows of the command.
pub(super) fn begin<'h>(
    context: &Context<'_>,
    acting: &'h Acting,
    held: &mut [RunLock<'h, '_>],
    on_loss: OnLoss,
    life: BorrowedFd<'h>,
    ends: &'h LeaseEnds,
) -> Vec<Beginning<'h>> {
    let each = held.iter_mut().enumerate().map(|(at, one)| {
        let order = Order {
            here: one.turn.here,
            session: &acting.session,
            ticket: one.lease.ticket(),
            confirmed: one.lease.confirmed().filter(|_| !one.joined),
            attached: Some(Attached { on_loss, life, ends: (ends, at), guest: one.joined }),
        };
        one.lease.rest_the_log();
        let keeper = keeper::spawn(context, &order, None);
        if let (Ok(keeper), false) = (&keeper, one.joined) {
            // Best effort, like everything in the record.
            let _ = one.lease.set_keeper(Some(keeper.as_recorded(&acting.session)));
        }
        one.lease.rest_the_record();
        Beginning { order, keeper }
    });
    each.collect()
}

/// Waits until each is kept; if one cannot be, none is held.
pub(super) fn keep<'h>(
    context: &Context<'_>,
    policy: &LockPolicy,
    held: &[RunLock<'_, '_>],
    begun: Vec<Beginning<'h>>,
) -> Result<Vec<Guarded<'h>>, Failure> {
    let (mut guarded, mut failed) = (Vec::new(), None);
    for (one, Beginning { mut order, keeper }) in held.iter().zip(begun) {
        let keeper = match keeper.and_then(|keeper| keeper.until_it_keeps(&order)) {
            Ok(keeper) => Some(keeper),
            Err(failure) => {
                failed.get_or_insert(failure);
                None
            }
        };
        // A keeper that is started in its place finds what that one did, and says in the
        // record who it is: it renews first.
        order.confirmed = None;
        let until = keeper.as_ref().map_or(BootMs(0), Started::until);
        let interval_ms = renew_interval_ms(one.lease.claim().lease_ms, policy);
        let renewed = context.clock().now().boot;
        guarded.push(Guarded { order, until, interval_ms, renewed, keeper, lost: None });
    }
    match failed {
        None => Ok(guarded),
        Some(failure) => {
            give_all_back(held, guarded)?;
            Err(failure)
        }
    }
}

/// The command did not run at all. It leaves like any other: a lock is given back if it
/// was the last.
pub(super) fn give_all_back(
    held: &[RunLock<'_, '_>],
    all: Vec<Guarded<'_>>,
) -> Result<(), Failure> {
    for (one, guarded) in held.iter().zip(all) {
        match guarded.keeper {
            Some(keeper) => {
                one.turn.holds.remove(&one.stake);
                give_back(keeper)?;
            }
            None => drop(one.turn.locks.leave(one.turn.holds, &one.stake)),
        }
    }
    Ok(())
}

/// Hands the tokens down. The variables without an S are about the first worktree, as
/// they are where there is only one; the others are only there for several, also of
/// several commands within each other.
pub(super) fn hand_down(
    context: &Context<'_>,
    command: &mut Command,
    held: &[RunLock<'_, '_>],
) -> Result<(), Failure> {
    let mut all: Vec<Ticket> = held.iter().map(|one| one.lease.ticket()).collect();
    let first = &all[0];
    command.env("JVS_WORKTREE", first.worktree.as_str());
    command.env("JVS_FENCING_TOKEN", first.term.token.to_string());
    command.env("JVS_FENCING_EPOCH", first.term.epoch.to_string());
    for outer in context.handed_tokens()? {
        if all.iter().all(|own| own.worktree != outer.worktree) {
            all.push(outer);
        }
    }
    if all.len() > 1 {
        let names: Vec<&str> = all.iter().map(|ticket| ticket.worktree.as_str()).collect();
        let tokens: Vec<String> = all
            .iter()
            .map(|ticket| {
                format!("{}:{}:{}", ticket.worktree, ticket.term.token, ticket.term.epoch)
            })
            .collect();
        command.env("JVS_WORKTREES", names.join(" "));
        command.env("JVS_FENCING_TOKENS", tokens.join(" "));
    }
    Ok(())
}

/// The names of their worktrees, for a prompt.
pub(super) fn names(held: &[RunLock<'_, '_>]) -> String {
    let names: Vec<&str> = held.iter().map(|one| one.turn.here.worktree.as_str()).collect();
    names.join(",")
}

/// What is said of several, each for itself.
pub(super) fn told(held: &[RunLock<'_, '_>], outcomes: &[HoldOutcome]) -> Under {
    if let [one] = held {
        let worktree = one.turn.here.worktree.clone();
        return Under::One(UnderOne { worktree, fencing_token: one.lease.token() });
    }
    let each = held.iter().zip(outcomes).map(|(one, outcome)| UnderEach {
        worktree: one.turn.here.worktree.clone(),
        fencing_token: one.lease.token(),
        lost: outcome.lost.clone(),
    });
    Under::Several(UnderSeveral { worktrees: each.collect() })
}
