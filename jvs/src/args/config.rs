//! `jvs config …`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every key with its value
    #[command(visible_alias = "ls")]
    List,
    /// Show one value
    Get {
        /// The key, as `jvs config list` shows it
        key: String,
    },
    /// Change one value
    Set {
        /// The key, as `jvs config list` shows it
        key: String,
        /// The new value
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
}

impl ConfigCommand {
    pub(super) fn name(&self) -> &'static str {
        match self {
            ConfigCommand::List => "config list",
            ConfigCommand::Get { .. } => "config get",
            ConfigCommand::Set { .. } => "config set",
        }
    }
}
