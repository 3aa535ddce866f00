//! Which steps an operation can make. Pure: two states in, what is wrong out.
//!
//! Asked of every pair of neighbours in a history, whatever the chain says of them:
//! who writes to the repository can make a chain that holds, and a log to go with it.

use super::problem::Wrong;
use crate::state::{Hold, State};

/// What is wrong with the step from `from` to `to`, if anything.
pub(super) fn broken_by(from: &State, to: &State) -> Option<Wrong> {
    let same_token = to.token == from.token;
    if to.token < from.token {
        return Some(Wrong::TokenFell);
    }
    if !same_token && to.token != from.token.next() {
        return Some(Wrong::TokenLeapt);
    }
    if to.generation < from.generation {
        return Some(Wrong::CommitsFell);
    }
    let commits = to.generation != from.generation;
    if commits && (to.generation != from.generation.next() || to.head.is_none()) {
        return Some(Wrong::CommitsLeapt);
    }
    // A commit moves the head and nothing else; nothing else moves the head.
    let moved = to.head != from.head;
    if moved != commits || commits && !same_token {
        return Some(Wrong::HeadMoved);
    }
    if from.hold == Hold::Retired && to.hold != Hold::Retired {
        return Some(Wrong::NotRetired);
    }
    let kept = match (&from.hold, &to.hold) {
        (Hold::Held(before), Hold::Held(after)) => before.holder == after.holder,
        (Hold::Frozen(before), Hold::Frozen(after)) => before == after,
        (Hold::Retired, Hold::Retired) | (_, Hold::Free) => true,
        _ => false,
    };
    (same_token && !kept).then_some(Wrong::NotGranted)
}

/// Do renewals alone lead from `earlier` to `later`?
pub fn is_renewal(earlier: &State, later: &State) -> bool {
    earlier.epoch == later.epoch
        && earlier.token == later.token
        && earlier.head == later.head
        && earlier.generation == later.generation
        && earlier.holder().is_some()
        && earlier.holder() == later.holder()
}
