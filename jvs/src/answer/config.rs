//! What is told of settings.

use serde::Serialize;

/// A setting.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Setting {
    /// Its name.
    pub(crate) key: String,
    /// Its value.
    pub(crate) value: String,
}

/// A setting that was changed.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Set {
    /// Its name.
    pub(crate) key: String,
    /// Its value now.
    pub(crate) value: String,
    /// Its value before.
    pub(crate) previous: String,
}

/// All settings.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Settings {
    /// In the order of the sections.
    pub(crate) values: Vec<Described>,
}

/// A setting, explained.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Described {
    /// Its name.
    pub(crate) key: &'static str,
    /// Its value.
    pub(crate) value: String,
    /// What it is if nobody sets it.
    pub(crate) default: String,
    /// What it may be.
    pub(crate) allowed: String,
    /// What it means.
    pub(crate) doc: &'static str,
}
