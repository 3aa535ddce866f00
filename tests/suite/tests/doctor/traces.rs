//! `jvs audit --tla`, checked by TLC: what sessions did is accepted, and whatever was
//! forged is rejected where it shows, by a checker that has none of our code.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jvs_kit::live::capability::{Capability, granted};
use jvs_kit::live::home::Home;
use jvs_kit::live::juicefs::{Engine, Volume};
use jvs_kit::live::process::{Outcome, run};
use jvs_lock::{Hold, State};
use jvs_repo::audit::{self, Alone, Event, EventKind, EventPhase, Log, WriterId};
use jvs_repo::layout;

use crate::clinic::{Clinic, directory, main};
use crate::forgeries::{ANYWHERE, Forgery, OF_A_HOLD, forge};

/// What TLC says of these traces, in few starts of it.
fn check(dirs: &[PathBuf]) -> Outcome {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/tla");
    let mut command = std::process::Command::new(script);
    command.arg("trace").args(dirs);
    run(command, Duration::from_secs(240))
}

/// The line about one of them.
fn verdict<'o>(outcome: &'o Outcome, dir: &Path) -> &'o str {
    let begins = format!("tla: {}: ", dir.display());
    let line = outcome.stdout().lines().find_map(|line| line.strip_prefix(&begins));
    line.unwrap_or_else(|| panic!("nothing is said of {}:\n{outcome}", dir.display()))
}

#[track_caller]
fn written(home: &Home, root: &Path, to: &Path) {
    let jvs = home.jvs(["audit", "--tla"]).arg(to).cwd(root.join("main")).run();
    jvs.ok();
}

fn copied(root: &Path, to: &Path) {
    let mut cp = std::process::Command::new("cp");
    assert!(cp.arg("-a").arg(root).arg(to).status().expect("cp").success());
}

// --- what is accepted ---------------------------------------------------------

/// Sessions on two hosts, or two homes on one, do everything there is to do with locks.
fn a_busy_day(roots: [&Path; 2]) -> PathBuf {
    let homes = [Home::new(), Home::new()];
    homes[0].jvs(["init"]).arg(roots[0]).run().ok();
    let jvs = |host: usize, session: &str, words: &str| {
        let at = roots[host].join("main");
        homes[host].jvs(words.split(' ')).cwd(at).session(session).run()
    };
    let write = |host: usize, text: &str| {
        fs_err::write(roots[host].join("main/file"), text).expect("written");
    };
    for round in 0..2 {
        for (host, session) in [(0, "ann"), (1, "bob"), (0, "cy")] {
            jvs(host, session, "lock acquire --no-keeper --lease 10m").ok();
            jvs(host, session, "lock renew").ok();
            // Refused, and changes nothing.
            jvs(1 - host, "dan", "lock acquire --no-keeper").exits(2);
            write(host, &format!("{session} {round}"));
            jvs(host, session, "snapshot work").ok();
            jvs(host, session, "lock release").ok();
        }
    }
    // Left by its holder, and stolen on the other host.
    jvs(0, "ann", "lock acquire --no-keeper --lease 200ms").ok();
    jvs(1, "bob", "lock steal --observe --no-keeper --lease 10m --reason gone").ok();
    jvs(1, "bob", "config set reclaim.same_user true").ok();
    jvs(1, "eve", "lock reclaim --no-keeper --lease 10m --reason mine").ok();
    jvs(1, "eve", "lock release").ok();
    jvs(0, "op", "lock freeze --for 10m --reason backup").ok();
    jvs(1, "ann", "lock acquire --no-keeper").exits(2);
    jvs(1, "op", "lock unfreeze --reason done").ok();
    handed_over(&homes[0], roots[0]);
    jvs(0, "ann", "run -- true").ok();
    jvs(0, "ann", "worktree create side").ok();
    jvs(1, "bob", "lock acquire --no-keeper --lease 10m -w side").ok();
    jvs(1, "bob", "lock release -w side").ok();
    jvs(1, "bob", "worktree rename side other").ok();
    jvs(0, "ann", "worktree remove other").ok();
    jvs(0, "ann", "worktree create other").ok();
    let to = roots[0].with_file_name("trace");
    written(&homes[0], roots[0], &to);
    to
}

