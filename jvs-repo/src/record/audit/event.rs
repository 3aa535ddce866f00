//! What one line of a log says.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::clock::WallMs;
use crate::id::OpNonce;
use crate::name::WorktreeName;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum EventKind {
    Create,
    Acquire,
    Renew,
    Steal,
    Reclaim,
    Transfer,
    Release,
    Freeze,
    Unfreeze,
    Publish,
    /// A CAS that only moved the register on, to make an outcome certain.
    Advance,
    Retire,
    Rebuild,
    Restore,
    Gc,
    Repair,
    Migrate,
    Tag,
    Untag,
    /// The first line of a log that goes on after one that was closed.
    Continue,
    /// A line of what stands for logs that were dropped.
    Anchor,
    /// What the same process does next takes another operation back.
    Undo,
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Where in an operation the event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EventPhase {
    /// About to be tried: on disk before the CAS is issued.
    Intent,
    /// The change was applied.
    Done,
    /// Certainly not applied, and never will be.
    NotApplied,
    /// Neither could be established.
    Unknown,
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// Where in the operation.
    pub phase: EventPhase,
    /// When, on the writer's wall clock (RFC 3339).
    pub at: String,
    /// The operation: the same over all its attempts.
    pub op: OpNonce,
    /// The worktree, if it concerns one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<WorktreeName>,
    /// Whose doing it was.
    pub session_id: String,
    /// `host:user:pid:start_time` of the process, as it said.
    pub holder_id: String,
    /// The user to the kernel of its host, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Register name before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Register name after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Why, in the words of the user who did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What else the operation says: [`super::Details`], or what a later version has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<serde_json::Value>,
}

impl Event {
    /// Its details, if they have the shape `T`.
    pub fn details_as<T: DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(self.details.as_ref()?).ok()
    }

    /// The time of the event, if it can be read.
    pub fn at_ms(&self) -> Option<WallMs> {
        WallMs::parse_rfc3339(&self.at)
    }
}
