//! Each rule of publishing and collecting, switched off: the exploration must
//! then find what the rule prevents. The worlds and what must be true in them
//! are those in which `jvs-snapshot` is tested without the switches. Each test prints the states it
//! visited and the way it found.
#![allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]

use jvs_kit::sim::{Ctx, Explorer, PowerCuts, Process, Solo, View};
use jvs_lock::{Lease, Locks, Want, worktrees};
use jvs_protocol_tests::necessity::{needed, process};
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::Store;
use jvs_snapshot::mutation::Rule;
use jvs_snapshot::restore::{Copied, RestoreRequest, replace};
use jvs_snapshot::staging_name::StagingName;
use jvs_snapshot::{Catalog, PublishError, Snapshots, Staged, tags};
use jvs_world::repository::main;
use jvs_world::session::locks_of;
use jvs_world::sim::actors::{collect, explorer, keep, publish, told, world};
use jvs_world::sim::{LEASE_MS, SimTrees, World, seams, seams_of, snapshot, stage, with_history};

fn publisher(id: &'static str, off: Option<Rule>) -> Process {
    process(id, off, move |ctx| publish(ctx, id))
}

/// Keeps all that is in a lineage.
fn careful_collector(off: Option<Rule>) -> Process {
    process("gc", off, |ctx| collect(ctx, keep(100, 0)))
}

/// Keeps the heads.
fn strict_collector(off: Option<Rule>) -> Process {
    process("gc", off, |ctx| collect(ctx, keep(1, 0)))
}

fn locks<'c>(ctx: &'c Ctx, id: &str) -> Locks<'c> {
    locks_of(seams(ctx), id)
}

fn staged<'c>(ctx: &'c Ctx, at: &Snapshots<'c>, lease: &mut Lease<'_>) -> Option<Staged<'c>> {
    stage(seams(ctx), at, lease, "text").ok()
}

fn oldest(catalog: Catalog<'_>) -> Option<SnapshotId> {
    catalog.list().ok()?.snapshots.into_iter().min()
}

#[test]
fn a_snapshot_is_committed_under_the_token_it_was_begun_under() {
    fn bound(view: &View<'_>) -> Result<(), String> {
        let world = World::on(view.live().clone());
        let Some(head) = world.head() else { return Ok(()) };
        let begun = world.catalog().open(head).map_err(|error| error.to_string())?;
        let begun = begun.descriptor().fencing_token;
        let now = world.locks("reader").inspect(&main()).expect("readable").state.token;
        if begun == now {
            Ok(())
        } else {
            Err(format!("begun under {begun}, committed under {now}"))
        }
    }
    /// Comes back to what it began before somebody else may have been there.
    fn comes_back(ctx: &Ctx) -> Option<()> {
        let trees = SimTrees(ctx.store());
        let at = Snapshots::new(seams(ctx), &trees);
        let mut first = locks(ctx, "a").acquire(&main(), Want::lease(LEASE_MS)).ok()?;
        let staged = staged(ctx, &at, &mut first)?;
        first.release().ok()?;
        let mut second = locks(ctx, "a").acquire(&main(), Want::lease(LEASE_MS)).ok()?;
        let _ = staged.publish(second.fence().ok()?);
        Some(())
    }
    needed(Rule::OneToken, "committed under", |off| {
        world().process(process("a", off, comes_back)).at_end(bound)
    });
}

#[test]
fn a_snapshot_is_committed_before_it_is_shown() {
    needed(Rule::CommittedBeforeShown, "is visible and was not committed", |off| {
        world().process(publisher("a", off)).crashes(1)
    });
}

#[test]
fn a_snapshot_is_durable_before_it_is_committed() {
    needed(Rule::DurableBeforeCommitted, "is not what was written", |off| {
        world().process(publisher("a", off)).power_cuts(1, PowerCuts::EveryPrefix)
    });
}

#[test]
fn a_commit_is_durable_before_somebody_else_shows_it() {
    /// Another process of the session, which finds the head without READY.
    fn goes_on(ctx: &Ctx) -> Option<()> {
        let trees = SimTrees(ctx.store());
        let mut lease = locks(ctx, "a").resume(&main(), None).ok()?;
        let draft = Snapshots::new(seams(ctx), &trees).begin(&lease.fence().ok()?).ok()?;
        draft.discard().ok()
    }
    needed(Rule::DurableBeforeHelped, "is visible and was not committed", |off| {
        world()
            .process(publisher("a", off).on_host(0))
            .process(process("b", off, goes_on).on_host(0))
            .preemptions(1)
            .power_cuts(1, PowerCuts::EveryPrefix)
    });
}

