//! Forged books: each rule has one that it rejects, and a book in which all is well
//! passes.

use std::collections::BTreeMap;

use super::super::book::Told;
use super::super::survey::Newcomer;
use super::*;

/// A command that was answered.
fn did(session: &str, words: &str, times: (u64, u64), outcome: Outcome, told: Told) -> Line {
    Line::Did(Entry {
        begun: times.0,
        ended: times.1,
        host: 0,
        session: session.into(),
        worktree: CALM.into(),
        words: words.into(),
        outcome,
        message: String::new(),
        told,
    })
}

fn granted(session: &str, times: (u64, u64), token: u64) -> Line {
    let told = Told { granted: Some(token), ..Told::default() };
    did(session, "lock acquire", times, Outcome::Ok, told)
}

fn held(session: &str, token: u64, from: u64, until: u64) -> Line {
    let (session, worktree) = (session.to_owned(), CALM.to_owned());
    Line::Held(Hold { session, worktree, token, from, until })
}

fn ran(session: &str, token: u64, first_ms: u64, last_ms: u64) -> Line {
    let (first_ns, last_ns) = (first_ms * 1_000_000, last_ms * 1_000_000);
    let (session, worktree) = (session.to_owned(), CALM.to_owned());
    Line::Ran(Run { session, worktree, token, first_ns, last_ns })
}

fn published(session: &str, note: &str, id: &str, token: u64, times: (u64, u64)) -> Line {
    let told = Told {
        note: Some(note.into()),
        snapshot: Some(id.into()),
        under: Some(token),
        mark: Some(note.into()),
        ..Told::default()
    };
    did(session, "snapshot", times, Outcome::Ok, told)
}

fn failed(session: &str, note: &str, times: (u64, u64)) -> Line {
    let told = Told { note: Some(note.into()), ..Told::default() };
    did(session, "snapshot", times, Outcome::Failed("E_FENCING_MISMATCH".into()), told)
}

fn kept(id: &str, parent: Option<&str>, session: &str, note: &str, token: u64) -> Snapshot {
    Snapshot {
        id: id.into(),
        worktree: CALM.into(),
        parent: parent.map(str::to_owned),
        note: note.into(),
        epoch: 1,
        token,
        is_ready: true,
        marks: BTreeMap::from([(session.to_owned(), note.to_owned())]),
        ..Snapshot::default()
    }
}

fn ending() -> Ending {
    let state = "2.1-e130.3.9.free.-.0.0.2.s2.0011223344556677.8899aabbccddeeff";
    Ending {
        newcomers: vec![Newcomer {
            host: 0,
            worktree: CALM.into(),
            took_ms: 900,
            outcome: Outcome::Ok,
        }],
        registers: BTreeMap::from([(CALM.to_owned(), vec![state.to_owned()])]),
        snapshots: vec![
            kept("s1", None, "ann", "first", 1),
            kept("s2", Some("s1"), "bob", "second", 2),
        ],
        examined: vec![("doctor --strict".into(), Outcome::Ok, String::new())],
        left: Vec::new(),
    }
}

/// All is well.
fn book() -> Vec<Line> {
    vec![
        granted("ann", (0, 10), 1),
        published("ann", "first", "s1", 1, (11, 20)),
        held("ann", 1, 11, 100),
        granted("bob", (90, 110), 2),
        published("bob", "second", "s2", 2, (111, 120)),
        held("bob", 2, 111, 200),
        ran("ann", 3, 300, 400),
        ran("bob", 4, 401, 500),
        failed("ann", "third", (210, 220)),
        Line::Ending(ending()),
    ]
}

/// What is said of a book with these lines instead of the ending, or more of them.
fn judged(forge: impl FnOnce(&mut Vec<Line>, &mut Ending)) -> Vec<String> {
    let (mut lines, mut ending) = (book(), ending());
    lines.pop();
    forge(&mut lines, &mut ending);
    lines.push(Line::Ending(ending));
    check(&lines).violations
}

