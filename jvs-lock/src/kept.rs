//! Until when a lock is kept: what its stakes say, for observers.
//! Pure, and for display alone: nothing is decided by it.

use jvs_repo::clock::Reading;
pub use jvs_repo::record::lock::{Kept, With};

use crate::hold::{Stake, StakeKind, Who};

/// What the live `stakes` of a hold say at `now`. `idle_ms` is what bounds those
/// that end without a sign of life, as `yields` tells; `is_terminal` tells a
/// terminal's process from another.
pub fn of(
    stakes: &[&Stake],
    now: Reading,
    idle_ms: Option<u64>,
    yields: &dyn Fn(&Stake) -> bool,
    is_terminal: &dyn Fn(Who) -> bool,
) -> Kept {
    // What is asked for again replaces what was asked for before, once it is answered.
    let replaced = |old: &Stake| {
        let mut asking = stakes.iter().filter(|new| !new.answered);
        old.answered && asking.any(|new| old.is_for_the_same(new))
    };
    let stakes: Vec<&Stake> = stakes.iter().filter(|it| !replaced(it)).copied().collect();
    if stakes.is_empty() || stakes.iter().any(|stake| stake.kind != StakeKind::Acquire) {
        return Kept::by_command();
    }
    let ends = stakes.iter().map(|stake| stake.over.at);
    let last = ends.collect::<Option<Vec<_>>>().and_then(|ends| ends.into_iter().max());
    let until = last.map(|at| now.wall.plus(at.since(now.boot)).rfc3339());
    // The end of one of several is not the end.
    let with = stakes[0].over.with;
    let with = with.filter(|_| stakes.iter().all(|stake| stake.over.with == with));
    let with = with.map(|who| match is_terminal(who) {
        true => With::Terminal,
        false => With::Process { pid: who.pid },
    });
    let idle_ms = idle_ms.filter(|_| stakes.iter().all(|stake| yields(stake)));
    Kept { until, with, idle_ms }
}

#[cfg(test)]
mod tests {
    use jvs_repo::clock::{BootMs, WallMs};
    use jvs_repo::id::OpNonce;

    use super::*;
    use crate::hold::StakeEnd;

    fn stake(kind: StakeKind, with: Option<u32>, at: Option<u64>) -> Stake {
        let with = with.map(|pid| Who { pid, start: 1 });
        Stake {
            id: OpNonce([1; 8]),
            term: None,
            kind,
            exclusive: false,
            maker: Who { pid: 1, start: 1 },
            pid_namespace: None,
            time_namespace: None,
            over: StakeEnd { with, at: at.map(BootMs) },
            answered: true,
        }
    }

    /// At 1 000 s, with process 7 a terminal's.
    fn kept(stakes: &[&Stake]) -> Kept {
        let now = Reading { wall: WallMs(1_000_000), boot: BootMs(50) };
        of(stakes, now, Some(9), &|stake| stake.over.with.is_none(), &|who| who.pid == 7)
    }

    #[test]
    fn a_lock_is_kept_for_its_command_its_terminal_its_process_or_its_time() {
        let run = stake(StakeKind::Run, None, None);
        let timed = stake(StakeKind::Acquire, None, Some(1_050));
        assert_eq!(kept(&[&run]), Kept::by_command());
        assert_eq!(kept(&[&run, &timed]), Kept::by_command(), "nobody knows how long it runs");
        let told = kept(&[&timed]);
        assert_eq!(
            (told.ends(), told.with, told.idle_ms),
            (Some(WallMs(1_001_000)), None, Some(9))
        );
        let terminal = stake(StakeKind::Acquire, Some(7), Some(1_050));
        assert_eq!(kept(&[&terminal]).with, Some(With::Terminal));
        assert_eq!(kept(&[&terminal]).idle_ms, None);
        let process = stake(StakeKind::Acquire, Some(8), None);
        assert_eq!(
            (kept(&[&process]).ends(), kept(&[&process]).with),
            (None, Some(With::Process { pid: 8 }))
        );
    }

    #[test]
    fn the_last_of_several_reasons_is_the_end() {
        let (soon, late) = (
            stake(StakeKind::Acquire, Some(7), Some(100)),
            stake(StakeKind::Acquire, None, Some(5_050)),
        );
        let told = kept(&[&soon, &late]);
        assert_eq!((told.ends(), told.with, told.idle_ms), (Some(WallMs(1_005_000)), None, None));
        let asked_anew = Stake { answered: false, ..stake(StakeKind::Acquire, None, Some(1_050)) };
        let told = kept(&[&late, &asked_anew]);
        assert_eq!(told.ends(), Some(WallMs(1_001_000)), "what is asked for anew replaces it");
    }
}