#[test]
fn a_head_is_shown_before_another_is_begun_on_top_of_it() {
    needed(Rule::HeadShownFirst, "was never published", |off| {
        let world = world().process(publisher("a", off)).process(publisher("b", off));
        world.preemptions(0).crashes(1)
    });
}

#[test]
fn a_snapshot_put_on_top_of_another_gets_another_id() {
    /// Two snapshots of one hold: the first to be begun is the last to commit.
    fn two_at_once(ctx: &Ctx) -> Option<()> {
        let trees = SimTrees(ctx.store());
        let at = Snapshots::new(seams(ctx), &trees);
        let mut lease = locks(ctx, "a").acquire(&main(), Want::lease(LEASE_MS)).ok()?;
        let slow = staged(ctx, &at, &mut lease)?;
        let quick = staged(ctx, &at, &mut lease)?.publish(lease.fence().ok()?).ok()?;
        ctx.append("published", quick.id().to_string());
        let Err(PublishError::HeadMoved { staged, .. }) = slow.publish(lease.fence().ok()?) else {
            return None;
        };
        let slow = staged.rebase(&lease.fence().ok()?).ok()?.publish(lease.fence().ok()?).ok()?;
        ctx.append("published", slow.id().to_string());
        Some(())
    }
    needed(Rule::RebasedUnderANewId, "missing", |off| {
        world()
            .setup(with_history)
            .process(process("a", off, two_at_once))
            .process(careful_collector(off))
            .preemptions(2)
    });
}

fn two_publishers_and_a_collector(off: Option<Rule>) -> Explorer<'static> {
    world()
        .process(publisher("a", off))
        .process(publisher("b", off))
        .process(careful_collector(off))
        .preemptions(2)
}

#[test]
fn what_was_not_committed_is_judged_by_a_state_read_before() {
    needed(Rule::ReadBeforeLooking, "missing", two_publishers_and_a_collector);
}

#[test]
fn what_is_old_may_still_be_somebodys_work() {
    needed(Rule::AgeProvesNothing, "missing", |off| {
        world().process(publisher("a", off)).process(careful_collector(off)).preemptions(2)
    });
}

#[test]
fn only_what_was_visible_before_the_read_is_collected() {
    needed(Rule::VisibleBeforeRead, "was reported as published", two_publishers_and_a_collector);
}

#[test]
fn what_is_collected_leaves_its_tombstone_first() {
    needed(Rule::TombstoneFirst, "missing", |off| {
        world().setup(with_history).process(strict_collector(off)).crashes(1)
    });
}

#[test]
fn what_is_collected_goes_out_of_sight_whole() {
    needed(Rule::OutOfSightFirst, "is visible and not whole", |off| {
        world().setup(with_history).process(strict_collector(off)).crashes(1)
    });
}

#[test]
fn what_is_needed_is_read_again_once_a_snapshot_is_out_of_sight() {
    fn tagger(ctx: &Ctx) -> Option<()> {
        let catalog = Catalog::new(ctx.store());
        let ready = catalog.open(oldest(catalog)?).ok()?;
        tags::create(seams(ctx), &"wanted".parse().ok()?, &ready, "t").ok()?;
        ctx.append("tagged", ready.id().to_string());
        Some(())
    }
    needed(Rule::NeedsReadAgain, "has a tag and is gone", |off| {
        world()
            .setup(with_history)
            .process(process("t", off, tagger))
            .process(strict_collector(off))
            .preemptions(2)
    });
}

/// Every snapshot of [`with_history`] is visible and whole, or what was collected of
/// it left a tombstone; and none is gone of those that `kept` says.
fn still_there(view: &View<'_>, kept: impl Fn(usize) -> bool) -> Result<(), String> {
    let before = World::on(view.live().clone());
    let mut all: Vec<SnapshotId> = before.catalog().list().map_err(|e| e.to_string())?.snapshots;
    all.retain(|id| before.catalog().is_ready(*id).unwrap_or(false));
    match (0..3).filter(|n| kept(*n)).count() {
        wanted if all.len() < wanted => Err(format!("of {wanted} only {} are there", all.len())),
        _ => before.all_visible_are_whole(),
    }
}

