use jvs_repo::clock::BootId;
use jvs_repo::id::{Epoch, HolderNonce, OpNonce};
use jvs_repo::name::WorktreeName;

use super::*;
use crate::record::{Renewal, Stamp};
use crate::session::tests::session;

const LEASE: u64 = 30_000;
const MARGIN: u64 = 3_000;
const T0: u64 = 1_700_000_000_000;

struct Case {
    state: State,
    record: Record,
    policy: LockPolicy,
}

impl Case {
    /// Held since wall T0, boot 1000 on host a.
    fn new() -> Self {
        let me = session("s", 1);
        let op = OpNonce([1; 8]);
        let state = State::birth(Epoch { counter: 1, salt: 0 }, op).granted(
            me.nonce(),
            LEASE,
            WallMs(T0),
            op,
        );
        let policy = LockPolicy::default();
        let claim = *state.hold.claim().expect("held");
        let at = Reading { wall: WallMs(T0), boot: BootMs(1_000) };
        let main = WorktreeName::main();
        let stamp = Stamp { at, time_namespace: Some(1) };
        let mut record = Record::of_grant(&me, &main, &state, &claim, stamp, &policy, None);
        record.set_renewal(Renewal::Nobody, &policy);
        Case { state, record, policy }
    }

    fn kept(mut self) -> Self {
        self.record.set_renewal(Renewal::Every(10_000), &self.policy);
        self
    }

    fn judge(&self, boot_id: &str, wall: u64, boot: u64, watch: Option<&Watch>) -> Judgement {
        judge(Facts {
            state: &self.state,
            record: Some(&self.record),
            now: Reading { wall: WallMs(wall), boot: BootMs(boot) },
            clock: &clock(boot_id),
            discipline: Discipline::Unknown,
            watch,
            policy: &self.policy,
        })
        .expect("held")
    }

    fn seen_from_other_host(&self, wall: u64) -> Judgement {
        self.judge("boot-b", wall, 5, None)
    }
}

fn clock(boot_id: &str) -> BootClock {
    BootClock { boot_id: BootId(boot_id.into()), time_namespace: Some(1) }
}

#[test]
fn on_the_same_boot_the_boot_time_clock_decides() {
    let case = Case::new();
    // Within the skew the wall clock does not matter.
    for off in [-2_000_i64, 0, 2_000] {
        let judge = |boot: u64| {
            let wall = (T0 + boot - 1_000).saturating_add_signed(off);
            case.judge("boot-a", wall, boot, None)
        };
        assert_eq!(judge(1_000 + LEASE).standing, Standing::Live);
        assert_eq!(judge(1_000 + LEASE + MARGIN).standing, Standing::Expired);
        let late = judge(1_000 + LEASE + MARGIN + 1);
        assert_eq!((late.standing, late.method), (Standing::Stealable, Method::SameBoot));
        assert_eq!((late.observed_skew_ms, late.watch_ms), (0, 0));
    }
}

#[test]
fn a_wall_clock_that_was_set_on_the_same_boot_delays_and_never_hastens() {
    let case = Case::new();
    let over = 1_000 + LEASE + MARGIN + 1;
    // Ahead: the boot-time clock says that it runs, so it does.
    let ahead = case.judge("boot-a", T0 + 3_600_000, 1_000 + LEASE - 1, None);
    assert_eq!((ahead.standing, ahead.remaining_ms), (Standing::Live, 1));
    // Behind: the wall clock says that it runs.
    let behind = case.judge("boot-a", T0 - 3_600_000, over, None);
    assert_eq!((behind.standing, behind.method), (Standing::Live, Method::WallClock));
    // Both say that it is over, but their disagreement is told and stops a steal.
    let doubtful = case.judge("boot-a", T0 + 3_600_000, over, None);
    assert_eq!((doubtful.standing, doubtful.method), (Standing::Stealable, Method::WallClock));
    let by_ms = 3_600_000 - (over - 1_000);
    assert_eq!(doubtful.evidence, [Evidence::ClocksParted { by_ms }]);
}

