//! The registers of all worktrees, READ before anything else is looked at.

use std::collections::{BTreeMap, BTreeSet};

use jvs_lock::register::{ReadError, Register};
use jvs_lock::{Hold, RegisterError, Seams, State};
use jvs_repo::id::{Epoch, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::sabotage;
use jvs_repo::store::RepoPath;

use crate::error::SnapshotError;
use crate::mutation::Rule;

/// How often the listing is taken again because a worktree was renamed or removed
/// meanwhile.
const TRIES: u32 = 8;

/// Between two tries.
const PAUSE_MS: u64 = 20;

/// What each worktree's register said.
#[derive(Debug, Clone)]
pub struct Registers {
    states: BTreeMap<WorktreeName, State>,
    buried: BTreeMap<WorktreeName, State>,
}

impl Registers {
    /// READs them all. One that cannot be read, and one that is missing though its
    /// worktree has a record, is an error: its head is unknown, so nothing may be
    /// removed.
    pub fn read(seams: Seams<'_>) -> Result<Self, SnapshotError> {
        let mut unsettled = None;
        for tried in 0..TRIES {
            if tried > 0 {
                seams.clock.sleep_ms(PAUSE_MS);
            }
            match Registers::read_once(seams)? {
                Ok(registers) => return Ok(registers),
                Err(missing) => unsettled = Some(missing),
            }
        }
        let worktree = unsettled.unwrap_or_else(WorktreeName::main);
        Err(RegisterError::from(ReadError::Missing { worktree }).into())
    }

    /// The worktree whose register was not there, if one was not: one that is being
    /// renamed or removed, whose head is in a register that this listing may not have
    /// seen, or one whose register is lost. To be read again.
    fn read_once(seams: Seams<'_>) -> Result<Result<Self, WorktreeName>, SnapshotError> {
        let names = listed(seams, &layout::locks())?;
        let mut states = BTreeMap::new();
        for name in names.iter().filter_map(|file| layout::worktree_of_register(file)) {
            match Register::new(seams.store, seams.clock, name.clone()).read() {
                Ok(state) => {
                    states.insert(name, state);
                }
                Err(ReadError::Missing { .. }) => return Ok(Err(name)),
                Err(error) => return Err(RegisterError::from(error).into()),
            }
        }
        if let Some(unasked) = unasked(seams, &states)? {
            return Ok(Err(unasked));
        }
        let mut graves: BTreeMap<WorktreeName, Vec<Epoch>> = BTreeMap::new();
        for file in &names {
            let Some((name, epoch)) = layout::worktree_of_buried(file) else { continue };
            graves.entry(name).or_default().push(epoch);
        }
        let mut buried = BTreeMap::new();
        for (name, epochs) in graves {
            // Of two that nobody can order neither tells what is over.
            let Some(epoch) = Epoch::newest(epochs) else { continue };
            let grave = layout::buried_register(&name, epoch);
            let register = Register::at(seams.store, seams.clock, name.clone(), grave);
            // One that cannot be read tells nothing, and so removes nothing.
            if let Ok(state) = register.read() {
                buried.insert(name, state);
            }
        }
        // Of a worktree that was removed only its tokens count.
        let recorded = listed(seams, &layout::worktree_records())?;
        let recorded: BTreeSet<WorktreeName> =
            recorded.iter().filter_map(|file| layout::worktree_of_record(file)).collect();
        for (name, state) in states.clone() {
            if state.hold != Hold::Retired {
                continue;
            }
            // Its name may have been used again since it was READ, and what was
            // retired after that went on there.
            match Register::new(seams.store, seams.clock, name.clone()).read() {
                Ok(still) if still == state => {}
                Ok(_) | Err(ReadError::Missing { .. }) => return Ok(Err(name)),
                Err(error) => return Err(RegisterError::from(error).into()),
            }
            if !recorded.contains(&name) {
                states.remove(&name);
                buried.insert(name, state);
            }
        }
        Ok(Ok(Registers { states, buried }))
    }

    /// The registers of worktrees, retired ones included that are on the list:
    /// while a worktree is being renamed its head is in one of those.
    pub fn in_place(&self) -> impl Iterator<Item = (&WorktreeName, &State)> {
        self.states.iter()
    }

    /// What can be said of work that was begun in `worktree`: its register, or
    /// the last one of a worktree that was removed.
    pub fn judging(&self, worktree: &WorktreeName) -> Option<&State> {
        self.states.get(worktree).or_else(|| self.buried.get(worktree))
    }

    /// Whose head is it?
    pub fn whose_head(&self, id: SnapshotId) -> Option<&WorktreeName> {
        self.states.iter().find(|(_, state)| state.head == Some(id)).map(|(name, _)| name)
    }
}

/// A worktree that has a record and whose register was not read. Asked after the
/// registers were: a record is placed after its register and removed before it, so
/// the process that has one had a register then. `main` always has one. A register that came
/// since is not known either: the listing may have missed it and the one that it
/// follows.
fn unasked(
    seams: Seams<'_>,
    states: &BTreeMap<WorktreeName, State>,
) -> Result<Option<WorktreeName>, SnapshotError> {
    sabotage!(Rule::EveryRegisterAsked => Ok(None));
    let records = listed(seams, &layout::worktree_records())?;
    let registers = listed(seams, &layout::locks())?;
    let recorded = records.iter().filter_map(|file| layout::worktree_of_record(file));
    let registered = registers.iter().filter_map(|file| layout::worktree_of_register(file));
    let mut all = std::iter::once(WorktreeName::main()).chain(recorded).chain(registered);
    Ok(all.find(|name| !states.contains_key(name)))
}

fn listed(seams: Seams<'_>, dir: &RepoPath) -> Result<Vec<String>, SnapshotError> {
    let doing = format!("list {dir}");
    let entries = seams.store.list(dir).map_err(SnapshotError::io(doing))?;
    Ok(entries.into_iter().filter_map(|entry| entry.name.into_string().ok()).collect())
}
