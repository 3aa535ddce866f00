//! A snapshot and its ancestors, newest first, read only as far as asked.
//!
//! Collected ancestors left their tombstones behind, so a lineage is never
//! broken by collection: it is broken if a parent is neither there nor was
//! collected, or if the count of commits does not fall from child to parent
//! (which also rules out a cycle without remembering where one was). The same holds for
//! the line of a worktree, whose snapshots are all in its lineage.

use jvs_repo::id::SnapshotId;
use jvs_repo::record::ledger::Tombstone;

use crate::catalog::{Catalog, Presence};
use crate::descriptor::Descriptor;
use crate::error::SnapshotError;
use crate::ready::Ready;
use crate::tombstones::Tombstones;

/// One snapshot of a lineage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineageStep {
    /// It is visible.
    Ready(Box<Ready>),
    /// It was, and was collected.
    Collected(SnapshotId),
}

impl LineageStep {
    /// Which snapshot it is.
    pub fn id(&self) -> SnapshotId {
        match self {
            LineageStep::Ready(ready) => ready.id(),
            LineageStep::Collected(id) => *id,
        }
    }

    /// It, if it is visible.
    pub fn ready(self) -> Option<Ready> {
        match self {
            LineageStep::Ready(ready) => Some(*ready),
            LineageStep::Collected(_) => None,
        }
    }
}

/// Walks from a head towards its first ancestor.
pub struct Lineage<'r> {
    catalog: Catalog<'r>,
    way: Way,
    next: Option<SnapshotId>,
    child: Option<(SnapshotId, u64)>,
    /// Once the lineage has come to something that was collected, and where in it.
    tombstones: Option<Tombstones>,
    place: usize,
}

/// What comes after a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// What it was committed on top of.
    Parents,
    /// What is before it on the line; what is beside that is passed over.
    Line,
}

impl Way {
    fn before(self, descriptor: &Descriptor) -> Option<SnapshotId> {
        match self {
            Way::Parents => descriptor.parent,
            Way::Line => descriptor.before(),
        }
    }
}

/// A step, and what is needed to go on.
struct Step {
    step: LineageStep,
    is_aside: bool,
    before: Option<SnapshotId>,
    commit_seq: u64,
}

impl<'r> Lineage<'r> {
    /// From `head` on. A head that is not visible yet is passed over: it is
    /// committed, but nobody has seen it.
    pub fn from_head(
        catalog: Catalog<'r>,
        head: Option<SnapshotId>,
    ) -> Result<Self, SnapshotError> {
        Lineage::along(Way::Parents, catalog, head)
    }

    /// The line of a worktree with that head: what `@`, `@-`, … mean. Beyond what was
    /// collected, what stood beside it may be among its steps.
    pub fn line(catalog: Catalog<'r>, head: Option<SnapshotId>) -> Result<Self, SnapshotError> {
        Lineage::along(Way::Line, catalog, head)
    }

    fn along(
        way: Way,
        catalog: Catalog<'r>,
        head: Option<SnapshotId>,
    ) -> Result<Self, SnapshotError> {
        let mut lineage =
            Lineage { catalog, way, next: head, child: None, tombstones: None, place: 0 };
        let Some(id) = head else { return Ok(lineage) };
        if catalog.look(id)? == Presence::Hidden {
            let missing = || SnapshotError::Broken {
                child: None,
                problem: format!("the head {id} has no descriptor"),
            };
            let (descriptor, _) = catalog.describe(id)?.ok_or_else(missing)?;
            lineage.child = Some((id, descriptor.commit_seq.0));
            lineage.next = way.before(&descriptor);
        }
        Ok(lineage)
    }

    fn step(&mut self, id: SnapshotId) -> Result<Step, SnapshotError> {
        let child = self.child;
        let broken = |problem: String| SnapshotError::Broken {
            child: child.map(|(child, _)| child),
            problem,
        };
        let step = match self.among_collected(id) {
            Some(step) => step,
            None => match self.catalog.look_with(id, &mut self.tombstones)? {
                Presence::Ready(ready) => Step {
                    before: self.way.before(ready.descriptor()),
                    is_aside: ready.descriptor().is_aside(),
                    commit_seq: ready.descriptor().commit_seq.0,
                    step: LineageStep::Ready(ready),
                },
                Presence::Collected(tombstone) => collected(&tombstone),
                Presence::Hidden => return Err(broken(format!("{id} was never published"))),
                Presence::Absent => return Err(broken(format!("{id} is missing"))),
            },
        };
        let seq = step.commit_seq;
        match child {
            Some((_, above)) if seq >= above => {
                Err(broken(format!("{id} counts as commit {seq}, its child as {above}")))
            }
            _ => Ok(step),
        }
    }

    /// A step to what was collected when the tombstones were read. Whatever there was a
    /// directory of is looked at: it may have been put back.
    fn among_collected(&mut self, id: SnapshotId) -> Option<Step> {
        let tombstones = self.tombstones.as_ref().filter(|all| !all.is_there(id))?;
        self.place = tombstones.place(id, self.place)?;
        Some(collected(&tombstones.entries()[self.place]))
    }
}

fn collected(tombstone: &Tombstone) -> Step {
    Step {
        step: LineageStep::Collected(tombstone.snapshot_id),
        is_aside: false,
        before: tombstone.parent,
        commit_seq: tombstone.commit_seq.0,
    }
}

impl Iterator for Lineage<'_> {
    type Item = Result<LineageStep, SnapshotError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let id = self.next.take()?;
            let step = match self.step(id) {
                Ok(step) => step,
                Err(error) => return Some(Err(error)),
            };
            self.child = Some((id, step.commit_seq));
            self.next = step.before;
            if self.way == Way::Parents || !step.is_aside {
                return Some(Ok(step.step));
            }
        }
    }
}
