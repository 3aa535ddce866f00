//! How far a second mount of the same volume lags behind the first: measured by
//! changing something here and looking at it there.

use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::store::{RepoPath, Store};

use super::{ProbeError, Scratch};

/// How many changes are made.
const ROUNDS: u64 = 100;
/// How many of them change content.
const CONTENT_ROUNDS: u64 = 3;
/// Longest wait for content to arrive.
const CONTENT_WAIT_MS: u64 = 10_000;
/// Between two looks.
const LOOK_MS: u64 = 5;

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Staleness {
    /// How many renames were made.
    pub renames: u64,
    /// How many of them a listing through the second mount did not show at once.
    pub stale_listings: u64,
    /// Longest time until a replaced file's content was seen there.
    pub content_ms: u64,
    /// Was there content that did not arrive at all?
    pub content_lost: bool,
}

impl Staleness {
    /// May the register be read through the second mount?
    pub fn is_safe(&self) -> bool {
        self.stale_listings == 0
    }
}

/// Measures in a scratch directory in `dir`, which both stores show.
pub fn staleness(
    here: &dyn Store,
    there: &dyn Store,
    dir: &RepoPath,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
) -> Result<Staleness, ProbeError> {
    let scratch = Scratch::make(here, dir, entropy)?;
    let measured = measure(here, there, &scratch.path, clock)?;
    scratch.remove()?;
    Ok(measured)
}

fn measure(
    here: &dyn Store,
    there: &dyn Store,
    scratch: &RepoPath,
    clock: &dyn Clock,
) -> Result<Staleness, ProbeError> {
    let register = scratch.plain_child("register");
    here.make_dir(&register).map_err(ProbeError::while_doing("make a directory"))?;
    let entry = |n: u64| register.plain_child(&format!("state-{n}"));
    drop(here.create_new(&entry(0)).map_err(ProbeError::while_doing("make a file"))?);
    let mut seen =
        Staleness { renames: ROUNDS, stale_listings: 0, content_ms: 0, content_lost: false };
    for n in 1..=ROUNDS {
        here.rename(&entry(n - 1), &entry(n)).map_err(ProbeError::while_doing("rename a file"))?;
        let names = there
            .first_batch(&register)
            .map_err(ProbeError::while_doing("list through the second mount"))?;
        let expected = format!("state-{n}");
        seen.stale_listings += u64::from(names.len() != 1 || names[0] != *expected);
    }
    let (file, tmp) = (scratch.plain_child("content"), scratch.plain_child("tmp"));
    for n in 0..CONTENT_ROUNDS {
        let text = format!("{n:08}");
        here.write_over(&tmp, &file, text.as_bytes())
            .map_err(ProbeError::while_doing("replace a file"))?;
        let began = clock.now().boot;
        loop {
            let waited = clock.now().boot.since(began);
            let arrived = there.read(&file, 64).is_ok_and(|bytes| bytes == text.as_bytes());
            if arrived || waited > CONTENT_WAIT_MS {
                seen.content_ms = seen.content_ms.max(waited);
                seen.content_lost |= !arrived;
                break;
            }
            clock.sleep_ms(LOOK_MS);
        }
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::entropy::SystemEntropy;
    use crate::store::PosixStore;

    #[test]
    fn one_mount_is_never_stale_against_itself_and_nothing_is_left() {
        let dir = tempfile::tempdir().expect("tempdir");
        let (here, there) = (
            PosixStore::open(dir.path()).expect("open"),
            PosixStore::open(dir.path()).expect("open"),
        );
        let root = RepoPath::root();
        let seen = staleness(&here, &there, &root, &SystemClock, &SystemEntropy).expect("measured");
        assert!(seen.is_safe() && !seen.content_lost, "{seen:?}");
        assert!(here.list(&root).expect("listed").is_empty());
    }
}
