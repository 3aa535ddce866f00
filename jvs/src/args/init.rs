//! `jvs init`.

use std::path::PathBuf;

/// Create a repository with the worktree `main`
#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    /// A directory that is empty or does not exist yet
    #[arg(value_name = "PATH", value_parser = super::utf8_path)]
    pub(crate) path: PathBuf,

    /// Take over the content of PATH as worktree `main`, without copying
    #[arg(long)]
    pub(crate) adopt: bool,
}
