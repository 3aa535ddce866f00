//! Closed logs are dropped, and an anchor stands for them: the rules of that, each switched
//! off, and what is noticed of forgeries. Each exploration prints the states it visited and
//! the way it found.

use jvs_kit::sim::{Ctx, PowerCuts, Process, Solo, View};
use jvs_lock::history;
use jvs_lock::mutation::{self, Rule};
use jvs_lock::{Journal, Locks, State, Want};
use jvs_protocol_tests::logs::{
    add_up, all_add_up, cycles, explorer, locks, log, report, tags_told,
};
use jvs_protocol_tests::necessity::{needed, process};
use jvs_repo::audit::{self, Event, EventKind, EventPhase, LogName};
use jvs_repo::clock::{Clock, WallMs};
use jvs_repo::config::LockPolicy;
use jvs_repo::id::{HolderNonce, OpNonce};
use jvs_repo::layout;
use jvs_repo::store::Store;
use jvs_snapshot::tags;
use jvs_world::repository::main;
use jvs_world::session::{identity, session};
use jvs_world::sim::{LEASE_MS, World, furnish, seams, seams_of, snapshot};

/// Drops every closed log that can be dropped.
fn drop_all(locks: &Locks<'_>) -> Option<()> {
    history::drop_old(locks.seams(), locks.session(), 0).ok().map(drop)
}

fn dropper(off: Option<Rule>) -> Process {
    process("dropper", off, |ctx| drop_all(&locks(seams(ctx), "dropper")))
}

/// Closed logs, one tag that is there and one that was deleted.
fn with_closed_logs(solo: &Solo) {
    furnish(solo);
    let a = locks(seams_of(solo), "a");
    let mut lease = a.acquire(&main(), Want::lease(LEASE_MS)).expect("free");
    let first = snapshot(solo, &mut lease, "one");
    lease.release().expect("released");
    tags::make(&a, &"stays".parse().expect("a tag"), &first).expect("made");
    tags::make(&a, &"goes".parse().expect("a tag"), &first).expect("made");
    tags::take_away(&a, &"goes".parse().expect("a tag")).expect("deleted");
    cycles(&a, 2).expect("free");
    cycles(&locks(seams_of(solo), "b"), 2).expect("free");
    solo.pass_ms(1);
}

fn closed(store: &dyn Store) -> usize {
    audit::logs(store).expect("listed").0.iter().filter(|log| log.is_closed()).count()
}

fn anchors(store: &dyn Store) -> Vec<LogName> {
    let all = audit::logs(store).expect("listed").0;
    all.into_iter().filter(|log| log.anchor().is_some()).collect()
}

fn all_is_told(view: &View<'_>) -> Result<(), String> {
    all_add_up(view)?;
    match tags_told(World::on(view.live().clone()).seams())[..] {
        [ref only] if only == "stays" => Ok(()),
        ref told => Err(format!("tags that are told: {told:?}")),
    }
}

#[test]
fn what_is_dropped_is_not_missed() {
    let solo = Solo::new();
    with_closed_logs(&solo);
    let (a, before) = (locks(seams_of(&solo), "a"), closed(solo.store()));
    assert!(before > 5);
    drop_all(&a).expect("dropped");
    assert_eq!(closed(solo.store()), 0);
    assert_eq!(report(seams_of(&solo)).problems, []);
    assert_eq!(tags_told(seams_of(&solo)), ["stays"]);
    // And again, by others who go on.
    for _ in 0..3 {
        cycles(&a, 2).expect("free");
        cycles(&locks(seams_of(&solo), "b"), 2).expect("free");
        drop_all(&a).expect("dropped");
        assert_eq!((closed(solo.store()), anchors(solo.store()).len()), (0, 1));
        assert_eq!(report(seams_of(&solo)).problems, []);
        assert_eq!(tags_told(seams_of(&solo)), ["stays"]);
    }
    tags::take_away(&a, &"stays".parse().expect("a tag")).expect("deleted");
    cycles(&a, 2).expect("free");
    drop_all(&a).expect("dropped");
    assert_eq!(tags_told(seams_of(&solo)), [""; 0]);
}

