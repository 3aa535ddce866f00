//! The registers of all worktrees, READ before anything else is looked at.

use std::collections::BTreeMap;

use jvs_lock::register::{ReadError, Register};
use jvs_lock::{LockError, Seams, State};
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;

use crate::error::SnapshotError;

/// How often the listing is taken anew because a worktree was renamed or removed
/// meanwhile.
const TRIES: u32 = 8;

/// What each worktree's register said.
#[derive(Debug, Clone)]
pub struct Registers {
    states: BTreeMap<WorktreeName, State>,
    buried: BTreeMap<WorktreeName, State>,
}

impl Registers {
    /// READs them all. One that cannot be read is an error: its head is unknown,
    /// so nothing may be removed.
    pub fn read(seams: Seams<'_>) -> Result<Self, SnapshotError> {
        for _ in 0..TRIES {
            if let Some(registers) = Registers::read_once(seams)? {
                return Ok(registers);
            }
        }
        let problem = "worktrees come and go faster than they can be read".to_owned();
        Err(SnapshotError::Invalid { problem })
    }

    /// `None` if one vanished: a worktree that is being renamed has its head in
    /// a register that this listing may not have seen.
    fn read_once(seams: Seams<'_>) -> Result<Option<Self>, SnapshotError> {
        let names = seams
            .store
            .list(&layout::locks())
            .map_err(SnapshotError::io("list the fence registers"))?;
        let names: Vec<&str> = names.iter().filter_map(|entry| entry.name.to_str()).collect();
        let mut states = BTreeMap::new();
        for name in names.iter().filter_map(|file| layout::worktree_of_register(file)) {
            match Register::new(seams.store, seams.clock, name.clone()).read() {
                Ok(state) => {
                    states.insert(name, state);
                }
                Err(ReadError::Missing { .. }) => return Ok(None),
                Err(error) => return Err(LockError::from(error).into()),
            }
        }
        let mut graves: BTreeMap<WorktreeName, _> = BTreeMap::new();
        for file in &names {
            let Some((name, _)) = file.rsplit_once(".fence-") else { continue };
            let Ok(name) = name.parse::<WorktreeName>() else { continue };
            let Some(epoch) = layout::buried_epoch(&name, file) else { continue };
            let newest = graves.entry(name).or_insert(epoch);
            *newest = (*newest).max(epoch);
        }
        let mut buried = BTreeMap::new();
        for (name, epoch) in graves {
            let grave = layout::buried_register(&name, epoch);
            let register = Register::at(seams.store, seams.clock, name.clone(), grave);
            // One that cannot be read tells nothing, and so removes nothing.
            if let Ok(state) = register.read() {
                buried.insert(name, state);
            }
        }
        Ok(Some(Registers { states, buried }))
    }

    /// The registers that are in their place, retired ones included: while a
    /// worktree is being renamed its head is in one of those.
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
