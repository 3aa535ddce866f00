//! `jvs gc`: plans, then removes, and says what it freed.

use std::cmp::Reverse;
use std::fmt::Write;

use jvs_lock::history::Dropped;
use jvs_repo::audit::room;
use jvs_repo::clock::WallMs;
use jvs_repo::config::{RequiredTags, Retention};
use jvs_repo::entropy::SystemEntropy;
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::store::PosixStore;
use jvs_snapshot::Snapshots;
use jvs_snapshot::gc::{self, GcPlan, Measured, Terms};
use jvs_snapshot::progress::Progress as _;
use jvs_snapshot::short::ShortIds;

use super::audit::story::ago;
use super::snapshots::{self, counted, room_text};
use crate::answer;
use crate::answer::snapshot::{
    CollectedTold, Collection, CollectionOutcome, FreedTold, KeptTold, NotRemoved, Rules, WouldFree,
};
use crate::args::GcArgs;
use crate::bar::Bar;
use crate::context::Context;
use crate::fail::{Failure, WrongUsage};
use crate::hint::OwnNext;
use crate::render::{Done, shown, table};

pub(crate) fn run(context: &Context<'_>, args: &GcArgs) -> Result<Done, Failure> {
    let repo = context.repo()?;
    let config = repo.config()?;
    let retention = policy(args, &config.retention)?;
    let at = Snapshots::new(context.seams(repo.store()), repo.store());
    let terms = Terms { retention: retention.clone(), trust_clock: args.trust_clock };
    let plan = gc::plan(&at, terms)?;
    let going = plan.collect.iter().map(|unneeded| (unneeded.snapshot_id, unneeded.bytes));
    let measured = snapshots::room(repo.store(), going, &Bar::new(context, "measuring"))?;
    if args.dry_run {
        let outcome = CollectionOutcome::Would(WouldFree {
            would_free_bytes: measured.bytes,
            would_free_exact: measured.exact,
        });
        let answer = told(&plan, &retention, args.dry_run, outcome);
        let text = would(context, &plan, &retention, measured)?;
        return Ok(Done::new(&answer).with_text(text).paged());
    }
    let acting = context.session(None)?;
    let locks = context.locks(repo.store(), config.lock, &acting)?;
    let bar = Bar::counting(context, "removing", "snapshot");
    let freed = gc::run(&at, &locks, &plan, &mut |_, total| {
        bar.total(total as u64, 0);
        bar.advance(1, 0);
    })?;
    drop(bar);
    let dropped = locks.drop_old_logs();
    // Best effort: what was given up on a full volume is kept again.
    let _ = room::keep(repo.store(), OpNonce::random(&SystemEntropy));
    // Of what somebody came to need meanwhile nothing was freed.
    let all_went = freed.snapshots.len() == plan.collect.len() && freed.left.is_empty();
    let measured = Measured { exact: measured.exact && all_went, ..measured };
    let aside: Vec<String> =
        freed.set_aside.iter().map(|path| shown(&repo.store().absolute(path))).collect();
    let outcome =
        CollectionOutcome::Did(outcome(repo.store(), &freed, measured, dropped.as_ref().ok()));
    let answer = told(&plan, &retention, args.dry_run, outcome);
    let text = format!(
        "Removed {}, {}; freed {}; kept {}\n",
        counted(freed.snapshots.len() as u64, "snapshot"),
        counted(freed.dead + freed.unfinished, "leftover"),
        room_text(measured),
        plan.keep.len() + freed.put_back.len()
    );
    let warning = |path: &String| {
        format!(
            "an interrupted restore left files that no snapshot has; they are in {path}: remove \
             that directory once nothing in it is needed"
        )
    };
    let mut done = Done::new(&answer).with_text(text);
    if freed.told_late {
        done = done.with_warning("the volume was full: this was logged only afterwards".to_owned());
    }
    if let Err(why) = dropped {
        done = done.with_warning(format!("old audit logs could not be dropped: {why}"));
    }
    for (path, why) in &freed.left {
        done = done.with_warning(format!("{path} could not be removed and is left there: {why}"));
    }
    Ok(aside.iter().map(warning).fold(done, Done::with_warning))
}

/// The settings, but for those that an option replaces.
fn policy(args: &GcArgs, set: &Retention) -> Result<Retention, Failure> {
    let keep_tag = match args.keep_tag.as_slice() {
        [] => set.keep_tag.clone(),
        tags => RequiredTags::new(tags.to_vec())
            .ok_or_else(|| WrongUsage::new("too many tags", OwnNext::Help("gc".into(), None)))?,
    };
    Ok(Retention {
        keep_last: args.keep_last.unwrap_or(set.keep_last),
        keep_hourly: args.keep_hourly.unwrap_or(set.keep_hourly),
        keep_daily: args.keep_daily.unwrap_or(set.keep_daily),
        keep_weekly: args.keep_weekly.unwrap_or(set.keep_weekly),
        keep_monthly: args.keep_monthly.unwrap_or(set.keep_monthly),
        keep_yearly: args.keep_yearly.unwrap_or(set.keep_yearly),
        keep_within: args.keep_within.unwrap_or(set.keep_within),
        keep_tag,
    })
}