/// Whoever closes a log drops what is too much, and nothing else has to be run.
#[test]
fn the_logs_of_many_holds_do_not_grow_for_ever() {
    let solo = Solo::new();
    furnish(&solo);
    let policy = LockPolicy { audit_keep_kib: 4, ..LockPolicy::default() };
    let of = |id: &str| {
        let session = session(id, identity(solo.clock().boot_id()));
        Locks::new(seams_of(&solo), session, policy, log(solo.store(), id))
    };
    let both = [of("a"), of("b")];
    for n in 0..60 {
        cycles(&both[n % 2], 1).expect("free");
        let logs = history::read_logs(solo.store()).expect("listed");
        let bytes: u64 = logs.ends.values().map(|end| end.bytes).sum();
        assert!(bytes < 20_000, "after {n}: {bytes} bytes in {} files", logs.ends.len());
        assert_eq!(report(seams_of(&solo)).problems, []);
    }
    assert_eq!(anchors(solo.store()).len(), 1);
}

#[test]
fn a_log_goes_only_once_its_anchor_is_durable() {
    needed(Rule::AnchorFirst, "do not add up", |off| {
        let world = explorer().setup(with_closed_logs).process(dropper(off)).at_end(all_is_told);
        world.crashes(1).power_cuts(1, PowerCuts::EveryPrefix)
    });
}

/// A renewal, which nobody waits for, is what the register shows when logs are dropped.
#[test]
fn no_power_cut_takes_what_an_anchor_says_was_reached() {
    needed(Rule::FloorsAreDurable, "was not reached", |off| {
        /// What the anchor says was reached was.
        fn nothing_was_made_up(view: &View<'_>) -> Result<(), String> {
            let world = World::on(view.live().clone());
            let anchored = anchors(world.solo.store()).into_iter().find_map(|anchor| {
                let mut last = None;
                let each =
                    |line: audit::Line| last = line.event.and_then(|it| it.to).or(last.take());
                audit::read_log(world.solo.store(), anchor, each).expect("read");
                last?.parse::<State>().ok()
            });
            let state = locks(world.seams(), "a").inspect(&main()).expect("read").state;
            match anchored.filter(|anchored| anchored.seq > state.seq) {
                Some(anchored) => Err(format!("{anchored} was not reached")),
                None => Ok(()),
            }
        }
        let holder = process("a", off, |ctx| {
            let a = locks(seams(ctx), "a");
            let mut lease = a.acquire(&main(), Want::lease(LEASE_MS)).ok()?;
            lease.renew().ok()?;
            lease.renew().ok()?;
            lease.renew().ok()?;
            drop_all(&a)
        });
        let world = explorer().setup(furnish).process(holder).at_end(nothing_was_made_up);
        world.power_cuts(1, PowerCuts::EveryPrefix)
    });
}

/// While one session is about to drop logs, another deletes a tag and drops the log that
/// tells so.
#[test]
fn who_finds_an_anchor_that_it_did_not_know_takes_its_own_back() {
    fn deleting(solo: &Solo) {
        with_closed_logs(solo);
        drop_all(&locks(seams_of(solo), "a")).expect("dropped");
        cycles(&locks(seams_of(solo), "b"), 1).expect("free");
    }
    fn deletes(ctx: &Ctx) -> Option<()> {
        let b = locks(seams(ctx), "b");
        tags::take_away(&b, &"stays".parse().expect("a tag")).ok()?;
        cycles(&b, 1)?;
        drop_all(&b)
    }
    fn nothing_comes_back(view: &View<'_>) -> Result<(), String> {
        all_add_up(view)?;
        match tags_told(World::on(view.live().clone()).seams())[..] {
            [] => Ok(()),
            ref told => Err(format!("tags that are told: {told:?}")),
        }
    }
    needed(Rule::AnchorsSeeEachOther, "tags that are told", |off| {
        let world = explorer().setup(deleting).process(dropper(off));
        let world = world.process(process("b", off, deletes));
        world.preemptions(1).at_end(nothing_comes_back)
    });
}