/// The lock goes from one session to another that waits for it.
fn handed_over(home: &Home, root: &Path) {
    let jvs = |session: &str, words: &str| {
        home.jvs(words.split(' ')).cwd(root.join("main")).session(session)
    };
    jvs("ann", "lock acquire --no-keeper --lease 10m").run().ok();
    let waits = jvs("heir", "lock acquire --wait=60s --no-keeper --lease 10m").start();
    jvs_kit::live::process::eventually("it waits in line", Duration::from_secs(30), || {
        jvs("ann", "lock status").run().ok().stdout().contains("waits in line")
    });
    jvs("ann", "lock transfer --to heir").run().ok();
    waits.wait(Duration::from_secs(60)).ok();
    jvs("heir", "lock release").run().ok();
}

#[track_caller]
fn is_accepted(trace: &Path) {
    let part = fs_err::read_to_string(trace.join("Part0001.tla")).expect("a part");
    for kind in [
        "create", "acquire", "renew", "steal", "reclaim", "transfer", "release", "freeze",
        "unfreeze", "publish", "retire",
    ] {
        assert!(part.contains(&format!("\"step\", \"{kind}\"")), "no {kind} in\n{part}");
    }
    let answer = check(&[trace.to_owned()]).ok();
    assert!(verdict(&answer, trace).starts_with("accepted"), "{answer}");
}

