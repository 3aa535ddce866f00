//! The right to move the head: borrowed from a live lease, or, in a worktree
//! that many write to, bound to the token under which nobody holds it.
//!
//! Must not know what a head is: only that it is committed by one rename.

use std::io;

use jvs_repo::audit::EventKind;
use jvs_repo::id::{FencingToken, SnapshotId};
use jvs_repo::name::WorktreeName;
use jvs_repo::sabotage;
use jvs_repo::term::Term;

use crate::decide::{self, LostTerm, NoCommit, Own};
use crate::drive::Move;
use crate::error::{CommitError, LeaseError, RegisterError, TakeOverError, WasRemoved};
use crate::lease::Lease;
use crate::locks::Locks;
use crate::mutation::Rule;
use crate::register::Register;
use crate::state::{Hold, State};

/// A worktree that many write to, as it was when work on it began. Nobody holds
/// it, so there is nothing to renew or release; a process that takes or freezes it
/// meanwhile raises the token and so fences what was begun.
pub struct Shared<'r> {
    locks: Locks<'r>,
    register: Register<'r>,
    bound: Term,
}

impl<'r> Shared<'r> {
    pub(crate) fn begin(locks: Locks<'r>, worktree: &WorktreeName) -> Result<Self, TakeOverError> {
        let register = locks.register(worktree);
        let state = register.read()?;
        match state.hold {
            Hold::Free => {
                locks.refuse_reserved(worktree, &state)?;
                let view = locks.look_at(worktree, &state)?;
                if view.foreign.is_some() {
                    return Err(TakeOverError::of_other_tool(&view));
                }
            }
            Hold::Retired => return Err(WasRemoved { worktree: worktree.clone() }.into()),
            Hold::Held(_) | Hold::Frozen(_) => {
                let view = Box::new(locks.look_at(worktree, &state)?);
                return Err(match state.hold {
                    Hold::Frozen(_) => TakeOverError::Frozen(view),
                    _ => TakeOverError::Conflict(view),
                });
            }
        }
        let bound = state.term();
        Ok(Shared { locks, register, bound })
    }

    /// The right to commit. Whether the worktree was taken or frozen meanwhile
    /// is decided by the commit itself.
    pub fn fence(&mut self) -> Fence<'_, 'r> {
        Fence { right: Right::Shared(self) }
    }
}

/// The right to move the head, for as long as the borrow lasts.
///
/// It can only come from [`Lease::fence`] or [`Shared::fence`], and while it
/// lives the lease can be neither renewed from under it nor released:
///
/// ```compile_fail,E0505
/// fn release_under_a_fence(mut lease: jvs_lock::Lease<'_>) {
///     let fence = lease.fence().unwrap();
///     let _ = lease.release();
///     fence.token();
/// }
/// ```
pub struct Fence<'l, 'r> {
    right: Right<'l, 'r>,
}

enum Right<'l, 'r> {
    Held(&'l mut Lease<'r>),
    Shared(&'l mut Shared<'r>),
}

impl<'l, 'r> Fence<'l, 'r> {
    pub(crate) fn of_lease(lease: &'l mut Lease<'r>) -> Self {
        Fence { right: Right::Held(lease) }
    }

    fn locks(&self) -> &Locks<'r> {
        match &self.right {
            Right::Held(lease) => &lease.locks,
            Right::Shared(shared) => &shared.locks,
        }
    }

    fn register(&self) -> &Register<'r> {
        match &self.right {
            Right::Held(lease) => &lease.register,
            Right::Shared(shared) => &shared.register,
        }
    }

    /// The worktree whose head it may move.
    pub fn worktree(&self) -> &WorktreeName {
        self.register().worktree()
    }

    /// The token it commits under.
    pub fn token(&self) -> FencingToken {
        self.term().token
    }

    /// The term it commits in.
    pub fn term(&self) -> Term {
        match &self.right {
            Right::Held(lease) => lease.bound.term,
            Right::Shared(shared) => shared.bound,
        }
    }

    /// The register as it is now, if this right still stands.
    pub fn read(&self) -> Result<State, LeaseError> {
        let state = self.register().read()?;
        let stands = match &self.right {
            Right::Held(lease) => decide::renew(&state, lease.bound, state.op).map(|_| ()),
            Right::Shared(shared) => decide::still_unheld(&state, shared.bound),
        };
        stands.map(|()| state).map_err(|lost| self.lost(&state, lost))
    }

    /// Makes the register as it was last read survive a power cut: before what
    /// rests on it is shown to anybody.
    pub fn sync(&self) -> Result<(), RegisterError> {
        self.register().sync().map_err(|source| RegisterError::Io {
            worktree: self.worktree().clone(),
            doing: "cannot sync the fence register",
            source,
        })
    }

    /// Moves the head from `parent` to `head`: fence check and commit are one
    /// rename. `is_ready` tells whether `head` has been made visible, which only
    /// happens to what was committed; it is asked when an answer was lost.
    ///
    /// Answers once the commit is durable and was read back. An error other than
    /// [`RegisterError::OutcomeUnknown`] and [`RegisterError::StaleMount`] means that it
    /// certainly was not committed and never will be.
    pub fn commit(
        &mut self,
        parent: Option<SnapshotId>,
        head: SnapshotId,
        is_ready: &dyn Fn() -> io::Result<bool>,
    ) -> Result<State, CommitError> {
        let locks = self.locks();
        let op = locks.fresh_op();
        locks.driver(self.register(), None).run(|state, _, tried| {
            let committed = !tried.is_empty() && is_ready().map_err(|error| self.unsure(error))?;
            let decided = match &self.right {
                Right::Held(lease) => decide::commit(state, lease.bound, parent, head, committed),
                Right::Shared(shared) => {
                    decide::commit_unheld(state, shared.bound, parent, head, committed)
                }
            };
            match decided {
                Ok(Own::Try) => Ok(Move::Try(EventKind::Publish, state.with_head(head, op))),
                Ok(Own::Done) => Ok(Move::Applied),
                Err(NoCommit::Lost(lost)) => Err(self.lost(state, lost).into()),
                Err(NoCommit::HeadMoved { current }) => {
                    let worktree = self.worktree().clone();
                    Err(CommitError::HeadMoved { worktree, current })
                }
            }
        })?;
        self.register().sync().map_err(|error| self.unsure(error))?;
        // Exactly one entry again: a sync or restore tool may have brought an
        // old one back, and then nobody can tell which is true.
        let read = self.register().read();
        let state = read.map_err(|error| self.unsure(io::Error::other(error)))?;
        if is_committed_in(&state, head, is_ready).map_err(|error| self.unsure(error))? {
            return Ok(state);
        }
        // The register was rebuilt without it in between.
        let why = format!("{head} was committed, but the register went on to {state} without it");
        Err(self.unsure(io::Error::other(why)).into())
    }

    fn lost(&self, state: &State, lost: LostTerm) -> LeaseError {
        self.locks().lost(self.worktree(), state, lost, self.token())
    }

    fn unsure(&self, source: io::Error) -> RegisterError {
        RegisterError::OutcomeUnknown { worktree: self.worktree().clone(), source }
    }
}

/// Is a commit in the state that is read back? It is the head, or was made visible by
/// the process that went on from it.
fn is_committed_in(
    state: &State,
    head: SnapshotId,
    is_ready: &dyn Fn() -> io::Result<bool>,
) -> io::Result<bool> {
    sabotage!(Rule::CommitIsReadBack => Ok(true));
    Ok(state.head == Some(head) || is_ready()?)
}
