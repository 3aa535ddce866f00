//! What there is: read once, in the order that the protocol's rules need.
//!
//! Registers are READ first. What is listed after a READ can be judged by it;
//! the other way round, what is committed in between would look dead.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::io;

use jvs_lock::history::{self, Logs};
use jvs_lock::liveness::{Here, Liveness, maker_liveness};
use jvs_lock::record::Found;
use jvs_lock::register::{ReadError, Register};
use jvs_lock::{Hold, State, View, view};
use jvs_repo::clock::Reading;
use jvs_repo::config::{Config, ConfigError};
use jvs_repo::id::{Epoch, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::{self, Listing, Maker};
use jvs_repo::store::{Kind, RepoPath, Store};
use jvs_snapshot::descriptor::{self, Descriptor};
use jvs_snapshot::hash::Digest;

use crate::finding::{Check, Depth, Report};
use crate::patient::Patient;
use crate::remedy::is_later_format;

/// What is wrong with a register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    Missing,
    Empty,
    /// More than one entry, those that are states.
    Several(Vec<State>),
    /// Entries that are no states.
    Unparsable(Vec<String>),
    /// An entry that a later version wrote.
    Newer(String),
    NotADirectory(Kind),
    Io(String),
}

/// A directory of a snapshot.
#[derive(Debug)]
pub(crate) struct Snap {
    pub(crate) ready: bool,
    pub(crate) staged: bool,
    pub(crate) payload: bool,
    pub(crate) descriptor: Result<(Descriptor, Digest), String>,
}

impl Snap {
    pub(crate) fn described(&self) -> Option<&Descriptor> {
        self.descriptor.as_ref().ok().map(|(descriptor, _)| descriptor)
    }
}

/// What is in the directory of a snapshot.
struct Parts {
    ready: bool,
    staged: bool,
    payload: bool,
}

/// Everything that was seen.
pub(crate) struct Survey<'p, 'r> {
    pub(crate) patient: &'p Patient<'r>,
    pub(crate) depth: Depth,
    pub(crate) began: Reading,
    pub(crate) config: Result<Config, ConfigError>,
    pub(crate) policy: jvs_repo::config::LockPolicy,
    pub(crate) worktrees: Listing,
    /// Names in the directory of locks.
    pub(crate) locks: BTreeSet<String>,
    pub(crate) registers: BTreeMap<WorktreeName, Result<State, Fault>>,
    /// Registers of removed worktrees.
    pub(crate) buried: BTreeMap<WorktreeName, Vec<(Epoch, Option<State>)>>,
    pub(crate) views: BTreeMap<WorktreeName, View>,
    pub(crate) staging: Vec<OsString>,
    pub(crate) snapshots: BTreeMap<SnapshotId, Snap>,
    pub(crate) tombstones: BTreeMap<SnapshotId, Result<Descriptor, String>>,
    pub(crate) snapshot_names: Vec<OsString>,
    pub(crate) logs: Logs,
    /// What the filesystem refused to show: nothing follows from its absence.
    pub(crate) unseen: Vec<String>,
}

impl<'p, 'r> Survey<'p, 'r> {
    pub(crate) fn take(patient: &'p Patient<'r>, depth: Depth, report: &mut Report) -> Self {
        let seams = patient.seams;
        let store = seams.store;
        let began = seams.clock.now();
        let config = Config::read(store);
        let policy = config.as_ref().map(|config| config.lock).unwrap_or_default();
        let mut survey = Survey {
            patient,
            depth,
            began,
            config,
            policy,
            worktrees: Listing::default(),
            locks: BTreeSet::new(),
            registers: BTreeMap::new(),
            buried: BTreeMap::new(),
            views: BTreeMap::new(),
            staging: Vec::new(),
            snapshots: BTreeMap::new(),
            tombstones: BTreeMap::new(),
            snapshot_names: Vec::new(),
            logs: Logs::default(),
            unseen: Vec::new(),
        };
        survey.read_registers(report);
        survey.look_at_locks();
        if depth == Depth::Full {
            survey.staging = survey.names(&layout::staging(), report);
            survey.snapshot_names = survey.names(&layout::snapshots(), report);
            survey.read_snapshots();
            match history::read_logs(store) {
                Ok(logs) => {
                    for (writer, error) in &logs.unread {
                        survey.log_refused(&layout::audit_log(writer), error, report);
                    }
                    survey.logs = logs;
                }
                // A directory that is missing is another check's.
                Err(error) if is_absent(&error) => {}
                Err(error) => survey.refused(&layout::audit(), &error, report),
            }
        }
        survey
    }

