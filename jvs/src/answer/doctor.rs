//! What is told of the health of a repository.

use std::collections::BTreeMap;

use jvs_doctor::Severity;
use jvs_doctor::examine::{Clocks, Vitals};
use jvs_repo::name::WorktreeName;
use jvs_repo::record::probe::Verdict;
use serde::Serialize;

use super::Base64;

/// What was found, and what was done about it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Report {
    /// Is nothing wrong that was not repaired?
    pub(crate) healthy: bool,
    /// Was it a full examination?
    pub(crate) strict: bool,
    /// What was found, worst first.
    pub(crate) findings: Vec<FindingTold>,
    /// What was removed because it was proven dead.
    pub(crate) cleaned: Vec<FindingTold>,
    /// What the clocks were found to be.
    pub(crate) clock: Clocks,
    /// What the filesystem was found to be.
    pub(crate) filesystem: FilesystemSeen,
    /// Numbers about the repository.
    pub(crate) vitals: Vitals,
    /// How long it took.
    pub(crate) took_ms: u64,
    /// How much the audit logs take up; of a full examination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) audit_logs: Option<LogsSize>,
    /// What would be done, of a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) planned: Option<Vec<StepTold>>,
    /// What would still be wrong after that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) would_remain: Option<Vec<Remaining>>,
    /// What was done, of a full examination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) done: Option<Vec<StepTold>>,
}

/// How much all audit logs of a repository take up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LogsSize {
    /// How many there are.
    pub(crate) files: u64,
    /// Bytes in them.
    pub(crate) bytes: u64,
}

/// Something that was found.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FindingTold {
    /// The check that found it: `D_…`.
    pub(crate) code: &'static str,
    /// How much it matters.
    pub(crate) severity: Severity,
    /// The worktree that it is about, if it is about one.
    pub(crate) worktree: Option<WorktreeName>,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) remedy: String,
    /// Was that done?
    pub(crate) repaired: bool,
    /// Where it is.
    pub(crate) path: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
    /// Why it was not repaired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<String>,
}

/// Something that is done.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct StepTold {
    /// The check that asked for it.
    pub(crate) code: &'static str,
    /// What it does.
    pub(crate) does: String,
    /// Where it does that.
    pub(crate) path: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
}

/// Something that would still be wrong.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Remaining {
    /// The check that would find it.
    pub(crate) code: &'static str,
    /// Where it would be.
    pub(crate) path: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
}

/// What the filesystem was found to be.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FilesystemSeen {
    /// What kind it is.
    pub(crate) kind: String,
    /// What the last probe said of it, if there was one.
    pub(crate) probe: Option<Verdict>,
    /// Where it is mounted.
    pub(crate) mount_point: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mount_point_bytes: Option<Base64>,
    /// How JuiceFS is mounted, if it is that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) juicefs: Option<JuiceFs>,
}

/// How JuiceFS is mounted.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct JuiceFs {
    /// Its version.
    pub(crate) version: String,
    /// Are writes acknowledged before they are uploaded?
    pub(crate) writeback: bool,
    /// Are listings cached?
    pub(crate) readdir_cache: bool,
    /// For how long what is cached, by the option that says so.
    pub(crate) caches_ms: BTreeMap<String, u64>,
}
