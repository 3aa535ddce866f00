//! The JSON Schemas of what `--json` says.
//!
//! **Responsibility.** They are made of the types of the answers and compared with
//! `spec/schema/jvs-1.json`, which is what users get and what the suite compares every
//! document with. A package of its own, because it builds the command with the feature
//! `schema`.
//!
//! **Must not know.** What any command answers: the types say it.
//!
//! # Limitations
//! Details of errors are made by the libraries, and have types for the schemas alone. Only
//! the suite sees that these are the same.

use std::path::PathBuf;

use serde::Serialize as _;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

/// Where the schemas are kept.
pub fn path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/schema/jvs-1.json"))
}

/// The schemas as they are kept: people read them in diffs, and the command has all of them
/// in it, so the blanks are few.
pub fn written(document: &Value) -> String {
    let mut text = Vec::new();
    let mut writer = Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b" "));
    document.serialize(&mut writer).expect("a value can be written");
    text.push(b'\n');
    String::from_utf8(text).expect("JSON is UTF-8")
}
