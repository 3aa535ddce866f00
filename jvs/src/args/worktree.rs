//! `jvs worktree …`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum WorktreeCommand {
    Create(CreateArgs),
    /// List the worktrees
    List,
    /// Print where a worktree's files are, and nothing else
    Path(WorktreeNameArg),
    Rename(RenameArgs),
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

/// Make a worktree
#[derive(Debug, clap::Args)]
pub(crate) struct CreateArgs {
    /// Its name
    pub(crate) name: String,

    /// With the files of this snapshot, which becomes its head
    #[arg(long, value_name = "SNAPSHOT")]
    pub(crate) from: Option<String>,

    /// Let several sessions write at once: no lock guards it
    #[arg(long)]
    pub(crate) shared: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WorktreeNameArg {
    /// Its name
    pub(crate) name: String,
}

/// Give a worktree another name
#[derive(Debug, clap::Args)]
pub(crate) struct RenameArgs {
    /// Its name now
    pub(crate) old: String,

    /// Its name from now on
    pub(crate) new: String,
}

/// Remove a worktree and the files in it; snapshots stay
#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArgs {
    /// Its name
    pub(crate) name: String,

    /// Even if there are files in it
    #[arg(long)]
    pub(crate) force: bool,
}
