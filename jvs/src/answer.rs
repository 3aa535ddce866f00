//! What programs are told: one type for each answer of `--json`.
//!
//! The JSON Schemas in `spec/schema/` are made of these types, with the feature `schema`,
//! and every document that the tests see is compared with them. So a field is documented
//! here and nowhere else; `jvs schema` shows it.

pub(crate) mod agent;
pub(crate) mod audit;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod events;
#[cfg(feature = "schema")]
pub(crate) mod failure;
pub(crate) mod lock;
pub(crate) mod other;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod session;
pub(crate) mod snapshot;
pub(crate) mod tree;
pub(crate) mod undo;
pub(crate) mod worktree;

use std::path::Path;

use jvs_repo::clock::WallMs;
use jvs_repo::code::Coded;
use jvs_repo::name::exact;
use serde::Serialize;

use crate::render::{base64, shown};

/// Something that programs are told; with the feature `schema`, it has one.
pub(crate) trait Told: Serialize + HasSchema {}
impl<T: Serialize + HasSchema> Told for T {}

#[cfg(feature = "schema")]
use schemars::JsonSchema as HasSchema;
/// What has a schema, where nobody asks for it.
#[cfg(not(feature = "schema"))]
pub(crate) trait HasSchema {}
#[cfg(not(feature = "schema"))]
impl<T> HasSchema for T {}

/// A moment: RFC 3339, in UTC, with milliseconds.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
pub(crate) struct Time(String);

impl From<WallMs> for Time {
    fn from(at: WallMs) -> Self {
        Time(at.rfc3339())
    }
}

/// Bytes in base64 (RFC 4648, with padding).
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("contentEncoding" = "base64")))]
pub(crate) struct Base64(String);

impl Base64 {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Base64(base64(bytes))
    }
}

/// A path as text. JSON knows no bytes beyond UTF-8: where the text is not the path, its
/// bytes are in the field beside it.
pub(crate) type PathText = (String, Option<Base64>);

/// A path for programs.
pub(crate) fn path(path: &Path) -> PathText {
    match path.to_str() {
        Some(text) => (text.to_owned(), None),
        None => (shown(path), Some(Base64::of(path.as_os_str().as_encoded_bytes()))),
    }
}

/// The same of a path that there may not be.
pub(crate) fn path_if_any(there: Option<&Path>) -> (Option<String>, Option<Base64>) {
    match there.map(path) {
        Some((text, bytes)) => (Some(text), bytes),
        None => (None, None),
    }
}

/// The same of a path that a library spelled as [`ShownName`](jvs_repo::name::ShownName).
pub(crate) fn shown_path(path: &str) -> PathText {
    let bytes = exact(path).filter(|bytes| bytes != path.as_bytes());
    (path.to_owned(), bytes.map(|bytes| Base64::of(&bytes)))
}

/// Several paths, and beside them the bytes of those that are spelled otherwise, at the
/// same places; nothing if none is.
pub(crate) type PathTexts = (Vec<String>, Option<Vec<Option<Base64>>>);

/// Several paths for programs.
pub(crate) fn paths(each: impl IntoIterator<Item = PathText>) -> PathTexts {
    let (texts, bytes): (Vec<_>, Vec<_>) = each.into_iter().unzip();
    let any = bytes.iter().any(Option::is_some);
    (texts, any.then_some(bytes))
}

/// The same of several that are [`ShownName`](jvs_repo::name::ShownName)s.
pub(crate) fn shown_paths(each: &[String]) -> PathTexts {
    paths(each.iter().map(|path| shown_path(path)))
}

/// Why one of several could not be told.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Unreadable {
    /// The code of the error.
    code: &'static str,
    /// The error, in a sentence.
    message: String,
}

impl Unreadable {
    pub(crate) fn because(error: &impl Coded) -> Self {
        Unreadable { code: error.code().as_str(), message: error.to_string() }
    }
}

/// One answer for each of several worktrees that were named.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "{T}OfEach"))]
pub(crate) struct OfEach<T> {
    /// In the order of the worktrees' names.
    pub(crate) worktrees: Vec<T>,
}

/// Text, as people would see it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Text {
    /// The text.
    pub(crate) text: String,
}
