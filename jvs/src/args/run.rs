//! `jvs run` and `jvs shell`.

use std::ffi::OsString;

use jvs_lock::session::Purpose;
use jvs_repo::duration::Period;

use super::OnLoss;
use super::lock::{WaitArgs, WatchArgs};

/// How a child is protected.
#[derive(Debug, clap::Args)]
pub(crate) struct GuardArgs {
    #[command(flatten)]
    pub(crate) wait: WaitArgs,

    #[command(flatten)]
    pub(crate) watch: WatchArgs,

    /// Run beside other commands of this session, if it already has the lock
    #[arg(long)]
    pub(crate) join: bool,

    /// How long the lease lasts without renewal [default: lock.lease_duration_ms]
    #[arg(long, value_name = "DUR", value_parser = super::words::lasting)]
    pub(crate) lease: Option<Period>,

    /// What to do with the command if the lease is lost
    #[arg(long, value_name = "WHAT", default_value_t, value_enum)]
    pub(crate) on_loss: OnLoss,

    /// Take a snapshot with this note if the command succeeds, under the same lease
    #[arg(long, value_name = "NOTE")]
    pub(crate) snapshot: Option<String>,

    /// What the lock is for: interactive, automated or emergency
    #[arg(long, value_name = "P")]
    pub(crate) purpose: Option<Purpose>,

    /// How to contain the processes of the command, so that all of them end with it
    #[arg(long, value_name = "HOW", default_value_t, value_enum)]
    pub(crate) contain: Contain,

    /// Let background processes go on without the lock when the command has ended
    #[arg(long)]
    pub(crate) leave_background: bool,

    /// Show how the processes are contained
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// A note for others who find the worktree locked
    #[arg(long, value_name = "TEXT", value_parser = super::words::note)]
    pub(crate) note: Option<String>,
}

/// How the processes of a run are contained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Contain {
    /// The best method that works here
    #[default]
    Auto,
    /// A cgroup of its own, where one may be created
    Cgroup,
    /// A PID namespace of its own
    Pidns,
    /// A guardian process adopts orphans and ends them
    Reap,
}

impl std::fmt::Display for Contain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Contain::Auto => "auto",
            Contain::Cgroup => "cgroup",
            Contain::Pidns => "pidns",
            Contain::Reap => "reap",
        })
    }
}

/// Run a command while holding the lock, and release the lock when it ends
#[derive(Debug, clap::Args)]
#[command(after_help = super::SEVERAL, override_usage = "jvs run [OPTIONS] [--] CMD [ARG]...")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) guard: GuardArgs,

    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Run a shell while holding the lock, and release the lock when it ends
#[derive(Debug, clap::Args)]
#[command(after_help = super::SEVERAL)]
pub(crate) struct ShellArgs {
    #[command(flatten)]
    pub(crate) guard: GuardArgs,
}
