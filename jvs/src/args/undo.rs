//! The words of `jvs undo` and `jvs redo`.

/// Take the last operation back
///
/// That is this session's last snapshot, restore in place, tag, or worktree that was made
/// or renamed. What is there is kept as a snapshot first, so that nothing is lost; what
/// cannot be taken back is refused, with the reason.
#[derive(Debug, clap::Args)]
pub(crate) struct UndoArgs {
    /// Another operation, also of another session: its id as --list shows it, or its beginning
    #[arg(long, value_name = "OP", conflicts_with = "list")]
    pub(crate) op: Option<String>,

    /// Only say what would be done
    #[arg(long, conflicts_with = "list")]
    pub(crate) dry_run: bool,

    /// Show the operations, newest first
    #[arg(long)]
    pub(crate) list: bool,
}

/// Do again what was taken back last
#[derive(Debug, clap::Args)]
pub(crate) struct RedoArgs {
    /// Only say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
}
