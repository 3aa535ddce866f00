//! The fence register: a directory with exactly one empty file whose *name* is
//! the state. READ, and what the answer of a CAS means. Decides nothing about who may
//! hold, which is for [`crate::decide`], and moves nothing, which is for `drive`.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::io;

use jvs_repo::clock::Clock;
use jvs_repo::code::{Code, Coded, code_of_io};
use jvs_repo::id::{Epoch, OpNonce, Seq};
use jvs_repo::layout;
use jvs_repo::name::{ShownName, WorktreeName};
use jvs_repo::next::Next;
use jvs_repo::sabotage;
use jvs_repo::store::{RepoPath, Store};
use rustix::io::Errno;

use crate::backoff::Backoff;
use crate::mutation::Rule;
use crate::state::State;

/// How often a READ that makes no sense is tried again.
const READ_TRIES: u32 = 6;

/// Why the register could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no register for this worktree.
    #[error("the fence register of worktree '{worktree}' is missing")]
    Missing {
        /// The worktree.
        worktree: WorktreeName,
    },
    /// Not exactly one entry with a valid name.
    #[error("the fence register of worktree '{worktree}' is corrupt: {found}")]
    Corrupt {
        /// The worktree.
        worktree: WorktreeName,
        /// What is there instead.
        found: String,
    },
    /// The filesystem shows a state older than one it has shown before.
    #[error(
        "the filesystem went back in time: the register of worktree '{worktree}' was at {}/{} and \
         is now shown at {}/{}",
        seen.0, seen.1, shown.0, shown.1
    )]
    WentBack {
        /// The worktree.
        worktree: WorktreeName,
        /// The newest state seen, as (epoch, seq).
        seen: (Epoch, Seq),
        /// What is shown now.
        shown: (Epoch, Seq),
    },
    /// The filesystem failed.
    #[error("cannot read the fence register of worktree '{worktree}': {source}")]
    Io {
        /// The worktree.
        worktree: WorktreeName,
        /// The system's answer.
        source: io::Error,
    },
}

impl Coded for ReadError {
    fn code(&self) -> Code {
        match self {
            ReadError::Missing { .. } | ReadError::Corrupt { .. } => Code::FenceCorrupt,
            ReadError::WentBack { .. } => Code::UnsafeFilesystem,
            ReadError::Io { source, .. } => code_of_io(source),
        }
    }

    fn next(&self) -> Option<Next> {
        Some(match self {
            ReadError::Missing { .. } | ReadError::Corrupt { .. } => Next::StopWritersAndRepair,
            ReadError::WentBack { .. } => Next::ProbeFilesystem,
            ReadError::Io { source, .. } if code_of_io(source) == Code::PathEscape => {
                Next::RemoveSymlink
            }
            ReadError::Io { .. } => {
                "check that the filesystem is mounted and healthy, then try again".into()
            }
        })
    }
}

/// What a rename's answer means.
#[derive(Debug)]
pub enum Answer {
    /// The rename was applied.
    Applied,
    /// Certainly not applied.
    Refused(io::Error),
    /// It may have been applied, or may yet be.
    Unknown(io::Error),
}

impl Answer {
    /// Sorts a rename's answer. Everything that is not a plain refusal is unknown.
    pub fn of(answer: io::Result<()>) -> Self {
        let Err(error) = answer else { return Answer::Applied };
        let refused = match error.raw_os_error() {
            Some(errno) => is_refusal(Errno::from_raw_os_error(errno)),
            // Explained by the store: no errno any more.
            None => matches!(code_of_io(&error), Code::Permission | Code::UnsafeFilesystem),
        };
        if refused { Answer::Refused(error) } else { Answer::Unknown(error) }
    }
}

/// What only a rename that was not applied is answered with.
const REFUSALS: [Errno; 5] =
    [Errno::ROFS, Errno::ACCESS, Errno::PERM, Errno::NAMETOOLONG, Errno::XDEV];

/// Is it one of [`REFUSALS`]? ENOENT is none: metadata engines were seen to answer it for
/// a rename that they had applied and whose reply was lost.
fn is_refusal(errno: Errno) -> bool {
    sabotage!(Rule::EnoentIsUnknown => errno == Errno::NOENT || REFUSALS.contains(&errno));
    REFUSALS.contains(&errno)
}

/// Is this the kind of failure that a network filesystem gets over by itself?
pub fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error().map(Errno::from_raw_os_error),
        Some(
            Errno::IO
                | Errno::STALE
                | Errno::TIMEDOUT
                | Errno::AGAIN
                | Errno::NOTCONN
                | Errno::INTR
        )
    )
}

/// One worktree's register, with a memory of the newest state seen.
pub struct Register<'r> {
    store: &'r dyn Store,
    clock: &'r dyn Clock,
    worktree: WorktreeName,
    dir: RepoPath,
    newest: Cell<Option<(Epoch, Seq)>>,
    marked: Cell<bool>,
}

impl<'r> Register<'r> {
    /// The register of `worktree`. Touches nothing.
    pub fn new(store: &'r dyn Store, clock: &'r dyn Clock, worktree: WorktreeName) -> Self {
        let dir = layout::register(&worktree);
        Register::at(store, clock, worktree, dir)
    }

    /// A register that was put aside: as [`Register::new`], but at `dir`.
    pub fn at(
        store: &'r dyn Store,
        clock: &'r dyn Clock,
        worktree: WorktreeName,
        dir: RepoPath,
    ) -> Self {
        Register { store, clock, worktree, dir, newest: Cell::new(None), marked: Cell::new(false) }
    }

    /// Whose register this is.
    pub fn worktree(&self) -> &WorktreeName {
        &self.worktree
    }

