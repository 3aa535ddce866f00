//! `jvs completions` and `jvs man`: for the shell and for `man`.

use std::path::PathBuf;

/// Print a completion script
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Print the manual page, or write one page per command into DIR
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// An existing directory
    #[arg(value_name = "DIR", value_parser = super::utf8_path)]
    pub(crate) dir: Option<PathBuf>,
}
