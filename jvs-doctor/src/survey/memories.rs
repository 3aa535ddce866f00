//! What was surveyed, by the worktree that it is about: each of a hundred thousand
//! worktrees is asked about what it has, not about everything that there is.

use std::collections::BTreeMap;
use std::io;

use jvs_lock::State;
use jvs_repo::audit::Event;
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::ledger::Kin;
use jvs_repo::store::{DirEntry, RepoPath, Store};
use jvs_repo::term::Term;
use jvs_snapshot::staging_name::StagingName;

use super::{StagedEntry, Survey, is_absent, is_symlink};

/// What is about which worktree.
#[derive(Debug, Default)]
pub(crate) struct Memories {
    of: BTreeMap<WorktreeName, Memory>,
    /// Why registers that were set aside could not be looked for.
    refused: Option<String>,
}

#[derive(Debug, Default)]
struct Memory {
    snapshots: Vec<SnapshotId>,
    /// Places in the list of tombstones.
    collected: Vec<usize>,
    /// Under which terms work was begun that is not ended.
    begun: Vec<Term>,
    /// Places in the list of events.
    events: Vec<usize>,
    /// Repairs that set its register aside.
    aside: Vec<OpNonce>,
}

impl Memories {
    pub(super) fn of(survey: &Survey<'_, '_>) -> Self {
        let mut memories = Memories::default();
        for (id, snap) in &survey.snapshots {
            if let Some(descriptor) = snap.described() {
                memories.at(&descriptor.worktree_id).snapshots.push(*id);
            }
        }
        for (place, tombstone) in survey.tombstones.entries().iter().enumerate() {
            memories.at(&tombstone.worktree_id).collected.push(place);
        }
        for name in survey.staging.iter().filter_map(StagedEntry::parsed) {
            match name {
                StagingName::Snapshot(bound) => {
                    memories.at(&bound.worktree).begun.push(bound.term);
                }
                StagingName::Restore { worktree, term, .. }
                | StagingName::Swap { worktree, term, .. }
                | StagingName::Patch { worktree, term, .. } => {
                    memories.at(worktree).begun.push(*term);
                }
                _ => {}
            }
        }
        for (at, logged) in survey.logs.events.iter().enumerate() {
            if let Some(worktree) = &logged.event.worktree {
                memories.at(worktree).events.push(at);
            }
        }
        memories.refused = memories.set_aside(survey.store()).err().map(|why| why.to_string());
        memories
    }

    fn at(&mut self, worktree: &WorktreeName) -> &mut Memory {
        if !self.of.contains_key(worktree) {
            self.of.insert(worktree.clone(), Memory::default());
        }
        self.of.get_mut(worktree).expect("it is there")
    }

    fn set_aside(&mut self, store: &dyn Store) -> io::Result<()> {
        for repair in entries(store, &layout::quarantine())? {
            let op = repair.name.to_str().and_then(|name| name.parse::<OpNonce>().ok());
            let Some(op) = op else { continue };
            for entry in entries(store, &layout::quarantined(op))? {
                let of = entry.name.to_str().and_then(layout::worktree_of_register);
                if let Some(worktree) = of {
                    self.at(&worktree).aside.push(op);
                }
            }
        }
        Ok(())
    }
}

/// What is in a directory; nothing if there is none, or something else in its place.
fn entries(store: &dyn Store, dir: &RepoPath) -> io::Result<Vec<DirEntry>> {
    match store.list(dir) {
        Err(error) if is_absent(&error) || is_symlink(&error) => Ok(Vec::new()),
        listed => listed,
    }
}

impl Survey<'_, '_> {
    fn memory(&self, worktree: &WorktreeName) -> Option<&Memory> {
        self.memories.of.get(worktree)
    }

    /// What is known of the snapshots of a worktree, those that were collected last.
    pub(crate) fn kin_of(&self, worktree: &WorktreeName) -> impl Iterator<Item = Kin<'_>> {
        let memory = self.memory(worktree);
        let there = memory.into_iter().flat_map(|memory| &memory.snapshots);
        let there = there.filter_map(|id| self.snapshots.get(id)?.described().map(Kin::from));
        let collected = memory.into_iter().flat_map(|memory| &memory.collected);
        there.chain(collected.map(|place| Kin::from(&self.tombstones.entries()[*place])))
    }

    /// The terms of work in a worktree that is not ended.
    pub(crate) fn begun_in(&self, worktree: &WorktreeName) -> impl Iterator<Item = Term> {
        let begun = self.memory(worktree).into_iter().flat_map(|memory| &memory.begun);
        begun.copied()
    }

    /// The events of a worktree, log by log.
    pub(crate) fn events_of(&self, worktree: &WorktreeName) -> impl Iterator<Item = &Event> {
        let events = self.memory(worktree).into_iter().flat_map(|memory| &memory.events);
        events.filter_map(|at| Some(&self.logs.events.get(*at)?.event))
    }

    /// Entries of a worktree's register that earlier repairs set aside.
    pub(crate) fn set_aside(&self, worktree: &WorktreeName) -> Result<Vec<State>, String> {
        if let Some(why) = &self.memories.refused {
            return Err(why.clone());
        }
        let register = layout::register(worktree);
        let mut states = Vec::new();
        for op in self.memory(worktree).into_iter().flat_map(|memory| &memory.aside) {
            let aside = layout::quarantined(*op).child(register.split().1);
            let listed = aside.and_then(|aside| entries(self.store(), &aside));
            let listed = listed.map_err(|error| error.to_string())?;
            states.extend(listed.iter().filter_map(|e| e.name.to_str()?.parse::<State>().ok()));
        }
        Ok(states)
    }
}
