use jvs_repo::audit::{Event, EventKind, EventPhase, WriterId};
use jvs_repo::clock::WallMs;
use jvs_repo::id::{HolderNonce, OpNonce, SnapshotId};

use super::*;

const ME: HolderNonce = HolderNonce([1; 16]);
const OTHER: HolderNonce = HolderNonce([2; 16]);

/// A register's epoch written down faithfully: birth, grant, two renewals, a
/// commit, a steal, a release.
fn life() -> Vec<(EventKind, State)> {
    let op = |n| OpNonce([n; 8]);
    let birth = State::birth(Epoch { counter: 1, salt: 9 }, op(0));
    let granted = birth.granted(ME, 30_000, WallMs(1_000), op(1));
    let once = granted.extended(30_000, WallMs(2_000), op(2));
    let twice = once.extended(30_000, WallMs(3_000), op(3));
    let committed = twice.with_head(SnapshotId { created_ms: 1, random: 1 }, op(4));
    let stolen = committed.granted(OTHER, 30_000, WallMs(99_000), op(5));
    let released = stolen.released(op(6));
    vec![
        (EventKind::Create, birth),
        (EventKind::Acquire, granted),
        (EventKind::Renew, once),
        (EventKind::Renew, twice),
        (EventKind::Publish, committed),
        (EventKind::Steal, stolen),
        (EventKind::Release, released),
    ]
}

fn written(life: &[(EventKind, State)]) -> Logs {
    let mut logs = Logs::default();
    let mut from: Option<State> = None;
    for (kind, state) in life {
        let phases: &[EventPhase] = if *kind == EventKind::Renew {
            &[EventPhase::Done]
        } else {
            &[EventPhase::Intent, EventPhase::Done]
        };
        for phase in phases {
            let line = logs.events.len() as u64 + 1;
            let place = LogLine { log: WriterId([0; 12]).into(), line };
            let event = Event {
                kind: *kind,
                phase: *phase,
                at: WallMs(line).rfc3339(),
                op: state.op,
                worktree: Some(WorktreeName::main()),
                session_id: "s".into(),
                holder_id: "h:u:1:1".into(),
                uid: None,
                from: from.map(|from| from.to_string()),
                to: Some(state.to_string()),
                reason: None,
                details: None,
            };
            logs.events.push(Logged { place, event });
        }
        from = Some(*state);
    }
    logs
}

fn check_life(life: &[(EventKind, State)], logs: &Logs) -> HistoryReport {
    let newest = life.last().expect("not empty").1;
    check(&[still(newest)], logs)
}

fn still(state: State) -> Witnessed {
    Witnessed { worktree: WorktreeName::main(), state, still: true }
}

fn without_events_of(life: &[(EventKind, State)], lost: impl Fn(&Event) -> bool) -> HistoryReport {
    let mut logs = written(life);
    logs.events.retain(|logged| !lost(&logged.event));
    check_life(life, &logs)
}

#[test]
fn a_faithful_log_adds_up() {
    let life = life();
    let report = check_life(&life, &written(&life));
    assert_eq!(report.problems, []);
    assert_eq!(report.lives[0].states, life.iter().map(|(_, s)| *s).collect::<Vec<_>>());
}

#[test]
fn a_lost_outcome_hides_nothing() {
    let report =
        without_events_of(&life(), |e| e.phase == EventPhase::Done && e.kind != EventKind::Renew);
    assert_eq!(report.problems, []);
}

#[test]
fn lost_renewals_are_told_and_explained_by_a_crash() {
    let report = without_events_of(&life(), |e| e.kind == EventKind::Renew);
    assert!(report.first_bad_link().is_none(), "{:?}", report.problems);
    let [Problem::UnloggedRenewals { count: 2, .. }] = report.problems[..] else {
        panic!("{:?}", report.problems)
    };
}

#[test]
fn renewals_that_were_lost_after_a_grant_of_which_only_the_intent_is_left_are_told() {
    let full = |e: &Event| e.kind == EventKind::Acquire && e.phase == EventPhase::Done;
    let report = without_events_of(&life(), |e| e.kind == EventKind::Renew || full(e));
    assert!(report.first_bad_link().is_none(), "{:?}", report.problems);
    let [Problem::UnloggedRenewals { count: 2, .. }] = report.problems[..] else {
        panic!("{:?}", report.problems)
    };
    let full = |e: &Event| e.kind == EventKind::Steal && e.phase == EventPhase::Done;
    let report = released_untold(|e| e.kind == EventKind::Renew || full(e));
    assert!(report.first_bad_link().is_none(), "{:?}", report.problems);
    let [.., Problem::UnloggedRenewals { count: 1, .. }, Problem::UntoldRelease { .. }] =
        &report.problems[..]
    else {
        panic!("{:?}", report.problems)
    };
}

#[test]
fn what_was_announced_before_what_others_were_seen_to_do_explains_no_gap() {
    // Announced under the token of the steal, and then somebody was seen to do otherwise.
    let mut life = life();
    let stolen = life[5].1;
    let other = stolen.extended(30_000, WallMs(99_400), OpNonce([8; 8])).granted(
        ME,
        30_000,
        WallMs(99_500),
        OpNonce([9; 8]),
    );
    life.truncate(6);
    life.push((EventKind::Acquire, other));
    life.push((EventKind::Renew, stolen.extended(30_000, WallMs(199_000), OpNonce([7; 8]))));
    let mut forged = *life.last().map(|(_, state)| state).expect("not empty");
    forged.seq = other.seq.next();
    let report = check(&[still(forged)], &written(&life));
    assert!(report.first_bad_link().is_some(), "{:?}", report.problems);
}

