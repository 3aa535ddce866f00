//! What would be removed, and why the rest would not. Changes nothing.

use std::collections::BTreeSet;

use jvs_lock::State;
use jvs_repo::audit;
use jvs_repo::clock::WallMs;
use jvs_repo::config::Retention;
use jvs_repo::id::SnapshotId;
use jvs_repo::layout;
use jvs_repo::name::{ShownName, WorktreeName};
use jvs_repo::sabotage;

use crate::catalog::Presence;
use crate::error::SnapshotError;
use crate::garbage::{self, Disposal};
use crate::gc::needs::{StagingContents, is_dead_restore, needs, verdict};
use crate::gc::retention::{self, KeptBy, Season};
use crate::gc::{ClockDoubt, Dead, GcPlan, Keep, Registers, Uncalled, Unneeded, age};
use crate::lineage::Lineage;
use crate::mutation::Rule;
use crate::publish::Snapshots;
use crate::ready::Ready;
use crate::restore::leftover::{self, Worth};
use crate::staging_name::StagingName;
use crate::tags;

/// On what terms snapshots are kept.
#[derive(Debug, Clone)]
pub struct Terms {
    /// The policy to apply.
    pub retention: Retention,
    /// Is this host's wall clock believed whatever speaks against it?
    pub trust_clock: bool,
}

impl From<Retention> for Terms {
    fn from(retention: Retention) -> Self {
        Terms { retention, trust_clock: trusts_clock_unasked() }
    }
}

/// Nothing is old because one clock says so, unless somebody says that it may.
fn trusts_clock_unasked() -> bool {
    sabotage!(Rule::ClockIsDoubted => true);
    false
}

/// Plans a collection. Refuses to if something would go because of its age and the
/// clock that says so cannot be believed.
pub fn plan(at: &Snapshots<'_>, terms: impl Into<Terms>) -> Result<GcPlan, SnapshotError> {
    let Terms { retention, trust_clock } = terms.into();
    let mut visible_before = BTreeSet::new();
    for id in at.catalog().list()?.snapshots {
        if at.catalog().is_ready(id).map_err(SnapshotError::io("look at a snapshot"))? {
            visible_before.insert(id);
        }
    }
    // The other way round for the uncommitted: only what is listed after a READ
    // can be judged by it.
    let registers = Registers::read(at.seams)?;
    let staging = StagingContents::list(at)?;
    let listing = at.catalog().list()?;
    let mut keep = needs(at, &registers, &staging)?;
    require_tags(at, &retention)?;
    for (worktree, state) in registers.in_place() {
        for (id, by) in kept_of(at, state, &retention)? {
            keep.entry(id).or_insert_with(|| by.of(worktree.clone()));
        }
    }

    let mut plan = GcPlan::default();
    plan_staging(at, &registers, &staging, &mut plan)?;
    let now = at.seams.clock.now().wall;
    let tombstones = at.catalog().tombstones()?;
    let collected = tombstones.entries().iter().map(|entry| &entry.snapshot_id);
    let known = listing.snapshots.iter().chain(collected).map(|id| id.created_ms);
    let ages = age::ages(now, known.clone());
    let newest_known = known.max();
    let within = retention.keep_within.as_ms();
    let mut only_by_age = 0;
    let was_visible = |id| may_be_unneeded(&visible_before, id);
    for id in listing.snapshots {
        let shown_age = now.0.saturating_sub(id.created_ms);
        let certain_age = ages.get(&id.created_ms).copied().unwrap_or(0);
        let age = if trust_clock { shown_age } else { certain_age };
        let young = age < within;
        match at.catalog().look(id) {
            Ok(Presence::Ready(ready)) => match keep.remove(&id) {
                Some(why) => plan.keeps(&ready, why),
                None if young || !was_visible(id) => {
                    only_by_age += usize::from(shown_age >= within && was_visible(id));
                    plan.keeps(&ready, Keep::Young);
                }
                None => plan.collect.push(unneeded(&registers, &ready)),
            },
            Ok(_) => plan_hidden(at, &registers, id, &mut plan)?,
            Err(SnapshotError::Corrupt { .. }) => plan.keep.push((id, Keep::Corrupt)),
            Err(error) => return Err(error),
        }
    }
    let foreign = listing.foreign.iter().map(|name| ShownName::new(&name).to_string());
    plan.left_alone.extend(foreign);
    let by_age = only_by_age + plan.collect.len();
    if retention.reads_times() && by_age > 0 && !trust_clock {
        believe(at, &registers, now, newest_known)
            .map_err(|doubt| SnapshotError::ClockDoubted { doubt, count: by_age })?;
    }
    Ok(plan)
}

/// Is it known of a snapshot that it may be unneeded? What was visible before the READ was
/// committed before it, so it is below a head that was read or below none.
fn may_be_unneeded(visible_before: &BTreeSet<SnapshotId>, id: SnapshotId) -> bool {
    sabotage!(Rule::VisibleBeforeRead => true);
    visible_before.contains(&id)
}

/// May `now` be believed? Logs are only asked if everything else speaks against it.
fn believe(
    at: &Snapshots<'_>,
    registers: &Registers,
    now: WallMs,
    newest_known: Option<u64>,
) -> Result<(), ClockDoubt> {
    let renewed = registers.in_place().filter_map(|(_, state)| {
        let claim = state.hold.claim()?;
        Some(claim.expires.0.saturating_sub(claim.lease_ms))
    });
    let newest = renewed.chain(newest_known).max().map(WallMs);
    let discipline = at.seams.clock.discipline();
    match age::doubt(now, newest, discipline) {
        Some(ClockDoubt::Ahead { .. }) => {
            // Best effort: a log that cannot be read does not speak for the clock.
            let logged = audit::newest(at.seams.store).ok().flatten();
            match age::doubt(now, newest.max(logged), discipline) {
                Some(doubt) => Err(doubt),
                None => Ok(()),
            }
        }
        Some(doubt) => Err(doubt),
        None => Ok(()),
    }
}

