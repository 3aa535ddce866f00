//! `jvs lock …`.

mod acquire;
mod freeze;
mod keep;
mod list;
mod reclaim;
mod release;
mod renew;
pub(super) mod report;
pub(crate) mod several;
mod status;
mod steal;
mod transfer;
pub(crate) mod turn;
mod watch;
mod ways;
mod why;

use jvs_lock::hold::HandedTerm;
use jvs_lock::record::renew_interval_ms;
use jvs_lock::view::{self, View};
use jvs_lock::{Lease, Locks, OfRegister, Ticket, Want};
use jvs_repo::code::Coded;
use jvs_repo::config::Config;
use jvs_repo::name::WorktreeName;
use jvs_repo::probe::uploads_later;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::repo::Repo;
use jvs_repo::term::Term;

use super::worktree::existing;
use crate::args::{KeepArgs, LeaseArgs, LockCommand};
use crate::context::{Context, Here};
use crate::fail::{Failure, WrongUsage};
use crate::hint::OwnNext;
use crate::render::Done;
use crate::session::Acting;

pub(crate) fn run(context: &Context<'_>, command: &LockCommand) -> Result<Done, Failure> {
    match command {
        LockCommand::Acquire(args) => acquire::run(context, args),
        LockCommand::Renew => renew::run(context),
        LockCommand::Release(args) => release::run(context, args),
        LockCommand::Status => status::run(context),
        LockCommand::List => list::run(context),
        LockCommand::Why => why::run(context),
        LockCommand::Watch => watch::run(context),
        LockCommand::Steal(args) => steal::run(context, args),
        LockCommand::Reclaim(args) => reclaim::run(context, args),
        LockCommand::Transfer(args) => transfer::run(context, args),
        LockCommand::Freeze(args) => freeze::freeze(context, args),
        LockCommand::Unfreeze(args) => freeze::unfreeze(context, args),
    }
}

/// Has the lock released once no command of the session relies on it any more.
pub(super) fn let_go(context: &Context<'_>) -> Result<(), Failure> {
    let here = context.here()?;
    let acting = context.session(None)?;
    let locks = context.locks(here.repo.store(), here.repo.config()?.lock, &acting)?;
    let holds = context.holds(&here.repo, &here.worktree, &acting)?;
    Ok(locks.let_go(&holds).map(drop)?)
}

/// The lease that is wanted: as long as was said. Else, if it will be kept, as
/// short as the policy has it; if not, as long as the repository's table has it
/// for where and what for.
fn want<'w>(
    args: &'w LeaseArgs,
    keep: &KeepArgs,
    config: &Config,
    acting: &Acting,
) -> Result<Want<'w>, Failure> {
    let identity = acting.session.identity();
    let usual = || match keep.no_keeper {
        true => config.ttl.get(identity.environment, identity.purpose).as_ms(),
        false => config.lock.lease_duration_ms,
    };
    let lease_ms = args.lease.map_or_else(usual, |lease| lease.as_ms());
    let renewed_every_ms = (!keep.no_keeper).then(|| renew_interval_ms(lease_ms, &config.lock));
    Ok(Want { note: args.note.as_deref(), renewed_every_ms, ..Want::lease(lease_ms) })
}

/// On a JuiceFS mount that acknowledges writes before they are uploaded, what this
/// session writes about its lock may never be seen by others. Nobody needs it, but
/// the process that wonders who held is left without an answer if this host dies.
pub(crate) fn writeback_warning(here: &Here) -> Option<String> {
    uploads_later(here.repo.store()).then(|| {
        "this JuiceFS mount uses --writeback: if this host dies, others may not be able to read \
         who held the lock or what was done under it"
            .to_owned()
    })
}

/// The same, for a command that ends before the lock does.
fn warned_of_writeback(here: &Here, done: Done) -> Done {
    writeback_warning(here).into_iter().fold(done, Done::with_warning)
}

/// Some things are not done without saying why.
pub(super) fn reasoned(reason: &str, refusal: &str) -> Result<(), Failure> {
    match reason.trim() {
        "" => Err(WrongUsage::new(refusal, "give one with `--reason TEXT`").into()),
        _ => Ok(()),
    }
}

/// One look at the lock of `worktree`. Changes nothing.
pub(super) fn look(context: &Context<'_>, Here { repo, worktree }: &Here) -> Result<View, Failure> {
    let policy = repo.config()?.lock;
    let mut view = view::look(context.seams(repo.store()), &policy, worktree, None)
        .map_err(|error| or_no_such_worktree(repo, worktree, error))?;
    // Only a lock that is held can be one's own: a free one needs no secret.
    if let Some(holder) = view.state.holder() {
        view.mine = context.own_nonce()? == Some(holder);
    }
    Ok(related(context, view))
}

/// The same, with who looks: asked only where somebody else is shown.
fn related(context: &Context<'_>, view: View) -> View {
    match view.record().is_some() && !view.mine {
        true => match context.onlooker() {
            Some(onlooker) => view.seen_by(onlooker),
            None => view,
        },
        false => view,
    }
}

/// A register that is missing because there is no such worktree is no damage.
/// Asked only after a failure: what succeeds need not pay for it.
pub(crate) fn or_no_such_worktree(
    repo: &Repo,
    worktree: &WorktreeName,
    error: impl Coded + OfRegister + 'static,
) -> Failure {
    match error.is_missing() {
        true => match existing(repo, worktree) {
            Ok(_) => error.into(),
            Err(failure) => failure,
        },
        false => error.into(),
    }
}

/// A worktree whose lock means something: one that is there and not shared.
pub(crate) fn lockable(Here { repo, worktree }: &Here) -> Result<(), Failure> {
    match existing(repo, worktree)?.isolation {
        Isolation::Exclusive => Ok(()),
        Isolation::Shared => {
            let message = format!("worktree '{worktree}' is shared: anyone may write to it");
            Err(WrongUsage::new(message, OwnNext::CreateExclusive).into())
        }
    }
}

/// Goes on with this session's hold. A token that a parent handed down binds to
/// the hold it was handed down for: after a change of holder it is fenced, even
/// if the session has the lock again.
pub(super) fn resume<'r>(
    context: &Context<'_>,
    locks: &Locks<'r>,
    Here { repo, worktree }: &Here,
) -> Result<Lease<'r>, Failure> {
    let ticket = |HandedTerm { token, epoch }| {
        // Without its epoch the token is taken for one of the epoch that there is: a
        // register that was rebuilt goes on above it.
        let epoch = match epoch {
            Some(epoch) => epoch,
            None => locks.inspect(worktree)?.state.epoch,
        };
        Ok(Ticket { worktree: worktree.clone(), term: Term { epoch, token } })
    };
    let ticket = context.handed_token(worktree)?.map(ticket).transpose();
    ticket
        .and_then(|ticket| locks.resume(worktree, ticket.as_ref()))
        .map_err(|error| or_no_such_worktree(repo, worktree, error))
}
