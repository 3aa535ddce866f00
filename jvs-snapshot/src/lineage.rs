//! A snapshot and its ancestors, newest first, read only as far as asked.
//!
//! Collected ancestors left their descriptors behind, so a lineage is never
//! broken by collection: it is broken if a parent is neither there nor was
//! collected, or if the count of commits does not fall from child to parent
//! (which also rules out a cycle without remembering where one was).

use jvs_repo::id::SnapshotId;

use crate::catalog::{Catalog, Presence};
use crate::descriptor::Descriptor;
use crate::error::SnapshotError;
use crate::ready::Ready;

/// One snapshot of a lineage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineageStep {
    /// It is visible.
    Ready(Box<Ready>),
    /// It was, and was collected.
    Collected(Box<Descriptor>),
}

impl LineageStep {
    /// What describes it.
    pub fn descriptor(&self) -> &Descriptor {
        match self {
            LineageStep::Ready(ready) => ready.descriptor(),
            LineageStep::Collected(descriptor) => descriptor,
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
    next: Option<SnapshotId>,
    child: Option<(SnapshotId, u64)>,
}

impl<'r> Lineage<'r> {
    /// From `head` on. A head that is not visible yet is passed over: it is
    /// committed, but nobody has seen it.
    pub fn from_head(
        catalog: Catalog<'r>,
        head: Option<SnapshotId>,
    ) -> Result<Self, SnapshotError> {
        let mut lineage = Lineage { catalog, next: head, child: None };
        let Some(id) = head else { return Ok(lineage) };
        if catalog.look(id)? == Presence::Hidden {
            let missing = || SnapshotError::Broken {
                child: None,
                problem: format!("the head {id} has no descriptor"),
            };
            let (descriptor, _) = catalog.describe(id)?.ok_or_else(missing)?;
            lineage.child = Some((id, descriptor.commit_seq.0));
            lineage.next = descriptor.parent;
        }
        Ok(lineage)
    }

    fn step(&self, id: SnapshotId) -> Result<LineageStep, SnapshotError> {
        let broken = |problem: String| SnapshotError::Broken {
            child: self.child.map(|(child, _)| child),
            problem,
        };
        let step = match self.catalog.look(id)? {
            Presence::Ready(ready) => LineageStep::Ready(ready),
            Presence::Collected(descriptor) => LineageStep::Collected(descriptor),
            Presence::Hidden => return Err(broken(format!("{id} was never published"))),
            Presence::Absent => return Err(broken(format!("{id} is missing"))),
        };
        let seq = step.descriptor().commit_seq.0;
        match self.child {
            Some((_, above)) if seq >= above => {
                Err(broken(format!("{id} counts as commit {seq}, its child as {above}")))
            }
            _ => Ok(step),
        }
    }
}

impl Iterator for Lineage<'_> {
    type Item = Result<LineageStep, SnapshotError>;

    fn next(&mut self) -> Option<Self::Item> {
        let id = self.next.take()?;
        let step = self.step(id);
        if let Ok(step) = &step {
            let descriptor = step.descriptor();
            self.child = Some((id, descriptor.commit_seq.0));
            self.next = descriptor.parent;
        }
        Some(step)
    }
}