/// Without a tag that has to be there, something else may be missing.
fn require_tags(at: &Snapshots<'_>, policy: &Retention) -> Result<(), SnapshotError> {
    for tag in policy.keep_tag.iter() {
        if tags::read(at.seams.store, tag)?.is_none() {
            return Err(SnapshotError::NoSuchTag { tag: tag.clone() });
        }
    }
    Ok(())
}

/// What the policy keeps of the history of a worktree.
fn kept_of(
    at: &Snapshots<'_>,
    state: &State,
    policy: &Retention,
) -> Result<Vec<(SnapshotId, KeptBy)>, SnapshotError> {
    let lineage = Lineage::line(at.catalog(), state.head)?;
    let visible = lineage.filter_map(|step| match step {
        Ok(step) => {
            let id = step.ready()?.id();
            Some(Ok((id, WallMs(id.created_ms))))
        }
        Err(error) => Some(Err(error)),
    });
    retention::kept(policy, visible)
}

impl KeptBy {
    fn of(self, worktree: WorktreeName) -> Keep {
        match self {
            KeptBy::Last => Keep::Recent(worktree),
            KeptBy::Newest(Season::Hour) => Keep::Hourly(worktree),
            KeptBy::Newest(Season::Day) => Keep::Daily(worktree),
            KeptBy::Newest(Season::Week) => Keep::Weekly(worktree),
            KeptBy::Newest(Season::Month) => Keep::Monthly(worktree),
            KeptBy::Newest(Season::Year) => Keep::Yearly(worktree),
            KeptBy::Oldest(_) => Keep::Oldest(worktree),
        }
    }
}

impl GcPlan {
    fn keeps(&mut self, ready: &Ready, why: Keep) {
        self.keep.push((ready.id(), why));
        if let Some(note) = &ready.descriptor().note {
            self.notes.insert(ready.id(), note.clone());
        }
    }
}

fn unneeded(registers: &Registers, ready: &Ready) -> Unneeded {
    let descriptor = ready.descriptor();
    let worktree_id = descriptor.worktree_id.clone();
    let is_there = registers.in_place().any(|(worktree, _)| *worktree == worktree_id);
    Unneeded {
        snapshot_id: ready.id(),
        worktree_id,
        why: match is_there {
            false => Uncalled::WorktreeGone,
            true if descriptor.is_aside() => Uncalled::Beside,
            true => Uncalled::Outnumbered,
        },
        note: descriptor.note.clone(),
        bytes: descriptor.content.bytes,
    }
}

fn plan_staging(
    at: &Snapshots<'_>,
    registers: &Registers,
    staging: &StagingContents,
    plan: &mut GcPlan,
) -> Result<(), SnapshotError> {
    for name in &staging.names {
        match name {
            StagingName::Snapshot(bound) => match verdict(at, registers, bound)? {
                Some(Disposal::Garbage(why)) => {
                    plan.dead.push((Dead::Draft(name.clone()), Some(why)));
                }
                _ => plan.left_alone.push(name.to_string()),
            },
            StagingName::Restore { .. } if is_dead_restore(registers, name) => {
                plan.dead.push((Dead::Restore(name.clone()), None));
            }
            StagingName::Swap { .. } if is_dead_restore(registers, name) => {
                match leftover::worth_of(at, name) {
                    Worth::Nothing => plan.dead.push((Dead::Swap(name.clone()), None)),
                    _ => plan.set_aside.push(name.clone()),
                }
            }
            StagingName::Restore { .. } | StagingName::Swap { .. } | StagingName::Patch { .. } => {
                plan.left_alone.push(name.to_string());
            }
            StagingName::Condemned { .. } | StagingName::Doomed { .. } => {
                plan.unfinished.push(name.clone());
            }
        }
    }
    for name in &staging.foreign {
        match layout::staged(name) {
            Ok(files) if is_removed(registers, name) => {
                plan.dead.push((Dead::Removed(files), None));
            }
            _ => plan.left_alone.push(name.clone()),
        }
    }
    Ok(())
}

/// Are these the files of a worktree that was removed by force?
fn is_removed(registers: &Registers, name: &str) -> bool {
    let Some((worktree, epoch, op)) = layout::removed_of(name) else { return false };
    registers.judging(&worktree).is_some_and(|state| garbage::is_removed(state, epoch, op))
}

/// A directory of a snapshot that is not visible.
fn plan_hidden(
    at: &Snapshots<'_>,
    registers: &Registers,
    id: SnapshotId,
    plan: &mut GcPlan,
) -> Result<(), SnapshotError> {
    let described = match at.catalog().describe(id) {
        Ok(described) => described,
        Err(SnapshotError::Corrupt { .. }) => None,
        Err(error) => return Err(error),
    };
    // Whatever was never committed has its draft of READY. Without it, READY was
    // there and somebody took it away: nothing that the rules are about.
    let draft = at.seams.store.stat(&layout::ready_staged(&layout::snapshot(id)));
    let verdict = match described.filter(|_| draft.is_ok()) {
        Some((descriptor, _)) => verdict(at, registers, &descriptor.bound())?,
        None => None,
    };
    match verdict {
        Some(Disposal::Garbage(why)) => plan.dead.push((Dead::Hidden(id), Some(why))),
        _ => plan.left_alone.push(id.to_string()),
    }
    Ok(())
}
