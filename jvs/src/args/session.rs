//! `jvs session …`.

use clap::Subcommand;

/// Show this session, its locks and the processes that rely on them, or forget a session
#[derive(Debug, clap::Args)]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SessionCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Show this session, how its id was chosen, its locks, and the processes that rely on them
    Show,
    /// List the sessions of this user on this machine
    #[command(visible_alias = "ls")]
    List,
    /// Remove the private files of a session that has no live process
    Forget {
        /// The session [default: this one]
        id: Option<String>,
        /// Also forget locks that were taken from it, and files that cannot be examined
        #[arg(long)]
        force: bool,
    },
}

impl SessionArgs {
    pub(super) fn name(&self) -> &'static str {
        match &self.command {
            None | Some(SessionCommand::Show) => "session show",
            Some(SessionCommand::List) => "session list",
            Some(SessionCommand::Forget { .. }) => "session forget",
        }
    }
}
