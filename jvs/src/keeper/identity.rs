//! Which process keeps a lock of this session: written by the keeper itself into
//! the session's private directory. The record in the repository says it too, for
//! display.

use std::io;
use std::os::fd::OwnedFd;

use jvs_lock::Session;
use jvs_lock::hold::whom::{self, Sources};
use jvs_lock::liveness::{Liveness, Observer, keeper_liveness};
use jvs_repo::clock::{Clock, SystemClock};
use jvs_repo::id::hex;
use jvs_repo::proc;
use jvs_repo::record::keeper::{self, Keeper, Written};
use jvs_repo::store::{RepoPath, Store};
use jvs_repo::term::Term;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, renameat_with};

use crate::context::{Context, Here};
use crate::fail::{Failure, Stuck};
use crate::tree::handle;

/// Where the keeper of one lock of one session writes who it is.
pub(crate) struct KeeperIdentity {
    dir: OwnedFd,
    name: String,
}

impl KeeperIdentity {
    /// `None` if the session has no private directory yet, and so no keeper.
    pub(crate) fn of(context: &Context<'_>, here: &Here) -> Result<Option<Self>, Failure> {
        let Some((dir, session)) = context.private_dir()? else { return Ok(None) };
        let store = here.repo.store();
        let root = store
            .stat(&RepoPath::root())
            .map_err(|error| Stuck::new("look at the repository", error))?;
        // A copy of the repository has another inode, a second mount of it has not:
        // nobody can have a keeper ended by copying what it keeps.
        let (repo, inode) = (here.repo.id().to_string(), root.inode.to_string());
        Ok(Some(KeeperIdentity::keeping(dir, &session, [&repo, &inode, here.worktree.as_str()])))
    }

    /// Of the keeper of a lock of the session whose files begin with `session`: id and
    /// inode of the repository, and the worktree.
    pub(crate) fn keeping(dir: OwnedFd, session: &str, lock: [&str; 3]) -> Self {
        // A hash, so that no name, however long, is too long for a file.
        let lock = blake3::derive_key("jvs keeper file v1", lock.join("/").as_bytes());
        KeeperIdentity { dir, name: format!("{session}-keeper-{}", hex(&lock[..16])) }
    }

    /// This process is the keeper of the hold `term` from now on.
    pub(super) fn write(&self, session: &Session, term: Term) -> Result<(), Failure> {
        let new = format!("{}~{}", self.name, std::process::id());
        let keeper = session.keeper(&SystemClock);
        let written = self.place(&new, &Written { keeper, term }.to_bytes());
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&self.dir, new.as_str(), AtFlags::empty());
        }
        written.map_err(|error| Stuck::new("write down who keeps the lock", error).into())
    }

    fn place(&self, new: &str, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(&self.dir, new, flags | OFlags::CLOEXEC, mode)?;
        if rustix::io::write(&file, bytes)? != bytes.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        // Not synced: after a power cut there is no keeper either.
        Ok(rustix::fs::renameat(&self.dir, new, &self.dir, self.name.as_str())?)
    }

    /// The process that wrote it last, if it can be read and makes sense.
    pub(crate) fn read(&self) -> Option<Written> {
        self.read_at(&self.name)
    }

    fn read_at(&self, name: &str) -> Option<Written> {
        // O_NONBLOCK: a FIFO must not hang us.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.dir, name, flags, Mode::empty()).ok()?;
        let stat = rustix::fs::fstat(&file).ok()?;
        let mine = stat.st_uid == rustix::process::geteuid().as_raw();
        if !mine || stat.st_mode & 0o077 != 0 {
            return None;
        }
        let mut bytes = [0; keeper::LIMITS.size];
        let length = rustix::io::read(&file, &mut bytes).ok()?;
        // Torn, foreign or cut off at the limit: none of them is one.
        Written::parse(&bytes[..length]).ok()
    }

    /// A handle on the keeper of the hold `term`, if that may be signalled.
    pub(super) fn process(&self, here: &Here, term: Term) -> Option<OwnedFd> {
        let (repository, worktree) = (here.repo.store(), &here.worktree);
        let sources = Sources { private: self.read(), repository, worktree };
        let clock = SystemClock.boot_clock();
        let here = Observer { clock: &clock, pid_namespace: proc::pid_namespace() };
        let keeper = whom::to_signal(sources, term, here, proc::process_stat)?;
        handle(keeper.pid, keeper.start_time)
    }

    /// This process keeps the lock no more. Another one may have begun since; then
    /// what is there is its own. It is looked at once it was taken aside: between a look
    /// and a removal the next keeper may write itself down.
    pub(super) fn remove(&self, session: &Session) {
        let me = session.keeper(&SystemClock);
        let mine = |name: &str| self.read_at(name).is_some_and(|written| written.keeper == me);
        let (name, aside) = (self.name.as_str(), format!("{}~{}", self.name, std::process::id()));
        if !mine(name) || rustix::fs::renameat(&self.dir, name, &self.dir, &aside).is_err() {
            return;
        }
        let back = || renameat_with(&self.dir, &aside, &self.dir, name, RenameFlags::NOREPLACE);
        // Whoever wrote itself down meanwhile is there already.
        if mine(&aside) || back().is_err() {
            let _ = rustix::fs::unlinkat(&self.dir, &aside, AtFlags::empty());
        }
    }
}

/// Is that process there? `None` if that cannot be known from here.
pub(crate) fn running(keeper: &Keeper) -> Option<bool> {
    let clock = SystemClock.boot_clock();
    let here = Observer { clock: &clock, pid_namespace: proc::pid_namespace() };
    match keeper_liveness(keeper, here, proc::process_stat) {
        Liveness::Alive => Some(true),
        Liveness::Dead => Some(false),
        Liveness::Unknown(_) => None,
    }
}
