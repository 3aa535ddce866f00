//! A word to the session's next command: its lock was lost while nobody looked.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use crate::context::Context;
use crate::fail::{Failure, Stuck, on_one_line};

/// Longest note that is believed; more is cut.
const SIZE_MAX: u64 = 4096;

/// Adds a line to the session's note.
pub(super) fn leave(context: &Context<'_>, line: &str) -> Result<(), Failure> {
    let Some(path) = context.session_note()? else { return Ok(()) };
    let mut open = std::fs::OpenOptions::new();
    let flags = rustix::fs::OFlags::NOFOLLOW.bits();
    let open = open.append(true).create(true).mode(0o600).custom_flags(flags as i32);
    open.open(&path)
        .and_then(|mut file| file.write_all(format!("{}\n", on_one_line(line)).as_bytes()))
        .map_err(|error| Stuck::new(format!("write {}", path.display()), error).into())
}

/// Takes the session's note, line by line. Nothing in the way of the command
/// that asked: a note that cannot be read is no reason to fail.
pub(crate) fn take(context: &Context<'_>) -> Vec<String> {
    let Ok(Some(path)) = context.session_note() else { return Vec::new() };
    let mut open = std::fs::OpenOptions::new();
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let open = open.read(true).custom_flags(flags.bits() as i32);
    let mut bytes = Vec::new();
    let Ok(file) = open.open(&path) else { return Vec::new() };
    if file.take(SIZE_MAX).read_to_end(&mut bytes).is_err() {
        return Vec::new();
    }
    let _ = rustix::fs::unlink(&path);
    String::from_utf8_lossy(&bytes).lines().map(on_one_line).collect()
}
