//! `jvs audit`.

use std::path::PathBuf;

use jvs_repo::duration::Period;

/// Show the history of all locks, from the audit logs of all writers
///
/// `--worktree` and `--session` show only the events of that worktree or session.
#[derive(Debug, clap::Args)]
pub(crate) struct AuditArgs {
    /// Only events within this time
    #[arg(long, value_name = "DUR")]
    pub(crate) since: Option<Period>,

    /// Show every event, with intents and renewals, instead of one line per operation
    #[arg(long)]
    pub(crate) all: bool,

    /// Write a page for a browser to this file: who held which worktree when
    #[arg(long, value_name = "FILE", conflicts_with_all = ["verify", "follow"])]
    pub(crate) html: Option<PathBuf>,

    /// Keep printing new events until interrupted
    #[arg(long, conflicts_with = "verify")]
    pub(crate) follow: bool,

    /// Verify every hash chain against the registers, and report the first bad link
    #[arg(long)]
    pub(crate) verify: bool,

    /// Write what the logs tell to this directory, as a trace that TLC checks against the
    /// register's TLA+ specification
    #[arg(
        long,
        value_name = "DIR",
        value_parser = super::utf8_path,
        conflicts_with_all = ["verify", "follow", "since", "all", "html"],
    )]
    pub(crate) tla: Option<PathBuf>,
}
