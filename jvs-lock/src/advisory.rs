//! Advisory files about a lock: its record, and files of other tools. Who
//! holds is the register's to say, so nothing here is ever needed: what is torn,
//! what the filesystem refuses, and what does not answer in time is an answer too,
//! and the lock is judged without it.
//!
//! Only the content is read within a time. To open a file is a question to the
//! same metadata engine that the register's READ asks: where that answers, so
//! does this.

use std::io;

use jvs_repo::code::{Code, code_of_io};
use jvs_repo::sabotage;
use jvs_repo::store::{RepoPath, Store};

use crate::mutation::Rule;

/// Largest file that is read at all.
pub(crate) const READ_MAX: usize = 64 * 1024;
/// How long its content may take to come.
pub(crate) const PATIENCE_MS: u64 = 2_000;

/// What an advisory file says.
pub(crate) enum Advisory {
    /// There is no such file.
    Nothing,
    /// The file says this.
    Bytes(Vec<u8>),
    /// It is no file that could say anything; why.
    Unfit(String),
    /// The filesystem does not show it; why.
    Refused(String),
}

/// Reads the file at `path`. A symlink, which anybody who may write there can plant, is not
/// followed and keeps nobody out.
pub(crate) fn read_advisory(store: &dyn Store, path: &RepoPath) -> io::Result<Advisory> {
    let read = store.open(path).and_then(|file| file.read_within(READ_MAX, PATIENCE_MS));
    match read {
        Ok(bytes) if bytes.len() > READ_MAX => {
            Ok(Advisory::Unfit(format!("it is larger than {READ_MAX} bytes")))
        }
        Ok(bytes) => Ok(Advisory::Bytes(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Advisory::Nothing),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Ok(Advisory::Unfit(error.to_string()))
        }
        Err(error) if code_of_io(&error) == Code::PathEscape => {
            Ok(Advisory::Unfit(format!("{path} is a symlink, which is not followed")))
        }
        Err(error) => not_shown(error),
    }
}

/// What is only told is never needed: not to be shown it is an answer.
fn not_shown(error: io::Error) -> io::Result<Advisory> {
    sabotage!(Rule::AdvisoryFilesAreNotNeeded => Err(error));
    Ok(Advisory::Refused(error.to_string()))
}