#[test]
fn nothing_is_removed_while_a_recorded_worktree_has_no_register() {
    /// Somebody, perhaps a sync tool, takes the register of `main` away.
    fn vandal(ctx: &Ctx) -> Option<()> {
        let aside = layout::staging().child("lost").ok()?;
        ctx.store().rename(&layout::register(&main()), &aside).ok()
    }
    needed(Rule::EveryRegisterAsked, "of 1 only 0 are there", |off| {
        explorer()
            .setup(with_history)
            .process(process("vandal", off, vandal))
            .process(strict_collector(off))
            .preemptions(2)
            .at_end(|view| still_there(view, |n| n == 2))
    });
}

/// A worktree that was renamed with a head that nobody has shown yet.
fn with_an_unshown_head_that_was_renamed(solo: &Solo) {
    let locks = locks_of(seams_of(solo), "maker");
    worktrees::create(&locks, &named("before"), Isolation::Exclusive).expect("made");
    let mut lease = locks.acquire(&named("before"), Want::lease(LEASE_MS)).expect("free");
    let head = snapshot(solo, &mut lease, "text").dir();
    // As if its publisher had died right after the commit.
    let (shown, hidden) = (layout::ready(&head), layout::ready_staged(&head));
    solo.store().rename(&shown, &hidden).expect("there");
    lease.release().expect("released");
    worktrees::rename(&locks, &named("before"), &named("after")).expect("renamed");
    solo.pass_ms(1);
}

fn named(name: &str) -> WorktreeName {
    name.parse().expect("a name")
}

#[test]
fn a_head_that_was_renamed_unshown_is_nobodys_garbage_though_its_old_name_lives_again() {
    fn the_head_is_there(view: &View<'_>) -> Result<(), String> {
        let world = World::on(view.live().clone());
        let state = world.locks("reader").inspect(&named("after")).map_err(|e| e.to_string())?;
        let head = state.state.head.ok_or("the head did not go along")?;
        match world.catalog().describe(head) {
            Ok(Some(_)) => Ok(()),
            gone => Err(format!("the head {head} of 'after' is gone: {gone:?}")),
        }
    }
    /// Begins another life of the name.
    fn creator(ctx: &Ctx) -> Option<()> {
        let locks = locks(ctx, "c");
        worktrees::create(&locks, &named("before"), Isolation::Exclusive).ok().map(drop)
    }
    needed(Rule::HeadOfAnyName, "of 'after' is gone", |off| {
        explorer()
            .setup(with_an_unshown_head_that_was_renamed)
            .process(process("c", off, creator))
            .process(careful_collector(off))
            .preemptions(2)
            .at_end(the_head_is_there)
    });
}

/// Puts the files of the oldest snapshot in the place of the worktree's, whose newest
/// one has them. Says what it stands on for as long as it does.
fn restorer(ctx: &Ctx) -> Option<()> {
    let store = ctx.store();
    let catalog = Catalog::new(store);
    let mut lease = locks(ctx, "r").acquire(&main(), Want::lease(LEASE_MS)).ok()?;
    let state = lease.fence().ok()?.read().ok()?;
    let (source, kept) = (oldest(catalog)?, state.head?);
    let op = OpNonce::random(ctx.entropy());
    let copied = Copied::assume_equal(&main(), state.term(), source, op);
    store.make_dir(&copied.dir()).ok()?;
    let tree = copied.tree();
    store.make_dir(&tree).ok()?;
    let file = store.create_new(&tree.child("file").ok()?).ok()?;
    file.write_at(0, b"one").ok()?;
    let (source, kept) = (catalog.open(source).ok()?, catalog.open(kept).ok()?);
    ctx.append("stands_on", source.id().to_string());
    let trees = SimTrees(store);
    let at = Snapshots::new(seams(ctx), &trees);
    let wish =
        RestoreRequest { source: &source, kept: Some(&kept), chosen: None, reason: Some("a test") };
    let locks = locks(ctx, "r");
    let told = replace(&at, &trees, &locks, &mut lease, copied, &wish);
    ctx.retract("stands_on");
    ctx.claim("told", if told.is_ok() { "done" } else { "not done" });
    Some(())
}

/// What a restore that holds the lock stands on is there, or may be put back.
fn what_is_stood_on_is_there(view: &View<'_>) -> Result<(), String> {
    for id in told(view, "stands_on") {
        let id: SnapshotId = id.parse().map_err(|_| "not an id")?;
        let world = World::on(view.live().clone());
        let now = world.locks("reader").inspect(&main()).map_err(|e| e.to_string())?.state.term();
        let staging: Vec<StagingName> =
            view.live().list(&layout::staging()).iter().filter_map(|n| n.parse().ok()).collect();
        let goes_on = staging.iter().any(|name| match name {
            // One whose lock was taken over is fenced, and puts nothing in place any more.
            StagingName::Restore { source, term, .. } | StagingName::Swap { source, term, .. } => {
                *source == id && *term == now
            }
            _ => false,
        });
        let condemned = staging
            .iter()
            .any(|name| matches!(name, StagingName::Condemned { id: of, .. } if *of == id));
        if goes_on && !condemned && !view.live().exists(&layout::snapshot(id)) {
            return Err(format!("{id} is gone, and a restore stands on it"));
        }
    }
    Ok(())
}

