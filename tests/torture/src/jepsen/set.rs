//! The checker for the set: nothing that was acknowledged is missing, and nothing is
//! there that nobody added.

use std::collections::BTreeSet;

use super::history::{Call, Op};

/// What became of what was added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetVerdict {
    /// How many were acknowledged.
    pub acknowledged: usize,
    /// Acknowledged, and not there.
    pub lost: Vec<u64>,
    /// There, and never asked for.
    pub invented: Vec<u64>,
    /// There although nobody knew.
    pub unknown_there: usize,
    /// Not there, which nobody was promised.
    pub unknown_gone: usize,
}

/// Compares a history with what is there in the end.
#[must_use]
pub fn check(calls: &[Call], there: &BTreeSet<u64>) -> SetVerdict {
    let mut verdict = SetVerdict::default();
    let mut asked = BTreeSet::new();
    for call in calls {
        let Op::Add(number) = call.op else { continue };
        asked.insert(number);
        match (call.done.is_some(), there.contains(&number)) {
            (true, true) => verdict.acknowledged += 1,
            (true, false) => {
                verdict.acknowledged += 1;
                verdict.lost.push(number);
            }
            (false, true) => verdict.unknown_there += 1,
            (false, false) => verdict.unknown_gone += 1,
        }
    }
    verdict.invented = there.difference(&asked).copied().collect();
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(number: u64, known: bool) -> Call {
        let done = known.then_some(number * 10 + 5);
        Call { process: 1, op: Op::Add(number), invoked: number * 10, done }
    }

    #[test]
    fn what_is_complete_passes_and_what_is_unknown_may_be_either() {
        let calls = [added(1, true), added(2, true), added(3, false), added(4, false)];
        let verdict = check(&calls, &BTreeSet::from([1, 2, 3]));
        let expected =
            SetVerdict { acknowledged: 2, unknown_there: 1, unknown_gone: 1, ..verdict.clone() };
        assert_eq!(verdict, expected);
        assert!(verdict.lost.is_empty() && verdict.invented.is_empty());
    }

    #[test]
    fn each_number_that_is_taken_out_is_lost_and_each_put_in_is_invented() {
        let calls: Vec<Call> = (0..50).map(|n| added(n, true)).collect();
        let all: BTreeSet<u64> = (0..50).collect();
        for number in 0..50 {
            let mut there = all.clone();
            there.remove(&number);
            assert_eq!(check(&calls, &there).lost, [number]);
            there.insert(number);
            there.insert(100 + number);
            assert_eq!(check(&calls, &there).invented, [100 + number]);
        }
    }
}
