use std::sync::{Arc, Mutex};

use super::append::End;
use super::*;
use crate::clock::WallMs;
use crate::id::OpNonce;
#[cfg(feature = "mutations")]
use crate::mutation::{self, Rule};
use crate::name::WorktreeName;
use crate::store::PosixStore;

fn event(n: u8) -> Event {
    Event {
        kind: EventKind::Acquire,
        phase: EventPhase::Intent,
        at: WallMs(u64::from(n)).rfc3339(),
        op: OpNonce([n; 8]),
        worktree: Some(WorktreeName::main()),
        session_id: "s".into(),
        holder_id: "h:u:1:2".into(),
        uid: None,
        from: None,
        to: None,
        reason: None,
        details: None,
    }
}

#[test]
fn the_bytes_of_a_log_are_these() {
    let log = Fixture::new();
    log.append(1..2);
    let full = Event {
        phase: EventPhase::NotApplied,
        uid: Some(1000),
        from: Some("from".into()),
        to: Some("to".into()),
        reason: Some("na\u{ef}ve \"why\"".into()),
        details: Some(serde_json::json!({ "z": 1, "a": [null, true] })),
        ..event(2)
    };
    Log::new(&log.store, &Alone, log.writer).append(&full).expect("append");
    let mut bytes = Vec::new();
    log.edit(|there| bytes.clone_from(there));
    assert_eq!(String::from_utf8_lossy(&bytes), include_str!("../record/golden/audit.jsonl"));
}

struct Fixture {
    dir: tempfile::TempDir,
    store: PosixStore,
    writer: WriterId,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("tempdir");
        let store = PosixStore::open(dir.path()).expect("open");
        store.make_dir(&layout::control_dir()).expect("mkdir");
        store.make_dir(&layout::audit()).expect("mkdir");
        Fixture { dir, store, writer: WriterId::derive(b"session", 7) }
    }

    fn append(&self, events: std::ops::Range<u8>) {
        let mut log = Log::new(&self.store, &Alone, self.writer);
        for n in events {
            log.append(&event(n)).expect("append");
        }
    }

    fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        read_log(&self.store, self.writer, |line| lines.push(line)).expect("read");
        lines
    }

    fn flaws(&self) -> Vec<(u64, Flaw)> {
        self.lines().iter().filter_map(|l| Some((l.number, l.flaw?))).collect()
    }

    fn path(&self) -> std::path::PathBuf {
        self.dir.path().join(layout::audit_log(self.writer).as_str())
    }

    fn size(&self) -> u64 {
        self.path().metadata().expect("there").len()
    }

    #[allow(clippy::disallowed_methods, reason = "the test plays the vandal")]
    fn resize(&self, size: u64) {
        let file = std::fs::OpenOptions::new().write(true).open(self.path()).expect("opened");
        file.set_len(size).expect("resized");
    }

    #[allow(clippy::disallowed_methods, reason = "the test plays the vandal")]
    fn edit(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.path();
        let mut bytes = std::fs::read(&path).expect("read");
        change(&mut bytes);
        std::fs::write(&path, bytes).expect("write");
    }
}

#[test]
fn events_come_back_in_order_over_several_processes() {
    let fixture = Fixture::new();
    fixture.append(0..3);
    fixture.append(3..5);
    assert_eq!(fixture.flaws(), []);
    let back: Vec<_> = fixture.lines().into_iter().filter_map(|l| l.event).collect();
    assert_eq!(back, (0..5).map(event).collect::<Vec<_>>());
}

#[test]
fn two_processes_of_one_writer_may_alternate() {
    let fixture = Fixture::new();
    let mut a = Log::new(&fixture.store, &Alone, fixture.writer);
    let mut b = Log::new(&fixture.store, &Alone, fixture.writer);
    for n in 0..6 {
        let log = if n % 2 == 0 { &mut a } else { &mut b };
        log.append(&event(n)).expect("append");
    }
    assert_eq!(fixture.flaws(), []);
    assert_eq!(fixture.lines().len(), 6);
}

