//! READing a register: what it says, or what is wrong with it.

use std::ffi::OsString;
use std::io;
use std::ops::Deref;

use jvs_lock::State;
use jvs_lock::register::{ReadError, Register, may_pass, pauses};
use jvs_repo::id::Epoch;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::{DirEntryKind, RepoPath, Store};

use crate::patient::Patient;
use crate::survey::is_absent;

/// What is wrong with a register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    Missing,
    Empty,
    /// More than one entry, those that are states.
    Several(Vec<State>),
    /// Entries that are not states.
    Unparsable(Vec<String>),
    /// Entries whose names are not even text: nothing of ours can spell them.
    NotUtf8(Vec<OsString>),
    /// An entry that a later version wrote.
    Newer(String),
    NotADirectory(DirEntryKind),
    Io(String),
}

/// What a register was READ as. A process that has one has READ it: there is no other way
/// to make one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    worktree: WorktreeName,
    state: State,
}

impl Read {
    /// READs the register of `worktree`, and says what is wrong with one that
    /// cannot be READ.
    pub(crate) fn register(patient: &Patient<'_>, worktree: &WorktreeName) -> Result<Self, Fault> {
        let seams = patient.seams;
        let read = Register::new(seams.store, seams.clock, worktree.clone()).read();
        Read::understood(patient, worktree, read)
    }

    /// The same without patience: for a register that made no sense before.
    pub(crate) fn at_once(patient: &Patient<'_>, worktree: &WorktreeName) -> Result<Self, Fault> {
        let seams = patient.seams;
        let read = Register::new(seams.store, seams.clock, worktree.clone()).read_once();
        Read::understood(patient, worktree, read)
    }

    /// READs the registers of many worktrees, each as often as one that is READ alone.
    /// Those that make no sense are waited for together: a hundred thousand directories
    /// that somebody made take no longer than one.
    pub(crate) fn all(
        patient: &Patient<'_>,
        worktrees: impl IntoIterator<Item = WorktreeName>,
    ) -> Vec<(WorktreeName, Result<Self, Fault>)> {
        let seams = patient.seams;
        let once = |worktree: &WorktreeName| {
            Register::new(seams.store, seams.clock, worktree.clone()).read_once()
        };
        let senseless = |read: &Result<State, ReadError>| read.as_ref().is_err_and(may_pass);
        let mut all: Vec<_> = worktrees
            .into_iter()
            .map(|worktree| {
                let read = once(&worktree);
                (worktree, read)
            })
            .collect();
        for pause_ms in pauses() {
            if !all.iter().any(|(_, read)| senseless(read)) {
                break;
            }
            seams.clock.sleep_ms(pause_ms);
            for (worktree, read) in all.iter_mut().filter(|(_, read)| senseless(read)) {
                *read = once(worktree);
            }
        }
        let understood = |(worktree, read)| {
            let read = Read::understood(patient, &worktree, read);
            (worktree, read)
        };
        all.into_iter().map(understood).collect()
    }

    fn understood(
        patient: &Patient<'_>,
        worktree: &WorktreeName,
        read: Result<State, ReadError>,
    ) -> Result<Self, Fault> {
        let seams = patient.seams;
        let dir = layout::register(worktree);
        let made = |state| Read { worktree: worktree.clone(), state };
        match read {
            Ok(state) => Ok(made(state)),
            Err(ReadError::Missing { .. }) => Err(Fault::Missing),
            Err(ReadError::Corrupt { .. } | ReadError::WentBack { .. }) => {
                match classify(seams.store, &dir) {
                    Ok(Some(fault)) => Err(fault),
                    // Exactly one entry by now is one that somebody just repaired.
                    Ok(None) => Register::new(seams.store, seams.clock, worktree.clone())
                        .read()
                        .map(made)
                        .map_err(|error| Fault::Io(error.to_string())),
                    Err(error) => Err(Fault::Io(error.to_string())),
                }
            }
            Err(ReadError::Io { source, .. }) => match seams.store.stat(&dir) {
                Ok(stat) if stat.kind != DirEntryKind::Directory => {
                    Err(Fault::NotADirectory(stat.kind))
                }
                _ => Err(Fault::Io(source.to_string())),
            },
        }
    }

    /// READs the register that was buried when a worktree of that name was removed.
    pub(crate) fn buried(
        patient: &Patient<'_>,
        worktree: &WorktreeName,
        epoch: Epoch,
    ) -> Result<Self, ReadError> {
        let seams = patient.seams;
        let grave = layout::buried_register(worktree, epoch);
        let state = Register::at(seams.store, seams.clock, worktree.clone(), grave).read()?;
        Ok(Read { worktree: worktree.clone(), state })
    }

    /// Whose register it is.
    pub(crate) fn worktree(&self) -> &WorktreeName {
        &self.worktree
    }
}

impl Deref for Read {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

fn classify(store: &dyn Store, dir: &RepoPath) -> io::Result<Option<Fault>> {
    match store.stat(dir) {
        Ok(stat) if stat.kind != DirEntryKind::Directory => {
            return Ok(Some(Fault::NotADirectory(stat.kind)));
        }
        Ok(_) => {}
        Err(error) if is_absent(&error) => return Ok(Some(Fault::Missing)),
        Err(error) => return Err(error),
    }
    let mut states = Vec::new();
    let mut others = Vec::new();
    let mut nameless = Vec::new();
    for entry in store.list(dir)? {
        if entry.name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let Some(name) = entry.name.to_str() else {
            nameless.push(entry.name);
            continue;
        };
        match name.parse::<State>() {
            Ok(state) => states.push(state),
            Err(_) => others.push(name.to_owned()),
        }
    }
    if !nameless.is_empty() {
        nameless.sort();
        return Ok(Some(Fault::NotUtf8(nameless)));
    }
    others.sort();
    states.sort_by_key(|state| (state.epoch.counter, state.seq));
    Ok(match (states.len(), others.as_slice()) {
        (_, others) if others.iter().any(|name| is_later_format(name)) => {
            Some(Fault::Newer(others.join(", ")))
        }
        (0, []) => Some(Fault::Empty),
        (1, []) => None,
        (_, []) => Some(Fault::Several(states)),
        _ => Some(Fault::Unparsable(others.to_vec())),
    })
}

/// Is `entry` of a register one that a later version of JVS wrote?
fn is_later_format(entry: &str) -> bool {
    let format = entry.split('.').next().unwrap_or_default();
    entry.parse::<State>().is_err()
        && format.parse::<u64>().is_ok_and(|number| number > 2)
        && entry.split('.').count() > 4
}
