//! What is learned while files are made: facts about the copy, and what it lost.

use crate::descriptor::Loss;
use crate::fidelity::{self, Dressed};
use crate::manifest::TreePath;
use crate::plan::TreeFacts;

pub(in crate::engine) struct Learned {
    pub(in crate::engine) facts: TreeFacts,
    pub(super) degraded: Vec<Loss>,
}

impl Learned {
    /// What the parent's manifest already says.
    pub(super) fn from(facts: TreeFacts) -> Self {
        Learned { facts, degraded: Vec::new() }
    }

    /// Whether a file's content was read, or a symlink, since this began.
    pub(in crate::engine) fn has_read(&self, number: usize) -> bool {
        self.facts.hashes.get(number).is_some() || self.facts.targets.contains_key(&number)
    }

    /// Remembers what a finished copy has and has not.
    pub(super) fn note(&mut self, number: usize, path: &TreePath, dressed: Dressed) {
        self.facts.set_xattrs(number, dressed.xattrs);
        if !dressed.lost.is_empty() {
            self.facts.truth.insert(number, dressed.stat);
            for kind in dressed.lost {
                fidelity::note(&mut self.degraded, path, kind);
            }
        }
    }

    /// What is known of one name of a file is true of its other names.
    pub(in crate::engine) fn spread(&mut self, first: usize, member: usize) {
        let facts = &mut self.facts;
        if let Some(digest) = facts.hashes.get(first) {
            facts.hashes.set(member, digest);
        }
        facts.set_xattrs(member, facts.xattrs.get(&first).cloned().unwrap_or_default());
        if let Some(text) = facts.targets.get(&first).cloned() {
            facts.targets.insert(member, text);
        }
        if let Some(stat) = facts.truth.get(&first).copied() {
            facts.truth.insert(member, stat);
        }
    }
}
