//! The holds that this server was granted and has not released.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::handle::Handle;

/// By worktree: a session has at most one hold of each.
#[derive(Default)]
pub(crate) struct Held {
    holds: Mutex<BTreeMap<String, Handle>>,
}

impl Held {
    /// It was granted, and its caller is told so.
    pub(crate) fn add(&self, handle: Handle) {
        self.lock().insert(handle.worktree.clone(), handle);
    }

    /// It is over.
    pub(crate) fn remove(&self, handle: &Handle) {
        let mut holds = self.lock();
        if holds.get(&handle.worktree) == Some(handle) {
            holds.remove(&handle.worktree);
        }
    }

    /// Was somebody told of exactly this one?
    pub(crate) fn has(&self, handle: &Handle) -> bool {
        self.lock().get(&handle.worktree) == Some(handle)
    }

    /// Is there one of that worktree, or of any if none is named?
    pub(crate) fn has_any(&self, worktree: Option<&str>) -> bool {
        let holds = self.lock();
        worktree.map_or(!holds.is_empty(), |name| holds.contains_key(name))
    }

    /// All of them, which are forgotten.
    pub(crate) fn take_all(&self) -> Vec<Handle> {
        std::mem::take(&mut *self.lock()).into_values().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Handle>> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_hold_of_a_worktree_is_not_forgotten_with_an_earlier_one() {
        let handle = |text: &str| text.parse::<Handle>().expect("a handle");
        let (earlier, later) = (handle("a:1:e:s"), handle("a:3:e:s"));
        let held = Held::default();
        held.add(earlier.clone());
        held.add(later.clone());
        held.remove(&earlier);
        assert!(held.has(&later) && !held.has(&earlier));
        assert!(held.has_any(None) && held.has_any(Some("a")) && !held.has_any(Some("b")));
        assert_eq!(held.take_all(), [later]);
        assert!(!held.has_any(None));
    }
}
