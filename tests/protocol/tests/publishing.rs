//! Each rule of publishing and collecting, switched off: the exploration must
//! then find what the rule prevents. The worlds and what must be true in them
//! are those of the tests of `jvs-snapshot`. Each test prints the states it
//! visited and the way it found.

use jvs_kit::sim::{Ctx, PowerCuts, Process, Solo, View};
use jvs_lock::{Lease, Locks, Seams, Want};
use jvs_protocol_tests::necessity::needed;
use jvs_repo::clock::Clock;
use jvs_repo::id::SnapshotId;
use jvs_snapshot::mutation::{self, Rule};
use jvs_snapshot::{Catalog, PublishError, Snapshots, Staged, tags};

use crate::actors::{collect, publish, world};
use crate::world::*;

#[path = "../../../jvs-snapshot/tests/simulated/actors.rs"]
mod actors;
#[path = "../../../jvs-snapshot/tests/simulated/world.rs"]
#[allow(dead_code, reason = "explored worlds need less than the others")]
mod world;

/// A process in a world where `off` does not hold.
fn process(
    name: &str,
    off: Option<Rule>,
    act: impl Fn(&Ctx) -> Option<()> + Send + Sync + 'static,
) -> Process {
    Process::new(name, move |ctx| {
        let _ = match off {
            Some(rule) => mutation::without(rule, || act(ctx)),
            None => act(ctx),
        };
    })
}

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

fn seams(ctx: &Ctx) -> Seams<'_> {
    Seams { store: ctx.store(), clock: ctx.clock(), entropy: ctx.entropy() }
}

fn locks<'c>(ctx: &'c Ctx, id: &str) -> Locks<'c> {
    locks_of(seams(ctx), ctx.store(), ctx.clock(), id)
}

fn staged<'c>(ctx: &'c Ctx, at: &Snapshots<'c>, lease: &mut Lease<'_>) -> Option<Staged<'c>> {
    let draft = at.begin(&lease.fence().ok()?).ok()?;
    let content = fill(ctx.store(), &draft, "text").ok()?;
    draft.seal(about(ctx.clock().now().wall), content).ok()
}

/// Three snapshots of `main`, one on top of the other.
fn with_history(solo: &Solo) {
    let seams = Seams { store: solo.store(), clock: solo.clock(), entropy: solo.entropy() };
    let trees = SimTrees(solo.store());
    let at = Snapshots::new(seams, &trees);
    let locks = locks_of(seams, solo.store(), solo.clock(), "maker");
    let mut lease = locks.acquire(&main(), Want::lease(LEASE_MS)).expect("free");
    for text in ["one", "two", "three"] {
        solo.pass_ms(1);
        let draft = at.begin(&lease.fence().expect("live")).expect("begun");
        let content = fill(solo.store(), &draft, text).expect("filled");
        let sealed = draft.seal(about(solo.clock().now().wall), content).expect("sealed");
        sealed.publish(lease.fence().expect("live")).expect("published");
    }
    lease.release().expect("released");
    solo.pass_ms(1);
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

#[test]
fn what_was_not_committed_is_judged_by_a_state_read_before() {
    needed(Rule::ReadBeforeLooking, "missing", |off| {
        world()
            .process(publisher("a", off))
            .process(publisher("b", off))
            .process(careful_collector(off))
            .preemptions(2)
    });
}

#[test]
fn what_is_old_may_still_be_somebodys_work() {
    needed(Rule::AgeProvesNothing, "missing", |off| {
        world().process(publisher("a", off)).process(careful_collector(off)).preemptions(2)
    });
}

#[test]
fn only_what_was_visible_before_the_read_is_collected() {
    needed(Rule::VisibleBeforeRead, "was reported as published", |off| {
        world()
            .process(publisher("a", off))
            .process(publisher("b", off))
            .process(careful_collector(off))
            .preemptions(2)
    });
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

/// Every rule that can be switched off is switched off by a test above.
#[test]
fn no_rule_is_left_out() {
    let tests = include_str!("publishing.rs");
    for rule in Rule::ALL {
        assert!(
            tests.contains(&format!("needed(Rule::{rule:?}")),
            "{rule:?} is never switched off"
        );
    }
}
