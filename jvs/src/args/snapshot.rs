//! The verbs of snapshots.

use std::path::PathBuf;

use jvs_repo::config::{Consistency, Engine};
use jvs_repo::duration::Period;
use jvs_repo::name::TagName;

/// List the snapshots of a worktree, newest first
#[derive(Debug, clap::Args)]
pub(crate) struct HistoryArgs {
    /// Only the snapshots in which this file or directory differs from the one before
    #[arg(value_name = "PATH", conflicts_with_all = ["all", "graph"])]
    pub(crate) path: Option<PathBuf>,

    /// Show at most N snapshots
    #[arg(short = 'n', value_name = "N", value_parser = super::words::at_least_one)]
    pub(crate) number: Option<usize>,

    /// Show all worktrees, including removed ones
    #[arg(long)]
    pub(crate) all: bool,

    /// Show only snapshots whose note contains this, in upper or lower case
    #[arg(long, value_name = "TEXT")]
    pub(crate) grep: Option<String>,

    /// Draw a graph of parents
    #[arg(long)]
    pub(crate) graph: bool,
}

/// List the files of a snapshot
#[derive(Debug, clap::Args)]
pub(crate) struct LsArgs {
    /// An id or its beginning, a tag, or @ for the head, @- for its parent, @-- …
    #[arg(default_value = "@")]
    pub(crate) snapshot: String,

    /// Only this file, or what is in this directory
    pub(crate) path: Option<PathBuf>,

    /// Show modes and sizes
    #[arg(short, long)]
    pub(crate) long: bool,

    /// Show what is in directories, too
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
}

/// Print a file of a snapshot
#[derive(Debug, clap::Args)]
pub(crate) struct CatArgs {
    /// An id or its beginning, a tag, or @ for the head, @- for its parent, @-- …
    pub(crate) snapshot: String,

    /// The file
    pub(crate) path: PathBuf,
}

/// Print where the files of a snapshot are, to read them without restoring them
///
/// They are the snapshot itself: only read them. To change something, restore it to a worktree.
#[derive(Debug, clap::Args)]
pub(crate) struct PathArgs {
    /// An id or its beginning, a tag, or @ for the head, @- for its parent, @-- …
    #[arg(default_value = "@")]
    pub(crate) snapshot: String,

    /// Where this file or directory of it is
    pub(crate) path: Option<PathBuf>,
}

/// Show the details of a snapshot
#[derive(Debug, clap::Args)]
pub(crate) struct InfoArgs {
    /// An id or its beginning, a tag, or @ for the head, @- for its parent, @-- …
    #[arg(default_value = "@")]
    pub(crate) snapshot: String,
}

/// Show the details of a snapshot, and what changed in it
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// An id or its beginning, a tag, or @ for the head, @- for its parent, @-- …
    #[arg(default_value = "@")]
    pub(crate) snapshot: String,

    /// Show the lines that differ
    #[arg(short, long)]
    pub(crate) patch: bool,

    /// Show which words of them differ: [-removed-]{+added+}
    #[arg(long)]
    pub(crate) word_diff: bool,
}

/// Create, delete and list tags, the permanent names of snapshots
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "jvs tag [SNAPSHOT] NAME\n       jvs tag --delete NAME\n       jvs tag --list"
)]
pub(crate) struct TagArgs {
    /// The snapshot; without it, the head
    #[arg(required_unless_present_any = ["delete", "list"])]
    pub(crate) snapshot: Option<String>,

    /// The new tag
    pub(crate) name: Option<String>,

    /// Delete this tag
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["snapshot", "name", "list"])]
    pub(crate) delete: Option<String>,

    /// List all tags
    #[arg(short, long, conflicts_with_all = ["snapshot", "name"])]
    pub(crate) list: bool,
}

/// Remove snapshots that the retention policy no longer keeps, and unfinished ones
///
/// Heads of worktrees, tagged snapshots and work in progress are always kept, and what any
/// rule keeps. Each option replaces the setting of its name; the others hold as they are set.
/// Hours, days, weeks (from Monday), months and years are those of UTC; only those with a
/// snapshot count.
#[derive(Debug, clap::Args)]
pub(crate) struct GcArgs {
    /// Keep the N newest snapshots of each worktree [default: retention.keep_last]
    #[arg(long, value_name = "N", value_parser = super::words::number)]
    pub(crate) keep_last: Option<u64>,

    /// Keep the newest snapshot of each of N hours [default: retention.keep_hourly]
    #[arg(long, value_name = "N", value_parser = super::words::number)]
    pub(crate) keep_hourly: Option<u64>,

    /// The same of N days [default: retention.keep_daily]
    #[arg(long, value_name = "N", value_parser = super::words::number)]
    pub(crate) keep_daily: Option<u64>,

    /// The same of N weeks [default: retention.keep_weekly]
    #[arg(long, value_name = "N", value_parser = super::words::number)]
    pub(crate) keep_weekly: Option<u64>,

    /// The same of N months [default: retention.keep_monthly]
    #[arg(long, value_name = "N", value_parser = super::words::number)]
    pub(crate) keep_monthly: Option<u64>,

