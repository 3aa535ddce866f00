//! `jvs lock …`.

use clap::Subcommand;
use jvs_lock::Locks;
use jvs_lock::session::Purpose;
use jvs_repo::duration::Period;

#[derive(Debug, Subcommand)]
pub(crate) enum LockCommand {
    Acquire(AcquireArgs),
    /// Renew this session's lease
    Renew,
    Release(ReleaseArgs),
    /// Show the status of a worktree's lock
    Status,
    /// Show the status of all locks
    #[command(visible_alias = "ls")]
    List,
    /// Explain who holds a lock, how that is known, and what to do next
    Why,
    /// Print the status of a worktree's lock whenever it changes
    Watch,
    Steal(StealArgs),
    Reclaim(ReclaimArgs),
    Transfer(TransferArgs),
    Freeze(FreezeArgs),
    Unfreeze(UnfreezeArgs),
}

impl LockCommand {
    pub(super) fn name(&self) -> &'static str {
        match self {
            LockCommand::Acquire(_) => "lock acquire",
            LockCommand::Renew => "lock renew",
            LockCommand::Release(_) => "lock release",
            LockCommand::Status => "lock status",
            LockCommand::List => "lock list",
            LockCommand::Why => "lock why",
            LockCommand::Watch => "lock watch",
            LockCommand::Steal(_) => "lock steal",
            LockCommand::Reclaim(_) => "lock reclaim",
            LockCommand::Transfer(_) => "lock transfer",
            LockCommand::Freeze(_) => "lock freeze",
            LockCommand::Unfreeze(_) => "lock unfreeze",
        }
    }
}

/// What every way to a lease may be told.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct LeaseArgs {
    /// How long the lease lasts without renewal [default: lock.lease_duration_ms; without a
    /// keeper by environment and purpose]
    #[arg(long, value_name = "DUR", value_parser = super::words::lasting)]
    pub(crate) lease: Option<Period>,

    /// What the lock is for: interactive, automated or emergency
    #[arg(long, value_name = "P")]
    pub(crate) purpose: Option<Purpose>,

    /// A note for others who find the worktree locked
    #[arg(long, value_name = "TEXT", value_parser = super::words::note)]
    pub(crate) note: Option<String>,
}

/// For how long, and by whom, a lease is kept.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct KeepArgs {
    /// Keep the lease renewed for this long [default: see `jvs config list`]
    #[arg(long = "for", value_name = "DUR", value_parser = super::words::kept_for)]
    pub(crate) for_: Option<Period>,

    /// Keep the lease renewed only while this process runs [default: $JVS_KEEP_WHILE, else this
    /// terminal session]
    #[arg(long = "while", value_name = "PID")]
    pub(crate) while_: Option<u32>,

    /// Do not start a keeper: nothing renews the lease
    #[arg(long, conflicts_with_all = ["for_", "while_"])]
    pub(crate) no_keeper: bool,
}

/// Wait in line for a lock.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct WaitArgs {
    /// If another session has it, wait in line for at most this long
    #[arg(
        long,
        value_name = "DUR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "10m"
    )]
    pub(crate) wait: Option<Period>,
}

/// Watch, before it is taken, what looks abandoned by the clock of another host.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct WatchArgs {
    /// Answer at once, without first watching a lock that looks abandoned by another host's clock
    #[arg(long)]
    pub(crate) no_watch: bool,
}

impl WatchArgs {
    pub(crate) fn apply<'r>(&self, locks: Locks<'r>) -> Locks<'r> {
        if self.no_watch { locks.at_once() } else { locks }
    }
}

/// Take the lock of a worktree, or refresh it if it is this session's already
#[derive(Debug, Default, clap::Args)]
#[command(after_help = super::SEVERAL)]
pub(crate) struct AcquireArgs {
    #[command(flatten)]
    pub(crate) wait: WaitArgs,

    #[command(flatten)]
    pub(crate) watch: WatchArgs,

    #[command(flatten)]
    pub(crate) lease: LeaseArgs,

    #[command(flatten)]
    pub(crate) keep: KeepArgs,

    /// Nobody typed it, and nobody reads its answer: it acknowledges no loss.
    #[arg(skip)]
    pub(crate) by_itself: bool,
}

/// Release this session's lock
#[derive(Debug, clap::Args)]
#[command(after_help = super::SEVERAL)]
pub(crate) struct ReleaseArgs {
    /// First end the commands of this session that still need it
    #[arg(long)]
    pub(crate) force: bool,
}

/// Take over a lock whose lease ended long enough ago
#[derive(Debug, clap::Args)]
pub(crate) struct StealArgs {
    /// The reason, for the audit log
    #[arg(long, value_name = "TEXT", value_parser = super::words::reason)]
    pub(crate) reason: String,

    /// First watch the lock for a whole lease, which proves that the holder is idle
    /// even where clocks disagree
    #[arg(long, conflicts_with = "no_watch")]
    pub(crate) observe: bool,

    #[command(flatten)]
    pub(crate) watch: WatchArgs,

    #[command(flatten)]
    pub(crate) lease: LeaseArgs,

    #[command(flatten)]
    pub(crate) keep: KeepArgs,
}

/// Take a lock from a live holder, where the repository's policy allows it
#[derive(Debug, clap::Args)]
pub(crate) struct ReclaimArgs {
    /// The reason, for the audit log
    #[arg(long, value_name = "TEXT", value_parser = super::words::reason)]
    pub(crate) reason: String,

    /// Declare an emergency
    #[arg(long)]
    pub(crate) emergency: bool,

    #[command(flatten)]
    pub(crate) watch: WatchArgs,

    #[command(flatten)]
    pub(crate) lease: LeaseArgs,

    #[command(flatten)]
    pub(crate) keep: KeepArgs,
}

/// Hand this session's lock to a waiting session, without a gap
#[derive(Debug, clap::Args)]
pub(crate) struct TransferArgs {
    /// The waiting session [default: the next in line]
    #[arg(long, value_name = "SESSION")]
    pub(crate) to: Option<String>,

    /// The reason, for the audit log
    #[arg(long, value_name = "TEXT", default_value = "handed over", value_parser = super::words::reason)]
    pub(crate) reason: String,
}

/// Keep everybody from acquiring or publishing for a while
#[derive(Debug, clap::Args)]
pub(crate) struct FreezeArgs {
    /// How long the freeze lasts; it ends by itself
    #[arg(long = "for", value_name = "DUR", value_parser = super::words::lasting)]
    pub(crate) for_: Period,

    /// The reason, for the audit log and for others who find the worktree frozen
    #[arg(long, value_name = "TEXT", value_parser = super::words::note)]
    pub(crate) reason: String,

    #[command(flatten)]
    pub(crate) wait: WaitArgs,

    #[command(flatten)]
    pub(crate) watch: WatchArgs,

    /// Freeze it now, and fence its holder
    #[arg(long, conflicts_with = "wait")]
    pub(crate) force: bool,
}

/// Lift a freeze, where the repository's policy allows it
#[derive(Debug, clap::Args)]
pub(crate) struct UnfreezeArgs {
    /// The reason, for the audit log
    #[arg(long, value_name = "TEXT", default_value = "lifted", value_parser = super::words::reason)]
    pub(crate) reason: String,
}
