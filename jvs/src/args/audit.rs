//! `jvs audit`.

use jvs_repo::duration::Span;

/// Show what was done to the locks, from the logs of all writers
///
/// `--worktree` and `--session` show only the events of that worktree or session.
#[derive(Debug, clap::Args)]
pub(crate) struct AuditArgs {
    /// Only what happened in the last so long
    #[arg(long, value_name = "DUR")]
    pub(crate) since: Option<Span>,

    /// Go on and print what is added, until interrupted
    #[arg(long, conflicts_with = "verify")]
    pub(crate) follow: bool,

    /// Recompute every chain, compare with the registers, name the first bad link
    #[arg(long)]
    pub(crate) verify: bool,
}
