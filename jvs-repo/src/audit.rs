//! The audit log on disk: one file per writer, one JSON line per event, each line
//! chained to the one before.
//!
//! One file a writer, because appends from two mounts of one JuiceFS volume
//! overwrite each other. A writer is one session on one mount; processes of
//! that session on one host take turns ([`AppendTurn`]). Its log is closed when it is
//! full, under another name, and never edited after that.
//!
//! What the events of a register must add up to is the lock's business, not
//! this module's: here a log is only whole or not.

mod anchor;
mod append;
mod name;
mod newest;
pub(crate) mod read;
pub mod room;

use std::fmt;
use std::io;
use std::str::FromStr;

use crate::id::{NotAnId, hex, strict_hex, text_serde};
use crate::layout;
use crate::store::Store;

pub use anchor::write_anchor;
pub use append::{Alone, AppendTurn, EventTooLong, FULL, Log, NoTurn, Reach, Spoilt, Turn};
pub use name::LogName;
pub use newest::newest;
pub use read::{Flaw, Line, LogEnd, read_log, read_since};

pub use crate::record::audit::{Anchored, Continued, Sum};
pub use crate::record::audit::{Details, Event, EventKind, EventPhase, LINE_MAX};

/// Who writes a log: a session on a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriterId(pub [u8; 12]);

impl WriterId {
    /// The writer for `session` (any bytes that name it) on the mount `device`.
    pub fn derive(session: &[u8], device: u64) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("jvs audit writer v1");
        hasher.update(&device.to_be_bytes());
        hasher.update(session);
        WriterId::of(hasher)
    }

    /// Where the same writer goes on when this log is not to be appended to. Always
    /// the same one, so that the processes of a session agree without asking.
    #[must_use]
    pub(crate) fn after(&self) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("jvs audit writer after v1");
        hasher.update(&self.0);
        WriterId::of(hasher)
    }

    fn of(hasher: blake3::Hasher) -> Self {
        let mut id = [0; 12];
        id.copy_from_slice(&hasher.finalize().as_bytes()[..12]);
        WriterId(id)
    }
}

impl fmt::Display for WriterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl FromStr for WriterId {
    type Err = NotAnId;
    fn from_str(text: &str) -> Result<Self, NotAnId> {
        strict_hex(text).map(WriterId).ok_or(NotAnId::expected("24 hexadecimal digits"))
    }
}
text_serde!(WriterId);

/// The logs that there are, and the names of files that are none.
pub fn logs(store: &dyn Store) -> io::Result<(Vec<LogName>, Vec<std::ffi::OsString>)> {
    let mut known = Vec::new();
    let mut foreign = Vec::new();
    for entry in store.list(&layout::audit())? {
        match entry.name.to_str().and_then(layout::log_of) {
            Some(log) => known.push(log),
            None => foreign.push(entry.name),
        }
    }
    known.sort_unstable();
    foreign.sort_unstable();
    Ok((known, foreign))
}

#[cfg(test)]
mod tests;
