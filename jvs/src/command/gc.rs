//! `jvs gc`: plans, then removes, and says what it freed.

use std::fmt::Write;

use jvs_repo::audit::room;
use jvs_repo::config::Retention;
use jvs_repo::entropy::SystemEntropy;
use jvs_repo::id::OpNonce;
use jvs_snapshot::Snapshots;
use jvs_snapshot::gc::{self, GcPlan, Terms};
use jvs_snapshot::progress::Progress as _;
use serde_json::{Value, json};

use super::snapshots::{counted, size};
use crate::args::GcArgs;
use crate::bar::Bar;
use crate::context::Context;
use crate::fail::Failure;
use crate::render::{Done, shown, tell_paths, tell_shown};

pub(crate) fn run(context: &Context<'_>, args: &GcArgs) -> Result<Done, Failure> {
    let repo = context.repo()?;
    let config = repo.config()?;
    let retention = Retention {
        keep_last: args.keep_last.unwrap_or(config.retention.keep_last),
        keep_within: args.keep_within.unwrap_or(config.retention.keep_within),
    };
    let at = Snapshots::new(context.seams(repo.store()), repo.store());
    let plan = gc::plan(&at, Terms { retention, trust_clock: args.trust_clock })?;
    let mut data = planned(&plan);
    data["dry_run"] = json!(args.dry_run);
    if args.dry_run {
        let bytes = plan.collect.iter().map(|unneeded| unneeded.bytes).sum();
        let mut text = format!(
            "Would remove {} ({} of files), {}; would keep {}\n",
            counted(plan.collect.len() as u64, "snapshot"),
            size(bytes),
            leftovers(plan.dead.len() + plan.unfinished.len()),
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
        for unneeded in &plan.collect {
            let _ = writeln!(text, "  {}  {}", unneeded.snapshot_id, unneeded.worktree_id);
        }
        return Ok(Done::new(data).with_text(text));
    }
    let acting = context.session(None)?;
    let locks = context.locks(repo.store(), config.lock, &acting)?;
    let bar = Bar::counting(context, "removing", "snapshot");
    let freed = gc::run(&at, &locks, &plan, &mut |_, total| {
        bar.total(total as u64, 0);
        bar.advance(1, 0);
    })?;
    drop(bar);
    // Best effort: what was given up on a full volume is kept again.
    let _ = room::keep(repo.store(), OpNonce::random(&SystemEntropy));
    data["removed"] = json!(freed.snapshots);
    data["freed_bytes"] = json!(freed.bytes);
    data["leftovers_removed"] = json!(freed.dead + freed.unfinished);
    data["put_back"] = json!(freed.put_back);
    let aside: Vec<String> =
        freed.set_aside.iter().map(|path| shown(&repo.store().absolute(path))).collect();
    let paths = freed.set_aside.iter().map(|path| repo.store().absolute(path));
    tell_paths(&mut data, "set_aside", &paths.collect::<Vec<_>>());
    let left: Vec<Value> = freed
        .left
        .iter()
        .map(|(path, why)| {
            let mut left = json!({ "why": why });
            tell_shown(&mut left, "path", &path.to_string());
            left
        })
        .collect();
    data["left"] = json!(left);
    let text = format!(
        "Removed {} ({} of files), {}; kept {}\n",
        counted(freed.snapshots.len() as u64, "snapshot"),
        size(freed.bytes),
        counted(freed.dead + freed.unfinished, "leftover"),
        plan.keep.len() + freed.put_back.len()
    );
    let warning = |path: &String| {
        format!(
            "an interrupted restore left files that no snapshot has; they are in {path}: remove \
             that directory once nothing in it is needed"
        )
    };
    let mut done = Done::new(data).with_text(text);
    if freed.told_late {
        done = done.with_warning("the volume was full: this was logged only afterwards".to_owned());
    }
    for (path, why) in &freed.left {
        done = done.with_warning(format!("{path} could not be removed and is left there: {why}"));
    }
    Ok(aside.iter().map(warning).fold(done, Done::with_warning))
}

fn leftovers(number: usize) -> String {
    counted(number as u64, "leftover")
}

fn planned(plan: &GcPlan) -> Value {
    let kept = plan
        .keep
        .iter()
        .map(|(id, why)| json!({ "snapshot_id": id, "why": why, "because": why.to_string() }));
    json!({
        "collect": plan.collect,
        "keep": kept.collect::<Vec<_>>(),
        "to_set_aside":
            plan.set_aside.iter().map(|name| name.path().to_string()).collect::<Vec<_>>(),
        "leftovers": plan.dead.len() + plan.unfinished.len(),
        "left_alone": plan.left_alone,
    })
}
