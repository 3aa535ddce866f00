//! What each call does: the semantics of `PosixStore` on an [`Image`], and
//! what another mount's caches may answer instead.
//!
//! **Must not know.** Schedules, faults, budgets: a call given to the kernel is
//! carried out now, truthfully except for a stale path if that was chosen.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use jvs_repo::store::{DirEntryKind, RepoPath};
use rustix::io::Errno;

use super::cache::{Caches, Caching};
use super::call::{Answer, Call, Failure, Handle};
use super::image::{Image, Ino};

/// What one `getdents64` buffer of `PosixStore` takes.
const BATCH_BYTES: usize = 32 * 1024;

/// Who makes a call, and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    /// Numbers its descriptors and inodes apart from those of others, so that
    /// what two processes make does not depend on who came first.
    pub(crate) lane: usize,
    pub(crate) mount: usize,
    pub(crate) now_ms: u64,
    /// What it writes to a file that it makes now tells no two states apart.
    pub(crate) forgotten: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Opened {
    ino: Ino,
    writable: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counters {
    opened: u32,
    created: u64,
}

/// The filesystem that all processes share.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    pub(crate) image: Image,
    open: BTreeMap<(usize, u32), Opened>,
    counters: Vec<Counters>,
    caches: Caches,
    /// How many bytes the files may have altogether.
    room: Option<u64>,
    /// Files for which there was no room, and which are refused since.
    refused: BTreeMap<Ino, Refused>,
}

/// A file that was refused room goes on being refused, as on a JuiceFS mount: until all
/// who had it open have closed it, and for a while after that.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Refused {
    open: BTreeSet<(usize, u32)>,
    until_ms: u64,
}

/// How long a mount takes to close a file.
const CLOSED_AFTER_MS: u64 = 20;

/// Counters are left out: of a live process its history decides them, of
/// a dead one nothing depends on them.
impl Hash for Kernel {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.image.hash(state);
        self.open.hash(state);
        self.caches.hash(state);
        self.refused.hash(state);
    }
}

type Answered = Result<Answer, Failure>;

impl Kernel {
    pub(crate) fn new(image: Image, caching: Caching) -> Self {
        Kernel {
            image,
            open: BTreeMap::new(),
            counters: Vec::new(),
            caches: Caches::new(caching),
            room: None,
            refused: BTreeMap::new(),
        }
    }

    /// From now on there is no room for more than there is.
    pub(crate) fn fill(&mut self) {
        self.room = Some(self.image.size());
    }

    /// From now on there is room for nothing, whatever is given up.
    pub(crate) fn overfill(&mut self) {
        self.room = Some(0);
    }

    /// Carries out `call`. With `stale`, a path is resolved to what it named, or
    /// is found missing as it was, before another mount changed that.
    pub(crate) fn perform(&mut self, caller: Caller, call: &Call, stale: bool) -> Answer {
        self.answer(caller, call, stale).unwrap_or_else(Answer::Failed)
    }

