//! What is told of what is told.

use serde::Serialize;
use serde_json::Value;

/// The schema of what a command answers, or of what any command does.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct OneSchema {
    /// The command; `null` if it is any.
    pub(crate) of: Option<String>,
    /// A JSON Schema (draft 2020-12).
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schemas::any_schema"))]
    pub(crate) json_schema: Value,
}

/// The commands that have a schema.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Commands {
    /// By their names.
    pub(crate) commands: Vec<String>,
}
