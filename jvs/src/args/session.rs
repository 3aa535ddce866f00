//! `jvs session …`.

use clap::Subcommand;

/// Show who this session is, what it holds, what relies on it, and forget sessions
#[derive(Debug, clap::Args)]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SessionCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Show who this session is and why, what it holds where, and what relies on that
    Show,
    /// Show all sessions of this user on this machine
    List,
    /// Remove the private files of a session of which nothing is alive
    Forget {
        /// The session [default: this one]
        id: Option<String>,
        /// Also what it remembers of locks that were taken from it, and what cannot be
        /// looked at
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
