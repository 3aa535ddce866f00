//! What is told of the command itself.

use serde::Serialize;

use super::Base64;

/// Which version this is.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Version {
    /// Of the command.
    pub(crate) version: &'static str,
}

/// A script that teaches a shell.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Completions {
    /// Which shell.
    pub(crate) shell: String,
    /// The script.
    pub(crate) script: String,
}

/// The manual, as one page.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ManPage {
    /// The page, for `man`.
    pub(crate) page: String,
}

/// The manual, as files.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ManPages {
    /// Their names.
    pub(crate) pages: Vec<String>,
    /// Where they are.
    pub(crate) dir: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dir_bytes: Option<Base64>,
}

/// A demonstration.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Demo {
    /// What was run.
    pub(crate) steps: Vec<DemoStep>,
    /// Where its repository is, if it was kept.
    pub(crate) kept: Option<String>,
}

/// A command of the demonstration.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DemoStep {
    /// Who ran it.
    pub(crate) who: &'static str,
    /// What was typed.
    pub(crate) command: String,
    /// Its exit status; `null` if a signal ended it.
    pub(crate) exit: Option<i32>,
    /// What it answered.
    pub(crate) stdout: String,
    /// What it complained about.
    pub(crate) stderr: String,
}
