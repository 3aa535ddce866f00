//! The nodes of a walked tree in the bytewise order of their paths, one directory of each
//! level at a time: an order of all of them would be kept for each of them.

use super::in_memory::{Branch, Item};

/// A directory's content comes after the directory itself, but not at once: `a`, `a-b`,
/// `a/c`. So a directory has two places among its siblings: its name, and its name with a
/// slash.
struct Level<'t> {
    branch: &'t Branch,
    /// The next of its nodes.
    next: usize,
    /// Its directories in the order of their names with a slash, each as position and number;
    /// the next one last.
    inside: Vec<(usize, u32)>,
}

impl<'t> Level<'t> {
    fn of(branch: &'t Branch) -> Self {
        let directories = branch.nodes.iter().enumerate();
        let mut inside: Vec<(usize, u32)> =
            directories.filter_map(|(at, node)| Some((at, node.directory()?))).collect();
        let key = |at: usize| branch.name(&branch.nodes[at]).iter().chain(b"/");
        inside.sort_by(|(one, _), (other, _)| key(*other).cmp(key(*one)));
        Level { branch, next: 0, inside }
    }

    fn step(&mut self) -> Option<Step<'t>> {
        let name = |at: usize| self.branch.name(&self.branch.nodes[at]);
        let is_there = self.next < self.branch.nodes.len();
        let enters = self.inside.last().is_some_and(|&(directory, _)| {
            !is_there || name(directory).iter().chain(b"/").lt(name(self.next))
        });
        if enters {
            return self.inside.pop().map(|(_, number)| Step::Content(number));
        }
        if !is_there {
            return None;
        }
        self.next += 1;
        Some(Step::Node(self.branch.item(self.next - 1)))
    }
}

enum Step<'t> {
    Node(Item<'t>),
    Content(u32),
}

/// See [`Tree::in_order`](super::Tree::in_order).
pub(crate) struct InOrder<'t> {
    branches: &'t [Branch],
    levels: Vec<Level<'t>>,
}

impl<'t> InOrder<'t> {
    pub(super) fn of(branches: &'t [Branch]) -> Self {
        InOrder { branches, levels: branches.first().map(Level::of).into_iter().collect() }
    }
}

impl<'t> Iterator for InOrder<'t> {
    type Item = Item<'t>;

    fn next(&mut self) -> Option<Item<'t>> {
        loop {
            match self.levels.last_mut()?.step() {
                Some(Step::Node(item)) => return Some(item),
                Some(Step::Content(number)) => {
                    self.levels.push(Level::of(&self.branches[number as usize]));
                }
                None => drop(self.levels.pop()),
            }
        }
    }
}
