//! What may be removed of snapshots that were never committed. Pure: a READ
//! state and a few facts in, a verdict out. Doctor and garbage collection both
//! ask here and nowhere else.
//!
//! Order matters: the state must have been READ *before* the directory was
//! listed. The other way round, a snapshot that commits in between is deleted.

use jvs_lock::{Hold, State};
use jvs_repo::id::{Epoch, Generation, OpNonce, SnapshotId};
use jvs_repo::term::Term;

use crate::staging_name::SnapshotBound;

/// A snapshot in `staging/`, or in `snapshots/` without READY, as its name or
/// its descriptor tells. What tells nothing has no candidate, and so no verdict:
/// it is never removed by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its id.
    pub id: SnapshotId,
    /// The term it is bound to.
    pub term: Term,
    /// What it can be committed on top of.
    pub parent: Option<SnapshotId>,
    /// How many commits there were up to `parent`.
    pub parent_generation: Generation,
    /// Is it visible? Looked at after the READ.
    pub ready: bool,
    /// Is its parent visible, or was it and has been collected?
    pub parent_ready: bool,
}

impl Candidate {
    /// What `bound` says, and what was seen.
    pub fn new(bound: &SnapshotBound, ready: bool, parent_ready: bool) -> Self {
        Candidate {
            id: bound.id,
            term: bound.term,
            parent: bound.parent,
            parent_generation: bound.generation,
            ready,
            parent_ready,
        }
    }
}

/// What a candidate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposal {
    /// It can never be committed any more: remove it.
    Garbage(Uncommittable),
    /// Somebody may still commit it. To clean up at once, raise the token first.
    Work,
    /// It is committed: nobody's garbage.
    Committed,
}

/// Why a candidate can never be committed any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uncommittable {
    /// The token moved on.
    Fenced,
    /// The head moved on from its parent.
    HeadMoved,
}

/// May `x`, a snapshot of the worktree whose register was READ as
/// `read_before_listing`, be removed?
pub fn removable(read_before_listing: &State, x: &Candidate) -> Disposal {
    let s = read_before_listing;
    if x.ready || s.head == Some(x.id) {
        return Disposal::Committed;
    }
    if x.term < s.term() {
        return Disposal::Garbage(Uncommittable::Fenced);
    }
    // No parent means no READY parent: a process that takes the first snapshot of a
    // worktree is left alone until the token moves. Generations of another epoch, be it
    // a later one or one with the same counter, are not this head's: a rebuild may
    // have gone back to an older head.
    let overtaken = x.term.epoch == s.epoch
        && x.parent.is_some()
        && x.parent_ready
        && x.parent != s.head
        && x.parent_generation < s.generation;
    if overtaken { Disposal::Garbage(Uncommittable::HeadMoved) } else { Disposal::Work }
}

/// May a restore that was begun in this term be removed?
pub fn is_dead(read_before_listing: &State, term: Term) -> bool {
    term < read_before_listing.term()
}

/// Were files that lie aside under this epoch and operation removed for good? Only
/// the operation that retired a worktree moves its files there, and only once it
/// has; the register stays retired by it, or goes on to the next epoch.
pub fn is_removed(read_before_listing: &State, epoch: Epoch, op: OpNonce) -> bool {
    let s = read_before_listing;
    s.epoch > epoch || s.epoch == epoch && s.hold == Hold::Retired && s.op == op
}

#[cfg(test)]
mod tests {
    use jvs_repo::clock::WallMs;
    use jvs_repo::id::{FencingToken, HolderNonce, OpNonce};

    use super::*;

    const OP: OpNonce = OpNonce([1; 8]);
    const P: SnapshotId = SnapshotId { created_ms: 1, random: 1 };
    const X: SnapshotId = SnapshotId { created_ms: 2, random: 2 };
    const Y: SnapshotId = SnapshotId { created_ms: 3, random: 3 };

    /// Held, one commit so far: `P`.
    fn held() -> State {
        State::birth(Epoch { counter: 1, salt: 0 }, OP)
            .granted(HolderNonce([1; 16]), 30_000, WallMs(0), OP)
            .with_head(P, OP)
    }