/// While a session closes a log and makes the next, another drops logs.
#[test]
fn a_log_goes_only_once_its_writer_goes_on_in_another() {
    needed(Rule::NextIsThere, "is missing", |off| {
        let writer = Process::new("a", |ctx| {
            let _ = cycles(&locks(seams(ctx), "a"), 1);
        });
        let world = explorer().setup(with_closed_logs).process(writer).process(dropper(off));
        world.preemptions(1).at_end(all_is_told)
    });
}

/// The reader found nothing wrong.
fn was_whole(view: &View<'_>) -> Result<(), String> {
    let read = view.processes().find_map(|process| process.text("read").map(str::to_owned));
    match read {
        Some(wrong) if !wrong.is_empty() => Err(wrong),
        _ => Ok(()),
    }
}
#[test]
fn who_reads_while_logs_are_closed_and_dropped_sees_one_history() {
    fn reads(ctx: &Ctx) -> Option<()> {
        let verdict = add_up(seams(ctx)).err().unwrap_or_default();
        ctx.claim("read", verdict);
        Some(())
    }
    needed(Rule::LogsListedAgain, "do not add up", |off| {
        let writer = Process::new("a", |ctx| {
            let a = locks(seams(ctx), "a");
            let _ = cycles(&a, 1).and_then(|()| drop_all(&a));
        });
        let world = explorer().setup(with_closed_logs).process(process("reader", off, reads));
        world.process(writer).preemptions(2).at_end(was_whole)
    });
}

/// Through another mount the log that was closed may be opened for the one that its writer
/// goes on in.
#[test]
fn who_reads_through_a_mount_that_remembers_names_condemns_nobody() {
    needed(Rule::SeenTwiceIsUnread, "do not add up", |off| {
        let reader = process("reader", off, |ctx| {
            // Once, so that the mount remembers.
            let _ = add_up(seams(ctx));
            let verdict = add_up(seams(ctx)).err().unwrap_or_default();
            ctx.claim("read", verdict);
            Some(())
        });
        let writer = Process::new("a", |ctx| {
            let _ = cycles(&locks(seams(ctx), "a"), 1);
        });
        let world = explorer().setup(with_closed_logs).stale_reads_for_ms(1_000);
        world.process(reader).process(writer).preemptions(2).at_end(was_whole)
    });
}

/// One process announced what it will do, and another of its session closes the log.
#[test]
fn what_is_not_decided_yet_is_not_dropped() {
    let told = || {
        let solo = Solo::new();
        with_closed_logs(&solo);
        let a = locks(seams_of(&solo), "a");
        let before = a.inspect(&main()).expect("read").state;
        let after = before.granted(HolderNonce([9; 16]), LEASE_MS, WallMs(1), OpNonce([9; 8]));
        let mut journal = Journal::new(log(solo.store(), "a"), solo.clock(), a.session());
        let announced = journal.intend(EventKind::Acquire, &main(), Some(&before), &after, None);
        announced.expect("written");
        for n in 0..3 {
            let (kind, op) = (EventKind::Repair, OpNonce([n; 8]));
            a.note(kind, EventPhase::Done, op, None, None, None).expect("written");
        }
        drop_all(&a).expect("looked");
        let entry =
            |state: &State| layout::register(&main()).child(&state.to_string()).expect("plain");
        solo.store().rename(&entry(&before), &entry(&after)).expect("done");
        add_up(seams_of(&solo)).is_ok()
    };
    assert!(told(), "with the rule");
    assert!(!mutation::without(Rule::OnlyDecidedIsDropped, told), "without it");
}

/// What somebody does to the logs that are left, and which word of what is told of it.
type Forgery = (&'static str, fn(&Solo), &'static str);

