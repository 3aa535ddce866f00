//! What this user saw of other hosts' locks, kept beside the session's secret so
//! that one who asks again does not start watching again. One small file a
//! worktree, its name a hash; a hint that may be lost or removed at any time.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use jvs_lock::State;
use jvs_lock::judge::Watch;
use jvs_lock::watching::{InMemory, Sightings};
use jvs_repo::clock::{BootClock, BootId, BootMs, Clock, Reading, SystemClock, WallMs};
use jvs_repo::entropy::{Entropy, SystemEntropy};
use jvs_repo::id::{OpNonce, hex, strict_decimal};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::Store;
use rustix::fs::{AtFlags, Mode, OFlags};

use super::secret;
use crate::context::Env;

const DIR: &str = "sightings";
/// More than anybody watches at once; the oldest go first.
const MOST: usize = 256;
/// Longest file.
const READ_MAX: usize = 1024;
/// A file that was not touched for so long helps nobody.
const OLD_MS: u64 = 24 * 3_600_000;

/// Sightings of one repository, in memory and on disk.
pub(crate) struct Remembered {
    memory: InMemory,
    /// `None` where there is no private place.
    dir: Option<OwnedFd>,
    repository: [u64; 2],
}

/// Those of the repository on `store`. Nothing is made before there is something
/// to remember.
pub(crate) fn of(store: &dyn Store, env: Env<'_>) -> Arc<Remembered> {
    // Without a name for the repository nothing is remembered.
    let control = store.stat(&layout::control_dir()).ok();
    let dir = control.and_then(|_| secret::shared_private_dir(env).ok().flatten());
    let repository = control.map_or([0; 2], |stat| [stat.device, stat.inode]);
    Arc::new(Remembered { memory: InMemory::default(), dir, repository })
}

impl Sightings for Remembered {
    fn recall(&self, worktree: &WorktreeName) -> Option<Watch> {
        self.memory.recall(worktree).or_else(|| self.read(worktree))
    }

    fn keep(&self, worktree: &WorktreeName, watch: &Watch) {
        let known = self.memory.recall(worktree);
        self.memory.keep(worktree, watch);
        // Only news are worth a write: how long a name has been there is counted
        // from when it was first seen.
        if known.is_none_or(|known| known.state() != watch.state()) {
            // Best effort: without it the next command watches again.
            let _ = self.write(worktree, watch);
        }
    }
}

impl Remembered {
    fn name(&self, worktree: &WorktreeName) -> String {
        let [device, inode] = self.repository;
        let text = format!("{device} {inode} {worktree}");
        hex(&blake3::derive_key("jvs sighting file v1", text.as_bytes())[..16])
    }

    fn open_dir(&self) -> Option<OwnedFd> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let dir = rustix::fs::openat(self.dir.as_ref()?, DIR, flags, Mode::empty()).ok()?;
        let stat = rustix::fs::fstat(&dir).ok()?;
        secret::is_private(&stat).then_some(dir)
    }

    fn read(&self, worktree: &WorktreeName) -> Option<Watch> {
        let dir = self.open_dir()?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::openat(&dir, self.name(worktree), flags, Mode::empty()).ok()?;
        if !secret::is_private(&rustix::fs::fstat(&file).ok()?) {
            return None;
        }
        let mut bytes = [0; READ_MAX];
        let got = rustix::io::pread(&file, &mut bytes, 0).ok()?;
        let text = std::str::from_utf8(&bytes[..got]).ok()?;
        parse(text, &SystemClock.boot_clock(), SystemClock.now())
    }

    fn write(&self, worktree: &WorktreeName, watch: &Watch) -> Option<()> {
        let dir = match self.open_dir() {
            Some(dir) => dir,
            None => {
                let _ = rustix::fs::mkdirat(self.dir.as_ref()?, DIR, Mode::RWXU);
                self.open_dir()?
            }
        };
        let name = self.name(worktree);
        let tmp = format!("{name}.{}", OpNonce::random(&SystemEntropy as &dyn Entropy));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&dir, &tmp, flags, Mode::RUSR | Mode::WUSR).ok()?;
        let text = print(watch, &SystemClock.boot_clock());
        let written = rustix::io::pwrite(&file, text.as_bytes(), 0) == Ok(text.len());
        if !written || rustix::fs::renameat(&dir, &tmp, &dir, &name).is_err() {
            let _ = rustix::fs::unlinkat(&dir, &tmp, AtFlags::empty());
            return None;
        }
        tidy(&dir);
        Some(())
    }
}