#[test]
fn another_time_namespace_or_an_unknown_boot_is_another_host() {
    let case = Case::new();
    let judge = |clock: BootClock, record: &Record| {
        let now = Reading { wall: WallMs(T0 + 10), boot: BootMs(100_000_000) };
        let discipline = Discipline::Unknown;
        let (state, policy) = (&case.state, &case.policy);
        judge(Facts {
            state,
            record: Some(record),
            now,
            clock: &clock,
            discipline,
            watch: None,
            policy,
        })
        .expect("held")
    };
    let shifted = BootClock { time_namespace: Some(2), ..clock("boot-a") };
    let judged = judge(shifted, &case.record);
    assert_eq!((judged.standing, judged.method), (Standing::Live, Method::WallClock));
    let mut nameless = case.record.clone();
    (nameless.boot_id, nameless.time_namespace) = (BootId(String::new()), None);
    let unknown = BootClock { boot_id: BootId(String::new()), time_namespace: None };
    let judged = judge(unknown, &nameless);
    assert_eq!((judged.standing, judged.method), (Standing::Live, Method::WallClock));
    // A record of before there were time namespaces in it.
    nameless.boot_id = BootId("boot-a".into());
    assert_eq!(judge(clock("boot-a"), &nameless).method, Method::WallClock);
}

#[test]
fn a_copy_of_this_machine_is_another_host() {
    let case = Case::new();
    // The copy was resumed an hour before us: its ids are ours, its boot time is not.
    let judged = case.judge("boot-a", T0 + 10, 1_000 + 3_600_000, None);
    assert_eq!((judged.standing, judged.method), (Standing::Live, Method::WallClock));
    assert_eq!(judged.observed_skew_ms, 3_599_990);
}

#[test]
fn what_looks_abandoned_from_another_host_is_watched_for_a_renewal_and_grace() {
    let case = Case::new().kept();
    let wall = T0 + LEASE + MARGIN + 1;
    let judged = case.judge("boot-b", wall, 5, None);
    assert_eq!((judged.standing, judged.method), (Standing::Stealable, Method::WallClock));
    assert_eq!((judged.watch_ms, judged.stealable_in_ms), (11_000, 11_000));
    let at = Reading { wall: WallMs(wall), boot: BootMs(5) };
    let watch = Watch::start(case.state, at, at);
    for (boot, left) in [(5, 11_000), (5 + 10_999, 1), (5 + 11_000, 0)] {
        assert_eq!(case.judge("boot-b", wall, boot, Some(&watch)).watch_ms, left, "{boot}");
    }
    // Seen early, it need not be watched any more once it looks abandoned.
    assert_eq!(case.judge("boot-b", T0, 5, Some(&watch)).watch_ms, 0, "it is live");
}

#[test]
fn without_a_record_that_is_current_half_a_lease_is_watched() {
    let wall = T0 + 3_600_000;
    let mut case = Case::new();
    assert!(case.judge("boot-b", wall, 5, None).nobody_renews);
    assert_eq!(case.judge("boot-b", wall, 5, None).watch_ms, 0, "nobody renews it");
    // The record missed a renewal: what it says of renewals may be old, too.
    case.state = case.state.extended(LEASE, WallMs(T0 + 10_000), OpNonce([2; 8]));
    let judged = case.judge("boot-b", wall, 5, None);
    assert_eq!((judged.watch_ms, judged.nobody_renews), (16_000, false));
    case.record.holder_nonce = HolderNonce([9; 16]);
    assert_eq!(case.judge("boot-b", wall, 5, None).watch_ms, 16_000, "no record at all");
    let frozen = case.state.frozen(HolderNonce([1; 16]), LEASE, WallMs(T0), OpNonce([3; 8]));
    let case = Case { state: frozen, ..case };
    assert_eq!(case.judge("boot-b", wall, 5, None).watch_ms, 0, "nobody renews a freeze");
}

#[test]
fn a_refresh_that_died_before_its_record_does_not_shorten_the_lease() {
    // Refreshed for a second after twenty of thirty: the end stays (but for the
    // one millisecond that tells renewals apart), ten seconds are left.
    let mut case = Case::new();
    case.state = case.state.extended(1_000, WallMs(T0 + 20_000), OpNonce([2; 8]));
    let judged = case.judge("boot-a", T0 + 20_010, 21_010, None);
    assert_eq!(judged.standing, Standing::Live);
    // Also if the register's end were the record's to the millisecond.
    let Hold::Held(claim) = case.state.hold else { panic!("held") };
    case.record.lease_expires_at = Some(claim.expires.rfc3339());
    let judged = case.judge("boot-a", T0 + 20_010, 21_010, None);
    assert_eq!((judged.standing, judged.method), (Standing::Live, Method::WallClock));
}