/// The rules that keep something, by the names of their settings.
fn rules(retention: &Retention) -> Rules {
    Rules {
        keep_last: retention.keep_last,
        keep_hourly: retention.keep_hourly,
        keep_daily: retention.keep_daily,
        keep_weekly: retention.keep_weekly,
        keep_monthly: retention.keep_monthly,
        keep_yearly: retention.keep_yearly,
        keep_within: retention.keep_within.to_string(),
        keep_tag: retention.keep_tag.iter().map(ToString::to_string).collect(),
    }
}

/// Those in force, as people read them.
fn in_force(rules: &Rules) -> String {
    let numbers = [
        ("keep_last", rules.keep_last),
        ("keep_hourly", rules.keep_hourly),
        ("keep_daily", rules.keep_daily),
        ("keep_weekly", rules.keep_weekly),
        ("keep_monthly", rules.keep_monthly),
        ("keep_yearly", rules.keep_yearly),
    ];
    let numbers = numbers.into_iter().filter(|(_, number)| *number > 0);
    let numbers = numbers.map(|(name, number)| format!("{name} {number}"));
    let within = format!("keep_within {}", rules.keep_within);
    numbers.chain([within]).collect::<Vec<_>>().join(", ")
}

/// What came of it, for programs.
fn outcome(
    store: &PosixStore,
    freed: &gc::Freed,
    measured: Measured,
    dropped: Option<&Dropped>,
) -> FreedTold {
    let aside = freed.set_aside.iter().map(|at| answer::path(&store.absolute(at)));
    let (set_aside, set_aside_bytes) = answer::paths(aside);
    let left = freed.left.iter().map(|(path, why)| {
        let (path, path_bytes) = answer::shown_path(&path.to_string());
        NotRemoved { why: why.clone(), path, path_bytes }
    });
    FreedTold {
        removed: freed.snapshots.clone(),
        freed_bytes: measured.bytes,
        freed_exact: measured.exact,
        leftovers_removed: freed.dead + freed.unfinished,
        put_back: freed.put_back.clone(),
        set_aside,
        set_aside_bytes,
        left: left.collect(),
        audit_logs_dropped: dropped.cloned(),
    }
}

/// What a collection would do, snapshot by snapshot, the newest first.
fn would(
    context: &Context<'_>,
    plan: &GcPlan,
    retention: &Retention,
    room: Measured,
) -> Result<String, Failure> {
    let repo = context.repo()?;
    let mut text = format!(
        "Would remove {}, {}; would free {}; would keep {}\n",
        counted(plan.collect.len() as u64, "snapshot"),
        counted((plan.dead.len() + plan.unfinished.len()) as u64, "leftover"),
        room_text(room),
        plan.keep.len()
    );
    for name in &plan.set_aside {
        let _ = writeln!(
            text,
            "Would set aside {}, which an interrupted restore left: it has files that no \
             snapshot has",
            name.path()
        );
    }
    let _ = writeln!(text, "By the rules: {}", in_force(&rules(retention)));
    let mut told: Vec<(SnapshotId, &str, String, Option<&String>)> = Vec::new();
    for unneeded in &plan.collect {
        let because = unneeded.why.because(retention.keep_within);
        told.push((unneeded.snapshot_id, "remove", because, unneeded.note.as_ref()));
    }
    for (id, why) in &plan.keep {
        told.push((*id, "keep", why.to_string(), plan.notes.get(id)));
    }
    if told.is_empty() {
        return Ok(text);
    }
    told.sort_unstable_by_key(|(id, ..)| Reverse(*id));
    let (shorts, now) = (ShortIds::read(repo.store())?, context.clock().now().wall);
    let rows: Vec<[String; 5]> = told
        .into_iter()
        .map(|(id, what, why, note)| {
            let note = note.and_then(|note| note.lines().next()).unwrap_or_default();
            [shorts.of(id), ago(WallMs(id.created_ms), now), what.to_owned(), why, note.to_owned()]
        })
        .collect();
    let head = ["SNAPSHOT", "TIME", "WOULD", "BECAUSE", "NOTE"];
    Ok(text + &table(context.paint(), head, &rows))
}

fn told(
    plan: &GcPlan,
    retention: &Retention,
    dry_run: bool,
    outcome: CollectionOutcome,
) -> Collection {
    let kept = plan.keep.iter().map(|(id, why)| KeptTold {
        snapshot_id: *id,
        why: why.clone(),
        because: why.to_string(),
        note: plan.notes.get(id).cloned(),
    });
    let collected = plan.collect.iter().map(|unneeded| CollectedTold {
        snapshot_id: unneeded.snapshot_id,
        worktree_id: unneeded.worktree_id.clone(),
        why: unneeded.why,
        note: unneeded.note.clone(),
        bytes: unneeded.bytes,
        because: unneeded.why.because(retention.keep_within),
    });
    Collection {
        rules: rules(retention),
        collect: collected.collect(),
        keep: kept.collect(),
        to_set_aside: plan.set_aside.iter().map(|name| name.path().to_string()).collect(),
        leftovers: plan.dead.len() + plan.unfinished.len(),
        left_alone: plan.left_alone.clone(),
        dry_run,
        outcome,
    }
}
