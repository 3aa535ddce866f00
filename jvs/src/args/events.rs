//! `jvs events`.

use jvs_repo::duration::Period;

/// Show each change of any lock as one line of JSON
///
/// Without --follow, what the audit logs tell until now. With it, from now on and until
/// interrupted: what happened between two looks is taken from the logs, and what no log
/// tells is a gap. --worktree shows only the changes of that worktree.
#[derive(Debug, clap::Args)]
pub(crate) struct EventsArgs {
    /// Only changes within this time; with --follow, begin with those
    #[arg(long, value_name = "DUR")]
    pub(crate) since: Option<Period>,

    /// Keep printing changes until interrupted
    #[arg(long)]
    pub(crate) follow: bool,

    /// Show renewals, too
    #[arg(long)]
    pub(crate) renewals: bool,

    /// For each change run the program that `events.exec` in your own configuration names
    #[arg(long, requires = "follow")]
    pub(crate) exec: bool,
}