const FORGERIES: &[Forgery] = &[
    ("the anchor removed", |solo| remove(solo, &the_anchor(solo)), "is missing"),
    ("the anchor emptied", |solo| edit(solo, &the_anchor(solo), |_| String::new()), "were removed"),
    ("its last line removed", |solo| edit(solo, &the_anchor(solo), without_last), "were removed"),
    (
        "a line of it changed",
        |solo| edit(solo, &the_anchor(solo), |text| text.replacen("done", "intent", 1)),
        "does not follow",
    ),
    ("another one in its place", with_another_floor, "somebody wrote to the register"),
    ("a closed log removed", |solo| remove(solo, &a_closed(solo)), "is missing"),
    ("a closed log cut", |solo| edit(solo, &a_closed(solo), without_last), "it ends otherwise"),
    (
        "a closed log under the name of another",
        |solo| {
            let (one, other) = (a_closed(solo), another_closed(solo));
            solo.store().rename(&layout::audit_log(one), &layout::audit_log(other)).expect("moved");
        },
        "it ends otherwise",
    ),
];

fn with_an_anchor() -> Solo {
    let solo = Solo::new();
    with_closed_logs(&solo);
    drop_all(&locks(seams_of(&solo), "a")).expect("dropped");
    cycles(&locks(seams_of(&solo), "a"), 3).expect("free");
    solo
}

fn the_anchor(solo: &Solo) -> LogName {
    anchors(solo.store())[0]
}

fn closed_logs(solo: &Solo) -> Vec<LogName> {
    let all = audit::logs(solo.store()).expect("listed").0;
    all.into_iter().filter(LogName::is_closed).collect()
}

fn a_closed(solo: &Solo) -> LogName {
    closed_logs(solo)[0]
}

fn another_closed(solo: &Solo) -> LogName {
    closed_logs(solo)[1]
}

fn remove(solo: &Solo, log: &LogName) {
    solo.store().unlink(&layout::audit_log(log)).expect("there");
}

fn edit(solo: &Solo, log: &LogName, change: fn(String) -> String) {
    let path = layout::audit_log(log);
    let bytes = solo.store().read(&path, 1 << 20).expect("read");
    let text = change(String::from_utf8(bytes).expect("text"));
    solo.store().unlink(&path).expect("there");
    let file = solo.store().create_new(&path).expect("made");
    file.write_at(0, text.as_bytes()).expect("written");
}

fn without_last(text: String) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[..lines.len() - 1].iter().map(|line| format!("{line}\n")).collect()
}

/// An anchor that is whole, and says that the register was elsewhere.
fn with_another_floor(solo: &Solo) {
    let anchor = the_anchor(solo);
    let mut lines: Vec<Event> = Vec::new();
    audit::read_log(solo.store(), anchor, |line| lines.extend(line.event)).expect("read");
    for line in lines.iter_mut() {
        let Some(state) = line.to.as_ref().and_then(|to| to.parse::<State>().ok()) else {
            continue;
        };
        line.to = Some(State { op: OpNonce([0xEE; 8]), ..state }.to_string());
    }
    remove(solo, &anchor);
    audit::write_anchor(solo.store(), anchor.anchor().expect("one"), &lines).expect("written");
}

#[test]
fn every_forgery_around_an_anchor_is_found() {
    assert_eq!(report(seams_of(&with_an_anchor())).problems, []);
    for (what, forge, word) in FORGERIES {
        let solo = with_an_anchor();
        forge(&solo);
        let wrong = add_up(seams_of(&solo)).expect_err(what);
        assert!(wrong.contains(word), "{what}: {wrong}");
    }
}

/// While something does not add up the logs are evidence.
#[test]
fn nothing_is_dropped_while_something_does_not_add_up() {
    let solo = Solo::new();
    with_closed_logs(&solo);
    let before = closed(solo.store());
    edit(&solo, &a_closed(&solo), |text| text.replacen("\"s\"", "\"t\"", 1) + "{}\n");
    drop_all(&locks(seams_of(&solo), "a")).expect("looked");
    assert_eq!((closed(solo.store()), anchors(solo.store()).len()), (before, 0));
}
