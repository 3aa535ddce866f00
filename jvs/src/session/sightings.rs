//! What this user saw of other hosts' locks, kept as a hint so that one who asks again does
//! not start watching again. One small file a worktree, its name a hash.

use std::sync::Arc;

use jvs_lock::State;
use jvs_lock::judge::Watch;
use jvs_lock::watching::{InMemory, Sightings};
use jvs_repo::clock::{BootClock, BootId, BootMs, Clock, Reading, SystemClock, WallMs};
use jvs_repo::id::{hex, strict_decimal};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::Store;

use super::hints::HintFiles;
use crate::context::Env;

const DIR: &str = "sightings";
/// Longest file.
const READ_MAX: usize = 1024;

/// Sightings of one repository, in memory and on disk.
pub(crate) struct Remembered {
    memory: InMemory,
    hints: HintFiles,
    repository: [u64; 2],
}

/// Those of the repository on `store`. Nothing is made before there is something
/// to remember.
pub(crate) fn of(store: &dyn Store, env: Env<'_>) -> Arc<Remembered> {
    // Without a name for the repository nothing is remembered.
    let control = store.stat(&layout::control_dir()).ok();
    let hints = match control {
        Some(_) => HintFiles::of(DIR, env),
        None => HintFiles::nowhere(),
    };
    let repository = control.map_or([0; 2], |stat| [stat.device, stat.inode]);
    Arc::new(Remembered { memory: InMemory::default(), hints, repository })
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
            self.write(worktree, watch);
        }
    }
}

impl Remembered {
    fn name(&self, worktree: &WorktreeName) -> String {
        let [device, inode] = self.repository;
        let text = format!("{device} {inode} {worktree}");
        hex(&blake3::derive_key("jvs sighting file v1", text.as_bytes())[..16])
    }

    fn read(&self, worktree: &WorktreeName) -> Option<Watch> {
        let bytes = self.hints.read(&self.name(worktree), READ_MAX)?;
        let text = std::str::from_utf8(&bytes).ok()?;
        parse(text, &SystemClock.boot_clock(), SystemClock.now())
    }

    fn write(&self, worktree: &WorktreeName, watch: &Watch) {
        let text = print(watch, &SystemClock.boot_clock());
        self.hints.write(&self.name(worktree), text.as_bytes());
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
    use jvs_repo::id::{Epoch, OpNonce};

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