#[test]
fn a_log_that_rested_goes_on_where_it_was() {
    let fixture = Fixture::new();
    let mut log = Log::new(&fixture.store, &Alone, fixture.writer);
    for n in 0..3 {
        log.append(&event(n)).expect("append");
        log.rest();
    }
    assert_eq!(fixture.lines().len(), 3);
    assert_eq!(fixture.flaws(), []);
}

#[test]
fn a_torn_last_line_is_told_and_then_closed_by_the_next_append() {
    let fixture = Fixture::new();
    fixture.append(0..3);
    fixture.edit(|bytes| bytes.truncate(bytes.len() - 9));
    assert_eq!(fixture.flaws(), [(3, Flaw::TornEnd)]);
    fixture.append(3..5);
    assert_eq!(fixture.flaws(), [(3, Flaw::TornInside)]);
}

#[test]
fn a_changed_removed_or_swapped_line_breaks_the_chain_where_it_was() {
    for (what, change) in [
        (
            "changed",
            (|lines: &mut Vec<String>| lines[1] = lines[1].replace("h:u:1", "h:u:9"))
                as fn(&mut Vec<String>),
        ),
        ("removed", |lines| drop(lines.remove(1))),
        ("swapped", |lines| lines.swap(1, 2)),
        ("repeated", |lines| lines.insert(1, lines[0].clone())),
    ] {
        let fixture = Fixture::new();
        fixture.append(0..4);
        fixture.edit(|bytes| {
            let text = String::from_utf8(bytes.clone()).expect("text");
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            change(&mut lines);
            *bytes = (lines.join("\n") + "\n").into_bytes();
        });
        let flaws = fixture.flaws();
        assert_eq!(flaws.first(), Some(&(2, Flaw::BrokenLink)), "{what}");
    }
}

#[test]
fn a_log_larger_than_a_chunk_is_read_whole() {
    let fixture = Fixture::new();
    let mut log = Log::new(&fixture.store, &Alone, fixture.writer).full_at(u64::MAX);
    for n in 0..2000u32 {
        let mut event = event(u8::try_from(n % 251).expect("small"));
        event.reason = Some("x".repeat(200));
        log.append(&event).expect("append");
    }
    assert_eq!(fixture.lines().len(), 2000);
    assert_eq!(fixture.flaws(), []);
}

#[test]
fn an_event_that_is_too_long_is_refused_and_nothing_is_written() {
    let fixture = Fixture::new();
    fixture.append(0..1);
    let mut log = Log::new(&fixture.store, &Alone, fixture.writer);
    let mut long = event(1);
    long.reason = Some("x".repeat(LINE_MAX));
    let error = log.append(&long).expect_err("too long");
    assert_eq!(crate::code::code_of_io(&error), crate::code::Code::Usage, "{error}");
    assert_eq!(fixture.lines().len(), 1);
}

/// All events of the logs in the order of the writers' names.
fn all_logs(store: &PosixStore) -> Vec<(LogName, Vec<Line>)> {
    let (names, _) = logs(store).expect("listed");
    let read = |log: LogName| {
        let mut lines = Vec::new();
        read_log(store, log, |line| lines.push(line)).expect("read");
        (log, lines)
    };
    names.into_iter().map(read).collect()
}

#[test]
fn a_log_without_lines_is_neither_read_whole_nor_added_to() {
    let fixture = Fixture::new();
    fixture.append(0..2);
    let size = 256 * 1024 * 1024;
    fixture.resize(size);
    fixture.append(2..4);
    fixture.append(4..5);
    assert_eq!(fixture.size(), size, "what was spoilt is evidence");
    let logs = all_logs(&fixture.store);
    let next = fixture.writer.after();
    let (_, lines) =
        logs.iter().find(|(writer, _)| *writer == next.into()).expect("a new log was begun");
    assert!(lines.iter().all(|line| line.flaw.is_none()), "{lines:?}");
    let back: Vec<_> = lines.iter().filter_map(|line| line.event.clone()).collect();
    assert_eq!(back, (2..5).map(event).collect::<Vec<_>>());
    assert_eq!(fixture.flaws(), [(3, Flaw::TooLong)], "and is told");
}

