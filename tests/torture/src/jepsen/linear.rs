//! The checker for the register: is there an order of all operations, each at one moment
//! between its call and its end, in which every read finds what was written last?
//!
//! The search is that of Wing and Gong with the memory of Lowe: which operations are
//! done, and what the register then holds, is tried once. It is bounded; what is not
//! decided within the bound is said to be undecided, and never passed.

use std::collections::{BTreeSet, HashSet};

use super::history::{Call, Op};

/// What the search came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// There is such an order.
    Linearizable,
    /// There is none: of everything before this call there is, but not with it. It is
    /// the place in the list that was asked about.
    Stuck(usize),
    /// The bound was reached.
    Undecided,
}

/// How many states are tried at most.
pub const BOUND: usize = 2_000_000;

/// What is to be tried next: how far everything is done, what else is, and what the
/// register holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    /// All before this place are done.
    from: usize,
    /// Done, although something before it is not.
    ahead: BTreeSet<usize>,
    value: u64,
}

/// Looks for an order. The register holds `first` in the beginning.
#[must_use]
pub fn check(calls: &[Call], first: u64, bound: usize) -> Verdict {
    let places = relevant(calls);
    let calls: Vec<&Call> = places.iter().map(|place| &calls[*place]).collect();
    let mut tried = HashSet::new();
    let start = settled(&calls, State { from: 0, ahead: BTreeSet::new(), value: first });
    let mut pending = vec![start];
    // Where the search came furthest, the call that had to be next, and could not.
    let (mut furthest, mut stuck) = (0, 0);
    while let Some(state) = pending.pop() {
        let Some(next) = first_to_end(&calls, &state) else { return Verdict::Linearizable };
        if !tried.insert(state.clone()) {
            continue;
        }
        if tried.len() > bound {
            return Verdict::Undecided;
        }
        let done = state.from + state.ahead.len();
        if done >= furthest {
            (furthest, stuck) = (done, next);
        }
        let end = calls[next].done.unwrap_or(u64::MAX);
        for place in open(&calls, &state) {
            if calls[place].invoked > end {
                break;
            }
            if let Some(value) = applied(calls[place].op, state.value) {
                let mut after = State { value, ..state.clone() };
                after.ahead.insert(place);
                pending.push(settled(&calls, after));
            }
        }
    }
    Verdict::Stuck(places[stuck])
}

/// Places of the calls that decide anything, by their beginnings. A read of which nobody
/// knows the end says nothing. A write of which nobody knows the end, and whose value
/// nobody saw, need not have been.
fn relevant(calls: &[Call]) -> Vec<usize> {
    let seen: HashSet<u64> = calls
        .iter()
        .filter(|call| call.done.is_some())
        .filter_map(|call| match call.op {
            Op::Read(value) | Op::Swap(value, _) => Some(value),
            _ => None,
        })
        .collect();
    let decides = |call: &Call| match call.op {
        Op::Add(_) => false,
        Op::Read(_) => call.done.is_some(),
        Op::Write(value) | Op::Swap(_, value) => call.done.is_some() || seen.contains(&value),
    };
    let mut places: Vec<usize> = (0..calls.len()).filter(|at| decides(&calls[*at])).collect();
    places.sort_by_key(|at| calls[*at].invoked);
    places
}

/// What the register holds after an operation, if that can happen.
fn applied(op: Op, value: u64) -> Option<u64> {
    match op {
        Op::Write(written) => Some(written),
        Op::Read(read) => (read == value).then_some(value),
        Op::Swap(from, to) => (from == value).then_some(to),
        Op::Add(_) => None,
    }
}

fn open(calls: &[&Call], state: &State) -> impl Iterator<Item = usize> {
    (state.from..calls.len()).filter(|place| !state.ahead.contains(place))
}

/// Of what is not done, the call that ends first: whatever begins later comes later.
/// Nothing if only calls are left that need never have happened.
fn first_to_end(calls: &[&Call], state: &State) -> Option<usize> {
    let mut first: Option<(u64, usize)> = None;
    for place in open(calls, state) {
        if first.is_some_and(|(end, _)| calls[place].invoked > end) {
            break;
        }
        if let Some(end) = calls[place].done
            && first.is_none_or(|(earlier, _)| end < earlier)
        {
            first = Some((end, place));
        }
    }
    first.map(|(_, place)| place)
}

