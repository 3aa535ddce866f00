//! The rules by which a history is believed, and those of the counters it counts
//! with: each switched off, and what it prevents is then not noticed.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use jvs_kit::sim::{SimClock, Solo};
use jvs_lock::history::{HistoryReport, LogLine, Logged, Logs, Witnessed, check};
use jvs_lock::mutation::{self, Rule};
use jvs_lock::register::Register;
use jvs_lock::{Locks, State, Want};
use jvs_protocol_tests::{actor, stage};
use jvs_repo::audit::{Alone, AppendTurn, Event, EventKind, EventPhase, Log, Turn, WriterId};
use jvs_repo::clock::{Clock, WallMs};
use jvs_repo::code::{Code, Coded};
use jvs_repo::config::LockPolicy;
use jvs_repo::id::{Epoch, FencingToken, Generation, HolderNonce, OpNonce};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::store::Store;
use jvs_world::sim::seams_of;

const ME: HolderNonce = HolderNonce([1; 16]);
const LEASE_MS: u64 = 30_000;

/// What is checked holds with the rule, and does not without it.
#[track_caller]
fn needed(rule: Rule, holds: impl Fn() -> bool) {
    assert!(holds(), "with {rule:?}");
    assert!(!mutation::without(rule, holds), "nothing goes wrong without {rule:?}");
}

fn op(n: u8) -> OpNonce {
    OpNonce([n; 8])
}

fn born() -> State {
    State::birth(Epoch { counter: 1, salt: 9 }, op(0))
}

#[derive(Default)]
struct Book {
    logs: Logs,
}

impl Book {
    fn write(&mut self, kind: EventKind, from: Option<&State>, to: &State) {
        for phase in [EventPhase::Intent, EventPhase::Done] {
            let line = self.logs.events.len() as u64 + 1;
            let event = Event {
                kind,
                phase,
                at: WallMs(line).rfc3339(),
                op: to.op,
                worktree: Some(WorktreeName::main()),
                session_id: "s".into(),
                holder_id: "h:u:1:1".into(),
                uid: None,
                from: from.map(State::to_string),
                to: Some(to.to_string()),
                reason: None,
                details: None,
            };
            let place = LogLine { log: WriterId([0; 12]).into(), line };
            self.logs.events.push(Logged { place, event });
        }
    }

    fn read(&self, register: &State) -> HistoryReport {
        let worktree = WorktreeName::main();
        check(&[Witnessed { worktree, state: *register, still: true }], &self.logs)
    }
}

/// A grant and a renewal, both written down.
fn kept() -> (Book, State, State) {
    let mut book = Book::default();
    let granted = born().granted(ME, LEASE_MS, WallMs(1_000), op(1));
    let renewed = granted.extended(LEASE_MS, WallMs(11_000), op(2));
    book.write(EventKind::Create, None, &born());
    book.write(EventKind::Acquire, Some(&born()), &granted);
    book.write(EventKind::Renew, Some(&granted), &renewed);
    (book, granted, renewed)
}

/// Somebody made a lease longer, and the event of the renewal after that was lost.
#[test]
fn a_chain_covers_the_whole_name_of_the_state_before() {
    needed(Rule::ChainCoversTheName, || {
        let (book, _, renewed) = kept();
        let name = renewed.to_string().replace(".41000.", ".99000.");
        let forged: State = name.parse().expect("a state");
        let next = forged.extended(LEASE_MS, WallMs(21_000), op(3));
        book.read(&next).first_bad_link().is_some()
    });
}

/// Somebody put a renewal of their own in the place of one that was written down,
/// and made its chain anew.
#[test]
fn two_states_of_one_place_are_a_forgery() {
    needed(Rule::OneStateAPlace, || {
        let (book, granted, _) = kept();
        let forged = granted.extended(10 * LEASE_MS, WallMs(11_000), op(7));
        book.read(&forged).first_bad_link().is_some()
    });
}

/// A new life that was announced and follows from nothing, with a token that was
/// granted before.
#[test]
fn no_token_of_a_history_falls() {
    needed(Rule::LawfulSteps, || {
        let (mut book, _, _) = kept();
        let epoch = Epoch { counter: 2, salt: 1 };
        let again = State::rebuilt(epoch, FencingToken(0), Generation(0), None, op(5));
        book.write(EventKind::Rebuild, None, &again);
        book.read(&again).first_bad_link().is_some()
    });
}

