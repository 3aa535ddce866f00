//! Several locks at once: in one order, all or none.

use jvs_lock::hold::Entered;
use jvs_repo::clock::{Clock as _, SystemClock};
use jvs_repo::duration::Period;

use super::turn::LockTurn;
use crate::fail::Failure;

/// Comes into the hold of each, or of none: what was taken is released if one of them
/// cannot be had. `wait` is for all of them together. The answers are in the order of
/// `turns`, which is that of the worktrees' names.
///
/// First come those that the session does not hold, in the order of their names, which
/// is the same for everybody: those who take several never wait for each other in a
/// circle. Then those that it holds, so that none of them is touched if another cannot
/// be had.
pub(crate) fn enter_all<'r>(
    turns: &[LockTurn<'_, 'r>],
    wait: Option<Period>,
    mut enter: impl FnMut(&LockTurn<'_, 'r>, Option<Period>) -> Result<Entered<'r>, Failure>,
) -> Result<Vec<Entered<'r>>, Failure> {
    let mut order: Vec<usize> = (0..turns.len()).collect();
    if turns.len() > 1 {
        let held: Vec<bool> = turns.iter().map(is_held).collect::<Result<_, _>>()?;
        order.sort_by_key(|at| held[*at]);
    }
    let started = SystemClock.now().boot;
    let mut entered: Vec<(usize, Entered<'r>)> = Vec::new();
    for at in order {
        let waited_ms = SystemClock.now().boot.since(started);
        let left = wait.map(|all| Period::from_ms(all.as_ms().saturating_sub(waited_ms)));
        match enter(&turns[at], left) {
            Ok(one) => entered.push((at, one)),
            Err(failure) => {
                for (at, one) in entered.into_iter().rev() {
                    leave(&turns[at], &one);
                }
                return Err(failure);
            }
        }
    }
    entered.sort_by_key(|(at, _)| *at);
    Ok(entered.into_iter().map(|(_, one)| one).collect())
}

/// Takes a stake back, and releases the lock if that was the last one. Best effort:
/// nobody was told of it, nothing renews it, and so it runs out.
pub(crate) fn leave(turn: &LockTurn<'_, '_>, entered: &Entered<'_>) {
    let _ = turn.locks.leave(turn.holds, &entered.stake);
}

fn is_held(turn: &LockTurn<'_, '_>) -> Result<bool, Failure> {
    Ok(turn.holds.peek()?.is_some_and(|hold| hold.is_open()))
}