    #[allow(clippy::too_many_lines, reason = "a table: one arm per call of the store")]
    fn answer(&mut self, caller: Caller, call: &Call, stale: bool) -> Answered {
        if let Some(path) = looked_up(call) {
            if stale && self.caches.denies(&self.image, caller, path) {
                return Err(Errno::NOENT.into());
            }
            self.caches.look(&self.image, caller, path);
        }
        match call {
            Call::FirstBatch(dir) => self.first_batch(dir),
            Call::List(dir) => {
                let names = self.image.names(self.image.resolve(dir)?)?;
                Ok(Answer::Names(names.map(str::to_owned).collect()))
            }
            Call::ListRest(_, dir, first) => {
                let now = self.names_of(*dir)?;
                let both = first.iter().filter(|name| now.contains(*name));
                Ok(Answer::Names(both.cloned().collect()))
            }
            Call::Stat(path) => {
                let ino = self.resolve_cached(caller, path, stale)?;
                Ok(self.stat(caller, ino))
            }
            Call::Open(path) => {
                let ino = self.resolve_cached(caller, path, stale)?;
                if self.image.kind(ino) != DirEntryKind::File {
                    return Err(Failure::NotAFile);
                }
                Ok(self.opened(caller, ino, false))
            }
            Call::OpenWritable(path) => {
                let ino = self.resolve_cached(caller, path, stale)?;
                self.image.bytes(ino)?;
                Ok(self.opened(caller, ino, true))
            }
            Call::CreateNew(path) => {
                let (dir, name) = self.absent(path)?;
                let ino = self.new_ino(caller);
                self.image.add_file(ino, dir, name, caller.forgotten);
                self.changed(caller, dir, name, None);
                Ok(self.opened(caller, ino, true))
            }
            Call::Rename(from, to) => self.rename(caller, from, to, false),
            Call::RenameNew(from, to) => self.rename(caller, from, to, true),
            Call::Exchange(a, b) => self.exchange(caller, a, b),
            Call::Link(from, to) => {
                let (_, _, ino) = self.present(from)?;
                self.image.bytes(ino).map_err(|_| Errno::PERM)?;
                let (dir, name) = self.absent(to)?;
                self.image.edit(vec![(dir, name.into(), Some(ino))]);
                self.changed(caller, dir, name, None);
                Ok(Answer::Done)
            }
            Call::Unlink(path) => {
                let (dir, name, ino) = self.present(path)?;
                if self.image.kind(ino) == DirEntryKind::Directory {
                    return Err(Errno::ISDIR.into());
                }
                self.image.edit(vec![(dir, name.into(), None)]);
                self.changed(caller, dir, name, Some(ino));
                self.forget_if_unused(ino);
                Ok(Answer::Done)
            }
            Call::MakeDir(path) => {
                let (dir, name) = self.absent(path)?;
                let ino = self.new_ino(caller);
                self.image.add_dir(ino, dir, name);
                self.changed(caller, dir, name, None);
                Ok(Answer::Done)
            }
            Call::RemoveDir(path) => {
                let (dir, name, ino) = self.present(path)?;
                self.must_be_empty_dir(ino)?;
                self.image.edit(vec![(dir, name.into(), None)]);
                self.forget_if_unused(ino);
                Ok(Answer::Done)
            }
            Call::SyncDir(dir) => {
                let ino = self.image.resolve(dir)?;
                if self.image.kind(ino) != DirEntryKind::Directory {
                    return Err(Errno::NOTDIR.into());
                }
                self.image.sync_dir(ino);
                Ok(Answer::Done)
            }
            Call::Inode(file) => Ok(Answer::Number(self.file(caller, file)?.ino)),
            Call::ReadRange(file, offset, length) => {
                let bytes = self.image.bytes(self.file(caller, file)?.ino)?;
                let start = usize::try_from(*offset).unwrap_or(usize::MAX).min(bytes.len());
                let end = start.saturating_add(*length).min(bytes.len());
                Ok(Answer::Bytes(bytes[start..end].into()))
            }
            Call::Size(file) => {
                let bytes = self.image.bytes(self.file(caller, file)?.ino)?;
                Ok(Answer::Number(bytes.len() as u64))
            }
            Call::Links(file) => {
                let ino = self.file(caller, file)?.ino;
                let names = self.image.names_of(ino);
                Ok(Answer::Number(if stale { names.max(1) } else { names }))
            }
            Call::WriteAt(file, offset, bytes) => {
                let opened = self.file(caller, file)?;
                if !opened.writable {
                    return Err(Errno::BADF.into());
                }
                let now = self.image.bytes(opened.ino)?.len() as u64;
                self.check_refused(caller, opened.ino)?;
                let grows = (offset + bytes.len() as u64).saturating_sub(now);
                if self.room.is_some_and(|room| grows > 0 && self.image.size() + grows > room) {
                    return Err(self.refuse(caller, opened.ino).into());
                }
                self.image.write(opened.ino, *offset, bytes);
                Ok(Answer::Done)
            }
            Call::Sync(file) => {
                let ino = self.file(caller, file)?.ino;
                self.check_refused(caller, ino)?;
                self.image.sync(ino);
                Ok(Answer::Done)
            }
        }
    }