/// What a power cut does to renewals, which nobody waits for, is no forgery: on a
/// filesystem that syncs one file at a time the log may know more than the register.
#[test]
fn a_renewal_that_a_power_cut_took_is_no_forgery() {
    let (mut book, granted, renewed) = kept();
    let report = book.read(&granted);
    assert!(report.first_bad_link().is_none(), "{:?}", report.problems);
    assert_eq!(report.problems.len(), 1, "told all the same");
    // Another takes over from there, and so does a state that stands in its place.
    let stolen = granted.granted(HolderNonce([2; 16]), LEASE_MS, WallMs(99_000), op(6));
    book.write(EventKind::Steal, Some(&granted), &stolen);
    let report = book.read(&stolen);
    assert!(report.first_bad_link().is_none(), "{:?}", report.problems);
    assert!(report.problems[0].to_string().contains(&renewed.to_string()));
}

fn locks<'w>(solo: &'w Solo, turn: &'w dyn AppendTurn) -> Locks<'w> {
    let log = Log::new(solo.store(), turn, WriterId::derive(b"a", 0));
    Locks::new(seams_of(solo), actor::session("a", 7, solo.clock()), LockPolicy::default(), log)
}

/// A turn at the log that another process may have for good.
struct Busy<'w> {
    clock: &'w SimClock,
    stuck: AtomicBool,
}

impl AppendTurn for Busy<'_> {
    fn take(&self, writer: &WriterId) -> io::Result<Box<dyn Turn>> {
        self.take_now(writer)?.ok_or_else(|| {
            self.clock.sleep_ms(10_000);
            io::ErrorKind::TimedOut.into()
        })
    }

    fn take_now(&self, _: &WriterId) -> io::Result<Option<Box<dyn Turn>>> {
        Ok((!self.stuck.load(Ordering::Relaxed)).then(|| Box::new(Alone) as Box<dyn Turn>))
    }
}

/// A process of the session is stuck in the middle of an append: renewals go on, and
/// are written down once it is not.
#[test]
fn a_renewal_does_not_wait_for_its_turn_at_the_log() {
    needed(Rule::RenewalsDoNotWait, || {
        let solo = Solo::new();
        stage::repository(&solo);
        let turn = Busy { clock: solo.clock(), stuck: AtomicBool::new(false) };
        let locks = locks(&solo, &turn);
        let mut lease =
            locks.acquire(&WorktreeName::main(), Want::lease(LEASE_MS)).expect("granted");
        turn.stuck.store(true, Ordering::Relaxed);
        let began = solo.clock().now().boot;
        for _ in 0..4 {
            lease.renew().expect("renewed");
        }
        let waited = solo.clock().now().boot.since(began);
        turn.stuck.store(false, Ordering::Relaxed);
        lease.release().expect("released");
        let (seen, logs) =
            jvs_lock::history::witness(solo.store(), solo.clock(), [WorktreeName::main()], |_| {
                false
            })
            .expect("seen");
        let report = check(&seen, &logs.expect("read"));
        waited == 0 && report.problems.is_empty()
    });
}

/// Whoever was told "done" at a counter's end has done it: nothing is counted on from
/// there, and nobody is told that it was.
#[test]
fn no_counter_is_counted_on_from_its_end() {
    needed(Rule::CountersEnd, || {
        [2, 3, 8].into_iter().all(|field| {
            let solo = Solo::new();
            stage::repository(&solo);
            let turn = jvs_repo::audit::Alone;
            let register = layout::register(&WorktreeName::main());
            let read = || Register::new(solo.store(), solo.clock(), WorktreeName::main()).read();
            let name = read().expect("one entry").to_string();
            let mut fields: Vec<&str> = name.split('.').collect();
            let end = FencingToken::END.to_string();
            fields[field] = &end;
            let path = |name: &str| register.child(name).expect("plain");
            solo.store().rename(&path(&name), &path(&fields.join("."))).expect("forged");
            let taken = locks(&solo, &turn).acquire(&WorktreeName::main(), Want::lease(LEASE_MS));
            match taken {
                Ok(_) => read().is_ok(),
                Err(error) => error.code() == Code::FenceCorrupt && read().is_ok(),
            }
        })
    });
}