#[test]
fn a_renewal_after_the_clock_was_set_back_leaves_no_stale_record_current() {
    let mut case = Case::new();
    case.state = case.state.extended(LEASE, WallMs(T0 - 3_600_000), OpNonce([2; 8]));
    assert!(case.record.is_of(&case.state) && !case.record.is_current(&case.state));
}

#[test]
fn from_another_host_the_wall_clock_decides_with_skew_and_grace() {
    let case = Case::new();
    let end = T0 + LEASE;
    for (wall, standing, stealable_in) in [
        (T0, Standing::Live, LEASE + MARGIN + 1),
        (end, Standing::Live, MARGIN + 1),
        (end + 1, Standing::Expired, MARGIN),
        (end + MARGIN, Standing::Expired, 1),
        (end + MARGIN + 1, Standing::Stealable, 0),
        (end + 3_600_000, Standing::Stealable, 0),
    ] {
        let judged = case.seen_from_other_host(wall);
        assert_eq!(judged.standing, standing, "{wall}");
        assert_eq!(judged.stealable_in_ms, stealable_in, "{wall}");
        assert_eq!(judged.method, Method::WallClock);
    }
}

#[test]
fn a_renewal_in_our_future_proves_skew() {
    let judged = Case::new().seen_from_other_host(T0 - 3_600_000);
    assert_eq!(judged.observed_skew_ms, 3_600_000);
    assert_eq!(judged.evidence, [Evidence::RenewedInTheFuture { by_ms: 3_600_000 }]);
}

#[test]
fn a_holder_whose_wall_clock_was_set_is_noticed() {
    let mut case = Case::new();
    // Ten seconds by its boot-time clock, an hour and ten by its wall clock.
    let at = Reading { wall: WallMs(T0 + 3_610_000), boot: BootMs(11_000) };
    case.state = case.state.extended(LEASE, at.wall, OpNonce([2; 8]));
    let claim = *case.state.hold.claim().expect("held");
    let stamp = Stamp { at, time_namespace: Some(1) };
    case.record.renewed(&session("s", 1), &claim, stamp);
    let judged = case.seen_from_other_host(T0 + 3_611_000);
    assert_eq!(judged.evidence, [Evidence::HolderClockSet { by_ms: 3_600_000 }]);
}

#[test]
fn a_renewal_seen_outside_our_two_reads_proves_skew() {
    let case = Case::new();
    let read = |wall, boot| Reading { wall: WallMs(wall), boot: BootMs(boot) };
    // Our clock is five seconds behind the holder's.
    let mut watch = Watch::start(case.state, read(T0 - 4_000, 0), read(T0 - 4_000, 0));
    let renewed = case.state.extended(LEASE, WallMs(T0 + 10_000), OpNonce([2; 8]));
    watch.look(renewed, read(T0 + 5_000, 9_000), read(T0 + 5_000, 9_000));
    let seen = Case { state: renewed, ..case };
    let judged = seen.judge("boot-b", T0 + 5_000, 9_000, Some(&watch));
    assert_eq!(judged.evidence, [Evidence::OutsideBracket { by_ms: 5_000 }]);
}

#[test]
fn a_renewal_whose_rename_took_its_time_proves_nothing() {
    let case = Case::new();
    let read = |wall, boot| Reading { wall: WallMs(wall), boot: BootMs(boot) };
    let seen_late_by = |ms| {
        let looked = read(T0 + 10_000 + ms, 10_000 + ms);
        let mut watch = Watch::start(case.state, looked, looked);
        let renewed = case.state.extended(LEASE, WallMs(T0 + 10_000), OpNonce([2; 8]));
        let after = read(T0 + 10_020 + ms, 10_020 + ms);
        watch.look(renewed, after, after);
        let seen = Case { state: renewed, ..Case::new() };
        seen.judge("boot-b", T0 + 10_020 + ms, 10_020 + ms, Some(&watch)).evidence
    };
    assert_eq!(seen_late_by(11), []);
    assert_eq!(seen_late_by(40_000), [Evidence::OutsideBracket { by_ms: 39_000 }]);
}