    fn refuse(&mut self, caller: Caller, ino: Ino) -> Errno {
        let open = self.open.iter().filter(|(_, opened)| opened.ino == ino && opened.writable);
        let open = open.map(|(&handle, _)| handle).collect();
        self.refused.insert(ino, Refused { open, until_ms: caller.now_ms + CLOSED_AFTER_MS });
        Errno::NOSPC
    }

    fn check_refused(&mut self, caller: Caller, ino: Ino) -> Result<(), Errno> {
        let Some(refused) = self.refused.get(&ino) else { return Ok(()) };
        if refused.open.is_empty() && refused.until_ms <= caller.now_ms {
            self.refused.remove(&ino);
            return Ok(());
        }
        Err(Errno::NOSPC)
    }

    fn first_batch(&self, dir: &RepoPath) -> Answered {
        let names = self.image.names(self.image.resolve(dir)?)?;
        let mut used = 2 * record_bytes("..");
        let batch = names.take_while(|name| {
            used += record_bytes(name);
            used <= BATCH_BYTES
        });
        Ok(Answer::Names(batch.map(str::to_owned).collect()))
    }

    /// A directory is listed in two batches and is not the same at the second:
    /// what is there both times is shown, what came or went meanwhile may be shown
    /// or missed. Carried out as it should be, a second batch misses all of that;
    /// torn, it shows all of it.
    pub(crate) fn tear(&mut self, caller: Caller, call: &Call) -> Answer {
        let torn = match call {
            Call::List(dir) => self.image.resolve(dir).and_then(|ino| {
                Ok(Answer::FirstOf(ino, self.names_of(ino)?.into_iter().collect()))
            }),
            Call::ListRest(_, dir, first) => self.names_of(*dir).map(|mut all| {
                all.extend(first.iter().cloned());
                Answer::Names(all.into_iter().collect())
            }),
            other => return self.perform(caller, other, false),
        };
        torn.unwrap_or_else(|errno| Answer::Failed(errno.into()))
    }

    fn names_of(&self, dir: Ino) -> Result<BTreeSet<String>, Errno> {
        if !self.image.holds(dir) {
            return Err(Errno::NOENT);
        }
        Ok(self.image.names(dir)?.map(str::to_owned).collect())
    }

    fn stat(&self, caller: Caller, inode: Ino) -> Answer {
        let size = self.image.bytes(inode).map_or(4096, |bytes| bytes.len() as u64);
        let device = 100 + caller.mount as u64;
        Answer::Stat { kind: self.image.kind(inode), device, inode, size }
    }