    /// READ: the current state, never an older one than was seen before.
    pub fn read(&self) -> Result<State, ReadError> {
        let mut pauses = pauses();
        loop {
            match (self.read_once(), pauses.next()) {
                (Err(error), Some(pause_ms)) if may_pass(&error) => self.clock.sleep_ms(pause_ms),
                (read, _) => return read,
            }
        }
    }

    /// One try of a READ. What [`may_pass`] of its answers proves nothing yet: a process that
    /// READs many registers pauses for all of them at once, for each of [`pauses`].
    pub fn read_once(&self) -> Result<State, ReadError> {
        let names = self.store.first_batch(&self.dir).map_err(|source| {
            let worktree = self.worktree.clone();
            match source.kind() {
                io::ErrorKind::NotFound => ReadError::Missing { worktree },
                io::ErrorKind::NotADirectory => {
                    ReadError::Corrupt { worktree, found: "it is not a directory".into() }
                }
                _ => ReadError::Io { worktree, source },
            }
        })?;
        let is_mark = |name: &OsString| name.to_str().and_then(layout::restore_mark_of).is_some();
        self.marked.set(names.iter().any(is_mark));
        let is_entry = |name: &&OsString| !name.as_encoded_bytes().starts_with(b".");
        let mut entries = names.iter().filter(is_entry);
        let corrupt = |found: String| ReadError::Corrupt { worktree: self.worktree.clone(), found };
        let name = match (entries.next(), entries.count()) {
            (None, _) => return Err(corrupt("it is empty".into())),
            (Some(name), 0) => name,
            (Some(_), more) => {
                let other = names.iter().filter(is_entry).find(|name| state_of(name).is_none());
                let other = other.map_or_else(String::new, |name| {
                    format!(", and '{}' is not a state", ShownName::new(name))
                });
                return Err(corrupt(format!("it has {} entries{other}", more + 1)));
            }
        };
        let state = state_of(name).ok_or_else(|| {
            corrupt(format!("its entry '{}' is not a state", ShownName::new(name)))
        })?;
        self.remember(state)
    }

    /// Did the last READ see the mark of a restore beside the state? It is there from
    /// before the last renewal under which that restore may be committed, so a
    /// process that moves the register on from what it READ saw it then.
    pub fn is_marked(&self) -> bool {
        self.marked.get()
    }

    /// Takes `state` for what a READ has just shown: another handle's of this process.
    pub(crate) fn take_for_read(&self, state: State) -> Result<State, ReadError> {
        self.remember(state)
    }

    /// Ignores what is older than what was seen: caches, and engines that were
    /// rolled back. Without this a committed publish may be reported as lost.
    fn remember(&self, state: State) -> Result<State, ReadError> {
        let shown = (state.epoch, state.seq);
        if let Some(seen) = self.newest.get()
            && !goes_on(seen, shown)
        {
            return Err(ReadError::WentBack { worktree: self.worktree.clone(), seen, shown });
        }
        self.newest.set(Some(shown));
        Ok(state)
    }

    /// The entry that `state` has. Only [`crate::drive`] needs it, which renames one.
    pub(crate) fn entry_of(&self, state: &State) -> RepoPath {
        self.dir.child(&state.to_string()).expect("a state's name has no slash")
    }

    /// A CAS to `state` was applied: nothing older is believed any more.
    pub(crate) fn was_moved_to(&self, state: &State) {
        self.newest.set(Some((state.epoch, state.seq)));
    }

    /// Makes a mount that serves a cached listing look again, by changing the
    /// directory under a dot-name, which no READ counts.
    pub fn shake(&self, op: OpNonce) -> io::Result<()> {
        let probe = layout::probe_scratch(&self.dir, op);
        drop(self.store.create_own(&probe)?);
        self.store.remove(&probe)
    }

    /// Makes the current state survive a power cut.
    pub fn sync(&self) -> io::Result<()> {
        self.store.sync_dir(&self.dir)
    }
}

/// May a register that was at `seen` be at `shown`? Of another epoch with the same counter
/// nobody knows that it is not older.
fn goes_on(seen: (Epoch, Seq), shown: (Epoch, Seq)) -> bool {
    sabotage!(Rule::MonotoneReads => true);
    shown >= seen
}

fn state_of(name: &OsStr) -> Option<State> {
    name.to_str()?.parse().ok()
}

/// Could the next READ answer better? btrfs shows an empty directory for a
/// moment in the middle of a rename, and caches catch up.
/// How long a READ pauses before it is tried again, each time.
pub fn pauses() -> impl Iterator<Item = u64> {
    let mut backoff = Backoff::new();
    (1..READ_TRIES).map(move |_| backoff.next_ms())
}

/// May the next try of a READ make more sense?
pub fn may_pass(error: &ReadError) -> bool {
    match error {
        ReadError::Missing { .. } => false,
        ReadError::Corrupt { .. } | ReadError::WentBack { .. } => true,
        ReadError::Io { source, .. } => is_transient(source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_five_answers_say_that_a_rename_was_not_applied() {
        // EPERM, EACCES, EXDEV, EROFS, ENAMETOOLONG; EBUSY, for one, says nothing.
        const REFUSALS: [i32; 5] = [1, 13, 18, 30, 36];
        const LAST_ERRNO: i32 = 133;
        for errno in 1..=LAST_ERRNO {
            let answer = Answer::of(Err(io::Error::from_raw_os_error(errno)));
            let refused = matches!(answer, Answer::Refused(_));
            assert_eq!(refused, REFUSALS.contains(&errno), "errno {errno}");
            assert!(!matches!(answer, Answer::Applied), "errno {errno}");
        }
    }
}