#[test]
fn an_unchanged_name_for_a_lease_and_grace_needs_no_wall_clock() {
    let case = Case::new();
    let read = |boot| Reading { wall: WallMs(0), boot: BootMs(boot) };
    let watch = Watch::start(case.state, read(0), read(50));
    let early = case.judge("boot-b", 0, 50 + LEASE + 1_000 - 1, Some(&watch));
    assert_ne!(early.standing, Standing::Stealable);
    let judged = case.judge("boot-b", 0, 50 + LEASE + 1_000, Some(&watch));
    assert_eq!((judged.standing, judged.method), (Standing::Stealable, Method::Observed));
}

#[test]
fn any_change_of_the_name_starts_the_watch_again() {
    let case = Case::new();
    let read = |boot| Reading { wall: WallMs(T0), boot: BootMs(boot) };
    let mut watch = Watch::start(case.state, read(0), read(0));
    let moved = case.state.advanced(OpNonce([9; 8]));
    watch.look(moved, read(30_000), read(30_000));
    assert_eq!(watch.unchanged_for(&moved, BootMs(31_000)), Some(1_000));
    assert_eq!(watch.unchanged_for(&case.state, BootMs(31_000)), None);
}

#[test]
fn a_record_of_another_holder_is_no_evidence() {
    let mut case = Case::new();
    case.record.holder_nonce = HolderNonce([9; 16]);
    let judged = case.judge("boot-a", T0, 1_000, None);
    assert_eq!(judged.method, Method::WallClock);
    assert_eq!(judged.standing, Standing::Live);
    assert_eq!(case.seen_from_other_host(0).evidence, []);
}

#[test]
fn a_record_that_missed_the_last_renewal_does_not_shorten_the_lease() {
    let mut case = Case::new();
    case.state = case.state.extended(LEASE, WallMs(T0 + 20_000), OpNonce([2; 8]));
    // By the record's boot-time readings the lease would be over.
    let judged = case.judge("boot-a", T0 + 40_000, 1_000 + 40_000, None);
    assert_eq!((judged.standing, judged.method), (Standing::Live, Method::WallClock));
}

#[test]
fn an_unsteered_clock_is_mentioned_but_measures_nothing() {
    let case = Case::new();
    let judged = judge(Facts {
        state: &case.state,
        record: Some(&case.record),
        now: Reading { wall: WallMs(T0), boot: BootMs(0) },
        clock: &clock("boot-b"),
        discipline: Discipline::Unsynchronised,
        watch: None,
        policy: &case.policy,
    })
    .expect("held");
    assert_eq!(judged.evidence, [Evidence::Unsynchronised]);
    assert_eq!(judged.observed_skew_ms, 0);
}

/// v6.3 computes `|now - lease_expires_at - lease_duration|`. With its own
/// defaults that allows a steal only from 28 s to 32 s after expiry.
#[test]
fn the_formula_of_v63_refuses_an_hour_old_lock_and_ours_does_not() {
    let literal = |since_end: i64| {
        let observed_skew = (since_end - 30_000).abs();
        since_end > 3_000 && observed_skew <= 2_000
    };
    let allowed: Vec<i64> = (-120_000..7_200_000).filter(|ms| literal(*ms)).collect();
    assert_eq!((allowed.first(), allowed.last()), (Some(&28_000), Some(&32_000)));
    let case = Case::new();
    for since_end in [3_001, 27_999, 28_000, 32_001, 3_600_000] {
        let judged = case.seen_from_other_host(T0 + LEASE + since_end);
        assert_eq!(judged.standing, Standing::Stealable, "{since_end}");
        assert_eq!(judged.observed_skew_ms, 0);
    }
}

/// Frozen on host a at wall T0 for a lease, seen from host b `after_ms` later by its wall
/// clock, which `discipline` vouches for, and watched for `watched_ms`.
fn frozen(after_ms: u64, watched_ms: u64, discipline: Discipline) -> Judgement {
    let Case { state, policy, .. } = Case::new();
    let op = OpNonce([2; 8]);
    let state = state.released(op).frozen(HolderNonce([7; 16]), LEASE, WallMs(T0), op);
    let began = Reading { wall: WallMs(T0), boot: BootMs(5) };
    let watch = Watch::start(state, began, began);
    let now = Reading { wall: WallMs(T0 + after_ms), boot: BootMs(5 + watched_ms) };
    let clock = clock("boot-b");
    let facts = Facts {
        state: &state,
        record: None,
        now,
        clock: &clock,
        discipline,
        watch: Some(&watch),
        policy: &policy,
    };
    judge(facts).expect("frozen")
}

