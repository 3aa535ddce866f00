//! Which snapshots descend to which heads, from what was surveyed.

use std::collections::{BTreeMap, BTreeSet};

use jvs_lock::Hold;
use jvs_repo::id::SnapshotId;
use jvs_repo::name::WorktreeName;

use super::Survey;

/// The ancestors of all heads.
#[derive(Debug)]
pub(crate) struct Lineages {
    /// Heads and all their ancestors.
    reached: BTreeSet<SnapshotId>,
    /// Per worktree the epochs in which snapshots of its lineage were committed.
    epochs: BTreeMap<WorktreeName, BTreeSet<u32>>,
    /// Was every register READ and every lineage followed to its end?
    whole: bool,
    breaks: Vec<Break>,
}

/// Where the lineage of a worktree that exists ends too early.
#[derive(Debug)]
pub(crate) struct Break {
    pub(crate) worktree: WorktreeName,
    /// The snapshot that the lineage cannot be followed beyond.
    pub(crate) id: SnapshotId,
    pub(crate) child: SnapshotId,
    pub(crate) why: BreakReason,
}

/// Why a lineage cannot be followed.
#[derive(Debug)]
pub(crate) enum BreakReason {
    /// Nothing describes the snapshot.
    NotDescribed,
    /// It counts as this commit, which is not before its child's.
    NotBefore { commit: u64, commit_of_child: u64 },
}

impl Lineages {
    /// Follows every head that was READ.
    pub(crate) fn walk(survey: &Survey<'_, '_>) -> Self {
        let mut lineages = Lineages {
            reached: BTreeSet::new(),
            epochs: BTreeMap::new(),
            whole: survey.unseen.is_empty(),
            breaks: Vec::new(),
        };
        for (worktree, read) in &survey.registers {
            match read {
                Ok(read) => {
                    lineages.counts(worktree, read.epoch.counter);
                    let retired = read.hold == Hold::Retired;
                    lineages.follow(survey, worktree, read.head, !retired);
                }
                Err(_) => lineages.whole = false,
            }
        }
        for (worktree, graves) in &survey.buried {
            for (_, read) in graves {
                match read {
                    // A removed worktree's snapshots are collected in any order.
                    Some(read) => lineages.follow(survey, worktree, read.head, false),
                    None => lineages.whole = false,
                }
            }
        }
        lineages
    }

    /// Is it a head, or an ancestor of one?
    pub(crate) fn reaches(&self, id: SnapshotId) -> bool {
        self.reached.contains(&id)
    }

    /// Was everything seen that could be an ancestor of a head?
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Were snapshots of the worktree's lineage committed in that epoch?
    pub(crate) fn has_part_in(&self, worktree: &WorktreeName, epoch_counter: u32) -> bool {
        self.epochs.get(worktree).is_some_and(|epochs| epochs.contains(&epoch_counter))
    }

    /// Where lineages of worktrees that exist end too early.
    pub(crate) fn breaks(&self) -> &[Break] {
        &self.breaks
    }

    fn counts(&mut self, worktree: &WorktreeName, epoch_counter: u32) {
        self.epochs.entry(worktree.clone()).or_default().insert(epoch_counter);
    }

    fn follow(
        &mut self,
        survey: &Survey<'_, '_>,
        worktree: &WorktreeName,
        head: Option<SnapshotId>,
        exists: bool,
    ) {
        let mut next = head;
        let mut below: Option<(SnapshotId, u64)> = None;
        while let Some(id) = next {
            let Some(kin) = survey.kin(id) else {
                let child = below.filter(|_| exists).map(|(child, _)| child);
                self.breaks_at(worktree, id, child, BreakReason::NotDescribed);
                return;
            };
            let commit = kin.commit_seq.0;
            if let Some((child, commit_of_child)) = below.filter(|(_, child)| commit >= *child) {
                let why = BreakReason::NotBefore { commit, commit_of_child };
                self.breaks_at(worktree, id, Some(child).filter(|_| exists), why);
                return;
            }
            if kin.worktree_id == worktree {
                self.counts(worktree, kin.term.epoch.counter);
            }
            // Met before: the rest was followed for another worktree.
            if !self.reached.insert(id) && self.whole {
                return;
            }
            below = Some((id, commit));
            next = kin.parent;
        }
    }

    /// Without a child it is no break of a lineage: the head itself is missing, or
    /// nobody needs what is above it.
    fn breaks_at(
        &mut self,
        worktree: &WorktreeName,
        id: SnapshotId,
        child: Option<SnapshotId>,
        why: BreakReason,
    ) {
        self.whole = false;
        let worktree = worktree.clone();
        self.breaks.extend(child.map(|child| Break { worktree, id, child, why }));
    }
}