#[test]
fn what_is_no_line_is_passed_over_wherever_a_read_ends() {
    for before in [CHUNK_OF_READS - 100, CHUNK_OF_READS - 20_000, 100] {
        let fixture = Fixture::new();
        fixture.append(0..1);
        fixture.edit(|bytes| {
            let first = bytes.clone();
            *bytes = vec![b'x'; before];
            bytes.push(b'\n');
            bytes.extend(first);
            bytes.extend([b'y'; 20_000]);
        });
        fixture.append(1..3);
        let back: Vec<_> = fixture.lines().into_iter().filter_map(|l| l.event).collect();
        assert_eq!(back[back.len() - 2..], [event(1), event(2)], "{before}");
    }
}

/// As much as one read takes in.
const CHUNK_OF_READS: usize = 256 * 1024;

#[test]
#[allow(clippy::disallowed_methods, reason = "the test plays the vandal")]
fn a_log_that_has_another_name_is_not_added_to() {
    let fixture = Fixture::new();
    fixture.append(0..1);
    let elsewhere = fixture.dir.path().join("elsewhere");
    std::fs::hard_link(fixture.path(), &elsewhere).expect("linked");
    let before = std::fs::read(&elsewhere).expect("read");
    fixture.append(1..3);
    assert_eq!(std::fs::read(&elsewhere).expect("read"), before);
    assert_eq!(all_logs(&fixture.store).len(), 2);
    std::fs::remove_file(elsewhere).expect("unlinked");
    fixture.append(3..4);
    assert_eq!(fixture.lines().len(), 2, "its own again, it goes on");
    assert_eq!(fixture.flaws(), []);
}

#[test]
fn a_writer_whose_logs_are_all_spoilt_is_told_so() {
    let fixture = Fixture::new();
    let mut writer = fixture.writer;
    for _ in 0..8 {
        let path = layout::audit_log(writer);
        let file = fixture.store.create_new(&path).expect("made");
        file.write_at(0, &[0; 40_000]).expect("written");
        writer = writer.after();
    }
    let mut log = Log::new(&fixture.store, &Alone, fixture.writer);
    let error = log.append(&event(1)).expect_err("none is left");
    assert_eq!(crate::code::code_of_io(&error), crate::code::Code::AuditChainBroken);
}

#[test]
fn an_empty_line_was_not_cut_short_by_a_crash() {
    let fixture = Fixture::new();
    fixture.append(0..2);
    fixture.edit(|bytes| bytes.extend(b"\n\n"));
    assert_eq!(fixture.flaws(), [(3, Flaw::Unreadable), (4, Flaw::Unreadable)]);
}

/// Of the log, what is not from before `since`: from the end backwards, and by reading all.
fn since_both_ways(log: &Fixture, since: u64) -> [Vec<(u64, Event)>; 2] {
    let newest = read_since(&log.store, log.writer, WallMs(since)).expect("read");
    let all = log.lines().into_iter().filter_map(|line| Some((line.number, line.event?)));
    let is_wanted = |event: &Event| event.at_ms().is_none_or(|at| at.0 >= since);
    [newest, all.filter(|(_, event)| is_wanted(event)).collect()]
}