/// Removes what is old, and the oldest of what is too much.
fn tidy(dir: &OwnedFd) {
    let Ok(entries) = rustix::fs::Dir::read_from(dir) else { return };
    let now = SystemClock.now().wall.0;
    let mut files = Vec::new();
    for entry in entries.flatten() {
        if entry.file_name().to_bytes().starts_with(b".") {
            continue;
        }
        let name = entry.file_name().to_owned();
        if let Ok(stat) = rustix::fs::statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
            let changed_ms = u64::try_from(stat.st_mtime).unwrap_or(0).saturating_mul(1_000);
            files.push((changed_ms, name));
        }
    }
    files.sort();
    let too_many = files.len().saturating_sub(MOST);
    for (n, (changed_ms, name)) in files.iter().enumerate() {
        if n < too_many || now.saturating_sub(*changed_ms) > OLD_MS {
            let _ = rustix::fs::unlinkat(dir, name, AtFlags::empty());
        }
    }
}

pub(crate) fn print(watch: &Watch, clock: &BootClock) -> String {
    let (last, since) = (watch.last_look(), watch.since());
    let namespace = clock.time_namespace.map_or("-".to_owned(), |id| id.to_string());
    format!(
        "1\n{}\n{namespace}\n{}\n{}\n{}\n{}\n",
        clock.boot_id,
        since.0,
        last.boot.0,
        last.wall.0,
        watch.state()
    )
}

/// What was seen, if it was seen on `clock` and not in its future.
pub(crate) fn parse(text: &str, clock: &BootClock, now: Reading) -> Option<Watch> {
    let mut lines = text.lines();
    let mut next = || lines.next();
    if next()? != "1" {
        return None;
    }
    let boot_id = BootId(next()?.to_owned());
    let namespace = match next()? {
        "-" => None,
        id => Some(strict_decimal(id)?),
    };
    let since = BootMs(strict_decimal(next()?)?);
    let last =
        Reading { boot: BootMs(strict_decimal(next()?)?), wall: WallMs(strict_decimal(next()?)?) };
    let state: State = next()?.parse().ok()?;
    let seen_here = clock.is(&boot_id, namespace) && since <= now.boot && last.boot <= now.boot;
    if !seen_here {
        return None;
    }
    // A wall clock that was set since says nothing about when the last look was:
    // then only the name counts, and what the clocks say from now on.
    const SET_MS: u64 = 100;
    let last = if now.drift_ms(&last) > SET_MS { now } else { last };
    Some(Watch::resumed(state, since, last))
}

#[cfg(test)]
mod tests {
    use jvs_repo::id::Epoch;

    use super::*;

    fn clock(boot_id: &str, namespace: u64) -> BootClock {
        BootClock { boot_id: BootId(boot_id.into()), time_namespace: Some(namespace) }
    }

    fn at(wall: u64, boot: u64) -> Reading {
        Reading { wall: WallMs(wall), boot: BootMs(boot) }
    }

    fn watch() -> Watch {
        let state = State::birth(Epoch { counter: 1, salt: 2 }, OpNonce([7; 8]));
        Watch::start(state, at(1_000_040, 40), at(1_000_050, 50))
    }

    #[test]
    fn what_was_seen_is_read_back_on_the_same_clock_and_on_no_other() {
        let here = clock("a", 1);
        let text = print(&watch(), &here);
        assert!(text.len() < READ_MAX);
        assert_eq!(parse(&text, &here, at(1_000_100, 100)), Some(watch()));
        for other in [clock("b", 1), clock("a", 2), clock("", 1)] {
            assert_eq!(parse(&text, &other, at(1_000_100, 100)), None, "{other:?}");
        }
        assert_eq!(parse(&text, &here, at(1_000_100, 49)), None, "seen in the future");
        for torn in ["", "1\n", "2\n", &text[..text.len() / 2]] {
            assert_eq!(parse(torn, &here, at(1_000_100, 100)), None, "{torn:?}");
        }
    }

    #[test]
    fn a_wall_clock_that_was_set_since_is_not_taken_for_a_renewal_outside_the_looks() {
        let here = clock("a", 1);
        let now = at(4_600_100, 100);
        let watch = parse(&print(&watch(), &here), &here, now).expect("the name still counts");
        assert_eq!((watch.since(), watch.last_look()), (BootMs(50), now));
    }
}
