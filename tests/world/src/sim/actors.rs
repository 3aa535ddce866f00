//! Who meets in explored worlds, and what must be true when they are done.

use jvs_kit::sim::{Ctx, Explorer, Value, View};
use jvs_lock::Want;
use jvs_repo::config::Retention;
use jvs_repo::duration::Period;
use jvs_repo::layout;
use jvs_repo::store::RepoPath;
use jvs_snapshot::Snapshots;
use jvs_snapshot::gc;
use jvs_snapshot::lineage::Lineage;

use super::{LEASE_MS, LONG_MS, SimTrees, World, furnish, seams, stage};
use crate::repository::main;
use crate::session::locks_of;

/// Acquires, or steals what is over, and publishes one snapshot; says what it
/// was told.
pub fn publish(ctx: &Ctx, id: &str) -> Option<()> {
    let trees = SimTrees(ctx.store());
    let at = Snapshots::new(seams(ctx), &trees);
    let locks = locks_of(seams(ctx), id);
    let mut lease = locks.acquire(&main(), Want::lease(LEASE_MS)).ok()?;
    let staged = stage(seams(ctx), &at, &mut lease, id).ok()?;
    let new = staged.id().to_string();
    match staged.publish(lease.fence().ok()?) {
        Ok(_) => ctx.append("published", new),
        Err(error) => {
            if let (Some(staged), _) = error.hand_back() {
                ctx.append("refused", new);
                staged.discard().ok()?;
            }
        }
    }
    Some(())
}

/// The policy that keeps so many snapshots of a lineage, and all that are so young.
pub fn keep(last: u64, within_ms: u64) -> Retention {
    Retention { keep_last: last, keep_within: Period::from_ms(within_ms), ..Retention::default() }
}

/// Collects under this policy. What it may not do shows in the end.
pub fn collect(ctx: &Ctx, retention: Retention) -> Option<()> {
    let trees = SimTrees(ctx.store());
    let at = Snapshots::new(seams(ctx), &trees);
    let plan = gc::plan(&at, retention).ok()?;
    gc::run(&at, &locks_of(seams(ctx), "gc"), &plan, &mut |_, _| {}).ok()?;
    Some(())
}

/// Nobody decides by the log, by the record or by what is in a payload.
fn is_nobodys_business(path: &RepoPath) -> bool {
    let record = layout::lock_record(&main());
    let tmp = layout::lock_tmp(&main(), "");
    let text = path.as_str();
    *path == record
        || text.starts_with(tmp.as_str())
        || text.starts_with(layout::audit().as_str())
        || text.ends_with("/payload")
        || text.contains("/payload/")
        || text.ends_with("/manifest")
}

/// A repository with nobody in it yet.
pub fn explorer() -> Explorer<'static> {
    Explorer::new().setup(furnish).private(is_nobodys_business).early_wakes(0).max_calls(2_000)
}

/// A repository in which time may jump and everybody is told the truth.
pub fn world() -> Explorer<'static> {
    explorer().time_jumps(1, [LONG_MS]).at_end(everybody_was_told_the_truth)
}

/// What any process has said under `key`.
pub fn told<'v>(view: &View<'v>, key: &'static str) -> Vec<String> {
    let lists = view.processes().filter_map(|process| process.get(key));
    lists
        .flat_map(|value| match value {
            Value::List(items) => items.iter().map(ToString::to_string).collect(),
            other => vec![other.to_string()],
        })
        .map(|text| text.trim_matches('"').to_owned())
        .collect()
}

/// Published is visible in the lineage, tagged is visible, refused never is, and
/// nothing is visible that was not committed.
pub fn everybody_was_told_the_truth(view: &View<'_>) -> Result<(), String> {
    let world = World::on(view.live().clone());
    let visible: Vec<String> = world.visible().iter().map(ToString::to_string).collect();
    let lineage = Lineage::from_head(world.catalog(), world.head()).map_err(|e| e.to_string())?;
    let mut history = Vec::new();
    for step in lineage {
        let step = step.map_err(|error| error.to_string())?;
        history.push(step.id().to_string());
    }
    for id in told(view, "published") {
        if !history.contains(&id) || !visible.contains(&id) {
            return Err(format!("{id} was reported as published: {history:?}, {visible:?}"));
        }
    }
    for id in told(view, "tagged") {
        if !visible.contains(&id) {
            return Err(format!("{id} has a tag and is gone: {visible:?}"));
        }
    }
    for id in told(view, "refused") {
        if visible.contains(&id) || world.head().is_some_and(|head| head.to_string() == id) {
            return Err(format!("{id} was reported as not published"));
        }
    }
    match visible.iter().find(|id| !history.contains(id)) {
        Some(stray) => Err(format!("{stray} is visible and was not committed: {history:?}")),
        None => world.all_visible_are_whole(),
    }
}
