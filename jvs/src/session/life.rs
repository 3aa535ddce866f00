//! Signs of life: each command of a session that was given a name touches one empty
//! private file, and a keeper sees by it whether anybody is still at work. There is a
//! file only for sessions that have, or had, a keeper: all others pay one failed call.

use std::path::PathBuf;

use jvs_lock::session::SessionId;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, UTIME_NOW};

use super::{named, secret};
use crate::context::Env;

/// The end of the file's name.
pub(super) const SUFFIX: &str = "-life";

/// A sign, told from every other: when the file was last touched.
pub(crate) type Sign = (i64, i64);

/// Where one session gives its signs.
#[derive(Debug, Clone)]
pub(crate) struct SignsOfLife {
    file: Option<PathBuf>,
}

impl SignsOfLife {
    /// Of the session that is asking, if it was given a name: one that is known by its
    /// terminal ends with that.
    pub(crate) fn of_asker(given: Option<&str>, env: Env<'_>) -> Self {
        let id = named::said(given, env).ok().flatten().map(|named| named.id);
        SignsOfLife { file: id.and_then(|id| file(&id, env)) }
    }

    /// Of that session.
    pub(crate) fn of(id: &SessionId, env: Env<'_>) -> Self {
        SignsOfLife { file: file(id, env) }
    }

    /// Gives a sign, if anybody watches for it. Best effort: a private directory in
    /// which nothing can be written is told of by those who need it.
    pub(crate) fn sign(&self) {
        let Some(file) = &self.file else { return };
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        let _ = rustix::fs::utimensat(CWD, file, &times, AtFlags::SYMLINK_NOFOLLOW);
    }

    /// From now on somebody watches.
    pub(crate) fn watch(&self) {
        let Some(file) = &self.file else { return };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let _ = rustix::fs::open(file, flags | OFlags::NONBLOCK, Mode::RUSR | Mode::WUSR);
    }

    /// The last sign that was given; `None` if there is none to be seen.
    pub(crate) fn last(&self) -> Option<Sign> {
        let stat = rustix::fs::lstat(self.file.as_deref()?).ok()?;
        Some((stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0)))
    }
}

fn file(id: &SessionId, env: Env<'_>) -> Option<PathBuf> {
    let place = secret::place(env).ok()?;
    Some(place.join(format!("{}{SUFFIX}", secret::file_name(id))))
}
