//! What is told of coding agents and their hooks.

use serde::Serialize;
use serde_json::Value;

use super::Base64;

/// What was installed or taken away, or would be.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct AgentChanged {
    /// The agent.
    pub(crate) agent: &'static str,
    /// Was nothing done?
    pub(crate) dry_run: bool,
    /// The files that are not what they were.
    pub(crate) changes: Vec<AgentFileChanged>,
    /// Where they are.
    pub(crate) place: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) place_bytes: Option<Base64>,
}

/// A file that is not what it was.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct AgentFileChanged {
    /// Its path, below the place.
    pub(crate) path: &'static str,
    /// Its text before; `null` if it was not there.
    pub(crate) before: Option<String>,
    /// Its text now; `null` if it is gone.
    pub(crate) after: Option<String>,
}

/// How it stands with each agent.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct AgentList {
    /// Those that were asked for, or all that are known.
    pub(crate) agents: Vec<AgentSeen>,
    /// Where their files are.
    pub(crate) place: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) place_bytes: Option<Base64>,
}

/// How it stands with one agent.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct AgentSeen {
    /// The agent.
    pub(crate) agent: &'static str,
    /// In a word or two.
    pub(crate) state: &'static str,
    /// The directory of its files, if the user has that elsewhere than at home.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) elsewhere: Option<String>,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) elsewhere_bytes: Option<Base64>,
    /// Can its hooks refuse what it is about to do?
    pub(crate) denies: bool,
    /// What its hooks are asked for.
    pub(crate) abilities: &'static [&'static str],
    /// Its files.
    pub(crate) files: Vec<AgentFileSeen>,
}

/// How it stands with one file of an agent.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct AgentFileSeen {
    /// Its path, below the place.
    pub(crate) path: &'static str,
    /// What it is for: `hooks` or `instructions`.
    pub(crate) kind: &'static str,
    /// In a word or two.
    pub(crate) state: String,
    /// The options of the hooks that are in it.
    pub(crate) options: Option<String>,
}

/// What a hook was answered.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HookAnswered {
    /// Whose hook it is.
    pub(crate) harness: &'static str,
    /// At which event.
    pub(crate) event: String,
    /// What was decided, in a word.
    pub(crate) verdict: &'static str,
    /// The document that the harness reads, in its own form; `null` if it reads none.
    pub(crate) answer: Value,
}