    pub(crate) fn store(&self) -> &'r dyn Store {
        self.patient.seams.store
    }

    /// The state of a register that can be read.
    pub(crate) fn state(&self, worktree: &WorktreeName) -> Option<&State> {
        self.registers.get(worktree)?.as_ref().ok()
    }

    /// What can be said of work that was begun in `worktree`.
    pub(crate) fn judging(&self, worktree: &WorktreeName) -> Option<&State> {
        match self.registers.get(worktree) {
            Some(Ok(state)) => Some(state),
            // Nobody knows what a broken register would say.
            Some(Err(_)) => None,
            None => {
                let graves = self.buried.get(worktree)?;
                graves.iter().max_by_key(|(epoch, _)| *epoch)?.1.as_ref()
            }
        }
    }

    /// Does the worktree have a record, readable or not? The first one always is there.
    pub(crate) fn is_recorded(&self, worktree: &WorktreeName) -> bool {
        worktree.is_main() || self.worktrees.worktrees.iter().any(|(name, _)| name == worktree)
    }

    /// Is a process that was at work on a worktree still there?
    pub(crate) fn liveness(&self, maker: &Maker) -> Liveness {
        let clock = self.patient.seams.clock.boot_clock();
        let surroundings = &self.patient.surroundings;
        let here = Here { clock: &clock, pid_namespace: surroundings.pid_namespace };
        maker_liveness(maker, here, surroundings.lookup)
    }

    /// READs a register once more: what was seen may have been overtaken.
    pub(crate) fn read_again(&self, worktree: &WorktreeName) -> Result<State, Fault> {
        read_register(self.patient, worktree)
    }

    /// Has nothing happened to the register since it was READ?
    pub(crate) fn is_unchanged(&self, worktree: &WorktreeName) -> bool {
        let before = self.registers.get(worktree);
        before.is_some_and(|before| *before == self.read_again(worktree))
    }

    fn read_registers(&mut self, report: &mut Report) {
        let store = self.store();
        self.worktrees = match worktree::list(store) {
            Ok(listing) => listing,
            Err(error) => {
                if !self.is_missing(&layout::worktree_records()) {
                    self.refused(&layout::worktree_records(), &error, report);
                }
                Listing::default()
            }
        };
        self.locks = self
            .names(&layout::locks(), report)
            .into_iter()
            .filter_map(|name| name.into_string().ok())
            .collect();
        let recorded = self.worktrees.worktrees.iter().map(|(name, _)| name.clone());
        let mut all: BTreeSet<WorktreeName> = recorded.collect();
        all.extend(self.locks.iter().filter_map(|file| layout::worktree_of_register(file)));
        all.insert(WorktreeName::main());
        for worktree in all {
            let seen = read_register(self.patient, &worktree);
            // A worktree that was removed between the two looks is no fault.
            let gone = matches!(seen, Err(Fault::Missing))
                && !worktree.is_main()
                && self.is_missing(&layout::worktree_record(&worktree));
            match seen {
                _ if gone => {}
                // The register of a worktree that was removed: only its tokens count.
                Ok(state)
                    if state.hold == Hold::Retired
                        && self.is_missing(&layout::worktree_record(&worktree)) =>
                {
                    self.buried.entry(worktree).or_default().push((state.epoch, Some(state)));
                }
                seen => {
                    self.registers.insert(worktree, seen);
                }
            }
        }
        let graves: Vec<_> =
            self.locks.iter().filter_map(|file| layout::worktree_of_buried(file)).collect();
        for (worktree, epoch) in graves {
            let state = match self.depth {
                Depth::Quick => None,
                Depth::Full => {
                    let grave = layout::buried_register(&worktree, epoch);
                    let clock = self.patient.seams.clock;
                    let read = Register::at(store, clock, worktree.clone(), grave.clone()).read();
                    if let Err(ReadError::Io { source, .. }) = &read {
                        self.refused(&grave, source, report);
                    }
                    read.ok()
                }
            };
            self.buried.entry(worktree).or_default().push((epoch, state));
        }
    }

    fn look_at_locks(&mut self) {
        let seams = self.patient.seams;
        let mut refused = Vec::new();
        for (worktree, state) in &self.registers {
            let Ok(state) = state else { continue };
            let name = layout::lock_record(worktree);
            let theirs = layout::legacy_lock(worktree);
            let there = |path: &RepoPath| self.locks.contains(path.split().1);
            if state.hold.claim().is_none() && !there(&name) && !there(&theirs) {
                continue;
            }
            let view = match view::examine(seams, &self.policy, worktree, *state, None, None) {
                Ok(view) => view,
                // A symlink, which is another check's.
                Err(_) => continue,
            };
            if let Found::Refused(why) = &view.found {
                refused.push((name, why.clone()));
            }
            self.views.insert(worktree.clone(), view);
        }
        // Whatever it says may be newer than all else that is known.
        self.unseen.extend(refused.iter().map(|(name, why)| format!("{name}: {why}")));
    }

    fn read_snapshots(&mut self) {
        let store = self.store();
        let unseen = std::cell::RefCell::new(Vec::new());
        // What cannot be looked at may be there.
        let there = |path: RepoPath| match store.stat(&path) {
            Ok(_) => true,
            Err(error) if is_absent(&error) => false,
            Err(error) => {
                unseen.borrow_mut().push(format!("{path}: {error}"));
                true
            }
        };
        // From one listing, not by look-ups: a mount may remember that READY was not
        // there, and what has no READY may be taken for garbage.
        let parts = |dir: &RepoPath| match store.list(dir) {
            Ok(entries) => {
                let has = |path: RepoPath| entries.iter().any(|e| e.name == path.split().1);
                Parts {
                    ready: has(layout::ready(dir)),
                    staged: has(layout::ready_staged(dir)),
                    payload: has(layout::snapshot_payload(dir)),
                }
            }
            Err(error) => {
                let absent = is_absent(&error);
                if !absent {
                    unseen.borrow_mut().push(format!("{dir}: {error}"));
                }
                Parts { ready: !absent, staged: !absent, payload: !absent }
            }
        };
        let describe = |path: RepoPath, id| {
            describe(store, &path, id).map_err(|why| match why {
                Why::Refused(why) => {
                    unseen.borrow_mut().push(format!("{path}: {why}"));
                    why
                }
                Why::Wrong(why) => why,
            })
        };
        for name in &self.snapshot_names {
            let Some(name) = name.to_str() else { continue };
            if let Some(id) = layout::id_of_snapshot(name) {
                let dir = layout::snapshot(id);
                let Parts { ready, staged, payload } = parts(&dir);
                let descriptor = describe(layout::descriptor(&dir), id);
                let snap = Snap { ready, staged, payload, descriptor };
                // Collected while it was looked at.
                if snap.descriptor.is_err() && !there(dir) {
                    continue;
                }
                self.snapshots.insert(id, snap);
            } else if let Some(id) = layout::id_of_tombstone(name) {
                let read = describe(layout::tombstone(id), id);
                self.tombstones.insert(id, read.map(|(descriptor, _)| descriptor));
            }
        }
        self.unseen.extend(unseen.into_inner());
    }

    /// Did the filesystem refuse to show this?
    pub(crate) fn is_unseen(&self, path: &RepoPath) -> bool {
        let told = |unseen: &String| {
            unseen.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with(':'))
        };
        self.unseen.iter().any(told)
    }

    /// The filesystem refused to show something.
    fn refused(&mut self, path: &RepoPath, error: &dyn fmt::Display, report: &mut Report) {
        self.unseen.push(format!("{path}: {error}"));
        report.unreadable(path, error);
    }

    /// A log that cannot be read: what only it knows is missing, and nothing else.
    fn log_refused(&mut self, path: &RepoPath, error: &io::Error, report: &mut Report) {
        self.unseen.push(format!("{path}: {error}"));
        let message = format!("this log cannot be read: {error}");
        report.add(Check::Unreadable, path, message).advice(format!(
            "check the mount and the permissions of {path}; if it is lost for good, move it out \
             of the repository: what only it told is missing then, and a register is rebuilt \
             without it"
        ));
    }

    fn names(&mut self, dir: &RepoPath, report: &mut Report) -> Vec<OsString> {
        match self.store().list(dir) {
            Ok(entries) => {
                let mut names: Vec<OsString> =
                    entries.into_iter().map(|entry| entry.name).collect();
                names.sort();
                names
            }
            // Missing, or a symlink or file in its place: the skeleton's check tells.
            Err(error) if is_absent(&error) || is_symlink(&error) => Vec::new(),
            Err(error) => {
                self.refused(dir, &error, report);
                Vec::new()
            }
        }
    }

    /// What describes a snapshot, collected or not.
    pub(crate) fn descriptor(&self, id: SnapshotId) -> Option<&Descriptor> {
        let there = self.snapshots.get(&id).and_then(Snap::described);
        there.or_else(|| self.tombstones.get(&id)?.as_ref().ok())
    }

    /// Was it visible, whether or not it was collected since?
    pub(crate) fn was_ready(&self, id: SnapshotId) -> bool {
        self.snapshots.get(&id).is_some_and(|snap| snap.ready) || self.tombstones.contains_key(&id)
    }

    pub(crate) fn is_missing(&self, path: &RepoPath) -> bool {
        matches!(self.store().stat(path), Err(error) if is_absent(&error))
    }
}

