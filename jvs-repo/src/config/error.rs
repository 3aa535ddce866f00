//! What can be wrong with a configuration, said so that it can be put right:
//! file, line, key, what was found and what is allowed.

use std::io;

use super::key::{self, Key};
use crate::code::{Code, Coded, code_of_io};
use crate::layout;
use crate::next::Next;

/// A configuration that cannot be used, or a change to it that was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Not TOML; also a key that appears twice.
    #[error("{}{problem}", Self::place(Some(*line)))]
    Syntax {
        /// The line of the file.
        line: usize,
        /// What the parser says.
        problem: String,
    },
    /// The file has a key that means nothing.
    #[error("{}there is no key {key}", Self::place(Some(*line)))]
    UnknownKey {
        /// The line of the file.
        line: usize,
        /// The key.
        key: String,
    },
    /// A value of the wrong type or out of range.
    #[error("{}{key} cannot be {found}; it is {allowed}", Self::place(*line))]
    BadValue {
        /// Where, if it is in the file and not on the command line.
        line: Option<usize>,
        /// The key.
        key: String,
        /// The value, as written.
        found: String,
        /// What may stand there.
        allowed: String,
    },
    /// Two values that cannot both hold.
    #[error("{}{key} cannot be {found}; it is {allowed}", Self::place(*line))]
    Contradiction {
        /// Where, if one of them is in the file.
        line: Option<usize>,
        /// The key to change.
        key: &'static str,
        /// Its value.
        found: String,
        /// What may stand there, given the other.
        allowed: String,
    },
    /// The user asked for a key that does not exist.
    #[error("there is no key {key:?}")]
    NoSuchKey {
        /// The key.
        key: String,
    },
    /// The file could not be read or written.
    #[error("{}", unusable(.0))]
    Io(#[source] io::Error),
}

impl ConfigError {
    fn place(line: Option<usize>) -> String {
        line.map_or_else(String::new, |line| format!("{}:{line}: ", layout::config()))
    }
}

fn unusable(error: &io::Error) -> String {
    let file = layout::config();
    match code_of_io(error) {
        Code::PathEscape => format!("{file} is reached through a symlink, which is not followed"),
        _ => format!("{file}: {error}"),
    }
}

impl Coded for ConfigError {
    fn code(&self) -> Code {
        match self {
            ConfigError::NoSuchKey { .. } => Code::NotFound,
            ConfigError::Io(error) => code_of_io(error),
            _ => Code::ConfigInvalid,
        }
    }

    fn next(&self) -> Option<Next> {
        let file = layout::config();
        let edit = |line: usize| Next::from(format!("edit line {line} of {file}"));
        match self {
            ConfigError::Syntax { line, .. } => Some(edit(*line)),
            ConfigError::UnknownKey { line, key } => Some(Next::FixKey(*line, key::nearest(key))),
            ConfigError::BadValue { key, line, .. } => match key::find(key) {
                Ok(Key { default, .. }) => Some(Next::RestoreDefault(key.clone(), default)),
                Err(_) => line.map(edit),
            },
            ConfigError::Contradiction { key, .. } => Some(Next::ChooseValue(key)),
            ConfigError::NoSuchKey { key } => Some(Next::ListKeys(key::nearest(key))),
            ConfigError::Io(_) => Some(format!("`ls -l {file}` shows what is there").into()),
        }
    }

    fn details(&self) -> Option<serde_json::Value> {
        let (line, key, found, allowed) = match self {
            ConfigError::BadValue { line, key, found, allowed } => {
                (*line, key.as_str(), Some(found), Some(allowed))
            }
            ConfigError::Contradiction { line, key, found, allowed } => {
                (*line, *key, Some(found), Some(allowed))
            }
            ConfigError::UnknownKey { line, key } => (Some(*line), key.as_str(), None, None),
            ConfigError::Syntax { line, .. } => {
                return Some(
                    serde_json::json!({ "file": layout::config().as_str(), "line": line }),
                );
            }
            ConfigError::NoSuchKey { key } => return Some(serde_json::json!({ "key": key })),
            ConfigError::Io(_) => return None,
        };
        Some(serde_json::json!({
            "file": layout::config().as_str(),
            "line": line,
            "key": key,
            "found": found,
            "allowed": allowed,
        }))
    }
}