    fn absent<'p>(&self, path: &'p RepoPath) -> Result<(Ino, &'p str), Errno> {
        if path.as_str().is_empty() {
            return Err(Errno::EXIST);
        }
        let (dir, name) = self.image.resolve_parent(path)?;
        match self.image.look_up(dir, name)? {
            None => Ok((dir, name)),
            Some(_) => Err(Errno::EXIST),
        }
    }

    fn present<'p>(&self, path: &'p RepoPath) -> Result<(Ino, &'p str, Ino), Errno> {
        let (dir, name) = self.image.resolve_parent(path)?;
        Ok((dir, name, self.image.look_up(dir, name)?.ok_or(Errno::NOENT)?))
    }

    fn must_be_empty_dir(&self, ino: Ino) -> Result<(), Errno> {
        match self.image.kind(ino) {
            DirEntryKind::Directory if self.image.is_empty_dir(ino) => Ok(()),
            DirEntryKind::Directory => Err(Errno::NOTEMPTY),
            _ => Err(Errno::NOTDIR),
        }
    }

    fn rename(&mut self, caller: Caller, from: &RepoPath, to: &RepoPath, new: bool) -> Answered {
        // Both directories are looked up before either name.
        self.image.resolve_parent(from)?;
        let (to_dir, to_name) = self.image.resolve_parent(to)?;
        let (from_dir, from_name, ino) = self.present(from)?;
        let replaced = self.image.look_up(to_dir, to_name)?;
        if new && replaced.is_some() {
            return Err(Errno::EXIST.into());
        }
        if self.image.is_within(to_dir, ino) {
            return Err(Errno::INVAL.into());
        }
        if let Some(replaced) = replaced {
            if replaced == ino {
                return Ok(Answer::Done);
            }
            // A directory cannot be moved over one that it is in.
            if self.image.is_within(from_dir, replaced) {
                return Err(Errno::NOTEMPTY.into());
            }
            match (self.image.kind(ino), self.image.kind(replaced)) {
                (DirEntryKind::Directory, _) => self.must_be_empty_dir(replaced)?,
                (_, DirEntryKind::Directory) => return Err(Errno::ISDIR.into()),
                _ => {}
            }
        }
        self.image
            .edit(vec![(from_dir, from_name.into(), None), (to_dir, to_name.into(), Some(ino))]);
        self.changed(caller, from_dir, from_name, Some(ino));
        self.changed(caller, to_dir, to_name, replaced);
        if let Some(replaced) = replaced {
            self.forget_if_unused(replaced);
        }
        Ok(Answer::Done)
    }

    fn exchange(&mut self, caller: Caller, a: &RepoPath, b: &RepoPath) -> Answered {
        self.image.resolve_parent(a)?;
        self.image.resolve_parent(b)?;
        let (a_dir, a_name, a_ino) = self.present(a)?;
        let (b_dir, b_name, b_ino) = self.present(b)?;
        if a_ino == b_ino {
            return Ok(Answer::Done);
        }
        if self.image.is_within(b_dir, a_ino) || self.image.is_within(a_dir, b_ino) {
            return Err(Errno::INVAL.into());
        }
        self.image
            .edit(vec![(a_dir, a_name.into(), Some(b_ino)), (b_dir, b_name.into(), Some(a_ino))]);
        self.changed(caller, a_dir, a_name, Some(a_ino));
        self.changed(caller, b_dir, b_name, Some(b_ino));
        Ok(Answer::Done)
    }

    /// Would a late rename find its source now?
    pub(crate) fn has_source_of(&self, call: &Call) -> bool {
        self.image.exists(call.paths().0)
    }

    /// Is what `call` needs there, so that it may be applied and denied?
    pub(crate) fn applies(&self, call: &Call) -> bool {
        match call {
            Call::CreateNew(path) | Call::MakeDir(path) => self.absent(path).is_ok(),
            Call::Link(from, to) => self.image.exists(from) && self.absent(to).is_ok(),
            Call::Sync(_) => true,
            other => self.has_source_of(other),
        }
    }

    fn new_ino(&mut self, caller: Caller) -> Ino {
        loop {
            let counters = self.counters(caller);
            counters.created += 1;
            let ino = (caller.lane as u64 + 1) * 1_000_000 + counters.created;
            // An image may come from another world, which numbered from 1, too.
            if !self.image.holds(ino) {
                return ino;
            }
        }
    }

    fn counters(&mut self, caller: Caller) -> &mut Counters {
        if self.counters.len() <= caller.lane {
            self.counters.resize(caller.lane + 1, Counters::default());
        }
        &mut self.counters[caller.lane]
    }

    fn opened(&mut self, caller: Caller, ino: Ino, writable: bool) -> Answer {
        let counters = self.counters(caller);
        counters.opened += 1;
        let fd = counters.opened;
        self.open.insert((caller.lane, fd), Opened { ino, writable });
        let refused = self.refused.get_mut(&ino).filter(|_| writable);
        // It joins those who have it open, unless all of them are gone.
        if let Some(refused) =
            refused.filter(|refused| !refused.open.is_empty() || caller.now_ms < refused.until_ms)
        {
            refused.open.insert((caller.lane, fd));
        }
        Answer::Opened(fd)
    }

    fn file(&self, caller: Caller, file: &Handle) -> Result<Opened, Errno> {
        self.open.get(&(caller.lane, file.fd)).copied().ok_or(Errno::BADF)
    }

    pub(crate) fn close(&mut self, lane: usize, fd: u32) {
        if let Some(opened) = self.open.remove(&(lane, fd)) {
            if let Some(refused) = self.refused.get_mut(&opened.ino) {
                refused.open.remove(&(lane, fd));
            }
            self.forget_if_unused(opened.ino);
        }
    }

    /// What the end of a process does to its descriptors.
    pub(crate) fn close_all(&mut self, lane: usize) {
        let mine: Vec<u32> =
            self.open.range((lane, 0)..=(lane, u32::MAX)).map(|(&(_, fd), _)| fd).collect();
        for fd in mine {
            self.close(lane, fd);
        }
    }

    fn forget_if_unused(&mut self, ino: Ino) {
        let used = self.open.values().any(|o| o.ino == ino) || self.caches.remember(ino);
        if !used {
            self.image.forget_if_unnamed(ino);
        }
    }

    /// The entry `name` of `dir`, which named `before`, was changed through the
    /// caller's mount: the others may not know yet.
    fn changed(&mut self, caller: Caller, dir: Ino, name: &str, before: Option<Ino>) {
        let file = before.filter(|&ino| self.image.kind(ino) == DirEntryKind::File);
        self.caches.changed(caller, dir, name, file);
    }

    /// May `call` be answered from a cache that is out of date?
    pub(crate) fn could_be_stale(&self, caller: Caller, call: &Call) -> bool {
        if looked_up(call).is_some_and(|path| self.caches.denies(&self.image, caller, path)) {
            return true;
        }
        match call {
            Call::Stat(path) | Call::Open(path) | Call::OpenWritable(path) => {
                self.caches.names(&self.image, caller, path).is_some()
            }
            // What was removed through another mount is still counted by this one.
            Call::Links(file) => self.file(caller, file).is_ok_and(|opened| {
                !self.image.is_named(opened.ino) && self.caches.count(caller, opened.ino)
            }),
            _ => false,
        }
    }

    fn resolve_cached(
        &mut self,
        caller: Caller,
        path: &RepoPath,
        stale: bool,
    ) -> Result<Ino, Errno> {
        if stale && let Some(ino) = self.caches.names(&self.image, caller, path) {
            return Ok(ino);
        }
        if let Some(old) = self.caches.refresh(&self.image, caller, path) {
            // Who has seen the new file does not see the old one again.
            self.forget_if_unused(old);
        }
        self.image.resolve(path)
    }

    /// Drops what no cache remembers any more.
    pub(crate) fn expire_caches(&mut self, now_ms: u64) {
        for ino in self.caches.expire(now_ms) {
            if self.image.holds(ino) {
                self.forget_if_unused(ino);
            }
        }
    }

    /// Replaces everything by what a power cut left.
    pub(crate) fn power_cut(&mut self, outcome: usize) {
        self.image = self.image.after_power_cut(outcome);
        self.open.clear();
        self.caches.clear();
        self.refused.clear();
    }
}

/// The path that `call` asks its mount to look up, and that must be there for it:
/// what a remembered absence answers. Exclusive creates and the targets of renames
/// are always asked of the server.
fn looked_up(call: &Call) -> Option<&RepoPath> {
    match call {
        Call::FirstBatch(path)
        | Call::List(path)
        | Call::Stat(path)
        | Call::Open(path)
        | Call::OpenWritable(path)
        | Call::Rename(path, _)
        | Call::RenameNew(path, _)
        | Call::Exchange(path, _)
        | Call::Link(path, _)
        | Call::Unlink(path)
        | Call::RemoveDir(path) => Some(path),
        _ => None,
    }
}

/// Size of a `linux_dirent64`.
fn record_bytes(name: &str) -> usize {
    (19 + name.len() + 1).next_multiple_of(8)
}