/// READs a register, and says what is wrong with one that cannot be.
pub(crate) fn read_register(
    patient: &Patient<'_>,
    worktree: &WorktreeName,
) -> Result<State, Fault> {
    let seams = patient.seams;
    match Register::new(seams.store, seams.clock, worktree.clone()).read() {
        Ok(state) => Ok(state),
        Err(ReadError::Missing { .. }) => Err(Fault::Missing),
        Err(ReadError::Corrupt { .. } | ReadError::WentBack { .. }) => {
            // Exactly one entry by now is one that somebody just mended.
            match classify(seams.store, &layout::register(worktree)) {
                Ok(Some(fault)) => Err(fault),
                Ok(None) => {
                    let again = Register::new(seams.store, seams.clock, worktree.clone()).read();
                    again.map_err(|error| Fault::Io(error.to_string()))
                }
                Err(error) => Err(Fault::Io(error.to_string())),
            }
        }
        Err(ReadError::Io { source, .. }) => match seams.store.stat(&layout::register(worktree)) {
            Ok(stat) if stat.kind != Kind::Directory => Err(Fault::NotADirectory(stat.kind)),
            _ => Err(Fault::Io(source.to_string())),
        },
    }
}

fn classify(store: &dyn Store, dir: &RepoPath) -> io::Result<Option<Fault>> {
    match store.stat(dir) {
        Ok(stat) if stat.kind != Kind::Directory => {
            return Ok(Some(Fault::NotADirectory(stat.kind)));
        }
        Ok(_) => {}
        Err(error) if is_absent(&error) => return Ok(Some(Fault::Missing)),
        Err(error) => return Err(error),
    }
    let mut states = Vec::new();
    let mut others = Vec::new();
    for entry in store.list(dir)? {
        if entry.name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let name = entry.name.to_string_lossy().into_owned();
        match name.parse::<State>() {
            Ok(state) => states.push(state),
            Err(_) => others.push(name),
        }
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

/// Why a descriptor cannot be used.
enum Why {
    /// It is not what was written.
    Wrong(String),
    /// The filesystem did not show it.
    Refused(String),
}

fn describe(
    store: &dyn Store,
    path: &RepoPath,
    id: SnapshotId,
) -> Result<(Descriptor, Digest), Why> {
    let bytes = store.read(path, descriptor::LIMITS.size).map_err(|error| match error.kind() {
        _ if is_absent(&error) => Why::Wrong("it is missing".to_owned()),
        io::ErrorKind::InvalidData => Why::Wrong(error.to_string()),
        _ if is_symlink(&error) => Why::Wrong(error.to_string()),
        _ => Why::Refused(error.to_string()),
    })?;
    let read = Descriptor::parse(&bytes).map_err(Why::Wrong)?;
    if read.0.snapshot_id != id {
        return Err(Why::Wrong(format!("it describes {}", read.0.snapshot_id)));
    }
    Ok(read)
}

pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

pub(crate) fn is_symlink(error: &io::Error) -> bool {
    jvs_repo::code::code_of_io(error) == jvs_repo::code::Code::PathEscape
}
