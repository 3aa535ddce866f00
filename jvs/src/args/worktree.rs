//! `jvs worktree …`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum WorktreeCommand {
    Create(CreateArgs),
    /// List the worktrees
    #[command(visible_alias = "ls")]
    List,
    /// Print the path of a worktree's files, and nothing else
    Path(WorktreeNameArg),
    Rename(RenameArgs),
    #[command(visible_alias = "rm")]
    Remove(RemoveArgs),
}

impl WorktreeCommand {
    pub(super) fn name(&self) -> &'static str {
        match self {
            WorktreeCommand::Create(_) => "worktree create",
            WorktreeCommand::List => "worktree list",
            WorktreeCommand::Path(_) => "worktree path",
            WorktreeCommand::Rename(_) => "worktree rename",
            WorktreeCommand::Remove(_) => "worktree remove",
        }
    }
}

/// Create a worktree
#[derive(Debug, clap::Args)]
pub(crate) struct CreateArgs {
    /// Its name
    pub(crate) name: String,

    /// Start with the files of this snapshot, which becomes its head
    #[arg(long, value_name = "SNAPSHOT")]
    pub(crate) from: Option<String>,

    /// Let several sessions write at once, without a lock
    #[arg(long)]
    pub(crate) shared: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WorktreeNameArg {
    /// Its name
    pub(crate) name: String,
}

/// Rename a worktree
#[derive(Debug, clap::Args)]
pub(crate) struct RenameArgs {
    /// Its present name
    pub(crate) old: String,

    /// Its new name
    pub(crate) new: String,
}

/// Remove a worktree and the files in it, ignored ones too; its snapshots stay
#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArgs {
    /// Its name
    pub(crate) name: String,

    /// Even if there are files in it
    #[arg(long)]
    pub(crate) force: bool,
}
