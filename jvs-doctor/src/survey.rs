//! What there is: read once, in the order that the protocol's rules need.
//!
//! Registers are READ first. What is listed after a READ can be judged by it;
//! the other way round, what is committed in between would look dead.

mod lineage;
mod memories;
mod snapshots;

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::io;

use jvs_lock::history::{self, Logs};
use jvs_lock::liveness::{Liveness, Observer, keeper_liveness, maker_liveness};
use jvs_lock::queue::{Queue, Waiter};
use jvs_lock::record::{FoundRecord, Keeper};
use jvs_lock::register::ReadError;
use jvs_lock::{Hold, View, view};
use jvs_repo::clock::Reading;
use jvs_repo::config::{Config, ConfigError};
use jvs_repo::id::{Epoch, OpNonce, SnapshotId};
use jvs_repo::json;
use jvs_repo::layout;
use jvs_repo::name::{ShownName, WorktreeName};
use jvs_repo::record::ledger::Kin;
use jvs_repo::record::worktree::{self, MakerProcess, WorktreeListing, WorktreeRecord};
use jvs_repo::store::{RepoPath, Store};
use jvs_snapshot::staging_name::StagingName;
use jvs_snapshot::tombstones::Tombstones;

use crate::check::seal::MOST_EFFORT;
use crate::check::{Check, Depth};
use crate::finding::FindingCollector;
use crate::patient::Patient;
use crate::read::{Fault, Read};

pub(crate) use lineage::{BreakReason, Lineages};
pub(crate) use memories::Memories;
pub(crate) use snapshots::Snap;

/// A name in the staging directory, listed after every register was READ.
#[derive(Debug)]
pub(crate) struct StagedEntry {
    name: OsString,
    parsed: Option<StagingName>,
}

impl StagedEntry {
    fn new(name: OsString) -> Self {
        let parsed = name.to_str().and_then(|name| name.parse().ok());
        StagedEntry { name, parsed }
    }

    /// The name as text, if it is text.
    pub(crate) fn text(&self) -> Option<&str> {
        self.name.to_str()
    }

    /// Whose it is, if its name says so.
    pub(crate) fn parsed(&self) -> Option<&StagingName> {
        self.parsed.as_ref()
    }

    /// Its path, also if JVS would not make one like it.
    pub(crate) fn shown(&self) -> String {
        format!("{}/{}", layout::staging(), ShownName::new(&self.name))
    }
}

/// What the filesystem refused to show.
#[derive(Debug)]
pub(crate) struct Unseen {
    pub(crate) path: RepoPath,
    pub(crate) why: String,
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.why)
    }
}

/// Everything that was seen. Proofs rest on the order in which it was: only
/// [`Survey::take`] makes one.
pub(crate) struct Survey<'p, 'r> {
    pub(crate) patient: &'p Patient<'r>,
    pub(crate) depth: Depth,
    pub(crate) began: Reading,
    pub(crate) config: Result<Config, ConfigError>,
    pub(crate) policy: jvs_repo::config::LockPolicy,
    pub(crate) worktrees: WorktreeListing,
    /// Names in the directory of locks.
    pub(crate) locks: BTreeSet<String>,
    pub(crate) registers: BTreeMap<WorktreeName, Result<Read, Fault>>,
    /// Registers of removed worktrees.
    pub(crate) buried: BTreeMap<WorktreeName, Vec<(Epoch, Option<Read>)>>,
    pub(crate) views: BTreeMap<WorktreeName, View>,
    pub(crate) staging: Vec<StagedEntry>,
    pub(crate) snapshots: BTreeMap<SnapshotId, Snap>,
    pub(crate) tombstones: Tombstones,
    /// The same, read once more after all else; none if they could not be.
    tombstones_by_now: OnceCell<Option<Tombstones>>,
    pub(crate) snapshot_names: Vec<OsString>,
    pub(crate) logs: Logs,
    /// What was spent on searching files for a flipped bit.
    spent: Cell<u64>,
    /// Which of all this is about which worktree; after a full look.
    pub(crate) memories: Memories,
    /// What the filesystem refused to show: nothing follows from its absence.
    pub(crate) unseen: Vec<Unseen>,
    _in_order: (),
}

