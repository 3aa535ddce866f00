//! `jvs agent …` and `jvs hook`.

use clap::{Subcommand, ValueEnum};

use crate::harness::Harness;

#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    Install(InstallArgs),
    /// Show for which agents hooks and instructions are installed, and what they can do
    Status(AgentPlaceArgs),
    Uninstall(UninstallArgs),
}

impl AgentCommand {
    pub(super) fn name(&self) -> &'static str {
        match self {
            AgentCommand::Install(_) => "agent install",
            AgentCommand::Status(_) => "agent status",
            AgentCommand::Uninstall(_) => "agent uninstall",
        }
    }
}

/// Whom something is installed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Agent {
    /// Claude Code
    Claude,
    /// Codex CLI
    Codex,
    /// The editor Cursor
    Cursor,
    /// Gemini CLI
    Gemini,
    /// Any agent that reads AGENTS.md: instructions only, nothing can be denied
    AgentsMd,
}

impl Agent {
    /// The harness whose hooks there are; `None` if there are none.
    pub(crate) fn harness(self) -> Option<Harness> {
        match self {
            Agent::Claude => Some(Harness::Claude),
            Agent::Codex => Some(Harness::Codex),
            Agent::Cursor => Some(Harness::Cursor),
            Agent::Gemini => Some(Harness::Gemini),
            Agent::AgentsMd => None,
        }
    }

    /// As it is typed.
    pub(crate) fn as_str(self) -> &'static str {
        self.harness().map_or("agents-md", Harness::as_str)
    }
}

/// Whom for, and where.
#[derive(Debug, clap::Args)]
pub(crate) struct AgentPlaceArgs {
    /// The agent [default: all of them]
    #[arg(value_enum)]
    pub(crate) agent: Option<Agent>,

    /// In the home directory, for all repositories, instead of this worktree
    #[arg(long)]
    pub(crate) user: bool,
}

/// Install the hooks and the instructions of a coding agent
#[derive(Debug, clap::Args)]
pub(crate) struct InstallArgs {
    /// The agent
    #[arg(value_enum)]
    pub(crate) agent: Agent,

    /// In the home directory, for all repositories, instead of this worktree
    #[arg(long)]
    pub(crate) user: bool,

    #[command(flatten)]
    pub(crate) ways: HookWays,

    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Remove what was installed, and restore the files as they were
#[derive(Debug, clap::Args)]
pub(crate) struct UninstallArgs {
    /// The agent
    #[arg(value_enum)]
    pub(crate) agent: Agent,

    /// In the home directory, instead of this worktree
    #[arg(long)]
    pub(crate) user: bool,

    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What the hooks do of their own accord.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct HookWays {
    /// Take the lock with the first write, if it is free, until the agent ends
    #[arg(long)]
    pub(crate) auto: bool,

    /// Take a snapshot after each turn in which something changed
    #[arg(long)]
    pub(crate) checkpoint: bool,

    /// What to do with a write if the hook cannot find out whether the lock is held
    #[arg(long, value_name = "WHAT", default_value_t, value_enum)]
    pub(crate) on_error: OnError,
}

/// What happens to a write that cannot be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum OnError {
    /// Deny it
    #[default]
    Deny,
    /// Allow it, and say why
    Allow,
}

impl OnError {
    /// As it is typed.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            OnError::Deny => "deny",
            OnError::Allow => "allow",
        }
    }
}

impl std::fmt::Display for OnError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Answer the hook of a coding agent, whose payload is on standard input
#[derive(Debug, clap::Args)]
pub(crate) struct HookArgs {
    /// The agent that asks
    #[arg(value_enum)]
    pub(crate) harness: Harness,

    /// The event, if the payload cannot be read [default: as the payload says]
    #[arg(value_name = "EVENT")]
    pub(crate) event: Option<String>,

    #[command(flatten)]
    pub(crate) ways: HookWays,
}
