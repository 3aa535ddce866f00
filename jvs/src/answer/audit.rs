//! What is told of the audit log.

use jvs_lock::history::Problem;
use jvs_repo::audit::{Event, LogName};
use jvs_repo::name::WorktreeName;
use serde::Serialize;

use super::Base64;

/// What was done.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Events {
    /// In the order of their times.
    pub(crate) events: Vec<LoggedEvent>,
}

/// An event, and where it is written.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LoggedEvent {
    #[serde(flatten)]
    pub(crate) event: Event,
    /// Whose log it is in.
    pub(crate) writer: LogName,
    /// In which line, counted from 1.
    pub(crate) line: u64,
}

/// Whether the log adds up.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct AuditVerification {
    /// Does every link hold?
    pub(crate) verified: bool,
    /// How many events there are.
    pub(crate) events: u64,
    /// How many states of registers they tell of.
    pub(crate) states: usize,
    /// What does not add up, or needs an explanation.
    pub(crate) problems: Vec<ProblemTold>,
    /// How many more there are.
    pub(crate) more_problems: u64,
    /// Logs that cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unread: Option<Vec<String>>,
}

/// Something that does not add up.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ProblemTold {
    #[serde(flatten)]
    pub(crate) problem: Problem,
    /// The same in a sentence.
    pub(crate) message: String,
    /// Can crashes alone explain it?
    pub(crate) crash: bool,
    /// What explains it without anybody's ill will, if anything does.
    pub(crate) explained: Option<&'static str>,
}

/// A page that was written.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Page {
    /// How long it is.
    pub(crate) bytes: usize,
    /// How many holds are on it.
    pub(crate) holds: usize,
    /// How many operations.
    pub(crate) operations: usize,
    /// Where it is.
    pub(crate) file: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file_bytes: Option<Base64>,
}

/// A trace for a model checker that was written.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Trace {
    /// Whose registers are in it.
    pub(crate) worktrees: Vec<WorktreeName>,
    /// How many items.
    pub(crate) items: usize,
    /// In how many modules.
    pub(crate) parts: usize,
    /// Where it is.
    pub(crate) dir: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dir_bytes: Option<Base64>,
}