#[track_caller]
fn rejected(rule: &str, forge: impl FnOnce(&mut Vec<Line>, &mut Ending)) {
    let violations = judged(forge);
    let [violation] = &violations[..] else { panic!("one violation of {rule}: {violations:#?}") };
    assert!(violation.starts_with(&format!("{rule}: ")), "{violation}");
}

#[test]
fn a_book_in_which_all_is_well_passes() {
    let found = check(&book());
    assert!(found.violations.is_empty(), "{:#?}", found.violations);
    assert_eq!(found.compared, 2, "the two holds, and the two runs");
}

#[test]
fn a_token_that_two_were_granted_is_rejected() {
    rejected("token granted twice", |lines, _| lines.push(granted("eve", (105, 130), 2)));
}

#[test]
fn a_token_that_goes_back_is_rejected() {
    rejected("token went back", |lines, _| lines.push(granted("ann", (300, 310), 1)));
}

#[test]
fn two_who_hold_at_once_are_rejected() {
    rejected("held at once", |lines, _| lines.push(held("eve", 3, 150, 160)));
}

#[test]
fn two_that_run_at_once_are_rejected() {
    rejected("ran at once", |lines, _| lines.push(ran("eve", 5, 350, 360)));
}

#[test]
fn two_runs_of_one_session_under_two_tokens_are_rejected() {
    rejected("ran at once", |lines, _| lines.push(ran("bob", 6, 450, 460)));
}

#[test]
fn those_who_are_at_once_while_a_clock_is_far_off_are_excused_and_counted() {
    let far = Fault { kind: "clock far off".into(), what: String::new(), from: 100, until: 150 };
    let mut lines = book();
    lines.insert(0, held("eve", 3, 150, 160));
    lines.insert(0, Line::Fault(far.clone()));
    let found = check(&lines);
    assert!(found.violations.is_empty() && found.excused == 1, "{found:?}");
    // A clock that was set back long ago excuses nobody.
    lines[0] = Line::Fault(Fault { from: 0, until: 1, ..far });
    lines[1] = held("eve", 3, 20_150, 20_160);
    lines.push(held("bob", 4, 20_000, 20_200));
    assert_eq!(check(&lines).violations.len(), 1);
}

#[test]
fn what_was_told_failed_and_is_there_is_rejected() {
    rejected("failed", |lines, ending| {
        lines.push(failed("eve", "fourth", (220, 230)));
        ending.snapshots[1].note = "fourth".into();
        lines.retain(|line| !matches!(line, Line::Did(did) if did.told.under == Some(2)));
    });
}

#[test]
fn a_run_that_told_of_no_snapshot_and_left_one_is_rejected() {
    rejected("failed", |lines, _| {
        let told = Told { note: Some("first".into()), ..Told::default() };
        lines.push(did("ann", "run", (300, 400), Outcome::Ok, told));
    });
}

#[test]
fn what_was_told_published_and_is_gone_is_rejected() {
    rejected("published", |lines, _| lines.push(published("eve", "fourth", "s4", 3, (300, 310))));
}

#[test]
fn what_was_told_published_and_is_not_ready_is_rejected() {
    let violations = judged(|_, ending| ending.snapshots[0].is_ready = false);
    assert!(violations.iter().any(|it| it.starts_with("published: ")), "{violations:?}");
    assert!(violations.iter().any(|it| it.starts_with("lineage: ")), "{violations:?}");
}

#[test]
fn a_tombstone_stands_for_what_was_published() {
    let violations = judged(|_, ending| {
        let gone = &mut ending.snapshots[0];
        (gone.is_ready, gone.is_gone) = (false, true);
        gone.marks.clear();
    });
    assert!(violations.is_empty(), "{violations:?}");
}

#[test]
fn a_snapshot_under_another_token_than_was_told_is_rejected() {
    rejected("published", |_, ending| ending.snapshots[0].token = 0);
}

