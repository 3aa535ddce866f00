//! Temporary files: whose they are, and whether anybody can still need them.

use jvs_lock::span::Span;
use jvs_lock::{Hold, State};
use jvs_repo::layout;
use jvs_repo::name::ShownName;
use jvs_repo::store::{DirEntryKind, RepoPath};

use crate::check::Check;
use crate::finding::FindingCollector;
use crate::proof::Proof;
use crate::remedy::Remedy;
use crate::survey::Survey;

pub(super) fn full(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    for file in &survey.locks {
        let Some((worktree, mark)) = layout::lock_tmp_of(file) else { continue };
        let birth = Proof::of_birth(survey, file).map(Remedy::RemoveBirth);
        let remedy = birth.or_else(|| Proof::of_lock_tmp(survey, file).map(Remedy::Remove));
        tell(survey, layout::lock_tmp(&worktree, mark), remedy, report);
    }
    for worktree in survey.registers.keys() {
        let register = layout::register(worktree);
        for path in each(survey, register, layout::is_probe_scratch) {
            let remedy = Proof::of_scratch(survey, &path).map(Remedy::Remove);
            tell(survey, path, remedy, report);
        }
    }
    notes(survey, report);
    let tags = each(survey, layout::tags(), |name| layout::tag_of_tmp(name).is_some());
    let tombstones = each(survey, layout::snapshots(), |name| {
        layout::is_tombstone_tmp(name) || layout::op_of_ledger_tmp(name).is_some()
    });
    for path in tags.chain(tombstones) {
        let remedy = Proof::of_taken_name(survey, &path).map(Remedy::Remove);
        tell(survey, path, remedy, report);
    }
    control_dir(survey, report);
}

/// The notes of operations on worktrees. One whose operation the register is at is
/// reported with its worktree.
fn notes(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    for name in &survey.worktrees.unfinished {
        let Some((worktree, op)) = name.to_str().and_then(layout::note_of) else { continue };
        let is_of = |state: &State| op == state.op || op == state.op.withdrawn();
        let mut registers = survey.registers.values().flatten();
        let renames = registers.any(|state| state.hold == Hold::Retired && is_of(state));
        if renames || survey.state(&worktree).is_some_and(|state| is_of(state)) {
            continue;
        }
        let path = layout::worktree_record_tmp(&worktree, op);
        if survey.is_only_record(&worktree, op) {
            let record = layout::worktree_record(&worktree);
            let message = format!("the record of worktree '{worktree}' has another name");
            let advice = format!("put it back: mv -n {path} {record}");
            report.add(Check::TmpUnproven, path, message).advice(advice);
            continue;
        }
        let remedy = Proof::of_note(survey, &worktree, op).map(Remedy::Remove);
        tell(survey, path, remedy, report);
    }
}

fn tell(
    survey: &Survey<'_, '_>,
    path: RepoPath,
    remedy: Option<Remedy>,
    report: &mut FindingCollector,
) {
    if let Some(remedy) = remedy {
        let why = remedy.proof().map(ToString::to_string).unwrap_or_default();
        let message = format!("a temporary file that nobody can still need: {why}");
        report.add(Check::TmpDead, path, message).remedy(remedy);
        return;
    }
    let Ok(stat) = survey.store().stat(&path) else { return };
    // For people: nothing follows from it.
    let written = u64::try_from(stat.mtime_ns / 1_000_000).unwrap_or(0);
    let age = Span(survey.began.wall.0.saturating_sub(written));
    let rm = if stat.kind == DirEntryKind::Directory { "rm -r" } else { "rm" };
    let message = format!("a temporary file that somebody may be writing, last written {age} ago");
    let advice = format!("if no jvs is running anywhere: {rm} {path}");
    report.add(Check::TmpUnproven, path, message).advice(advice);
}

/// The entries of a directory whose names `are` what is looked for.
fn each(
    survey: &Survey<'_, '_>,
    dir: RepoPath,
    are: impl Fn(&str) -> bool,
) -> impl Iterator<Item = RepoPath> {
    let entries = survey.store().list(&dir).unwrap_or_default().into_iter();
    entries.filter_map(move |entry| {
        let name = entry.name.to_str().filter(|name| are(name))?;
        dir.child(name).ok()
    })
}

/// Directly in the control directory there are tmp files of the format, the
/// configuration and the probe, and nothing in their names proves them dead.
fn control_dir(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
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
            _ => {
                let shown = format!("{dir}/{}", ShownName::new(&entry.name));
                let message = "its name is not UTF-8: JVS did not make it";
                report.add(Check::ForeignFile, shown, message).advice("move it away");
                continue;
            }
        };
        let name = path.split().1;
        if layout::is_control_tmp(name) || layout::is_probe_scratch(name) {
            tell(survey, path, None, report);
        } else {
            report
                .add(Check::ForeignFile, &path, "JVS did not put it there")
                .advice("move it away if you know what it is");
        }
    }
}
