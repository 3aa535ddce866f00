//! What stands around the register: records that cannot be read, and locks of
//! other tools. Each rule is switched off once, to show that it is needed.

use std::ffi::OsString;
use std::io;
use std::ops::ControlFlow;

use jvs_kit::sim::Errno;
use jvs_lock::mutation::{Rule, without};
use jvs_lock::reclaim::ReclaimReason;
use jvs_lock::{LeaseOrigin, Locks, StatusWord, worktrees};
use jvs_repo::clock::Clock as _;
use jvs_repo::code::{Code, Coded};
use jvs_repo::config::ReclaimRules;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::{DirEntry, EntryStat, RepoPath, Store, StoredFile};
use jvs_world::any_error::AnyError;

use crate::world::*;

/// How a file refuses to be read.
#[derive(Debug, Clone, Copy)]
enum Refuses {
    /// It cannot be opened.
    Opening(Errno),
    /// It can be opened, and its content does not come.
    Reading(Errno),
}

/// A mount on which what is only told about locks cannot be read.
struct Hushed<'s> {
    inner: &'s dyn Store,
    how: Refuses,
}

impl Hushed<'_> {
    fn is_hushed(path: &RepoPath) -> bool {
        *path == layout::lock_record(&main()) || *path == layout::legacy_lock(&main())
    }

    fn opened(
        &self,
        path: &RepoPath,
        file: io::Result<Box<dyn StoredFile>>,
    ) -> io::Result<Box<dyn StoredFile>> {
        match self.how {
            _ if !Self::is_hushed(path) => file,
            Refuses::Opening(errno) => file.and(Err(errno.into())),
            Refuses::Reading(errno) => Ok(Box::new(Mute { inner: file?, errno })),
        }
    }
}

impl Store for Hushed<'_> {
    fn first_batch(&self, dir: &RepoPath) -> io::Result<Vec<OsString>> {
        self.inner.first_batch(dir)
    }
    fn list(&self, dir: &RepoPath) -> io::Result<Vec<DirEntry>> {
        self.inner.list(dir)
    }
    fn stat(&self, path: &RepoPath) -> io::Result<EntryStat> {
        self.inner.stat(path)
    }
    fn open(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        self.opened(path, self.inner.open(path))
    }
    fn open_writable(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        self.opened(path, self.inner.open_writable(path))
    }
    fn create_new(&self, path: &RepoPath) -> io::Result<Box<dyn StoredFile>> {
        self.inner.create_new(path)
    }
    fn rename(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn rename_new(&self, from: &RepoPath, to: &RepoPath) -> io::Result<()> {
        self.inner.rename_new(from, to)
    }
    fn exchange(&self, a: &RepoPath, b: &RepoPath) -> io::Result<()> {
        self.inner.exchange(a, b)
    }
    fn unlink(&self, path: &RepoPath) -> io::Result<()> {
        self.inner.unlink(path)
    }
    fn make_dir(&self, path: &RepoPath) -> io::Result<()> {
        self.inner.make_dir(path)
    }
    fn remove_dir(&self, path: &RepoPath) -> io::Result<()> {
        self.inner.remove_dir(path)
    }
    fn sync_dir(&self, dir: &RepoPath) -> io::Result<()> {
        self.inner.sync_dir(dir)
    }
}

/// A file whose content does not come.
struct Mute {
    inner: Box<dyn StoredFile>,
    errno: Errno,
}

impl StoredFile for Mute {
    fn inode(&self) -> io::Result<u64> {
        self.inner.inode()
    }
    fn read_up_to(&self, _: usize) -> io::Result<Vec<u8>> {
        Err(self.errno.into())
    }
    fn read_range(&self, _: u64, _: usize) -> io::Result<Vec<u8>> {
        Err(self.errno.into())
    }
    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }
    fn links(&self) -> io::Result<u64> {
        self.inner.links()
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_at(offset, bytes)
    }
    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
}

const REFUSALS: [Refuses; 5] = [
    Refuses::Reading(Errno::IO),
    Refuses::Reading(Errno::STALE),
    Refuses::Reading(Errno::TIMEDOUT),
    Refuses::Opening(Errno::IO),
    Refuses::Opening(Errno::ACCESS),
];

