//! Small files that hardly ever change, where each look at one is a request over a network.
//!
//! To read one is to look its name up, to open it and to close it: three requests, for each of
//! three files, in every command. But a directory that is listed tells of all its entries which
//! file each is, how long it is and when it was changed, in two. A file of which all of that is
//! as it was when this host read it has the content that it had then. The listing is asked for
//! by each command, so nothing is believed of a file that was not asked for just now, and
//! nothing of the register is remembered at all.
//!
//! A file that was changed a moment ago may be changed once more in the same moment: it is
//! remembered once it is older than that, as git does with its index.

use std::fmt::Debug;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{self, AtFlags, FileType, StatxFlags, StatxTimestamp};

use super::{ASK_NOBODY, ENTRY, PosixStore, REGISTER_BATCH, own, read_batch, stat_at};
use crate::clock::{Clock, SystemClock};
use crate::layout;
use crate::store::RepoPath;

/// How long ago a file must have been changed to be remembered: longer than clocks tick and
/// than mounts keep attributes by default.
const SETTLED_MS: u64 = 2_000;
const NS_PER_MS: i128 = 1_000_000;

/// What this host remembers. It may lose any of that at any time, and must never answer what
/// was not kept under that very key.
pub trait FileMemory: Send + Sync + Debug {
    /// What was kept under `key`.
    fn recall(&self, key: &str) -> Option<Vec<u8>>;

    /// Keeps `bytes`. Best effort.
    fn keep(&self, key: &str, bytes: &[u8]);
}

/// When the names and attributes were asked for by which remembered files are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenAsked {
    /// By this process, before it believes anything.
    Now,
    /// By the process that started this one, a moment ago: the kernel knows for as long as the
    /// mount lets it, and asks again after that.
    ByStarter,
}

/// All that tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    mode: u16,
    modified_ns: i128,
    changed_ns: i128,
}

impl FileStamp {
    fn key(&self, path: &RepoPath) -> String {
        format!("{} {self:?}", path.as_str())
    }

    /// Was it changed so long before `wall_ms` that the next change has another time? Not so
    /// if it seems to have been changed later: that clock is another, or was set back.
    fn is_settled(&self, wall_ms: u64) -> bool {
        let newest = self.modified_ns.max(self.changed_ns);
        i128::from(wall_ms.saturating_sub(SETTLED_MS)) * NS_PER_MS > newest
    }
}

/// As [`super::own::read`], from `memory` where that has it.
pub(super) fn read(
    store: &PosixStore,
    memory: &dyn FileMemory,
    path: &RepoPath,
    limit: usize,
) -> io::Result<Vec<u8>> {
    let before = if layout::hardly_changes(path) { store.stamp(path) } else { None };
    // What cannot be looked at is told by the call that opens it.
    let Some(before) = before else { return own::read(store, path, limit) };
    let key = before.key(path);
    if let Some(bytes) = memory.recall(&key).filter(|bytes| bytes.len() <= limit) {
        return Ok(bytes);
    }
    let bytes = own::read(store, path, limit)?;
    let is_settled = before.is_settled(SystemClock.now().wall.0);
    if is_settled && store.stamp(path) == Some(before) {
        memory.keep(&key, &bytes);
    }
    Ok(bytes)
}

impl PosixStore {
    /// Remembers small files in `memory` from now on, if the filesystem is one where that
    /// spares requests.
    pub(crate) fn remember_in(
        &self,
        memory: &dyn Fn() -> Option<Box<dyn FileMemory>>,
        asked: WhenAsked,
    ) {
        if !self.names_are_durable() {
            return;
        }
        let Some(memory) = memory() else { return };
        // Only a hint to the kernel, which then knows all entries: without it each is asked for.
        if asked == WhenAsked::Now
            && let Ok(fd) = self.open_dir(&layout::control_dir())
        {
            let _ = read_batch::<REGISTER_BATCH>(&fd, |_| {});
        }
        let _ = self.memory.set(memory);
    }

    /// What `ask` answers about the mount that the root is on. That stays the same for as long
    /// as it is mounted, and is remembered where small files are.
    pub(crate) fn of_mount(&self, about: &str, ask: impl FnOnce() -> bool) -> bool {
        const WORDS: [&[u8]; 2] = [b"no", b"yes"];
        let known = self.memory.get().zip(self.mount_id());
        let Some((memory, id)) = known else { return ask() };
        let key = format!("{about} of mount {id} of boot {}", SystemClock.boot_clock().boot_id);
        let word = memory.recall(&key);
        if let Some(answer) = WORDS.iter().position(|of| word.as_deref() == Some(of)) {
            return answer == 1;
        }
        let answer = ask();
        memory.keep(&key, WORDS[usize::from(answer)]);
        answer
    }

