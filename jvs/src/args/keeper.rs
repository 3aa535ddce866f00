//! `jvs __keeper`: started by other commands, never typed.

use std::fmt;
use std::str::FromStr;

use jvs_lock::Confirmed;
use jvs_lock::session::Purpose;
use jvs_repo::id::strict_decimal;
use jvs_repo::proc;
use jvs_repo::term::Term;
use rustix::process::Pid;

/// What happens to a child whose lease is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum OnLoss {
    /// Stop it before the lease ends
    #[default]
    Stop,
    /// Let it run on, and print a warning
    Warn,
}

impl fmt::Display for OnLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OnLoss::Stop => "stop",
            OnLoss::Warn => "warn",
        })
    }
}

/// A process, told from a later one with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Follow {
    pub(crate) pid: u32,
    pub(crate) start_time: u64,
}

impl Follow {
    /// The process that has this pid now. One that is gone never was.
    pub(crate) fn of(pid: u32) -> Self {
        let start_time = proc::process_stat(pid).map_or(0, |stat| stat.start_ticks);
        Follow { pid, start_time }
    }

    pub(crate) fn of_pid(pid: Pid) -> Self {
        Follow::of(pid.as_raw_nonzero().get().unsigned_abs())
    }
}

impl fmt::Display for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.pid, self.start_time)
    }
}

impl FromStr for Follow {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (pid, start) = text.split_once(':')?;
            let pid = u32::try_from(strict_decimal(pid)?).ok()?;
            Some(Follow { pid, start_time: strict_decimal(start)? })
        };
        parse().ok_or("expected PID:START")
    }
}

/// Keep a lease renewed
#[derive(Debug, clap::Args)]
pub(crate) struct KeeperArgs {
    #[arg(long)]
    pub(crate) term: Term,
    #[arg(long)]
    pub(crate) purpose: Option<Purpose>,
    #[arg(long)]
    pub(crate) confirmed: Option<Confirmed>,
    #[arg(long)]
    pub(crate) attached: bool,
    #[arg(long)]
    pub(crate) guest: bool,
    #[arg(long, default_value_t)]
    pub(crate) on_loss: OnLoss,
    #[arg(long, requires = "lease")]
    pub(crate) ends: Option<String>,
    #[arg(long)]
    pub(crate) lease: Option<usize>,
}