/// One who takes what is over, in one of the ways that there are.
type Taker = fn(&Locks<'_>) -> Result<(), AnyError>;

/// Watches first, and takes then: needs no clock of the holder's.
fn steal(locks: &Locks<'_>) -> Result<(), AnyError> {
    locks.observe(&main(), |_| ControlFlow::Continue(()))?;
    drop(locks.acquire(&main(), LEASE)?);
    Ok(())
}

const TAKERS: [(&str, Taker); 3] = [
    ("steal", steal),
    ("freeze", |locks| {
        locks.observe(&main(), |_| ControlFlow::Continue(()))?;
        locks.freeze(&main(), LEASE_MS, "maintenance", true)?;
        Ok(())
    }),
    ("reclaim", |locks| {
        locks.observe(&main(), |_| ControlFlow::Continue(()))?;
        drop(locks.reclaim(&main(), LEASE, &ReclaimRules::default(), false, &|_| None)?);
        Ok(())
    }),
];

#[test]
fn a_lock_whose_record_cannot_be_read_is_judged_without_it() {
    for (how, (name, take)) in REFUSALS.iter().flat_map(|how| TAKERS.map(|taker| (*how, taker))) {
        let world = World::new();
        world.takes("dead");
        let hushed = Hushed { inner: world.solo.store(), how };
        let rival = world.session_on(&hushed, "rival");
        let view = rival.inspect(&main()).unwrap_or_else(|e| panic!("{how:?}: {e}"));
        assert_eq!((view.word(), view.record()), (StatusWord::Held, None), "{how:?}");
        let refused = rival.acquire(&main(), LEASE).expect_err("it is live");
        assert_eq!(refused.code(), Code::LockConflict, "{how:?}");
        world.lease_runs_out();
        take(&rival).unwrap_or_else(|error| panic!("{name}, {how:?}: {error}"));
        assert_eq!(world.register().token.0, 2, "{name}, {how:?}");
    }
}

#[test]
fn without_the_rule_a_record_that_cannot_be_read_keeps_everybody_out_for_ever() {
    for (name, take) in TAKERS {
        let world = World::new();
        world.takes("dead");
        let hushed = Hushed { inner: world.solo.store(), how: Refuses::Reading(Errno::IO) };
        let rival = world.session_on(&hushed, "rival");
        world.lease_runs_out();
        let refused = without(Rule::AdvisoryFilesAreNotNeeded, || take(&rival));
        assert_eq!(refused.expect_err(name).code(), Code::Io);
    }
}

#[test]
fn a_file_of_another_tool_that_cannot_be_read_keeps_nobody_out_and_is_told() {
    let world = World::new();
    world.solo.store().write_tmp(&layout::legacy_lock(&main()), b"{}").expect("written");
    let hushed = Hushed { inner: world.solo.store(), how: Refuses::Reading(Errno::IO) };
    let rival = world.session_on(&hushed, "rival");
    let lease = rival.acquire(&main(), LEASE).expect("nothing is known of it");
    let told = lease.drift().join("; ");
    assert!(told.contains(layout::legacy_lock(&main()).as_str()), "{told}");
}

/// The holder's own record: a lease can be resumed, renewed and given back.
#[test]
fn a_holder_needs_no_record_either() {
    for how in REFUSALS {
        let world = World::new();
        world.takes("me");
        let hushed = Hushed { inner: world.solo.store(), how };
        let me = world.session_on(&hushed, "me");
        let mut lease = me.resume(&main(), None).expect("it is mine");
        lease.renew().unwrap_or_else(|error| panic!("{how:?}: {error}"));
        lease.release().unwrap_or_else(|error| panic!("{how:?}: {error}"));
        assert_eq!(world.view().word(), StatusWord::Free, "{how:?}");
    }
}

const FORMATS: [&str; 3] = ["owner, since, ttl", "with metadata", "lokt"];

/// Another tool takes the worktree for a minute.
fn another_tool_takes(world: &World, worktree: &WorktreeName, format: &str) -> (RepoPath, Vec<u8>) {
    let now = world.solo.clock().now().wall;
    let (path, text) = match format {
        "lokt" => (
            layout::legacy_lock(worktree),
            format!(r#"{{"owner":"bob","acquired_ts":"{}","ttl_sec":60}}"#, now.rfc3339()),
        ),
        "with metadata" => (
            layout::lock_record(worktree),
            format!(r#"{{"owner":"bob","since":"{}","ttl":60,"metadata":{{}}}}"#, now.rfc3339()),
        ),
        _ => (
            layout::lock_record(worktree),
            format!(r#"{{"owner":"bob","since":{},"ttl":60}}"#, now.0),
        ),
    };
    world.solo.store().write_tmp(&path, text.as_bytes()).expect("written");
    (path, text.into_bytes())
}

/// Every way in which a session of ours may take or end a worktree.
fn takes(locks: &Locks<'_>, verb: &str, worktree: &WorktreeName) -> Result<(), AnyError> {
    let other: WorktreeName = "elsewhere".parse().expect("valid");
    match verb {
        "acquire" => drop(locks.acquire(worktree, LEASE)?),
        "acquire in turn" => drop(locks.acquire_in_turn(worktree, LEASE, &|_| None)?),
        "reclaim" => {
            let rules = ReclaimRules::default();
            drop(locks.reclaim(worktree, LEASE, &rules, true, &|_| None)?);
        }
        "freeze" => {
            locks.freeze(worktree, LEASE_MS, "why", false)?;
        }
        "share" => drop(locks.share(worktree)?),
        "remove" => drop(worktrees::remove(locks, worktree, true)?),
        "rename" => worktrees::rename(locks, worktree, &other)?,
        _ => unreachable!("{verb}"),
    }
    Ok(())
}

const VERBS: [&str; 7] =
    ["acquire", "acquire in turn", "reclaim", "freeze", "share", "remove", "rename"];

fn world_with(worktree: &WorktreeName) -> World {
    let world = World::new();
    worktrees::create(&world.session("maker"), worktree, Isolation::Exclusive).expect("made");
    world
}

#[test]
fn a_live_lock_of_another_tool_is_respected_by_every_verb_and_left_as_it_is() {
    let feature: WorktreeName = "feature".parse().expect("valid");
    for (format, verb) in FORMATS.iter().flat_map(|format| VERBS.map(|verb| (*format, verb))) {
        let world = world_with(&feature);
        let (path, text) = another_tool_takes(&world, &feature, format);
        let ours = world.session("ann");
        let refused = takes(&ours, verb, &feature).expect_err(verb);
        assert_eq!(refused.code(), Code::LockConflict, "{verb}, {format}: {refused}");
        assert_eq!(refused.details().expect("details")["holder_id"], "bob", "{verb}, {format}");
        let view = ours.inspect(&feature).expect("seen");
        assert_eq!(view.word(), StatusWord::Held, "{verb}, {format}");
        assert_eq!(view.remaining_ms(), 60_000, "{verb}, {format}");
        assert_eq!(view.state.token.0, 0, "{verb}, {format}: nothing was taken");
        let there = world.solo.store().read(&path, 1_000).expect("it is there");
        assert_eq!(there, text, "{verb}, {format}: it was written over");

        let taken = without(Rule::OthersAreRespected, || takes(&ours, verb, &feature));
        assert!(taken.is_ok(), "without the rule {verb} goes over it, {format}: {taken:?}");
    }
}

#[test]
fn what_another_tool_left_is_nobodys_once_it_is_over() {
    for format in FORMATS {
        let world = World::new();
        another_tool_takes(&world, &main(), format);
        world.solo.pass_ms(63_001);
        assert_eq!(world.view().word(), StatusWord::Free, "{format}");
        world.takes("ann");
    }
}

/// A holder that was there first goes on, and does not write over the stranger's
/// file either.
#[test]
fn a_holder_of_ours_keeps_its_lock_beside_another_tool() {
    let world = World::new();
    let ann = world.session("ann");
    let mut lease = ann.acquire(&main(), LEASE).expect("free");
    world.solo.store().unlink(&layout::lock_record(&main())).expect("another tool removes it");
    let (path, text) = another_tool_takes(&world, &main(), "owner, since, ttl");
    lease.renew().expect("it is its own");
    assert!(lease.drift().join("").contains("another tool"), "{:?}", lease.drift());
    assert_eq!(ann.acquire(&main(), LEASE).expect("its own").how(), LeaseOrigin::Refreshed);
    let view = world.view();
    assert_eq!(view.word(), StatusWord::Held);
    assert!(view.held_by_other_tool().is_none() && view.foreign.is_some(), "both are seen");
    lease.release().expect("released");
    assert_eq!(world.solo.store().read(&path, 1_000).expect("there"), text);
    assert!(world.view().held_by_other_tool().is_some(), "and now only the other is left");
}

#[test]
fn only_an_emergency_that_the_repository_allows_goes_over_another_tool() {
    let world = World::new();
    let (path, text) = another_tool_takes(&world, &main(), "owner, since, ttl");
    let all = ReclaimRules {
        holder_dead: true,
        same_user: true,
        higher_privilege: true,
        emergency_override: true,
        ..ReclaimRules::default()
    };
    let ann = world.session("ann");
    let refused = ann.reclaim(&main(), LEASE, &all, false, &|_| None).expect_err("no emergency");
    assert_eq!(refused.code(), Code::LockConflict);
    let lease = ann.reclaim(&main(), LEASE, &all, true, &|_| None).expect("an emergency");
    assert_eq!(lease.by().map(|by| by.reason), Some(ReclaimReason::EmergencyOverride));
    assert_eq!(world.solo.store().read(&path, 1_000).expect("there"), text, "not written over");
}

#[test]
fn a_reclaim_of_what_is_over_says_so() {
    let world = World::new();
    world.takes("dead");
    world.lease_runs_out();
    let rival = world.session("rival");
    rival.observe(&main(), |_| ControlFlow::Continue(())).expect("watched");
    let lease =
        rival.reclaim(&main(), LEASE, &ReclaimRules::default(), false, &|_| None).expect("over");
    assert_eq!(lease.how(), LeaseOrigin::Reclaimed);
    assert_eq!(lease.by().map(|by| by.reason), Some(ReclaimReason::LockExpired));
    let logs = jvs_lock::history::read_logs(world.solo.store()).expect("read");
    let told = |l: &&jvs_lock::history::Logged| {
        l.event.details.as_ref().is_some_and(|details| details["reason"] == "LOCK_EXPIRED")
    };
    assert!(logs.events.iter().any(|logged| told(&logged)), "the event says by which rule");
}
