//! Symlinks, permissions, owners and strangers in the control plane.

use jvs_repo::layout;
use jvs_repo::name::ShownName;
use jvs_repo::store::{DirEntryKind, EntryStat, RepoPath};

use crate::check::Check;
use crate::finding::FindingCollector;
use crate::remedy::Remedy;
use crate::survey::Survey;

const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

pub(super) fn full(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    let store = survey.store();
    let Ok(root) = store.stat(&layout::control_dir()) else { return };
    look(&layout::control_dir(), &root, &root, report);
    for path in [layout::format(), layout::config()] {
        if let Ok(stat) = store.stat(&path) {
            look(&path, &stat, &root, report);
        }
    }
    for dir in layout::skeleton() {
        let Ok(stat) = store.stat(&dir) else { continue };
        look(&dir, &stat, &root, report);
        if dir == layout::staging() {
            continue;
        }
        let Ok(entries) = store.list(&dir) else { continue };
        for entry in entries {
            let Some(path) = entry.name.to_str().and_then(|name| dir.child(name).ok()) else {
                let path = format!("{dir}/{}", ShownName::new(&entry.name));
                report
                    .add(Check::ForeignFile, path, "its name is not UTF-8: JVS did not make it")
                    .advice("move it away");
                continue;
            };
            let Ok(stat) = store.stat(&path) else { continue };
            if stat.kind == DirEntryKind::Symlink {
                let known = told_elsewhere(&dir, path.split().1);
                if !known {
                    report
                        .add(Check::Symlink, &path, "a symlink inside the control directory")
                        .remedy(Remedy::Quarantine { path: path.clone() });
                }
                continue;
            }
            look(&path, &stat, &root, report);
            if dir == layout::snapshots() && stat.kind == DirEntryKind::Directory {
                inside_snapshot(survey, &path, &root, report);
            }
            if is_foreign(&dir, path.split().1) {
                report
                    .add(Check::ForeignFile, &path, "JVS did not put it there")
                    .advice("move it away if you know what it is");
            }
        }
    }
}

/// Registers and metadata that are symlinks have checks that know more.
fn told_elsewhere(dir: &RepoPath, name: &str) -> bool {
    (*dir == layout::locks() && layout::worktree_of_register(name).is_some())
        || (*dir == layout::worktree_records() && layout::worktree_of_record(name).is_some())
}

fn is_foreign(dir: &RepoPath, name: &str) -> bool {
    if *dir == layout::locks() {
        let known = layout::worktree_of_register(name).is_some()
            || layout::worktree_of_lock(name).is_some()
            || layout::worktree_of_queue(name).is_some()
            || layout::worktree_of_buried(name).is_some()
            || layout::lock_tmp_of(name).is_some()
            || layout::worktree_of_takeover(name).is_some()
            || layout::is_legacy_lock(name);
        !known
    } else if *dir == layout::snapshots() {
        layout::id_of_snapshot(name).is_none()
            && layout::id_of_tombstone(name).is_none()
            && !layout::is_tombstone_tmp(name)
            && layout::op_of_ledger(name).is_none()
            && layout::op_of_ledger_tmp(name).is_none()
    } else if *dir == layout::tags() {
        layout::tag_of_record(name).is_none() && layout::tag_of_tmp(name).is_none()
    } else if *dir == layout::worktree_records() {
        layout::worktree_of_record(name).is_none() && !layout::is_worktree_record_tmp(name)
    } else if *dir == layout::audit() {
        layout::log_of(name).is_none()
    } else {
        false
    }
}

fn inside_snapshot(
    survey: &Survey<'_, '_>,
    dir: &RepoPath,
    root: &EntryStat,
    report: &mut FindingCollector,
) {
    for path in [
        layout::descriptor(dir),
        layout::manifest(dir),
        layout::ready(dir),
        layout::ready_staged(dir),
        layout::snapshot_payload(dir),
    ] {
        let Ok(stat) = survey.store().stat(&path) else { continue };
        if stat.kind == DirEntryKind::Symlink {
            report
                .add(Check::Symlink, &path, "a symlink among a snapshot's control files")
                .remedy(Remedy::Quarantine { path: path.clone() });
        } else if path != layout::snapshot_payload(dir) {
            look(&path, &stat, root, report);
        }
    }
}

fn look(path: &RepoPath, stat: &EntryStat, root: &EntryStat, report: &mut FindingCollector) {
    let directory = stat.kind == DirEntryKind::Directory;
    let needed = if directory { 0o700 } else { 0o400 };

    let problem = if stat.mode & needed != needed {
        Some("its owner cannot use it")
    } else if stat.mode & OTHERS_WRITE != 0 && stat.mode & STICKY == 0 {
        Some("everybody may write to it")
    } else {
        None
    };
    if let Some(problem) = problem {
        let message = format!("{problem}: its mode is {:04o}", stat.mode & 0o7777);
        // Nobody gets more than they had, but the owner what is needed.
        let mode = (stat.mode | needed | if directory { 0 } else { 0o200 }) & 0o7775;
        report.add(Check::Mode, path, message).remedy(Remedy::SetMode { path: path.clone(), mode });
    }
    if directory && stat.uid != root.uid && layout::skeleton().contains(path) {
        let message =
            format!("it belongs to user {}, the repository to user {}", stat.uid, root.uid);
        report.add(Check::Owner, path, message).advice(format!("chown {} {path}", root.uid));
    }
}