#[test]
fn what_happened_since_is_the_same_wherever_reading_begins() {
    let log = Fixture::new();
    let mut writing = Log::new(&log.store, &Alone, log.writer);
    for n in 0..3000_u64 {
        let mut event = event((n % 251) as u8);
        event.at = if n == 1234 { "once".into() } else { WallMs(n * 10).rfc3339() };
        event.reason = Some("x".repeat((n % 97) as usize));
        writing.append(&event).expect("append");
    }
    log.edit(|bytes| {
        // A torn line, and an empty one, count as lines.
        let end = bytes.len() - 300;
        bytes.splice(end..end + 20, *b"\n\n");
        bytes.truncate(bytes.len() - 3);
    });
    for since in [0, 15, 29_000, 29_950, 29_980, 29_990, 30_000] {
        let [newest, all] = since_both_ways(&log, since);
        // Whose time cannot be read is shown if it is near enough.
        let near = |found: &Vec<(u64, Event)>| {
            let timed = found.iter().filter(|(_, event)| event.at_ms().is_some());
            timed.cloned().collect::<Vec<_>>()
        };
        assert_eq!(near(&newest), near(&all), "{since}");
    }
    let [newest, all] = since_both_ways(&log, 0);
    assert_eq!((newest.len(), newest), (all.len(), all));
}

#[test]
fn of_a_log_that_was_quiet_only_the_end_is_read() {
    let log = Fixture::new();
    log.append(0..3);
    let mut lines = Vec::new();
    log.edit(|bytes| lines.clone_from(bytes));
    // Nobody reads through this in the time of a test.
    log.resize(1 << 40);
    #[allow(clippy::disallowed_methods, reason = "the test plays the vandal")]
    let file = std::fs::OpenOptions::new().append(true).open(log.path()).expect("opened");
    std::io::Write::write_all(&mut &file, &[b"\n", lines.as_slice()].concat()).expect("written");
    let found = read_since(&log.store, log.writer, WallMs(1_000)).expect("read");
    assert_eq!(found, []);
}

/// Appends one event each with two logs of one writer by turns, each of which is full
/// after two.
fn by_turns(fixture: &Fixture, events: std::ops::Range<u8>) -> bool {
    let log = || Log::new(&fixture.store, &Alone, fixture.writer).full_at(300);
    let (mut a, mut b) = (log(), log());
    for n in events {
        let log = if n % 2 == 0 { &mut a } else { &mut b };
        log.append_durably(&event(n)).expect("append");
    }
    a.has_closed_one() || b.has_closed_one()
}

#[test]
fn a_full_log_is_closed_and_the_next_one_says_what_it_goes_on_after() {
    let fixture = Fixture::new();
    assert!(by_turns(&fixture, 0..9));
    let logs = all_logs(&fixture.store);
    assert_eq!(logs.iter().filter(|(log, _)| log.is_closed()).count(), 7, "{logs:?}");
    let mut told: Vec<Event> = Vec::new();
    let mut continued = 0;
    for (log, lines) in &logs {
        assert_eq!(log.writer(), Some(fixture.writer));
        assert!(lines.iter().all(|line| line.flaw.is_none()), "{log}: {lines:?}");
        for event in lines.iter().filter_map(|line| line.event.clone()) {
            let Some(Continued { after, last }) = event.details_as() else {
                told.push(event);
                continue;
            };
            let end = read_log(&fixture.store, after, |_| {}).expect("it is there");
            assert_eq!((event.kind, end.last), (EventKind::Continue, last));
            continued += 1;
        }
    }
    told.sort_by_key(|event| event.op.0);
    assert_eq!((told, continued), ((0..9).map(event).collect(), 7));
}

#[test]
fn a_log_that_cannot_be_closed_is_added_to() {
    let fixture = Fixture::new();
    let mut log = Log::new(&fixture.store, &Alone, fixture.writer).full_at(300);
    log.append(&event(0)).expect("append");
    log.append(&event(1)).expect("append");
    let Some(End { sum, .. }) = log.open.as_ref().map(|(_, end)| *end) else { panic!("open") };
    let taken = layout::audit_log(LogName::Closed(fixture.writer, sum.short()));
    fixture.store.make_dir(&taken).expect("in the way");
    log.append(&event(2)).expect("append");
    assert!(!log.has_closed_one());
    assert_eq!((fixture.flaws(), fixture.lines().len()), (vec![], 3));
    fixture.store.remove_dir(&taken).expect("out of the way");
    log.append(&event(3)).expect("append");
    assert!(log.has_closed_one());
    assert_eq!(fixture.lines().len(), 2, "what it goes on after, and the event");
}

