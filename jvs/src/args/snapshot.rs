//! The verbs of snapshots.

use jvs_repo::duration::Span;

/// List the snapshots of a worktree, newest first
#[derive(Debug, clap::Args)]
pub(crate) struct HistoryArgs {
    /// Only the newest so many
    #[arg(short = 'n', value_name = "N")]
    pub(crate) number: Option<usize>,

    /// Of all worktrees, removed ones included
    #[arg(long)]
    pub(crate) all: bool,

    /// Draw how they descend from each other
    #[arg(long)]
    pub(crate) graph: bool,
}

/// Show all that is known about a snapshot
#[derive(Debug, clap::Args)]
pub(crate) struct InfoArgs {
    /// An id, the beginning of one, a tag, or @, @-, @-- … back from the head
    #[arg(default_value = "@")]
    pub(crate) snapshot: String,
}

/// Give a snapshot a name that stays, or take one away
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "jvs tag SNAPSHOT NAME\n       jvs tag --delete NAME\n       jvs tag --list"
)]
pub(crate) struct TagArgs {
    /// Which snapshot
    #[arg(required_unless_present_any = ["delete", "list"], requires = "name")]
    pub(crate) snapshot: Option<String>,

    /// Its name from now on
    pub(crate) name: Option<String>,

    /// Take this name away
    #[arg(long, value_name = "NAME", conflicts_with_all = ["snapshot", "name", "list"])]
    pub(crate) delete: Option<String>,

    /// Show all names
    #[arg(long, conflicts_with_all = ["snapshot", "name"])]
    pub(crate) list: bool,
}

/// Remove snapshots that nobody needs any more, and what was never finished
///
/// Heads of worktrees, snapshots with a tag and work in progress are kept whatever the policy says.
#[derive(Debug, clap::Args)]
pub(crate) struct GcArgs {
    /// Keep the newest so many of each worktree [default: retention.keep_last]
    #[arg(long, value_name = "N")]
    pub(crate) keep_last: Option<u64>,

    /// Keep those younger than this [default: retention.keep_within]
    #[arg(long, value_name = "DUR")]
    pub(crate) keep_within: Option<Span>,

    /// Only say what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
}