/// A restore that has its copy, and a collection that set the restore's source aside
/// and died before it decided.
fn with_a_restore(solo: &Solo) {
    with_history(solo);
    let locks = locks_of(seams_of(solo), "r");
    let lease = locks.acquire(&main(), Want::lease(LEASE_MS)).expect("free");
    let source = oldest(Catalog::new(solo.store())).expect("three");
    let op = OpNonce([7; 8]);
    let (worktree, term) = (main(), lease.term());
    let restore = StagingName::Restore { worktree, term, source, op };
    solo.store().make_dir(&restore.path()).expect("new");
    let condemned = StagingName::Condemned { id: source, op }.path();
    solo.store().rename(&layout::snapshot(source), &condemned).expect("there");
}

#[test]
fn work_in_progress_is_seen_though_it_is_renamed_while_it_is_listed() {
    /// Offers its copy for the swap.
    fn offer(ctx: &Ctx) -> Option<()> {
        let listed = ctx.store().list(&layout::staging()).ok()?;
        let names = listed.iter().filter_map(|e| e.name.to_str()?.parse::<StagingName>().ok());
        for name in names {
            let StagingName::Restore { worktree, term, source, op } = name.clone() else {
                continue;
            };
            ctx.append("stands_on", source.to_string());
            let swap = StagingName::Swap { worktree, term, source, kept: None, op };
            ctx.store().rename_new(&name.path(), &swap.path()).ok()?;
        }
        Some(())
    }
    needed(Rule::ListedTwice, "is gone, and a restore stands on it", |off| {
        explorer()
            .setup(with_a_restore)
            .process(process("r", off, offer))
            .process(strict_collector(off))
            .torn_listings(1)
            .always(what_is_stood_on_is_there)
    });
}

fn gc_restore_publish(preemptions: u32) -> Explorer<'static> {
    world()
        .setup(with_history)
        .process(process("r", None::<Rule>, restorer))
        .process(publisher("a", None))
        .process(strict_collector(None))
        .preemptions(preemptions)
        .always(what_is_stood_on_is_there)
}

#[test]
fn a_restore_a_publisher_and_a_collector_at_once() {
    let deep = std::env::var_os("JVS_LONG").is_some();
    let report = gc_restore_publish(if deep { 3 } else { 1 }).max_states(60_000_000).run();
    eprintln!("a restore, a publisher, a collector: {report}");
    report.holds();
}

#[test]
fn nothing_is_old_because_one_clock_says_so() {
    const DAY_MS: u64 = 24 * 60 * 60 * 1000;
    needed(Rule::ClockIsDoubted, "of 3 only 1 are there", |off| {
        explorer()
            .setup(with_history)
            .process(process("gc", off, |ctx| collect(ctx, keep(1, 30 * DAY_MS))))
            .wall_offset_ms(0, 400 * DAY_MS as i64)
            .at_end(|view| still_there(view, |_| true))
    });
}

#[test]
fn a_collection_needs_no_room() {
    fn room_was_made(view: &View<'_>) -> Result<(), String> {
        match World::on(view.live().clone()).visible().len() {
            1 => Ok(()),
            left => Err(format!("{left} are left")),
        }
    }
    needed(Rule::CollectsWhenFull, "3 are left", |off| {
        world()
            .setup(with_history)
            .process(strict_collector(off))
            .full_volume()
            .time_jumps(0, [])
            .at_end(room_was_made)
    });
}

/// Every rule that can be switched off is switched off by a test above.
#[test]
fn no_rule_is_left_out() {
    let tests = [
        include_str!("publishing.rs"),
        include_str!("restoring.rs"),
        include_str!("ledgers.rs"),
        include_str!("taking_back.rs"),
        include_str!("doctor/mutations.rs"),
    ];
    for rule in Rule::ALL {
        let ways =
            ["needed(Rule", "needed_for(Rule", "Damage"].map(|way| format!("{way}::{rule:?}"));
        let is_off = |test: &&str| ways.iter().any(|way| test.contains(way));
        assert!(tests.iter().any(is_off), "{rule:?} is never switched off");
    }
}