    /// Which mount the root is on, by a number that no other mount of this boot gets. `None`
    /// on kernels that use numbers again.
    fn mount_id(&self) -> Option<u64> {
        const UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);
        let stat = fs::statx(&self.root, "", ASK_NOBODY, UNIQUE).ok()?;
        (stat.stx_mask & UNIQUE.bits() != 0).then_some(stat.stx_mnt_id)
    }

    fn stamp(&self, path: &RepoPath) -> Option<FileStamp> {
        let (dir, name) = self.open_parent(path).ok()?;
        let stat = stat_at(dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW, ENTRY).ok()?;
        if FileType::from_raw_mode(stat.stx_mode.into()) != FileType::RegularFile {
            return None;
        }
        let ns = |time: StatxTimestamp| {
            i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
        };
        Some(FileStamp {
            device: fs::makedev(stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            size: stat.stx_size,
            mode: stat.stx_mode,
            modified_ns: ns(stat.stx_mtime),
            changed_ns: ns(stat.stx_ctime),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::store::Store;

    #[derive(Debug, Default, Clone)]
    struct Memory(Arc<Mutex<HashMap<String, Vec<u8>>>>);

    impl FileMemory for Memory {
        fn recall(&self, key: &str) -> Option<Vec<u8>> {
            self.0.lock().expect("one thread").get(key).cloned()
        }

        fn keep(&self, key: &str, bytes: &[u8]) {
            self.0.lock().expect("one thread").insert(key.to_owned(), bytes.to_vec());
        }
    }

    fn repository() -> (tempfile::TempDir, PosixStore, Memory) {
        let dir = tempfile::tempdir().expect("tempdir");
        let store = PosixStore::open(dir.path()).expect("open");
        store.make_dir(&layout::control_dir()).expect("mkdir");
        let memory = Memory::default();
        let _ = store.memory.set(Box::new(memory.clone()));
        (dir, store, memory)
    }

    /// Last changed so long ago; the change of its inode cannot be made older.
    fn written(store: &PosixStore, bytes: &[u8]) -> RepoPath {
        let path = layout::config();
        let tmp = layout::control_dir().child("tmp").expect("plain");
        store.write_over(&tmp, &path, bytes).expect("written");
        path
    }

    #[test]
    fn what_was_just_changed_is_not_remembered() {
        let (_dir, store, memory) = repository();
        let path = written(&store, b"one");
        assert_eq!(store.read(&path, 100).expect("read"), b"one");
        assert!(memory.0.lock().expect("one thread").is_empty());
        let stamp = store.stamp(&path).expect("there");
        let at_ms = u64::try_from(stamp.changed_ns / NS_PER_MS).expect("after 1970");
        assert!(!stamp.is_settled(at_ms) && !stamp.is_settled(at_ms + SETTLED_MS));
        assert!(!stamp.is_settled(at_ms - SETTLED_MS), "changed in the future");
        assert!(stamp.is_settled(at_ms + SETTLED_MS + 1));
    }

    #[test]
    fn only_the_same_file_in_the_same_state_is_recalled() {
        let (dir, store, memory) = repository();
        let path = written(&store, b"one");
        let remember = || {
            let stamp = store.stamp(&path).expect("there");
            memory.keep(&stamp.key(&path), b"remembered");
        };
        let read = || store.read(&path, 100).expect("read");
        remember();
        assert_eq!(read(), b"remembered");
        written(&store, b"two");
        assert_eq!(read(), b"two", "replaced by one of the same length");
        remember();
        // Once more if it was in the same tick of the clock.
        let before = store.stamp(&path);
        while store.stamp(&path) == before {
            let file = store.open_writable(&path).expect("opened");
            file.write_at(0, b"six").expect("written in place");
        }
        assert_eq!(read(), b"six", "written in place");
        remember();
        store.set_mode(&path, 0o600).expect("chmod");
        assert_eq!(read(), b"six", "other permissions");
        remember();
        store.unlink(&path).expect("removed");
        assert_eq!(store.read(&path, 100).expect_err("gone").kind(), io::ErrorKind::NotFound);
        std::os::unix::fs::symlink("format", dir.path().join(path.as_str())).expect("symlink");
        let error = store.read(&path, 100).expect_err("a symlink");
        assert_eq!(crate::code::code_of_io(&error), crate::code::Code::PathEscape);
    }

    #[test]
    fn a_mount_is_asked_once() {
        let (_dir, store, memory) = repository();
        let mut asked = 0;
        for answer in [true, false] {
            for about in ["one thing", "another"] {
                let told = store.of_mount(about, || {
                    asked += 1;
                    answer
                });
                assert!(told || store.mount_id().is_none(), "as it was first answered");
            }
        }
        assert_eq!(asked, if store.mount_id().is_some() { 2 } else { 4 });
        memory.0.lock().expect("one thread").values_mut().for_each(|word| word.clear());
        assert!(!store.of_mount("one thing", || false), "what is no answer is none");
    }

    #[test]
    fn what_changes_often_and_what_is_too_long_is_read() {
        let (_dir, store, memory) = repository();
        let path = written(&store, b"one");
        memory.keep(&store.stamp(&path).expect("there").key(&path), b"longer than it may be");
        assert_eq!(store.read(&path, 5).expect("read"), b"one");
        let other = layout::control_dir().child("other").expect("plain");
        store.rename(&path, &other).expect("moved");
        memory.keep(&store.stamp(&other).expect("there").key(&other), b"remembered");
        assert_eq!(store.read(&other, 100).expect("read"), b"one");
    }
}
