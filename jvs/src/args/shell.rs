//! `jvs completions` and `jvs man`: what the shell and `man` need to know.

use std::path::PathBuf;

/// Print a completion script
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// For which shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Print the manual page, or write one page a command into DIR
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// An existing directory
    #[arg(value_name = "DIR", value_parser = super::utf8_path)]
    pub(crate) dir: Option<PathBuf>,
}
