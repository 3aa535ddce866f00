//! Taking a lock in one's turn: at once, or after waiting in line.

use jvs_kernel::signals::Signals;
use jvs_lock::{Lease, LockError, Locks, Want, retry};
use jvs_repo::duration::Span;
use jvs_repo::proc;

use super::or_no_such_worktree;
use crate::bell::{Doorbell, ENDING};
use crate::context::{Context, Here};
use crate::fail::{Failure, Stuck};

/// Takes the lock; `wait` says for how long one may stand in line.
pub(crate) fn take<'r>(
    context: &Context<'_>,
    here: &Here,
    locks: &Locks<'r>,
    want: Want<'_>,
    wait: Option<Span>,
) -> Result<Lease<'r>, Failure> {
    match wait {
        None => at_once(context, here, locks, want),
        Some(at_most) => {
            let signals =
                Signals::catch(&ENDING).map_err(|error| Stuck::new("catch signals", error))?;
            in_line(context, here, locks, want, at_most, &signals)
        }
    }
}

/// Takes the lock if it is this session's turn.
pub(crate) fn at_once<'r>(
    context: &Context<'_>,
    here: &Here,
    locks: &Locks<'r>,
    want: Want<'_>,
) -> Result<Lease<'r>, Failure> {
    retry::while_transient(context.seams(here.repo.store()), || {
        locks.acquire_in_turn(&here.worktree, want, &proc::process_stat)
    })
    .map_err(|error| or_no_such_worktree(&here.repo, &here.worktree, error))
}

/// Waits in line and takes the lock.
pub(crate) fn in_line<'r>(
    context: &Context<'_>,
    Here { repo, worktree }: &Here,
    locks: &Locks<'r>,
    want: Want<'_>,
    at_most: Span,
    signals: &Signals,
) -> Result<Lease<'r>, Failure> {
    let progress = context.output().progress();
    let mut bell = Doorbell::new(repo.store(), signals, progress, worktree.to_string())?;
    let waited = locks.wait(worktree, want, at_most.as_ms(), &proc::process_stat, &mut bell);
    match waited.map_err(|error| or_no_such_worktree(repo, worktree, error))? {
        Some(lease) => Ok(lease),
        None => {
            let stopped_by = bell.stopped_by();
            let (ahead, waited_ms) = bell.last();
            let view = Box::new(locks.inspect(worktree)?);
            let error = LockError::InLine { ahead, waited_ms: Some(waited_ms), view };
            Err(Failure::from(error).dying_of(stopped_by))
        }
    }
}
