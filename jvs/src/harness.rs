//! What coding agents tell a hook, and what they understand as its answer.
//!
//! Pure: a payload in, what is about to happen out; a verdict in, an answer out. The
//! formats are those of the documents that `docs/agents.md` names.

mod answer;
pub(crate) mod entries;

mod patch;
mod payload;
mod shell;
pub(crate) mod splice;
mod tools;
mod words;

pub(crate) use answer::{HookAnswer, HookVerdict, answer, line};
pub(crate) use payload::{Call, Happening, Misread, SIZE_MAX, read};
pub(crate) use shell::ShellUse;
pub(crate) use tools::ToolUse;
pub(crate) use words::{Known, Role, Word, words_of};

/// A program that runs a coding agent and asks hooks about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Harness {
    /// Claude Code
    Claude,
    /// Codex CLI
    Codex,
    /// The editor Cursor
    Cursor,
    /// Gemini CLI
    Gemini,
}

impl Harness {
    /// As it is typed.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Harness::Claude => "claude",
            Harness::Codex => "codex",
            Harness::Cursor => "cursor",
            Harness::Gemini => "gemini",
        }
    }

    /// As its users call it.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Harness::Claude => "Claude Code",
            Harness::Codex => "Codex CLI",
            Harness::Cursor => "Cursor",
            Harness::Gemini => "Gemini CLI",
        }
    }

    /// What the ids of its sessions begin with.
    pub(crate) const fn system(self) -> &'static str {
        match self {
            Harness::Claude => "claude-code",
            other => other.as_str(),
        }
    }

    /// The variable by which the commands that it runs know their session.
    pub(crate) const fn variable(self) -> Option<&'static str> {
        match self {
            Harness::Claude => Some("CLAUDE_CODE_SESSION_ID"),
            Harness::Codex => Some("CODEX_THREAD_ID"),
            Harness::Cursor | Harness::Gemini => None,
        }
    }
}