#[test]
fn a_snapshot_that_holds_something_else_is_rejected() {
    rejected("content", |_, ending| {
        ending.snapshots[0].marks.insert("ann".into(), "somebody else's".into());
    });
}

#[test]
fn a_snapshot_that_reads_otherwise_on_another_host_is_rejected() {
    rejected("content", |lines, _| {
        let read = Some(("s1".to_owned(), "stale".to_owned()));
        let told = Told { read, ..Told::default() };
        lines.push(did("ann-r", "cat", (30, 40), Outcome::Ok, told));
    });
}

#[test]
fn a_lineage_with_a_gap_is_rejected() {
    let violations = judged(|_, ending| ending.snapshots[1].parent = Some("s0".into()));
    let missing = "lineage: main: s0 is missing".to_owned();
    assert!(violations.contains(&missing), "{violations:?}");
}

#[test]
fn a_lineage_that_bites_its_tail_is_rejected() {
    let violations = judged(|_, ending| ending.snapshots[0].parent = Some("s2".into()));
    assert!(violations.contains(&"lineage: main: s2 is reached twice".to_owned()));
}

#[test]
fn a_lineage_whose_tokens_fall_is_rejected() {
    let violations = judged(|lines, ending| {
        ending.snapshots[0].token = 7;
        lines.retain(|line| !matches!(line, Line::Did(did) if did.told.under == Some(1)));
    });
    assert_eq!(violations, ["lineage: main: the token falls after s1"]);
}

#[test]
fn a_snapshot_beside_the_line_is_rejected() {
    rejected("lineage", |_, ending| {
        ending.snapshots.push(kept("s3", Some("s1"), "eve", "fork", 2));
    });
}

#[test]
fn a_register_that_counts_otherwise_is_rejected() {
    rejected("lineage", |_, ending| {
        let states = ending.registers.get_mut(CALM).expect("it is there");
        states[0] = states[0].replace(".2.s2.", ".3.s2.");
    });
}

#[test]
fn a_register_with_two_entries_is_rejected() {
    let violations = judged(|_, ending| {
        let states = ending.registers.get_mut(CALM).expect("it is there");
        states.push(states[0].clone());
    });
    assert!(violations.contains(&"register: main has 2 entries".to_owned()), "{violations:?}");
}

#[test]
fn a_lock_that_a_newcomer_does_not_get_in_time_is_rejected() {
    rejected("stuck", |_, ending| ending.newcomers[0].took_ms = NEWCOMER_MS + 1);
    rejected("stuck", |_, ending| {
        ending.newcomers[0].outcome = Outcome::Failed("E_LOCK_CONFLICT".into());
    });
}

#[test]
fn a_command_that_hangs_or_breaks_or_raises_an_alarm_is_rejected() {
    let none = Told::default;
    let at = (300, 310);
    rejected("hung", |lines, _| lines.push(did("ann", "status", at, Outcome::Hung, none())));
    let broke = Outcome::Broke("exit 101".into());
    rejected("broke", |lines, _| lines.push(did("ann", "status", at, broke, none())));
    let alarm = Outcome::Failed("E_AUDIT_CHAIN_BROKEN".into());
    rejected("alarm", |lines, _| lines.push(did("ann", "audit", at, alarm, none())));
}

#[test]
fn a_repository_that_is_found_wrong_is_rejected() {
    rejected("examined", |_, ending| {
        ending.examined[0].1 = Outcome::Failed("E_LOCK_CONFLICT".into());
    });
}

#[test]
fn what_is_left_behind_is_rejected() {
    rejected("left behind", |_, ending| ending.left.push("staging/x".into()));
}

#[test]
fn a_book_without_an_ending_is_rejected() {
    let mut lines = book();
    lines.pop();
    assert_eq!(check(&lines).violations, ["ending: the book has no ending"]);
}