impl<'p, 'r> Survey<'p, 'r> {
    pub(crate) fn take(
        patient: &'p Patient<'r>,
        depth: Depth,
        report: &mut FindingCollector,
    ) -> Self {
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
            worktrees: WorktreeListing::default(),
            locks: BTreeSet::new(),
            registers: BTreeMap::new(),
            buried: BTreeMap::new(),
            views: BTreeMap::new(),
            staging: Vec::new(),
            snapshots: BTreeMap::new(),
            tombstones: Tombstones::default(),
            tombstones_by_now: OnceCell::new(),
            snapshot_names: Vec::new(),
            logs: Logs::default(),
            spent: Cell::new(0),
            memories: Memories::default(),
            unseen: Vec::new(),
            _in_order: (),
        };
        survey.read_registers(report);
        survey.look_at_locks();
        if depth == Depth::Full {
            let staging = survey.names(&layout::staging(), report);
            survey.staging = staging.into_iter().map(StagedEntry::new).collect();
            survey.snapshot_names = survey.names(&layout::snapshots(), report);
            survey.read_snapshots_before_tombstones(report);
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
            survey.memories = Memories::of(&survey);
        }
        survey
    }

    pub(crate) fn store(&self) -> &'r dyn Store {
        self.patient.seams.store
    }

    /// The state of a register that can be READ.
    pub(crate) fn state(&self, worktree: &WorktreeName) -> Option<&Read> {
        self.registers.get(worktree)?.as_ref().ok()
    }

    /// What can be said of work that was begun in `worktree`.
    pub(crate) fn judging(&self, worktree: &WorktreeName) -> Option<&Read> {
        match self.registers.get(worktree) {
            Some(Ok(state)) => Some(state),
            // Nobody knows what a broken register would say.
            Some(Err(_)) => None,
            None => {
                let graves = self.buried.get(worktree)?;
                // Of two that nobody can order neither tells what is over.
                let newest = Epoch::newest(graves.iter().map(|(epoch, _)| *epoch))?;
                graves.iter().find(|(epoch, _)| *epoch == newest)?.1.as_ref()
            }
        }
    }

    /// Does the worktree have a record, readable or not? The first one always is there.
    pub(crate) fn is_recorded(&self, worktree: &WorktreeName) -> bool {
        worktree.is_main() || self.worktrees.of(worktree).is_some()
    }

    /// Is the process that was at work on a worktree still there?
    pub(crate) fn maker_liveness(&self, maker: &MakerProcess) -> Liveness {
        self.ask(|here| maker_liveness(maker, here, self.patient.surroundings.lookup))
    }

    /// Is the process that renewed a lease still there?
    pub(crate) fn keeper_liveness(&self, keeper: &Keeper) -> Liveness {
        self.ask(|here| keeper_liveness(keeper, here, self.patient.surroundings.lookup))
    }

    /// Is the process that waited in a queue certainly gone?
    pub(crate) fn is_gone(&self, waiter: &Waiter) -> bool {
        self.ask(|here| Queue::is_gone(waiter, here, &self.patient.surroundings.lookup))
    }

    fn ask<T>(&self, question: impl FnOnce(Observer<'_>) -> T) -> T {
        let clock = self.patient.seams.clock.boot_clock();
        let pid_namespace = self.patient.surroundings.pid_namespace;
        question(Observer { clock: &clock, pid_namespace })
    }

    /// What an operation on a worktree noted, if it can be read.
    pub(crate) fn note(&self, worktree: &WorktreeName, op: OpNonce) -> Option<WorktreeRecord> {
        json::read(self.store(), &layout::worktree_record_tmp(worktree, op)).ok().flatten()
    }

    /// Is it not the note of that operation, but a record that a removal took aside and
    /// did not put back? Of a worktree that exists it is the only one.
    pub(crate) fn is_only_record(&self, worktree: &WorktreeName, op: OpNonce) -> bool {
        let of = self.note(worktree, op).and_then(|note| note.op);
        let exists = self.state(worktree).is_some_and(|state| state.hold != Hold::Retired);
        of.is_some_and(|of| op != of && op != of.withdrawn())
            && exists
            && self.is_missing(&layout::worktree_record(worktree))
    }

    /// READs a register once more: what was seen may have been overtaken.
    pub(crate) fn read_again(&self, worktree: &WorktreeName) -> Result<Read, Fault> {
        Read::register(self.patient, worktree)
    }

    /// Has nothing happened to the register since it was READ?
    pub(crate) fn is_unchanged(&self, worktree: &WorktreeName) -> bool {
        match self.registers.get(worktree) {
            Some(before @ Ok(_)) => *before == self.read_again(worktree),
            Some(before @ Err(_)) => *before == Read::at_once(self.patient, worktree),
            None => false,
        }
    }

    fn read_registers(&mut self, report: &mut FindingCollector) {
        let store = self.store();
        self.worktrees = match worktree::list(store) {
            Ok(listing) => listing,
            Err(error) => {
                if !self.is_missing(&layout::worktree_records()) {
                    self.refused(&layout::worktree_records(), &error, report);
                }
                WorktreeListing::default()
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
        for (worktree, seen) in Read::all(self.patient, all) {
            // A worktree that was removed between the two looks is no fault.
            let gone = matches!(seen, Err(Fault::Missing))
                && !worktree.is_main()
                && self.is_missing(&layout::worktree_record(&worktree));
            match seen {
                _ if gone => {}
                // The register of a worktree that was removed: only its tokens count.
                Ok(read)
                    if read.hold == Hold::Retired
                        && self.is_missing(&layout::worktree_record(&worktree)) =>
                {
                    self.buried.entry(worktree).or_default().push((read.epoch, Some(read)));
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
                    let read = Read::buried(self.patient, &worktree, epoch);
                    if let Err(ReadError::Io { source, .. }) = &read {
                        let grave = layout::buried_register(&worktree, epoch);
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
            let view = match view::complete(seams, &self.policy, worktree, **state, None, None) {
                Ok(view) => view,
                // A symlink, which is another check's.
                Err(_) => continue,
            };
            if let FoundRecord::Refused(why) = &view.found {
                refused.push(Unseen { path: name, why: why.clone() });
            }
            self.views.insert(worktree.clone(), view);
        }
        // Whatever it says may be newer than all else that is known.
        self.unseen.extend(refused);
    }

    /// May this much be spent on searching one more file for a flipped bit? Then it is.
    pub(crate) fn may_spend(&self, effort: u64) -> bool {
        let spent = self.spent.get().saturating_add(effort);
        let may = spent <= MOST_EFFORT;
        if may {
            self.spent.set(spent);
        }
        may
    }

    /// Did the filesystem refuse to show this?
    pub(crate) fn is_unseen(&self, path: &RepoPath) -> bool {
        self.unseen.iter().any(|unseen| unseen.path == *path)
    }

    /// The filesystem refused to show something.
    fn refused(
        &mut self,
        path: &RepoPath,
        error: &dyn fmt::Display,
        report: &mut FindingCollector,
    ) {
        self.unseen.push(Unseen { path: path.clone(), why: error.to_string() });
        report.unreadable(path, error);
    }

    /// A log that cannot be read: what only it knows is missing, and nothing else.
    fn log_refused(&mut self, path: &RepoPath, error: &io::Error, report: &mut FindingCollector) {
        self.unseen.push(Unseen { path: path.clone(), why: error.to_string() });
        let message = format!("this log cannot be read: {error}");
        report.add(Check::Unreadable, path, message).advice(format!(
            "check the mount and the permissions of {path}; if it is lost for good, move it out \
             of the repository: what only it knew is missing then, and a register is rebuilt \
             without it"
        ));
    }

    fn names(&mut self, dir: &RepoPath, report: &mut FindingCollector) -> Vec<OsString> {
        match self.store().list(dir) {
            Ok(entries) => {
                let mut names: Vec<OsString> =
                    entries.into_iter().map(|entry| entry.name).collect();
                names.sort();
                names
            }
            // Missing, or a symlink or file in its place: the check of the control directory reports it.
            Err(error) if is_absent(&error) || is_symlink(&error) => Vec::new(),
            Err(error) => {
                self.refused(dir, &error, report);
                Vec::new()
            }
        }
    }

    /// What is known of a snapshot, collected or not.
    pub(crate) fn kin(&self, id: SnapshotId) -> Option<Kin<'_>> {
        let there = self.snapshots.get(&id).and_then(Snap::described).map(Kin::from);
        there.or_else(|| self.tombstones.of(id).map(Kin::from))
    }

    /// The tombstones that there are once everything was read. Whatever was missing then and
    /// was collected has one by now, so one more look is enough for all.
    pub(crate) fn tombstones_by_now(&self) -> Option<&Tombstones> {
        self.tombstones_by_now.get_or_init(|| Tombstones::read(self.store()).ok()).as_ref()
    }

    /// Is it visible?
    pub(crate) fn is_ready(&self, id: SnapshotId) -> bool {
        self.snapshots.get(&id).is_some_and(|snap| snap.ready)
    }

    /// Was it visible, whether or not it was collected since?
    pub(crate) fn was_ready(&self, id: SnapshotId) -> bool {
        self.is_ready(id) || self.tombstones.has(id)
    }

    pub(crate) fn is_missing(&self, path: &RepoPath) -> bool {
        matches!(self.store().stat(path), Err(error) if is_absent(&error))
    }
}

pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

pub(crate) fn is_symlink(error: &io::Error) -> bool {
    jvs_repo::code::code_of_io(error) == jvs_repo::code::Code::PathEscape
}