    /// The same of N years [default: retention.keep_yearly]
    #[arg(long, value_name = "N", value_parser = super::words::number)]
    pub(crate) keep_yearly: Option<u64>,

    /// Keep snapshots younger than this [default: retention.keep_within]
    #[arg(long, value_name = "DUR")]
    pub(crate) keep_within: Option<Period>,

    /// Remove nothing unless this tag is there; may be repeated. Every tag keeps its snapshot
    /// [default: retention.keep_tag]
    #[arg(long, value_name = "TAG")]
    pub(crate) keep_tag: Vec<TagName>,

    /// Only show what would be removed, what would be kept, and why
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Trust this host's clock despite evidence against it
    #[arg(long)]
    pub(crate) trust_clock: bool,
}

/// Remove one snapshot, whatever the retention policy would keep
///
/// The head of a worktree and what work in progress needs are never removed. What descends
/// from the snapshot stays as it is.
#[derive(Debug, clap::Args)]
pub(crate) struct ForgetArgs {
    /// An id or its beginning, a tag, or @ for the head, @- for its parent, @-- …
    pub(crate) snapshot: String,

    /// Even if it has tags, which are deleted with it
    #[arg(short, long)]
    pub(crate) force: bool,

    /// The reason, for the audit log
    #[arg(long, value_name = "TEXT", value_parser = super::words::reason)]
    pub(crate) reason: Option<String>,

    /// Only show what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Take a snapshot of a worktree's files
///
/// Uses this session's lock, or takes a free lock for just this snapshot.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct SnapshotArgs {
    /// A free-form note
    pub(crate) note: Option<String>,

    /// The note, as other tools take it
    #[arg(short = 'm', long, value_name = "NOTE", conflicts_with = "note")]
    pub(crate) message: Option<String>,

    /// Also tag the snapshot; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,

    /// The consistency to promise: quiesced or best_effort [default: snapshot.consistency]
    #[arg(long, value_name = "C")]
    pub(crate) consistency: Option<Consistency>,

    /// How to copy the files: auto, juicefs, reflink or copy [default: snapshot.engine]
    #[arg(long, value_name = "E")]
    pub(crate) engine: Option<Engine>,

    /// Read every file, even if it did not change
    #[arg(long)]
    pub(crate) full: bool,
}

/// Compare two snapshots, or a snapshot with the working files
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// The older snapshot
    #[arg(default_value = "@", value_name = "A")]
    pub(crate) before: String,

    /// The newer snapshot [default: the working files]
    #[arg(value_name = "B")]
    pub(crate) after: Option<String>,

    /// Only these files or directories
    #[arg(last = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Show sizes and totals
    #[arg(long, conflicts_with_all = ["patch", "word_diff"])]
    pub(crate) stat: bool,

    /// Show the lines that differ
    #[arg(short, long)]
    pub(crate) patch: bool,

    /// Show which words of them differ: [-removed-]{+added+}
    #[arg(long)]
    pub(crate) word_diff: bool,
}

/// Restore files of a snapshot, here or as a new worktree
///
/// What is replaced and no snapshot has is kept; unless ignored, `jvs undo` brings it back.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "jvs restore [SNAPSHOT] PATH...\n       jvs restore SNAPSHOT [--into NAME]\n       jvs restore SNAPSHOT --in-place --reason TEXT [--atomic]"
)]
pub(crate) struct RestoreArgs {
    /// A snapshot (id, tag, @ for the head, @- …), then paths in it; paths alone are the head's
    #[arg(value_name = "SNAPSHOT|PATH", required_unless_present = "only")]
    pub(crate) words: Vec<PathBuf>,

    /// Paths, even if a snapshot is called so
    #[arg(last = true, value_name = "PATH", hide = true)]
    pub(crate) only: Vec<PathBuf>,

    /// The name of the new worktree [default: made from the snapshot's id]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["in_place", "reason"])]
    pub(crate) into: Option<String>,

    /// Replace all of the worktree's files that differ
    #[arg(long)]
    pub(crate) in_place: bool,

    /// The same in one step, for those who read without the lock; the worktree's directory becomes
    /// another one
    #[arg(long, requires = "in_place")]
    pub(crate) atomic: bool,

    /// The reason, for the audit log
    #[arg(long, value_name = "TEXT", value_parser = super::words::reason)]
    pub(crate) reason: Option<String>,
}

/// Verify every byte of snapshots against what was published
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// The snapshots [default: the head]
    #[arg(value_name = "SNAPSHOT", conflicts_with = "all")]
    pub(crate) snapshots: Vec<String>,

    /// All snapshots and all tags
    #[arg(long)]
    pub(crate) all: bool,

    /// Instead read all of the worktree's own files, whatever their change times say, and compare
    /// them with a snapshot
    #[arg(long, conflicts_with = "all")]
    pub(crate) files: bool,
}

/// Show the changes since the head, the lock and the session
#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// Read every file, whatever its change time says
    #[arg(long)]
    pub(crate) full: bool,

    /// Also list what is ignored, and by which rule: see `jvs help ignore`
    #[arg(long)]
    pub(crate) ignored: bool,
}