/// Turns of processes that keep what is said in them, as in the file of a session's turns.
#[derive(Default)]
struct Kept(Arc<Mutex<Option<Reach>>>);

struct KeptTurn(Arc<Mutex<Option<Reach>>>);

impl Turn for KeptTurn {
    fn reached(&self) -> Option<Reach> {
        *self.0.lock().expect("whole")
    }

    fn will_reach(&self, reach: Reach) {
        *self.0.lock().expect("whole") = Some(reach);
    }

    fn remembers(&self) -> bool {
        true
    }
}

impl AppendTurn for Kept {
    fn take(&self, _: &WriterId) -> io::Result<Box<dyn Turn>> {
        Ok(Box::new(KeptTurn(self.0.clone())))
    }

    fn take_now(&self, writer: &WriterId) -> io::Result<Option<Box<dyn Turn>>> {
        self.take(writer).map(Some)
    }
}

/// What is wrong with any line of any log, and which events can be read.
fn all_flaws_and_events(fixture: &Fixture) -> (Vec<Flaw>, Vec<Event>) {
    let logs = all_logs(&fixture.store);
    let lines: Vec<Line> = logs.into_iter().flat_map(|(_, lines)| lines).collect();
    let mut events: Vec<Event> = lines.iter().filter_map(|line| line.event.clone()).collect();
    events.sort_by_key(|event| event.op.0);
    (lines.iter().filter_map(|line| line.flaw).collect(), events)
}

/// A process of the session was killed in the middle of a write, which arrives, `arrives` of
/// it, only after the next two have written; one of them has the log open since before.
fn late(arrives: impl Fn(usize) -> usize) -> (Vec<Flaw>, Vec<Event>) {
    let fixture = Fixture::new();
    let turns = Kept::default();
    let log = || Log::new(&fixture.store, &turns, fixture.writer);
    let (mut open, mut killed, mut next) = (log(), log(), log());
    open.append(&event(0)).expect("append");
    let before = fixture.size();
    let file = fixture.store.open_writable(&layout::audit_log(fixture.writer)).expect("opened");
    let mut long = event(1);
    long.reason = Some("x".repeat(100));
    killed.append(&long).expect("append");
    let line = file.read_range(before, LINE_MAX).expect("read");
    fixture.resize(before);
    next.append_durably(&event(2)).expect("append");
    open.append_durably(&event(3)).expect("append");
    drop(next);
    file.write_at(before, &line[..arrives(line.len())]).expect("arrives");
    log().append_durably(&event(4)).expect("append");
    all_flaws_and_events(&fixture)
}

#[test]
fn a_write_that_arrives_late_spoils_nothing_that_was_written_since() {
    let (flaws, events) = late(|length| length);
    assert_eq!(flaws, []);
    let ops: Vec<u8> = events.iter().map(|event| event.op.0[0]).collect();
    assert_eq!(ops, [0, 1, 2, 3, 4], "and it is told, too");
    for torn in [1, 60, 150] {
        let (flaws, events) = late(|_| torn);
        assert_eq!((flaws, events.len()), (vec![Flaw::TornEnd], 4), "{torn}");
    }
    let (flaws, events) = late(|_| 0);
    assert_eq!((flaws, events.len()), (vec![], 4), "it never arrived");
}

#[cfg(feature = "mutations")]
#[test]
fn who_goes_on_behind_what_it_sees_alone_writes_two_lines_in_one_place() {
    let (flaws, _) = mutation::without(Rule::GoesOnBehindAll, || late(|length| length));
    assert!(flaws.iter().any(|flaw| !flaw.is_crash()), "{flaws:?}");
}

