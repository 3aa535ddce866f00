//! What a session remembers, by the name of its hold. Pure.

use super::name::{HoldName, HoldState};
use super::rule::HoldRule;
use crate::state::State;
use jvs_repo::sabotage;
use jvs_repo::term::Term;

/// The hold that the session remembers and that was taken from it, as far as can be
/// known, seeing the register in `state`. `None` if nobody can have written since:
/// it gave the hold back itself, or the register is still where it was, or has not come
/// so far: then a power cut took the grant back before anybody was told of it.
pub fn taken(hold: &HoldName, state: &State) -> Option<Term> {
    sabotage!(HoldRule::SessionsRemember => None);
    let nobody_since = state.term() == hold.term || state.term() < hold.term;
    let given_up = hold.state == HoldState::Released;
    (!given_up && !nobody_since).then_some(hold.term)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jvs_repo::clock::WallMs;
    use jvs_repo::id::{HolderNonce, OpNonce};

    #[test]
    fn only_what_was_given_back_or_is_still_there_was_not_taken() {
        let (me, other) = (HolderNonce([1; 16]), HolderNonce([2; 16]));
        let epoch = "1-a3f0".parse().expect("an epoch");
        let free = State::birth(epoch, OpNonce([0; 8]));
        let mine = free.granted(me, 1_000, WallMs(5), OpNonce([1; 8]));
        let theirs = mine.granted(other, 1_000, WallMs(9), OpNonce([2; 8]));
        let hold = |state| HoldName { term: mine.term(), n: 3, state };
        use HoldState::{Ending, Lost, Open, Released};
        for state in [Open, Ending, Lost, Released] {
            assert_eq!(taken(&hold(state), &mine), None, "{state:?}");
            assert_eq!(taken(&hold(state), &mine.released(OpNonce([3; 8]))), None, "{state:?}");
            assert_eq!(taken(&hold(state), &free), None, "{state:?}");
        }
        for state in [Open, Ending, Lost] {
            assert_eq!(taken(&hold(state), &theirs), Some(mine.term()), "{state:?}");
        }
        assert_eq!(taken(&hold(Released), &theirs), None);
        assert_eq!(taken(&HoldName::NEVER, &theirs), None);
    }
}