#[test]
fn by_a_clock_that_nothing_steers_no_freeze_is_over() {
    let grace = LockPolicy::default().steal_grace_ms;
    for discipline in [Discipline::Unsynchronised, Discipline::Unknown] {
        let seen = frozen(10 * LEASE, 0, discipline);
        assert_eq!((seen.standing, seen.watch_ms), (Standing::Expired, 0), "{discipline:?}");
        assert_eq!(seen.stealable_in_ms, LEASE + grace, "{discipline:?}");
        // Seen for as long as it lasts, it is over, whatever clocks say.
        let seen = frozen(0, LEASE + grace, discipline);
        assert_eq!((seen.standing, seen.method), (Standing::Stealable, Method::Observed));
    }
    let steered = |after_ms, max_error_ms| {
        frozen(after_ms, 0, Discipline::Synchronised { max_error_ms }).standing
    };
    assert_eq!(steered(LEASE + MARGIN, 10), Standing::Expired);
    assert_eq!(steered(LEASE + MARGIN + 1, 10), Standing::Stealable);
    // What the kernel says of its error counts, if it is more than clocks may differ.
    assert_eq!(steered(LEASE + 40_000 + grace, 40_000), Standing::Expired);
    assert_eq!(steered(LEASE + 40_001 + grace, 40_000), Standing::Stealable);
}

/// When a holder that renewed last at T0, and died, has its lock taken by one who looks
/// once a second from `comes_ms` on, by a clock that agrees: milliseconds after T0.
fn taken_from_the_dead(case: &Case, boot_id: &str, comes_ms: u64) -> u64 {
    let at = |ms: u64| Reading { wall: WallMs(T0 + ms), boot: BootMs(1_000 + ms) };
    let mut watch = Watch::start(case.state, at(comes_ms), at(comes_ms));
    let mut now_ms = comes_ms;
    loop {
        let Reading { wall, boot } = at(now_ms);
        let judged = case.judge(boot_id, wall.0, boot.0, Some(&watch));
        if judged.standing == Standing::Stealable && judged.watch_ms == 0 {
            return now_ms;
        }
        // A waiter comes back when it was told to, or earlier.
        now_ms += judged.stealable_in_ms.clamp(1, 1_000);
        watch.look(case.state, at(now_ms), at(now_ms));
    }
}

#[test]
fn what_a_dead_holder_held_is_taken_in_time_whenever_one_comes() {
    let interval = 10_000;
    let policy = LockPolicy::default();
    let (skew, grace) = (policy.max_clock_skew_ms, policy.steal_grace_ms);
    assert_eq!(
        (LEASE, interval, skew + grace),
        (policy.lease_duration_ms, policy.renew_interval_ms, MARGIN)
    );
    let case = Case::new().kept();
    for comes in (0..90_000).step_by(500) {
        let from_elsewhere = taken_from_the_dead(&case, "boot-b", comes);
        // Seen idle for a whole lease it needs no clock. Else not before clocks say that it
        // is over, nor before it was watched for as long as its holder needs to renew.
        let idle = comes + LEASE + grace;
        let due = idle.min((LEASE + MARGIN + 1).max(comes + interval + grace));
        assert_eq!(from_elsewhere, due, "one who comes after {comes} ms");
        if comes <= LEASE + skew {
            assert!(from_elsewhere <= LEASE + skew + grace + interval, "after {comes} ms");
        }
        // On its own host nobody needs to watch.
        let from_here = taken_from_the_dead(&case, "boot-a", comes);
        assert_eq!(
            from_here,
            idle.min((LEASE + MARGIN + 1).max(comes)),
            "one who comes after {comes} ms"
        );
    }
}

#[test]
fn evidence_is_told_with_its_measure() {
    let by_ms = 61_000;
    for (evidence, told) in [
        (
            Evidence::RenewedInTheFuture { by_ms },
            "the holder renewed 1 min 1 s in this host's future",
        ),
        (
            Evidence::OutsideBracket { by_ms },
            "a renewal seen from here carries a time that is off by 1 min 1 s",
        ),
        (
            Evidence::HolderClockSet { by_ms },
            "the holder's wall clock was set by 1 min 1 s since it acquired the lock",
        ),
        (
            Evidence::ClocksParted { by_ms },
            "this host's wall clock was set by 1 min 1 s since the holder renewed, or the holder \
             runs on a copy of this machine",
        ),
    ] {
        assert_eq!((evidence.lower_bound_ms(), evidence.to_string().as_str()), (by_ms, told));
    }
    let unmeasured = Evidence::Unsynchronised;
    assert_eq!(unmeasured.lower_bound_ms(), 0);
    assert!(unmeasured.to_string().contains("nothing synchronises"), "{unmeasured}");
}