/// Whoever finds less than was written looks once more before it leaves the log, and
/// whoever knows that nothing was written says so.
#[test]
fn a_log_is_left_only_if_it_stays_short() {
    let fixture = Fixture::new();
    let turns = Kept::default();
    let log = || Log::new(&fixture.store, &turns, fixture.writer);
    for n in 0..6 {
        log().append_durably(&event(n)).expect("append");
    }
    assert_eq!(all_logs(&fixture.store).len(), 1, "nobody was in doubt");
    // The power went, and took what was said in turns, or the end of what was written.
    *turns.0.lock().expect("whole") = None;
    log().append(&event(6)).expect("append");
    fixture.edit(|bytes| bytes.truncate(bytes.len() - 30));
    log().append(&event(7)).expect("append");
    log().append(&event(8)).expect("append");
    assert_eq!(all_logs(&fixture.store).len(), 2, "one was left, and the next is added to");
    let (flaws, events) = all_flaws_and_events(&fixture);
    assert_eq!((flaws, events.len()), (vec![Flaw::TornEnd], 8));
}

/// A full JuiceFS volume dropped a write and kept those behind it.
fn holed(write: fn(&Fixture), change: fn(&mut Vec<u8>)) -> Vec<(u64, Flaw)> {
    let fixture = Fixture::new();
    fixture.append(0..2);
    let from = usize::try_from(fixture.size()).expect("small");
    fixture.append(2..3);
    let until = usize::try_from(fixture.size()).expect("small");
    write(&fixture);
    fixture.edit(|bytes| {
        bytes[from..until].fill(0);
        change(bytes);
    });
    fixture.flaws()
}

fn opened_anew(fixture: &Fixture) {
    fixture.append(3..7);
}

fn nothing(_: &mut Vec<u8>) {}

#[test]
fn a_hole_in_a_log_is_a_crash_and_what_is_removed_or_changed_around_it_is_none() {
    assert_eq!(holed(opened_anew, nothing), [(3, Flaw::TornInside)]);
    let alone = |fixture: &Fixture| fixture.append(3..4);
    assert_eq!(holed(alone, nothing), [(3, Flaw::TornInside)]);
    // More than a line is lost, and what comes next goes on from what was there before, or
    // from what was lost.
    for lost in [300, LINE_MAX + 300] {
        let fixture = Fixture::new();
        fixture.append(0..2);
        fixture.edit(|bytes| bytes.extend(vec![0; lost]));
        assert_eq!(fixture.flaws(), [(3, Flaw::TornEnd)], "{lost}");
        fixture.append(2..4);
        assert_eq!(fixture.flaws(), [(3, Flaw::TornInside)], "{lost}");
    }
    let fixture = Fixture::new();
    fixture.append(0..6);
    fixture.edit(|bytes| {
        let ends: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').collect();
        bytes[ends[1] + 1..ends[3]].fill(0);
    });
    assert_eq!(fixture.flaws(), [(3, Flaw::TornInside)]);
    // What a forger does beside it is still found.
    let removed = |bytes: &mut Vec<u8>| {
        let ends: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').collect();
        bytes.drain(ends[3] + 1..=ends[4]);
    };
    assert_eq!(holed(opened_anew, removed), [(3, Flaw::TornInside), (5, Flaw::BrokenLink)]);
    let changed = |bytes: &mut Vec<u8>| {
        let at = bytes.len() - 40;
        bytes[at] ^= 1;
    };
    assert!(holed(opened_anew, changed).iter().any(|(_, flaw)| !flaw.is_crash()));
}

#[cfg(feature = "mutations")]
#[test]
fn a_hole_that_is_not_taken_for_torn_looks_forged() {
    let without = mutation::without(Rule::HolesAreTorn, || holed(opened_anew, nothing));
    assert_eq!(without, [(3, Flaw::Unreadable), (4, Flaw::BrokenLink)]);
}
