//! `jvs init`.

use std::path::PathBuf;

/// Make a repository with the worktree `main`
#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    /// Where: a directory that is empty or not there yet
    #[arg(value_name = "PATH", value_parser = super::utf8_path)]
    pub(crate) path: PathBuf,

    /// Take over what is in PATH: it becomes the content of `main`, not copied
    #[arg(long)]
    pub(crate) adopt: bool,
}