#[test]
fn a_steal_without_its_event_is_a_bad_link() {
    let report = without_events_of(&life(), |e| e.kind == EventKind::Steal);
    assert!(
        matches!(report.first_bad_link(), Some(Problem::Unannounced { .. })),
        "{:?}",
        report.problems
    );
}

/// An epoch whose last release found no room for its event; its last renewal has none if
/// `renewals` says so.
fn released_untold(lost: impl Fn(&Event) -> bool) -> HistoryReport {
    let mut life = life();
    let held = life[5].1;
    let renewed = held.extended(30_000, WallMs(99_500), OpNonce([7; 8]));
    life.truncate(6);
    life.push((EventKind::Renew, renewed));
    life.push((EventKind::Release, renewed.released_untold()));
    without_events_of(&life, |event| event.kind == EventKind::Release || lost(event))
}

#[test]
fn a_release_without_its_event_is_a_bad_link_unless_it_says_why() {
    let report = without_events_of(&life(), |e| e.kind == EventKind::Release);
    assert!(
        matches!(report.first_bad_link(), Some(Problem::Unannounced { .. })),
        "{:?}",
        report.problems
    );
    let report = released_untold(|_| false);
    assert!(report.first_bad_link().is_none(), "{:?}", report.problems);
    assert!(
        matches!(report.problems[..], [Problem::UntoldRelease { .. }]),
        "{:?}",
        report.problems
    );
}

#[test]
fn renewals_that_were_lost_before_an_untold_release_are_told_with_it() {
    let report = released_untold(|event| event.kind == EventKind::Renew);
    assert!(report.first_bad_link().is_none(), "{:?}", report.problems);
    let [.., Problem::UnloggedRenewals { count: 1, .. }, Problem::UntoldRelease { .. }] =
        &report.problems[..]
    else {
        panic!("{:?}", report.problems)
    };
}

#[test]
fn a_steal_is_not_hidden_by_an_untold_release() {
    let report = released_untold(|event| matches!(event.kind, EventKind::Renew | EventKind::Steal));
    assert!(report.first_bad_link().is_some(), "{:?}", report.problems);
}

#[test]
fn events_lost_on_both_sides_of_a_state_are_a_gap() {
    let report = without_events_of(&life(), |e| {
        matches!(
            e.kind,
            EventKind::Publish | EventKind::Steal | EventKind::Renew | EventKind::Release
        )
    });
    assert!(matches!(report.first_bad_link(), Some(Problem::Gap { .. })), "{:?}", report.problems);
}

#[test]
fn a_forged_state_does_not_follow() {
    let life = life();
    let mut logs = written(&life);
    let last = logs.events.last_mut().expect("not empty");
    let forged = State { token: jvs_repo::id::FencingToken(77), ..life[6].1 };
    last.event.to = Some(forged.to_string());
    let report = check_life(&life, &logs);
    assert!(
        matches!(report.first_bad_link(), Some(Problem::BadLink { .. })),
        "{:?}",
        report.problems
    );
}

#[test]
fn a_done_that_the_register_does_not_know_is_found() {
    let life = life();
    let mut logs = written(&life);
    // Well linked, but not what happened: another grant from the birth state.
    let stray = life[0].1.granted(OTHER, 30_000, WallMs(1), OpNonce([9; 8]));
    let mut event = logs.events[3].event.clone();
    event.to = Some(stray.to_string());
    let place = LogLine { log: WriterId([1; 12]).into(), line: 1 };
    logs.events.push(Logged { place, event: Event { phase: EventPhase::Intent, ..event.clone() } });
    assert_eq!(check_life(&life, &logs).problems, [], "to have tried is no claim");
    logs.events.push(Logged { place, event: Event { phase: EventPhase::Done, ..event } });
    let report = check_life(&life, &logs);
    assert_eq!(
        report.first_bad_link(),
        Some(&Problem::Forged {
            worktree: WorktreeName::main(),
            state: life[1].1.to_string(),
            instead: stray.to_string(),
            place
        })
    );
}

#[test]
fn a_register_that_was_set_back_is_found() {
    let life = life();
    let logs = written(&life);
    // A backup from before the steal was put back: the log knows more.
    let moving = Witnessed { still: false, ..still(life[4].1) };
    assert_eq!(check(&[moving], &logs).problems, [], "states after it may be on their way");
    let back = check(&[still(life[4].1)], &logs);
    assert!(matches!(back.problems[..], [Problem::SetBack { .. }]), "{:?}", back.problems);
    let other = life[4].1.granted(ME, 1, WallMs(5), OpNonce([8; 8]));
    let mut moved_on = logs;
    let mut event = moved_on.events.last().expect("not empty").event.clone();
    event.from = Some(life[4].1.to_string());
    event.to = Some(other.to_string());
    let place = LogLine { log: WriterId([1; 12]).into(), line: 1 };
    moved_on.events.push(Logged { place, event });
    let report = check(&[still(other)], &moved_on);
    assert!(
        matches!(report.first_bad_link(), Some(Problem::Forged { .. })),
        "{:?}",
        report.problems
    );
}
