//! A word to the session's next command: its lock was lost while nobody looked.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};

use rustix::fs::OFlags;

use crate::context::Context;
use crate::fail::{Failure, Stuck, on_one_line};

/// Longest note that is believed; more is cut.
const SIZE_MAX: u64 = 4096;

/// Adds a line to the session's note.
pub(super) fn leave(context: &Context<'_>, line: &str) -> Result<(), Failure> {
    // Best effort: if it cannot be made, opening the note says why.
    let _ = std::fs::DirBuilder::new().mode(0o700).create(context.notes_dir()?);
    let path = context.session_note()?;
    let mut open = std::fs::OpenOptions::new();
    open.append(true).create(true).mode(0o600).custom_flags(flags(OFlags::NOFOLLOW));
    open.open(&path)
        .and_then(|mut file| file.write_all(format!("{}\n", on_one_line(line)).as_bytes()))
        .map_err(|error| Stuck::new(format!("write {}", path.display()), error).into())
}

/// Takes the session's note, line by line. A note that cannot be read is no
/// reason for the command that asks to fail.
pub(crate) fn take(context: &Context<'_>) -> Vec<String> {
    let Some(dir) = context.notes_dir().ok().filter(|dir| dir.is_dir()) else {
        return Vec::new();
    };
    let Ok(path) = context.session_note() else { return Vec::new() };
    let mut open = std::fs::OpenOptions::new();
    open.read(true).custom_flags(flags(OFlags::NOFOLLOW | OFlags::NONBLOCK));
    let mut bytes = Vec::new();
    let Ok(file) = open.open(&path) else { return Vec::new() };
    if file.take(SIZE_MAX).read_to_end(&mut bytes).is_err() {
        return Vec::new();
    }
    let _ = rustix::fs::unlink(&path);
    // Gone with its last note.
    let _ = rustix::fs::rmdir(&dir);
    String::from_utf8_lossy(&bytes).lines().map(on_one_line).collect()
}

/// How many sessions have a word waiting for them, and where.
pub(crate) fn waiting(context: &Context<'_>) -> Option<(usize, std::path::PathBuf)> {
    let dir = context.notes_dir().ok()?;
    let notes = std::fs::read_dir(&dir).ok()?.count();
    (notes > 0).then_some((notes, dir))
}

fn flags(flags: OFlags) -> i32 {
    i32::try_from(flags.bits()).unwrap_or(0)
}
