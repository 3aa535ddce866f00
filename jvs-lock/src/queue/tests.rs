use jvs_repo::clock::{BootClock, BootId, BootMs, SystemClock, WallMs};
use jvs_repo::id::OpNonce;

use super::turn::{Memory, Vantage, listens, pause_ms, seems_fresh};
use super::*;
use crate::session::tests::session;

fn waiter(order: u64, op: u8, beat: u64) -> Waiter {
    let waiter = Waiter::of(&session("s", 1), &SystemClock, order, OpNonce([op; 8]), 30_000);
    let boot = Fingerprint::of_clock(&BootId("boot-a".into()), Some(1));
    Waiter { beat: WallMs(beat), boot, ..waiter }
}

#[test]
fn a_ticket_s_name_is_read_back_and_nothing_else_is_a_ticket() {
    let most = Some(u64::MAX);
    for (namespace, lease_ms, since) in
        [(None, None, None), (None, most, None), (Some(4_026_531_836), most, most.map(WallMs))]
    {
        let waiter = Waiter {
            order: u64::MAX,
            pid: u32::MAX,
            start_time: u64::MAX,
            pid_namespace: namespace,
            lease_ms,
            since,
            ..waiter(1, 7, u64::MAX)
        };
        let name = waiter.to_string();
        assert!(name.len() <= 255, "{} bytes", name.len());
        assert_eq!(name.parse(), Ok(waiter));
        for broken in [
            format!("{name}."),
            format!("{name}.1"),
            format!("4{}", &name[1..]),
            name.replace(".1", ".01"),
            name[..name.len() / 2].to_owned(),
            String::new(),
            ".".to_owned(),
        ] {
            assert!(broken.parse::<Waiter>().is_err(), "{broken}");
        }
    }
}

#[test]
fn who_came_first_is_first_and_a_tie_is_settled_the_same_way_by_everybody() {
    let mut line = [waiter(2, 1, 0), waiter(1, 9, 0), waiter(1, 3, 0), waiter(10, 0, 0)];
    line.sort_by_key(Waiter::rank);
    assert_eq!(line.map(|w| (w.order, w.op.0[0])), [(1, 3), (1, 9), (2, 1), (10, 0)]);
}

#[test]
fn a_sign_of_life_is_a_new_name_even_if_the_clock_stands_still_or_goes_back() {
    let first = waiter(1, 1, 1_000);
    let second = first.beaten(WallMs(1_000));
    let third = second.beaten(WallMs(10));
    assert_eq!([second.beat, third.beat], [WallMs(1_001), WallMs(1_002)]);
    assert_eq!(third.rank(), first.rank(), "and keeps its place");
}

#[test]
fn silence_is_timed_on_the_own_clock_and_ends_with_a_sign() {
    let mut memory = Memory::default();
    let there = waiter(1, 1, 1_000_000);
    memory.look(&[there], BootMs(100));
    memory.look(&[there], BootMs(100 + SILENT_AFTER_MS - 1));
    assert!(!memory.is_silent(&there, BootMs(100 + SILENT_AFTER_MS - 1)));
    assert!(memory.is_silent(&there, BootMs(100 + SILENT_AFTER_MS)), "whatever its own clock says");
    let sign = there.beaten(WallMs(0));
    memory.look(&[sign], BootMs(90_000));
    assert!(!memory.is_silent(&sign, BootMs(90_001)));
    memory.look(&[], BootMs(90_002));
    assert!(!memory.is_silent(&sign, BootMs(990_000)), "who left is forgotten");
}

#[test]
fn only_a_process_that_can_be_seen_from_here_can_be_seen_gone() {
    let clock = |id: &str, namespace| BootClock {
        boot_id: BootId(id.into()),
        time_namespace: Some(namespace),
    };
    let at = |clock: &BootClock| Vantage::at(liveness::Observer { clock, pid_namespace: Some(1) });
    let here = at(&clock("boot-a", 1));
    let running = |start_ticks, zombie| {
        move |pid| {
            assert_eq!(pid, 100);
            Some(ProcessStat { start_ticks, session_leader: 1, zombie })
        }
    };
    let there = waiter(1, 1, 0);
    assert_eq!(here.sees(&there, &running(5, false)), Some(true));
    assert_eq!(here.sees(&there, &running(6, false)), Some(false), "the pid was used again");
    assert_eq!(here.sees(&there, &running(5, true)), Some(false), "a zombie");
    assert_eq!(here.sees(&there, &|_| None), Some(false));
    for elsewhere in [clock("boot-b", 1), clock("boot-a", 2)] {
        assert_eq!(at(&elsewhere).sees(&there, &|_| None), None, "{elsewhere:?}");
    }
    let contained = Waiter { pid_namespace: Some(2), ..there };
    assert_eq!(here.sees(&contained, &|_| None), None);
    let unknown = Waiter { pid_namespace: None, ..there };
    assert_eq!(here.sees(&unknown, &|_| None), None);
}

#[test]
fn one_look_takes_a_recent_sign_for_life_on_either_side_of_now() {
    let there = waiter(1, 1, 100_000);
    for (now, fresh) in [(100_000, true), (115_000, true), (85_000, true), (115_001, false)] {
        assert_eq!(seems_fresh(&there, WallMs(now)), fresh, "{now}");
    }
}

#[test]
fn those_further_back_look_less_often_and_nobody_less_often_than_it_gives_signs() {
    let steady = |ahead| pause_ms(ahead, 0, 255);
    assert_eq!([steady(1), steady(4)], [250, 1_000]);
    assert_eq!(steady(1_000_000), BEAT_MS);
    for ahead in [1, 7, 99] {
        assert!(pause_ms(ahead, 0, 0) >= steady(ahead) * 3 / 4, "jitter only spreads");
    }
}

#[test]
fn the_first_looks_the_less_often_the_longer_it_has_waited() {
    let first = |since_ms| pause_ms(0, since_ms, 0);
    assert_eq!([first(0), first(10), first(100), first(HOUR_MS)], [1, 5, 50, 500]);
}

#[test]
fn the_first_listens_once_it_has_waited_or_its_looks_take_their_time() {
    assert!(!listens(0, 0) && !listens(63, 1));
    assert!(listens(64, 0) && listens(0, 2));
}

const HOUR_MS: u64 = 3_600_000;
