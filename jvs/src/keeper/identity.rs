//! Which process keeps a lock of this session: written by the keeper itself into
//! the session's private directory. The record in the repository says it too, for
//! display; but whoever may write the repository must not choose which process of
//! its holder is ended, so nothing is signalled because of what stands there.

use std::io;
use std::os::fd::OwnedFd;

use jvs_lock::Session;
use jvs_lock::liveness::{Here as Where, Liveness, keeper_liveness};
use jvs_lock::record::Keeper;
use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::id::hex;
use jvs_repo::proc;
use jvs_repo::store::{RepoPath, Store};
use rustix::fs::{AtFlags, Mode, OFlags};

use crate::context::{Context, Here};
use crate::fail::{Failure, Stuck};
use crate::tree::handle;

/// More than any identity has; a file that is longer is none.
const SIZE_MAX: usize = 1024;

/// Where the keeper of one lock of one session writes who it is.
pub(crate) struct Identity {
    dir: OwnedFd,
    name: String,
}

impl Identity {
    /// `None` if the session has no private directory yet, and so no keeper.
    pub(crate) fn of(context: &Context<'_>, here: &Here) -> Result<Option<Self>, Failure> {
        let Some((dir, session)) = context.private_dir()? else { return Ok(None) };
        let store = here.repo.store();
        let root = store
            .stat(&RepoPath::root())
            .map_err(|error| Stuck::new("look at the repository", error))?;
        // A copy of the repository has another inode, a second mount of it has not:
        // nobody can have a keeper ended by copying what it keeps.
        let lock = format!("{}/{}/{}", here.repo.id(), root.inode, here.worktree);
        // A hash, so that no name, however long, is too long for a file.
        let lock = blake3::derive_key("jvs keeper file v1", lock.as_bytes());
        Ok(Some(Identity { dir, name: format!("{session}-keeper-{}", hex(&lock[..16])) }))
    }

    /// This process is the keeper from now on.
    pub(super) fn write(&self, session: &Session) -> Result<(), Failure> {
        let new = format!("{}~{}", self.name, std::process::id());
        let text =
            serde_json::to_string(&Keeper::of(session, &SystemClock)).map_err(io::Error::from);
        let written = text.and_then(|text| self.place(&new, &text));
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&self.dir, new.as_str(), AtFlags::empty());
        }
        written.map_err(|error| Stuck::new("write down who keeps the lock", error).into())
    }

    fn place(&self, new: &str, text: &str) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(&self.dir, new, flags | OFlags::CLOEXEC, mode)?;
        if rustix::io::write(&file, text.as_bytes())? != text.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        // Not synced: after a power cut there is no keeper either.
        Ok(rustix::fs::renameat(&self.dir, new, &self.dir, self.name.as_str())?)
    }

    /// The process that wrote it last, if it can be read and makes sense.
    pub(crate) fn read(&self) -> Option<Keeper> {
        // O_NONBLOCK: a FIFO must not hang us.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.dir, self.name.as_str(), flags, Mode::empty()).ok()?;
        let stat = rustix::fs::fstat(&file).ok()?;
        let mine = stat.st_uid == rustix::process::geteuid().as_raw();
        if !mine || stat.st_mode & 0o077 != 0 {
            return None;
        }
        let mut bytes = [0; SIZE_MAX];
        let length = rustix::io::read(&file, &mut bytes).ok()?;
        // Torn, foreign or cut off at the limit: none of them is one.
        serde_json::from_slice(&bytes[..length]).ok()
    }

    /// A handle on the keeper, if it is proven to be the very process that wrote.
    pub(super) fn process(&self) -> Option<OwnedFd> {
        let keeper = self.read()?;
        (running(&keeper) == Some(true)).then(|| handle(keeper.pid, keeper.start_time))?
    }

    /// This process keeps the lock no more. Another one may have begun since; then
    /// what is there is its own.
    pub(super) fn remove(&self, session: &Session) {
        if self.read().is_some_and(|keeper| keeper == Keeper::of(session, &SystemClock)) {
            let _ = rustix::fs::unlinkat(&self.dir, self.name.as_str(), AtFlags::empty());
        }
    }
}

/// Is that process there? `None` if that cannot be known from here.
pub(crate) fn running(keeper: &Keeper) -> Option<bool> {
    let clock = SystemClock.boot_clock();
    let here = Where { clock: &clock, pid_namespace: proc::pid_namespace() };
    match keeper_liveness(keeper, here, proc::process_stat) {
        Liveness::Alive => Some(true),
        Liveness::Dead => Some(false),
        Liveness::Unknown(_) => None,
    }
}
