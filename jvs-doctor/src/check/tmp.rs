//! Temporary files: whose they are, and whether anybody can still need them.

use jvs_lock::liveness::Liveness;
use jvs_lock::span::Span;
use jvs_lock::{Hold, State};
use jvs_repo::id::{Epoch, FencingToken, OpNonce, strict_decimal};
use jvs_repo::json;
use jvs_repo::layout;
use jvs_repo::record::worktree::WorktreeRecord;
use jvs_repo::store::{Kind, RepoPath};

use crate::finding::{Check, Report};
use crate::proof::Proof;
use crate::remedy::Remedy;
use crate::survey::Survey;

pub(super) fn run(survey: &Survey<'_, '_>, report: &mut Report) {
    for file in &survey.locks {
        let Some((worktree, mark)) = layout::lock_tmp_of(file) else { continue };
        let path = layout::lock_tmp(&worktree, mark);
        let state = survey.state(&worktree);
        if let Some(op) = mark.strip_prefix("birth-").and_then(|op| op.parse::<OpNonce>().ok()) {
            let proof = state.filter(|state| state.op != op).map(Proof::born);
            tell(survey, report, path, proof.map(|p| (p, true)));
        } else if let Some((epoch, token)) = token_of(mark) {
            let proof = state.and_then(|state| Proof::fenced(state, epoch, token));
            tell(survey, report, path, proof.map(|p| (p, false)));
        } else {
            tell(survey, report, path, None);
        }
    }
    for worktree in survey.registers.keys() {
        dot_names(survey, &layout::register(worktree), report);
    }
    // What can only be renamed to a name that is taken.
    notes(survey, report);
    each(survey, &layout::tags(), report, |name| Some(layout::tag(&layout::tag_of_tmp(name)?)));
    each(survey, &layout::snapshots(), report, |name| {
        Some(layout::tombstone(layout::id_of_tombstone_tmp(name)?))
    });
    control_dir(survey, report);
}

/// The notes of operations on worktrees. One whose operation the register is at is
/// told of with its worktree.
fn notes(survey: &Survey<'_, '_>, report: &mut Report) {
    for name in &survey.worktrees.unfinished {
        let Some((worktree, op)) = name.to_str().and_then(layout::note_of) else { continue };
        let at_work = |state: &&State| state.op == op;
        let renames = survey
            .registers
            .values()
            .filter_map(|read| read.as_ref().ok())
            .any(|state| state.hold == Hold::Retired && state.op == op);
        if renames || survey.state(&worktree).filter(at_work).is_some() {
            continue;
        }
        let path = layout::worktree_record_tmp(&worktree, op);
        let record = layout::worktree_record(&worktree);
        let said: Option<WorktreeRecord> = json::read(survey.store(), &path).ok().flatten();
        let maker = said.and_then(|said| said.maker);
        let proof = match maker.as_ref().map(|maker| survey.liveness(maker)) {
            Some(Liveness::Alive) => None,
            Some(Liveness::Dead) => maker.map(|maker| Proof::process_ended(maker.pid)),
            _ => (!survey.is_missing(&record)).then(|| Proof::taken(&record)),
        };
        tell(survey, report, path, proof.map(|proof| (proof, false)));
    }
}

fn token_of(mark: &str) -> Option<(Epoch, FencingToken)> {
    // <counter>-<salt>-<token>-<lock id>
    let mut parts = mark.rsplitn(3, '-');
    let (_lock_id, token, epoch) = (parts.next()?, parts.next()?, parts.next()?);
    Some((epoch.parse().ok()?, FencingToken(strict_decimal(token)?)))
}

fn tell(
    survey: &Survey<'_, '_>,
    report: &mut Report,
    path: RepoPath,
    proof: Option<(Proof, bool)>,
) {
    match proof {
        Some((proof, birth)) => {
            let message = format!("a temporary file that nobody can still need: {proof}");
            let remedy = match birth {
                true => Remedy::RemoveBirth { path: path.clone(), proof },
                false => Remedy::Remove { path: path.clone(), proof },
            };
            report.add(Check::TmpDead, path, message).remedy(remedy);
        }
        None => {
            let Ok(stat) = survey.store().stat(&path) else { return };
            // For people: nothing follows from it.
            let written = u64::try_from(stat.mtime_ns / 1_000_000).unwrap_or(0);
            let age = Span(survey.began.wall.0.saturating_sub(written));
            let rm = if stat.kind == Kind::Directory { "rm -r" } else { "rm" };
            let message =
                format!("a temporary file that somebody may be writing, last written {age} ago");
            let advice = format!("if no jvs is at work anywhere: {rm} {path}");
            report.add(Check::TmpUnproven, path, message).advice(advice);
        }
    }
}

/// Names that the register's readers do not count, made to shake a cache awake.
fn dot_names(survey: &Survey<'_, '_>, register: &RepoPath, report: &mut Report) {
    let Ok(entries) = survey.store().list(register) else { return };
    for entry in entries {
        let Some(name) = entry.name.to_str().filter(|name| name.starts_with(".probe-")) else {
            continue;
        };
        if let Ok(path) = register.child(name) {
            tell(survey, report, path, Some((Proof::harmless(), false)));
        }
    }
}

fn each(
    survey: &Survey<'_, '_>,
    dir: &RepoPath,
    report: &mut Report,
    becomes: impl Fn(&str) -> Option<RepoPath>,
) {
    let Ok(entries) = survey.store().list(dir) else { return };
    for entry in entries {
        let Some(name) = entry.name.to_str() else { continue };
        let (Some(to), Ok(path)) = (becomes(name), dir.child(name)) else { continue };
        let proof = (!survey.is_missing(&to)).then(|| (Proof::taken(&to), false));
        tell(survey, report, path, proof);
    }
}

/// Directly in the control directory there are tmp files of the format, the
/// configuration and the probe, and nothing in their names proves them dead.
fn control_dir(survey: &Survey<'_, '_>, report: &mut Report) {
    let dir = layout::control_dir();
    let Ok(entries) = survey.store().list(&dir) else { return };
    let known: Vec<RepoPath> = layout::skeleton()
        .into_iter()
        .chain([layout::format(), layout::config(), layout::quarantine()])
        .chain([layout::probe_verdict(), layout::room()])
        .collect();
    for entry in entries {
        let path = match entry.name.to_str().map(|name| dir.child(name)) {
            Some(Ok(path)) if known.contains(&path) => continue,
            Some(Ok(path)) => path,
            _ => continue,
        };
        let name = path.split().1;
        if name.contains(".tmp-") || name.starts_with(".probe-") {
            tell(survey, report, path, None);
        } else {
            report
                .add(Check::ForeignFile, &path, "JVS did not put it there")
                .advice("move it away if you know what it is");
        }
    }
}
