//! Reads a file of rules: only a regular one, of a bounded size, and without waiting for
//! anybody.

use std::fmt;
use std::io;
use std::os::fd::AsFd;

use jvs_repo::record::ignore_rules::{FILE_NAME, RULE_MAX};

use super::pattern::{self, Pattern};
use crate::tree::{self, NodeKind, NodeStat};

/// Most bytes of a file of rules, comments included.
const SIZE_MAX: usize = 64 * 1024;

/// Why rules cannot be followed. A walk that cannot know what is ignored ends: it would
/// capture, or remove, what nobody meant.
#[derive(Debug)]
pub(crate) struct RuleTrouble(String);

impl RuleTrouble {
    pub(super) fn new(why: String) -> Self {
        RuleTrouble(why)
    }

    /// Is that why something could not be listed?
    pub(crate) fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<RuleTrouble>())
    }
}

impl fmt::Display for RuleTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RuleTrouble {}

/// What a file of rules says.
pub(super) struct FileRules {
    /// How it looked before it was read.
    pub(super) stat: NodeStat,
    pub(super) patterns: Vec<Pattern>,
}

/// The rules in an open directory, if there are any.
pub(super) fn read(dir: impl AsFd) -> io::Result<Option<FileRules>> {
    let name = FILE_NAME.as_bytes();
    let trouble = |why: String| io::Error::other(RuleTrouble::new(why));
    let stat = match tree::stat(&dir, name) {
        Ok(stat) => stat,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(trouble(error.to_string())),
    };
    let kind = match stat.kind {
        NodeKind::File => None,
        NodeKind::Directory => Some("a directory"),
        NodeKind::Symlink => Some("a symlink"),
        NodeKind::Fifo => Some("a FIFO"),
        NodeKind::Socket => Some("a socket"),
        NodeKind::CharDevice | NodeKind::BlockDevice => Some("a device"),
    };
    if let Some(kind) = kind {
        return Err(trouble(format!("it is {kind}, and rules are read from a regular file")));
    }
    let bytes = tree::open_file(&dir, name).and_then(|file| {
        // Of the very file that is read: it may be another by now.
        let stat = tree::stat_open(&file)?;
        let mut bytes = vec![0; SIZE_MAX + 1];
        let length = tree::read_at(&file, &mut bytes, 0)?;
        bytes.truncate(length);
        Ok((stat, bytes))
    });
    let (stat, bytes) = match bytes {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(trouble(error.to_string())),
    };
    if bytes.len() > SIZE_MAX {
        return Err(trouble(format!("it has more than {} KiB", SIZE_MAX / 1024)));
    }
    let patterns = pattern::of_file(&bytes);
    if patterns.iter().any(|pattern| pattern.text.len() > RULE_MAX) {
        return Err(trouble(format!("a line of it has more than {RULE_MAX} bytes")));
    }
    Ok(Some(FileRules { stat, patterns }))
}