#[test]
fn what_sessions_on_two_mounts_did_is_accepted_on_a_local_filesystem() {
    if !granted(&[Capability::Tlc]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().canonicalize().expect("a path").join("r");
    is_accepted(&a_busy_day([&root, &root]));
}

fn what_two_mounts_did_is_accepted(engine: Engine) {
    if !granted(&[Capability::Tlc]) {
        return;
    }
    let Some(volume) = Volume::mounted(engine, 2) else { return };
    let root = |host: usize| volume.host(host).join("r");
    is_accepted(&a_busy_day([&root(0), &root(1)]));
}

#[test]
fn what_sessions_on_two_mounts_did_is_accepted_on_juicefs_with_sqlite() {
    what_two_mounts_did_is_accepted(Engine::Sqlite);
}

#[test]
fn what_sessions_on_two_mounts_did_is_accepted_on_juicefs_with_redis() {
    what_two_mounts_did_is_accepted(Engine::Redis);
}

// --- what is rejected ---------------------------------------------------------

#[test]
fn a_checker_without_our_code_rejects_whatever_is_forged_in_a_register() {
    if !granted(&[Capability::Tlc]) {
        return;
    }
    let clinic = Clinic::new();
    clinic.jvs(&["lock", "acquire", "--no-keeper"]).ok();
    clinic.jvs(&["lock", "renew"]).ok();
    let state = clinic.state(&main());
    let place = directory();
    let mut traces = Vec::new();
    let mut refused = 0;
    for (n, forgery) in ANYWHERE.iter().chain(OF_A_HOLD).enumerate() {
        let Forgery { what, .. } = forgery;
        let root = place.path().join(format!("r{n}"));
        copied(&clinic.root, &root);
        if !forge(&root, &state, forgery) {
            continue;
        }
        let jvs = |args: &[&str]| clinic.home.jvs(args).cwd(root.join("main")).run();
        let mut write = |when: &str| {
            let to = place.path().join(format!("t{n}-{when}"));
            let answer = clinic.home.jvs(["audit", "--tla"]).arg(&to).cwd(root.join("main")).run();
            // A state that nothing can have is not READ: that is told without a trace.
            assert!([0, 10].contains(&answer.code()), "{what}, {when}: {answer}");
            match answer.code() {
                0 => traces.push((*what, to)),
                _ => refused += 1,
            }
        };
        write("right-after");
        // What comes of it depends on what was forged; that it shows does not.
        jvs(&["lock", "acquire", "--no-keeper"]);
        jvs(&["lock", "release"]);
        write("later");
    }
    let dirs: Vec<PathBuf> = traces.iter().map(|(_, dir)| dir.clone()).collect();
    let answer = check(&dirs);
    assert_eq!(answer.code(), 1, "{answer}");
    for (what, dir) in &traces {
        let verdict = verdict(&answer, dir);
        assert!(verdict.starts_with("REJECTED: worktree main"), "{what}: {verdict}");
        let shows = verdict.contains("(shows");
        let right_after = dir.to_string_lossy().ends_with("right-after");
        assert!(shows || !right_after, "{what}: where it shows: {verdict}");
    }
    assert!(traces.len() > 40 && refused < 10, "{} traces, {refused} without", traces.len());
}

/// What is done to the events of a log.
enum Change {
    /// One field of the state that the last event of a kind led to.
    Field(EventKind, usize, &'static str),
    /// The last operation of a kind is said to be another.
    Called(EventKind, EventKind),
    /// The last operation of a kind is not in the log.
    Without(EventKind),
    /// Anything else.
    Other(fn(&mut Story)),
}

/// The events of one log that tell of `main`.
struct Story {
    events: Vec<Event>,
}

impl Story {
    fn change(&mut self, change: &Change) {
        match *change {
            Change::Field(kind, field, text) => self.field(kind, field, text),
            Change::Called(kind, instead) => self.called(kind, instead),
            Change::Without(kind) => self.without(kind),
            Change::Other(does) => does(self),
        }
    }

    /// The number of the last event of a kind and phase.
    fn find(&self, kind: EventKind, phase: EventPhase) -> usize {
        let is = |event: &Event| event.kind == kind && event.phase == phase;
        self.events.iter().rposition(is).unwrap_or_else(|| panic!("no {kind} {phase:?}"))
    }

    fn done(&mut self, kind: EventKind) -> &mut Event {
        let n = self.find(kind, EventPhase::Done);
        &mut self.events[n]
    }

    /// Changes one field of the state that the last `kind` led to, wherever it is named.
    fn field(&mut self, kind: EventKind, field: usize, text: &str) {
        let name = self.done(kind).to.clone().expect("a state");
        let mut fields: Vec<&str> = name.split('.').collect();
        assert_ne!(fields[field], text, "{name}");
        fields[field] = text;
        let forged = fields.join(".");
        for event in &mut self.events {
            for state in [&mut event.from, &mut event.to].into_iter().flatten() {
                if *state == name {
                    state.clone_from(&forged);
                }
            }
        }
    }

    /// Says that the last `kind` was another operation.
    fn called(&mut self, kind: EventKind, instead: EventKind) {
        let op = self.done(kind).op;
        for event in self.events.iter_mut().filter(|event| event.op == op) {
            event.kind = instead;
        }
    }

    fn without(&mut self, kind: EventKind) {
        let op = self.done(kind).op;
        self.events.retain(|event| event.op != op);
    }
}

const HELD_BY_NOBODY_KNOWN: &str = "00000000000000000000000000000001";

/// The rewritings of one log, each with the kind of the item at which it shows. The log
/// tells of: create, acquire, renew, publish, release, acquire again, freeze, unfreeze.
const REWRITINGS: &[(&str, Change, &str)] = &[
    ("a token that falls", Change::Field(EventKind::Acquire, 2, "0"), "acquire"),
    ("a token that stays", Change::Field(EventKind::Freeze, 2, "3"), "freeze"),
    ("a token that leaps", Change::Field(EventKind::Acquire, 2, "9"), "acquire"),
    ("a release that raises the token", Change::Field(EventKind::Release, 2, "9"), "release"),
    ("a release that resets it", Change::Field(EventKind::Release, 2, "0"), "release"),
    (
        "a release that keeps the holder",
        Change::Other(|s| {
            s.field(EventKind::Release, 4, "held");
            s.field(EventKind::Release, 5, HELD_BY_NOBODY_KNOWN);
        }),
        "",
    ),
    ("a place twice", Change::Field(EventKind::Release, 3, "5"), ""),
    ("a place left out", Change::Field(EventKind::Release, 3, "77"), ""),
    ("a renewal by another", Change::Field(EventKind::Renew, 5, HELD_BY_NOBODY_KNOWN), "renew"),
    ("a renewal that shortens the lease", Change::Field(EventKind::Renew, 7, "1"), "renew"),
    ("a renewal that freezes", Change::Field(EventKind::Renew, 4, "frozen"), "renew"),
    ("a renewal with a commit", Change::Field(EventKind::Renew, 8, "7"), "renew"),
    (
        "a publish that stretches the lease",
        Change::Field(EventKind::Publish, 7, "99999999999999"),
        "publish",
    ),
    ("a publish that shortens its length", Change::Field(EventKind::Publish, 6, "1"), "publish"),
    (
        "a publish that takes the lock",
        Change::Field(EventKind::Publish, 5, HELD_BY_NOBODY_KNOWN),
        "publish",
    ),
    ("a publish under another token", Change::Field(EventKind::Publish, 2, "1"), "publish"),
    ("a publish without a head", Change::Field(EventKind::Publish, 9, "none"), "publish"),
    ("a publish that counts two", Change::Field(EventKind::Publish, 8, "4"), "publish"),
    ("a publish that counts none", Change::Field(EventKind::Publish, 8, "0"), "publish"),
    (
        "a release that moves the head",
        Change::Field(EventKind::Release, 9, "1700000000000-00000001"),
        "release",
    ),
    ("an acquire that forgets the head", Change::Field(EventKind::Acquire, 9, "none"), "acquire"),
    ("an acquire in another life", Change::Field(EventKind::Acquire, 1, "1-0000"), ""),
    ("an acquire in a later life", Change::Field(EventKind::Acquire, 1, "2-0000"), ""),
    ("a name of the format before", Change::Field(EventKind::Freeze, 0, "1"), "freeze"),
    ("a freeze that grants", Change::Field(EventKind::Freeze, 4, "held"), "freeze"),
    ("an unfreeze that raises the token", Change::Field(EventKind::Unfreeze, 2, "9"), "unfreeze"),
    (
        "an acquire that is called a steal",
        Change::Called(EventKind::Acquire, EventKind::Steal),
        "steal",
    ),
    (
        "a release that is called an unfreeze",
        Change::Called(EventKind::Release, EventKind::Unfreeze),
        "unfreeze",
    ),
    (
        "a publish that is called a renewal",
        Change::Called(EventKind::Publish, EventKind::Renew),
        "",
    ),
    (
        "a freeze that is called an acquire",
        Change::Called(EventKind::Freeze, EventKind::Acquire),
        "acquire",
    ),
    ("a step of an operation on files", Change::Called(EventKind::Acquire, EventKind::Gc), "gc"),
    ("an acquire that nobody announced", Change::Without(EventKind::Acquire), "renew"),
    ("a publish that nobody announced", Change::Without(EventKind::Publish), "release"),
    ("a freeze that nobody announced", Change::Without(EventKind::Freeze), "unfreeze"),
    ("an end that nobody announced", Change::Without(EventKind::Unfreeze), ""),
    ("no beginning", Change::Without(EventKind::Create), "acquire"),
    (
        "a state that is none",
        Change::Other(|s| s.done(EventKind::Freeze).to = Some("2.x".into())),
        "freeze",
    ),
    (
        "something else that was done",
        Change::Other(|s| {
            let mut event = s.done(EventKind::Release).clone();
            event.to = event.to.map(|to| to.replace(".free.", ".retired."));
            s.events.push(event);
        }),
        "",
    ),
];

#[test]
fn a_checker_without_our_code_rejects_a_rewritten_log_at_its_step() {
    if !granted(&[Capability::Tlc]) {
        return;
    }
    let dir = directory();
    let original = dir.path().canonicalize().expect("a path").join("r");
    let home = Home::new();
    home.jvs(["init"]).arg(&original).run().ok();
    let jvs = |words: &str| home.jvs(words.split(' ')).cwd(original.join("main")).run().ok();
    for words in [
        "lock acquire --no-keeper --lease 10m",
        "lock renew",
        "snapshot one",
        "lock release",
        "lock acquire --no-keeper --lease 10m",
        "lock renew",
        "snapshot two",
        "lock release",
        "lock acquire --no-keeper --lease 10m",
        "lock freeze --for 10m --wait --reason backup",
        "lock unfreeze --reason done",
    ] {
        jvs(words);
    }
    let mut dirs = Vec::new();
    for (n, (_, change, _)) in REWRITINGS.iter().enumerate() {
        let root = dir.path().join(format!("r{n}"));
        copied(&original, &root);
        rewrite(&root, change);
        let to = dir.path().join(format!("t{n}"));
        written(&home, &root, &to);
        dirs.push(to);
    }
    let honest = dir.path().join("honest");
    written(&home, &original, &honest);
    dirs.push(honest.clone());

    let answer = check(&dirs);
    assert_eq!(answer.code(), 1, "{answer}");
    assert!(verdict(&answer, &honest).starts_with("accepted"), "{answer}");
    let mut wrong = Vec::new();
    for ((what, _, shows), dir) in REWRITINGS.iter().zip(&dirs) {
        let verdict = verdict(&answer, dir);
        let is_shown = shows.is_empty() || verdict.contains(&format!(" {shows})"));
        if !verdict.starts_with("REJECTED") || !is_shown {
            wrong.push(format!("{what} ({shows}): {verdict}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Rewrites all logs of a repository as one, with sums that hold.
fn rewrite(root: &Path, change: &Change) {
    let store = jvs_repo::store::PosixStore::open(root).expect("a repository");
    let (writers, _) = audit::logs(&store).expect("listed");
    let logs = jvs_lock::history::read_logs(&store).expect("read");
    let mut events: Vec<Event> = logs.events.into_iter().map(|logged| logged.event).collect();
    let main = main();
    events.retain(|event| event.worktree.as_ref() == Some(&main) && event.to.is_some());
    let seq = |event: &Event| {
        let to = event.to.as_ref().and_then(|to| to.parse::<State>().ok());
        to.map(|state| state.seq)
    };
    events.sort_by_key(seq);
    let mut story = Story { events };
    story.change(change);
    for writer in writers {
        fs_err::remove_file(root.join(layout::audit_log(writer).as_str())).expect("removed");
    }
    let mut log = Log::new(&store, &Alone, WriterId::derive(b"forger", 0));
    for event in &story.events {
        log.append(event).expect("appended");
    }
}

// --- where it is written ------------------------------------------------------

#[test]
fn a_trace_is_written_to_a_directory_of_its_own_only() {
    let clinic = Clinic::new();
    let place = directory();
    let write = |dir: &Path| {
        clinic.home.jvs(["audit", "--tla"]).arg(dir).cwd(clinic.root.join("main")).run()
    };
    let dir = place.path().join("t");
    write(&dir).ok();
    let part = dir.join("Part0001.tla");
    let first = fs_err::read(&part).expect("a part");
    fs_err::write(dir.join("Part0009.tla"), "of a longer trace").expect("written");
    write(&dir).ok();
    assert_eq!(fs_err::read(&part).expect("a part"), first, "the same again");
    assert!(!dir.join("Part0009.tla").exists(), "parts of an earlier trace are gone");

    fs_err::write(dir.join("thesis.txt"), "mine").expect("written");
    fs_err::write(&part, "mine, too").expect("written");
    let refused = write(&dir).exits(1);
    assert!(refused.stderr().contains("E_EXISTS") && refused.stderr().contains("thesis.txt"));
    assert_eq!(fs_err::read(&part).expect("a part"), b"mine, too", "nothing was written");
    write(&dir.join("thesis.txt")).exits(1);
    write(&place.path().join("no/such/place")).exits(1);
}

#[test]
fn a_long_history_is_written_in_parts_that_go_on_from_each_other() {
    let clinic = Clinic::new();
    let store = clinic.store();
    let mut log = Log::new(&store, &Alone, WriterId::derive(b"busy", 0));
    let mut state = clinic.state(&main());
    let first = state;
    assert_eq!(state.hold, Hold::Free);
    let holder = jvs_repo::id::HolderNonce([3; 16]);
    for n in 0..2_500_u64 {
        let op = jvs_repo::id::OpNonce(n.to_be_bytes());
        let now = jvs_repo::clock::WallMs(1_700_000_000_000 + n);
        let (kind, next) = match state.hold {
            Hold::Free => (EventKind::Acquire, state.granted(holder, 30_000, now, op)),
            _ => (EventKind::Release, state.released(op)),
        };
        let event = Event {
            kind,
            phase: EventPhase::Done,
            at: now.rfc3339(),
            op,
            worktree: Some(main()),
            session_id: "agent".into(),
            holder_id: "host:ann:1:1".into(),
            uid: None,
            from: Some(state.to_string()),
            to: Some(next.to_string()),
            reason: None,
            details: None,
        };
        log.append(&event).expect("appended");
        state = next;
    }
    let dir = clinic.at(&layout::register(&main()));
    fs_err::rename(dir.join(first.to_string()), dir.join(state.to_string())).expect("renamed");
    let place = directory();
    let to = place.path().join("t");
    written(&clinic.home, &clinic.root, &to);
    assert!(to.join("Part0002.tla").is_file() && !to.join("Part0003.tla").exists());
    if granted(&[Capability::Tlc]) {
        let answer = check(std::slice::from_ref(&to)).ok();
        assert!(verdict(&answer, &to).starts_with("accepted"), "{answer}");
    }
}
