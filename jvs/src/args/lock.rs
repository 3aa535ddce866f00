//! `jvs lock …`.

use clap::Subcommand;
use jvs_lock::session::Purpose;
use jvs_repo::duration::Span;

#[derive(Debug, Subcommand)]
pub(crate) enum LockCommand {
    Acquire(AcquireArgs),
    /// Make this session's lease last for its length from now on
    Renew,
    /// Give this session's lock back
    Release,
    /// Show how a worktree's lock stands
    Status,
    /// Show how all locks stand
    List,
    /// Explain who holds a lock, how that is known, and what to do next
    Why,
    Steal(StealArgs),
}

impl LockCommand {
    pub(super) fn name(&self) -> &'static str {
        match self {
            LockCommand::Acquire(_) => "lock acquire",
            LockCommand::Renew => "lock renew",
            LockCommand::Release => "lock release",
            LockCommand::Status => "lock status",
            LockCommand::List => "lock list",
            LockCommand::Why => "lock why",
            LockCommand::Steal(_) => "lock steal",
        }
    }
}

/// What every way to a lease may be told.
#[derive(Debug, clap::Args)]
pub(crate) struct LeaseArgs {
    /// How long the lease lasts [default: by environment and purpose, see `jvs config list`]
    #[arg(long, value_name = "DUR")]
    pub(crate) lease: Option<Span>,

    /// What the lock is for: interactive, automated or emergency
    #[arg(long, value_name = "P")]
    pub(crate) purpose: Option<Purpose>,

    /// A word to whoever finds the worktree locked
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
}

/// Take the lock of a worktree, or refresh it if it is this session's already
#[derive(Debug, clap::Args)]
pub(crate) struct AcquireArgs {
    #[command(flatten)]
    pub(crate) lease: LeaseArgs,

    /// Let the lease simply last: nothing renews it
    #[arg(long)]
    pub(crate) no_keeper: bool,
}

/// Take over a lock whose lease has been over for long enough
#[derive(Debug, clap::Args)]
pub(crate) struct StealArgs {
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,

    /// First watch the lock for a whole lease, which proves the holder idle
    /// even where clocks disagree
    #[arg(long)]
    pub(crate) observe: bool,

    #[command(flatten)]
    pub(crate) lease: LeaseArgs,
}
