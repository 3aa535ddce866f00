//! The rules by which tombstones are put together in ledgers, each switched off. Each test
//! prints the states it visited and the way it found.

use jvs_kit::sim::{Ctx, PowerCuts, Process, Solo, View};
use jvs_lock::Want;
use jvs_protocol_tests::necessity::{needed, process};
use jvs_repo::layout;
use jvs_repo::store::Store;
use jvs_snapshot::lineage::Lineage;
use jvs_snapshot::mutation::Rule;
use jvs_snapshot::{Catalog, Snapshots, gc, tags};
use jvs_world::repository::main;
use jvs_world::session::locks_of;
use jvs_world::sim::actors::{collect, keep, world};
use jvs_world::sim::{LEASE_MS, SimTrees, World, seams, seams_of, snapshot, with_history};

/// Of three snapshots the newest is left, and the tombstones of the others.
fn with_tombstones(solo: &Solo) {
    with_history(solo);
    let trees = SimTrees(solo.store());
    let at = Snapshots::new(seams_of(solo), &trees);
    let plan = gc::plan(&at, keep(1, 0)).expect("planned");
    let locks = locks_of(seams_of(solo), "maker");
    gc::run(&at, &locks, &plan, &mut |_, _| {}).expect("collected");
    solo.pass_ms(1);
}

/// A ledger with two tombstones, and a third one that is loose.
fn with_a_ledger_and_more(solo: &Solo) {
    with_tombstones(solo);
    let trees = SimTrees(solo.store());
    gc::compact(&Snapshots::new(seams_of(solo), &trees)).expect("compacted");
    let locks = locks_of(seams_of(solo), "maker");
    let mut lease = locks.acquire(&main(), Want::lease(LEASE_MS)).expect("free");
    snapshot(solo, &mut lease, "four");
    lease.release().expect("released");
    let at = Snapshots::new(seams_of(solo), &trees);
    let plan = gc::plan(&at, keep(1, 0)).expect("planned");
    gc::run(&at, &locks, &plan, &mut |_, _| {}).expect("collected");
    solo.pass_ms(1);
}

/// Puts all tombstones into a ledger, however few they are.
fn compactor(off: Option<Rule>) -> Process {
    process("compactor", off, |ctx| {
        let trees = SimTrees(ctx.store());
        gc::compact(&Snapshots::new(seams(ctx), &trees)).ok().map(drop)
    })
}

#[test]
fn a_tombstone_goes_only_once_its_ledger_is_durable() {
    needed(Rule::LedgerFirst, "missing", |off| {
        let world = world().setup(with_tombstones).process(compactor(off)).time_jumps(0, []);
        world.crashes(1).power_cuts(1, PowerCuts::EveryPrefix)
    });
}

#[test]
fn two_collections_may_put_tombstones_together_at_once() {
    needed(Rule::LedgerFirst, "missing", |off| {
        let world = world().setup(with_tombstones).process(compactor(off)).time_jumps(0, []);
        let second = Process::new("second", |ctx| {
            let trees = SimTrees(ctx.store());
            let at = Snapshots::new(seams(ctx), &trees);
            // What it finds may be ledgers by now, and of several it makes one.
            let _ = gc::compact(&at).and_then(|_| gc::compact(&at));
        });
        world.process(second).preemptions(2).crashes(1)
    });
}

#[test]
fn a_reader_finds_every_tombstone_while_they_are_put_together() {
    fn reader(ctx: &Ctx) -> Option<()> {
        let catalog = Catalog::new(ctx.store());
        let head = locks_of(seams(ctx), "reader").inspect(&main()).ok()?.state.head;
        let lineage = Lineage::from_head(catalog, head).ok()?;
        let read: Result<Vec<_>, _> = lineage.collect();
        let said = read.map_or_else(|error| error.to_string(), |steps| steps.len().to_string());
        ctx.claim("read", said);
        Some(())
    }
    fn all_were_read(view: &View<'_>) -> Result<(), String> {
        match view.processes().find_map(|process| process.text("read")) {
            Some(said) if said != "4" => Err(format!("of the lineage was read: {said}")),
            _ => Ok(()),
        }
    }
    needed(Rule::TombstonesListedTwice, "missing", |off| {
        let world = world().setup(with_a_ledger_and_more).time_jumps(0, []).torn_listings(1);
        let world = world.process(process("reader", off, reader)).process(compactor(off));
        world.preemptions(2).at_end(all_were_read)
    });
}

#[test]
fn what_may_be_put_back_is_put_into_no_ledger() {
    /// A collector died when it had set the oldest aside, for which a tag stands.
    fn with_one_set_aside(solo: &Solo) {
        with_history(solo);
        let store = solo.store();
        let oldest = Catalog::new(store).list().expect("listed").snapshots[0];
        let needed = Catalog::new(store).open(oldest).expect("visible");
        tags::create(seams_of(solo), &"kept".parse().expect("a tag"), &needed, "t").expect("made");
        let dir = layout::snapshot(oldest);
        let bytes = store.read(&layout::descriptor(&dir), 1 << 16).expect("read");
        let op = jvs_repo::id::OpNonce([7; 8]);
        let tmp = layout::tombstone_tmp(oldest, op);
        store.write_new(&tmp, &layout::tombstone(oldest), &bytes).expect("written");
        let aside = layout::staged(&format!("condemned.{oldest}.{op}")).expect("plain");
        store.rename(&dir, &aside).expect("aside");
        solo.pass_ms(1);
    }
    fn nothing_visible_is_in_a_ledger(view: &View<'_>) -> Result<(), String> {
        let world = World::on(view.live().clone());
        let tombstones = world.catalog().tombstones().map_err(|error| error.to_string())?;
        let both = world.visible().into_iter().find(|id| tombstones.has(*id));
        match both.filter(|id| world.solo.store().stat(&layout::tombstone(*id)).is_err()) {
            Some(id) => Err(format!("{id} is visible and in a ledger")),
            None => Ok(()),
        }
    }
    needed(Rule::OnlyGoneIntoLedgers, "in a ledger", |off| {
        let collector = Process::new("gc", |ctx| {
            let _ = collect(ctx, keep(100, 0));
        });
        let world = world().setup(with_one_set_aside).time_jumps(0, []);
        let world = world.process(collector).process(compactor(off)).preemptions(2);
        world.at_end(nothing_visible_is_in_a_ledger)
    });
}