#[test]
fn nobody_renews_what_its_record_says_so_of_and_a_freeze_is_not_asked() {
    let wall = T0 + LEASE + MARGIN + 1;
    assert!(Case::new().seen_from_other_host(wall).nobody_renews);
    assert!(!Case::new().kept().seen_from_other_host(wall).nobody_renews);
    assert!(!frozen(LEASE, 0, Discipline::Unknown).nobody_renews);
}

#[test]
fn on_its_own_boot_a_freeze_ends_by_the_boot_time_clock_whatever_steers_the_other() {
    let Case { state, policy, .. } = Case::new();
    let (me, op) = (session("s", 1), OpNonce([2; 8]));
    let state = state.released(op).frozen(me.nonce(), LEASE, WallMs(T0), op);
    let claim = *state.hold.claim().expect("frozen");
    let at = Reading { wall: WallMs(T0), boot: BootMs(1_000) };
    let stamp = Stamp { at, time_namespace: Some(1) };
    let main = WorktreeName::main();
    let record = Record::of_grant(&me, &main, &state, &claim, stamp, &policy, None);
    let case = Case { state, record, policy };
    let after = LEASE + MARGIN + 1;
    let judged = case.judge("boot-a", T0 + after, 1_000 + after, None);
    assert_eq!((judged.standing, judged.method), (Standing::Stealable, Method::SameBoot));
}

#[test]
fn only_a_renewal_of_the_same_hold_tells_of_its_holder_s_clock() {
    let case = Case::new();
    let op = OpNonce([2; 8]);
    let hour = WallMs(T0 + 3_600_000);
    let other = HolderNonce([9; 16]);
    let read = |ms: u64| Reading { wall: WallMs(T0 + ms), boot: BootMs(ms) };
    for (what, state) in [
        ("a renewal", case.state.extended(LEASE, hour, op)),
        ("a grant to another", case.state.granted(other, LEASE, hour, op)),
        ("a release", case.state.released(op)),
        ("a step that changes no lease", case.state.advanced(op)),
    ] {
        let mut watch = Watch::start(case.state, read(20_000), read(20_000));
        watch.look(state, read(21_000), read(21_000));
        let proves = watch.outside_bracket_ms > 0;
        assert_eq!(proves, what == "a renewal", "{what}: {}", watch.outside_bracket_ms);
        assert_eq!((watch.state(), watch.since()), (&state, BootMs(21_000)), "{what}");
        assert_eq!(watch.last_look(), read(21_000), "{what}");
        let resumed = Watch::resumed(state, BootMs(21_000), read(21_000));
        assert_eq!(resumed, Watch { outside_bracket_ms: 0, ..watch }, "{what}");
    }
}

#[test]
fn a_millisecond_or_two_between_two_clocks_prove_nothing() {
    let set_by = |ms: u64, created_boot: u64| {
        let mut case = Case::new();
        let main = WorktreeName::main();
        let me = session("s", 1);
        let claim = *case.state.hold.claim().expect("held");
        let stamp = |wall, boot| Stamp {
            at: Reading { wall: WallMs(wall), boot: BootMs(boot) },
            time_namespace: Some(1),
        };
        let created = stamp(T0, created_boot);
        let policy = LockPolicy::default();
        case.record = Record::of_grant(&me, &main, &case.state, &claim, created, &policy, None);
        case.state = case.state.extended(LEASE, WallMs(T0 + 10_000 + ms), OpNonce([2; 8]));
        let claim = *case.state.hold.claim().expect("held");
        case.record.renewed(&me, &claim, stamp(T0 + 10_000 + ms, created_boot + 10_000));
        case.seen_from_other_host(T0 + 20_000).evidence
    };
    for ms in 0..=2 {
        assert_eq!(set_by(ms, 1_000), [], "{ms}");
    }
    assert_eq!(set_by(3, 1_000), [Evidence::HolderClockSet { by_ms: 3 }]);
    assert_eq!(set_by(10_000, 0), [], "of a boot before the present one");
}