    fn on_top_of_head(s: &State) -> Candidate {
        Candidate {
            id: X,
            term: s.term(),
            parent: s.head,
            parent_generation: s.generation,
            ready: false,
            parent_ready: true,
        }
    }

    #[test]
    fn what_can_still_be_committed_is_somebodys_work() {
        let s = held();
        assert_eq!(removable(&s, &on_top_of_head(&s)), Disposal::Work);
        let released = s.released(OP);
        assert_eq!(removable(&released, &on_top_of_head(&s)), Disposal::Work, "a late rename");
        assert_eq!(removable(&s.advanced(OP), &on_top_of_head(&s)), Disposal::Work);
    }

    #[test]
    fn the_head_and_what_is_ready_are_committed_however_old() {
        let s = held();
        let x = on_top_of_head(&s);
        let stolen = s.with_head(X, OP).granted(HolderNonce([2; 16]), 1, WallMs(0), OP);
        assert_eq!(removable(&stolen, &x), Disposal::Committed, "the head, under an older token");
        let gone_on = stolen.with_head(Y, OP);
        assert_eq!(removable(&gone_on, &Candidate { ready: true, ..x }), Disposal::Committed);
    }

    #[test]
    fn a_higher_token_or_epoch_makes_garbage_and_a_higher_own_one_does_not() {
        let s = held();
        let x = on_top_of_head(&s);
        let stolen = s.granted(HolderNonce([2; 16]), 1, WallMs(0), OP);
        assert_eq!(removable(&stolen, &x), Disposal::Garbage(Uncommittable::Fenced));
        let rebuilt = State { epoch: Epoch { counter: 2, salt: 0 }, token: FencingToken(0), ..s };
        assert_eq!(
            removable(&rebuilt, &x),
            Disposal::Garbage(Uncommittable::Fenced),
            "the epoch decides"
        );
        let ahead = Candidate { term: Term { token: s.token.next(), ..s.term() }, ..x };
        assert_eq!(removable(&s, &ahead), Disposal::Work, "the READ was before its grant");
    }

    #[test]
    fn a_loser_under_the_same_token_is_garbage_only_once_its_parent_is_ready_and_passed() {
        let s = held();
        let x = on_top_of_head(&s);
        let moved = s.with_head(Y, OP);
        assert_eq!(removable(&moved, &x), Disposal::Garbage(Uncommittable::HeadMoved));
        let unseen = Candidate { parent_ready: false, ..x };
        assert_eq!(removable(&moved, &unseen), Disposal::Work, "its parent is not READY");
        let ahead = Candidate { parent_generation: moved.generation, ..x };
        assert_eq!(removable(&moved, &ahead), Disposal::Work, "not below the head");
        let on_it = Candidate { parent: moved.head, ..x };
        assert_eq!(removable(&moved, &on_it), Disposal::Work, "on the head, whatever it counts");
        let first = Candidate { parent: None, parent_generation: Generation(0), ..x };
        assert_eq!(removable(&moved, &first), Disposal::Work, "no parent is no READY parent");
    }

    #[test]
    fn of_two_lives_with_one_counter_neither_makes_the_other_garbage() {
        let of = |salt| State { epoch: Epoch { counter: 1, salt }, ..held() };
        let gone_on = |s: State| s.granted(HolderNonce([2; 16]), 1, WallMs(0), OP).with_head(Y, OP);
        for (x, s) in [(of(1), gone_on(of(2))), (of(2), gone_on(of(1)))] {
            assert_eq!(removable(&s, &on_top_of_head(&x)), Disposal::Work, "{s}");
            assert!(!is_dead(&s, x.term()), "{s}");
            assert!(!is_removed(&s.retired(OP), x.epoch, OP), "{s}");
        }
    }

    #[test]
    fn generations_of_another_life_tell_nothing_about_a_parent() {
        // READ, then rebuilt with an older head, on top of which somebody works.
        let read = held().with_head(Y, OP);
        let rebuilt = State { epoch: Epoch { counter: 2, salt: 0 }, ..held() };
        assert_eq!(removable(&read, &on_top_of_head(&rebuilt)), Disposal::Work);
    }
}