/// The same state, written in one way only.
fn settled(calls: &[&Call], mut state: State) -> State {
    while state.from < calls.len() && state.ahead.remove(&state.from) {
        state.from += 1;
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;

    fn call(process: u64, op: Op, invoked: u64, done: u64) -> Call {
        Call { process, op, invoked, done: (done > 0).then_some(done) }
    }

    #[test]
    fn calls_at_once_may_come_in_any_order() {
        let calls = [
            call(1, Op::Write(1), 0, 10),
            call(2, Op::Write(2), 1, 9),
            call(3, Op::Read(2), 2, 8),
            call(4, Op::Read(1), 11, 12),
        ];
        assert_eq!(check(&calls, 0, BOUND), Verdict::Linearizable);
    }

    #[test]
    fn what_ended_before_is_not_forgotten() {
        let calls = [call(1, Op::Write(1), 0, 1), call(2, Op::Read(0), 2, 3)];
        assert_eq!(check(&calls, 0, BOUND), Verdict::Stuck(1));
    }

    #[test]
    fn of_two_swaps_from_one_value_one_is_too_many() {
        let calls = [call(1, Op::Swap(0, 1), 0, 10), call(2, Op::Swap(0, 2), 1, 11)];
        assert!(matches!(check(&calls, 0, BOUND), Verdict::Stuck(_)));
    }

    #[test]
    fn a_write_of_unknown_end_may_be_seen_late_or_never() {
        let unknown = call(1, Op::Write(7), 0, 0);
        let never = [unknown, call(2, Op::Read(0), 5, 6)];
        assert_eq!(check(&never, 0, BOUND), Verdict::Linearizable);
        let late = [unknown, call(2, Op::Read(0), 5, 6), call(2, Op::Read(7), 7, 8)];
        assert_eq!(check(&late, 0, BOUND), Verdict::Linearizable);
        let and_gone = [late[0], late[1], late[2], call(2, Op::Read(0), 9, 10)];
        assert_eq!(check(&and_gone, 0, BOUND), Verdict::Stuck(3));
    }

    #[test]
    fn a_search_that_is_too_long_is_undecided_and_not_passed() {
        let calls: Vec<Call> = (0..20).map(|n| call(n, Op::Write(n), 0, 100 + n)).collect();
        let mut calls = calls;
        calls.push(call(30, Op::Read(99), 200, 201));
        assert_eq!(check(&calls, 0, 1000), Verdict::Undecided);
    }

    /// A history of processes that take turns, as with a lock that holds, so that each
    /// call has one moment; calls of several overlap where they wait for their turn.
    fn history(seed: u64) -> Vec<Call> {
        let mut dice = Dice::new(seed, 0);
        let (mut value, mut calls, mut free_at) = (0, Vec::new(), [0; 4]);
        for at in 0..120 {
            let moment = 100 + at * 10;
            let process = usize::try_from(dice.below(4)).expect("small");
            let op = match dice.below(3) {
                0 => Op::Write(1000 + at),
                1 => Op::Read(value),
                _ => Op::Swap(value, 1000 + at),
            };
            value = applied(op, value).expect("made so that it is possible");
            let invoked = (moment - dice.between(1, 25)).max(free_at[process] + 1);
            let done = moment + dice.between(1, 4);
            free_at[process] = done;
            calls.push(call(process as u64, op, invoked.min(moment), done));
        }
        calls
    }

    #[test]
    fn every_mutant_of_a_good_history_is_rejected_at_its_operation() {
        let mut mutants = 0;
        for seed in 0..20 {
            let good = history(seed);
            assert_eq!(check(&good, 0, BOUND), Verdict::Linearizable, "seed {seed}");
            for at in 0..good.len() {
                let mut mutant = good.clone();
                // A value that nobody ever wrote.
                mutant[at].op = match good[at].op {
                    Op::Read(_) => Op::Read(5),
                    Op::Swap(_, to) => Op::Swap(5, to),
                    _ => continue,
                };
                let Verdict::Stuck(place) = check(&mutant, 0, BOUND) else {
                    panic!("seed {seed}, {at}: {:?} passed", mutant[at])
                };
                // The one that ends first may be another that was waiting beside it.
                let beside = mutant[place].invoked <= mutant[at].done.unwrap_or(0)
                    && mutant[at].invoked <= mutant[place].done.unwrap_or(0);
                assert!(place == at || beside, "seed {seed}: {at} was rejected at {place}");
                mutants += 1;
            }
        }
        assert!(mutants > 1000, "{mutants}");
    }

    #[test]
    fn every_read_of_what_was_overwritten_long_ago_is_rejected() {
        let mut mutants = 0;
        for seed in 0..20 {
            let good = history(seed);
            for at in 40..good.len() {
                let Op::Read(value) = good[at].op else { continue };
                let old = good[..at - 30].iter().rev().find_map(|call| match call.op {
                    Op::Write(old) | Op::Swap(_, old) if old != value => Some(old),
                    _ => None,
                });
                let Some(old) = old else { continue };
                let mut mutant = good.clone();
                mutant[at].op = Op::Read(old);
                let verdict = check(&mutant, 0, BOUND);
                assert!(matches!(verdict, Verdict::Stuck(_)), "seed {seed}, {at}");
                mutants += 1;
            }
        }
        assert!(mutants > 300, "{mutants}");
    }
}
