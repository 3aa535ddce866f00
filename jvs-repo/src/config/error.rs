//! What can be wrong with a configuration, said so that it can be put right:
//! file, line, key, what was found and what is allowed.

use std::fmt;
use std::io;

use super::key::{self, Key};
use crate::code::{Code, Coded, code_of_io};
use crate::layout;
use crate::next::Next;

/// A configuration that cannot be used, or a change to it that was refused.
#[derive(Debug)]
pub enum ConfigError {
    /// Not TOML; also a key that appears twice.
    Syntax {
        /// Where.
        line: usize,
        /// What the parser says.
        problem: String,
    },
    /// The file has a key that means nothing.
    UnknownKey {
        /// Where.
        line: usize,
        /// The key.
        key: String,
    },
    /// A value of the wrong type or out of range.
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
    NoSuchKey {
        /// The key.
        key: String,
    },
    /// The file could not be read or written.
    Io(io::Error),
}

impl ConfigError {
    fn place(line: Option<usize>) -> String {
        line.map_or_else(String::new, |line| format!("{}:{line}: ", layout::config()))
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Syntax { line, problem } => {
                write!(f, "{}{problem}", Self::place(Some(*line)))
            }
            ConfigError::UnknownKey { line, key } => {
                write!(f, "{}there is no key {key}", Self::place(Some(*line)))
            }
            ConfigError::BadValue { line, key, found, allowed } => {
                write!(f, "{}{key} cannot be {found}; it is {allowed}", Self::place(*line))
            }
            ConfigError::Contradiction { line, key, found, allowed } => {
                write!(f, "{}{key} cannot be {found}; it is {allowed}", Self::place(*line))
            }
            ConfigError::NoSuchKey { key } => write!(f, "there is no key {key:?}"),
            ConfigError::Io(error) if code_of_io(error) == Code::PathEscape => {
                write!(
                    f,
                    "{} is reached through a symlink, which is not followed",
                    layout::config()
                )
            }
            ConfigError::Io(error) => write!(f, "{}: {error}", layout::config()),
        }
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ConfigError::Io(error) => Some(error),
            _ => None,
        }
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
