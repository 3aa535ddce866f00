//! `jvs init`.

use std::path::PathBuf;

use jvs_repo::metadata::NotAWord;
use jvs_repo::sharing::Sharing;

/// Create a repository with the worktree `main`
#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    /// A directory that is empty or does not exist yet
    #[arg(value_name = "PATH", value_parser = super::utf8_path)]
    pub(crate) path: PathBuf,

    /// Take over the content of PATH as worktree `main`, without copying
    #[arg(long)]
    pub(crate) adopt: bool,

    /// Share it with its group, whatever the umask of its users; with `all`, others may read
    #[arg(
        long,
        value_name = "WITH",
        num_args = 0..=1,
        require_equals = true,
        default_value = "umask",
        default_missing_value = "group",
        hide_default_value = true,
        value_parser = shared_with
    )]
    pub(crate) shared: Sharing,
}

fn shared_with(word: &str) -> Result<Sharing, String> {
    word.parse().map_err(|error: NotAWord| error.to_string())
}
