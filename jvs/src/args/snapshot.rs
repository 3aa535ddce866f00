//! The verbs of snapshots.

use std::path::PathBuf;

use jvs_repo::config::{Consistency, Engine};
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

    /// Believe this host's clock, whatever speaks against it
    #[arg(long)]
    pub(crate) trust_clock: bool,
}

/// Capture a worktree's files as they are now
///
/// Uses this session's lock, or takes the free lock for just this snapshot.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct SnapshotArgs {
    /// A word to people
    pub(crate) note: Option<String>,

    /// Give it this name as well; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,

    /// What is promised about writers: quiesced or best_effort [default: snapshot.consistency]
    #[arg(long, value_name = "C")]
    pub(crate) consistency: Option<Consistency>,

    /// What copies the files: auto, juicefs, reflink or copy [default: snapshot.engine]
    #[arg(long, value_name = "E")]
    pub(crate) engine: Option<Engine>,

    /// Read every file, also those that did not change
    #[arg(long)]
    pub(crate) full: bool,
}

/// Show what differs between two snapshots, or a snapshot and the working files
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// The older one
    #[arg(default_value = "@", value_name = "A")]
    pub(crate) before: String,

    /// The newer one [default: the working files]
    #[arg(value_name = "B")]
    pub(crate) after: Option<String>,

    /// With sizes and totals
    #[arg(long)]
    pub(crate) stat: bool,
}

/// Bring back the files of a snapshot, as a new worktree or in place
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "jvs restore SNAPSHOT [--into NAME]\n       jvs restore SNAPSHOT --in-place --reason TEXT [PATH]..."
)]
pub(crate) struct RestoreArgs {
    /// An id, the beginning of one, a tag, or @, @-, @-- … back from the head
    pub(crate) snapshot: String,

    /// The name of the new worktree [default: made from the snapshot's id]
    #[arg(long, value_name = "NAME", conflicts_with = "in_place")]
    pub(crate) into: Option<String>,

    /// Swap the worktree's files for those of the snapshot, in one step
    #[arg(long, requires = "reason")]
    pub(crate) in_place: bool,

    /// Why, for the audit log
    #[arg(long, value_name = "TEXT", requires = "in_place", value_parser = super::words::reason)]
    pub(crate) reason: Option<String>,

    /// Only these files or directories
    #[arg(value_name = "PATH", requires = "in_place")]
    pub(crate) paths: Vec<PathBuf>,
}

/// Read snapshots and compare every byte with what was published
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// Which snapshots [default: the head]
    #[arg(value_name = "SNAPSHOT", conflicts_with = "all")]
    pub(crate) snapshots: Vec<String>,

    /// All snapshots and all tags
    #[arg(long)]
    pub(crate) all: bool,

    /// The worktree's own files instead: read all of them, and compare them with a
    /// snapshot, whatever their change times say
    #[arg(long, conflicts_with = "all")]
    pub(crate) files: bool,
}

/// Show what changed since the head, the lock and the session at one glance
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// Read every file, whatever its change time says
    #[arg(long)]
    pub(crate) full: bool,
}
