//! The fence registers: exactly one entry, a state, and one that follows from
//! the history.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use jvs_lock::{State, history};
use jvs_repo::audit::EventPhase;
use jvs_repo::id::Seq;
use jvs_repo::layout;
use jvs_repo::name::{ShownName, WorktreeName};
use jvs_repo::next::Next;
use jvs_repo::record::ledger::Kin;
use jvs_repo::sabotage;
use jvs_repo::store::{DirEntryKind, RepoPath};
use jvs_repo::term::Term;
use jvs_snapshot::Descriptor;

use crate::check::{Check, Depth};
use crate::finding::FindingCollector;
use crate::mutation::Rule;
use crate::read::Fault;
use crate::rebuild;
use crate::remedy::Remedy;
use crate::survey::Survey;

pub(super) fn quick(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    for (worktree, read) in &survey.registers {
        let path = layout::register(worktree);
        let fault = match read {
            Ok(state) => {
                let message = if state.seq == Seq(0) && !state.is_birth() {
                    Some("its first state does not match its own hash: its name was changed")
                } else if state.is_at_an_end() {
                    Some("one of its counters is at its maximum, which nobody reaches by counting")
                } else {
                    None
                };
                if let Some(message) = message {
                    let rebuilt = (survey.depth == Depth::Full)
                        .then(|| rebuild::plan_regressed(survey, worktree, state));
                    let found = report.add(Check::RegisterChain, path, message).of(worktree);
                    told(found, rebuilt);
                }
                continue;
            }
            Err(fault) => fault,
        };
        let (check, message) = match fault {
            Fault::Missing => (Check::RegisterMissing, "there is no fence register".to_owned()),
            Fault::Empty => (Check::RegisterEmpty, "the fence register is empty".to_owned()),
            Fault::Several(states) => (
                Check::RegisterTwo,
                format!(
                    "the fence register has {} entries: a sync or restore tool brought one back",
                    states.len()
                ),
            ),
            Fault::Unparsable(names) => (
                Check::RegisterUnparsable,
                format!("the fence register has an entry that is not a state: {}", some_of(names)),
            ),
            Fault::NotUtf8(names) => {
                let names = some_of(names);
                (
                    Check::RegisterUnparsable,
                    format!("the fence register has an entry that is not a state: {names}"),
                )
            }
            Fault::Newer(name) => (
                Check::RegisterNewer,
                format!("the fence register was written by a later version of jvs: {name}"),
            ),
            Fault::NotADirectory(DirEntryKind::Symlink) => {
                (Check::Symlink, "a symlink is in the place of the fence register".to_owned())
            }
            Fault::NotADirectory(_) => {
                (Check::NotADirectory, "the fence register is not a directory".to_owned())
            }
            Fault::Io(error) => {
                report.unreadable(&path, error);
                continue;
            }
        };
        let plan = (survey.depth == Depth::Full).then(|| rebuild::plan(survey, worktree, fault));
        told(report.add(check, path, message).of(worktree), plan);
    }
}

/// Names that others chose, not more of them than anybody reads.
fn some_of(names: &[impl AsRef<OsStr>]) -> String {
    const MOST: usize = 3;
    let shown: Vec<_> =
        names.iter().take(MOST).map(|name| ShownName::new(name).to_string()).collect();
    match names.len().saturating_sub(MOST) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn told(found: crate::finding::FindingBuilder<'_>, plan: Option<Result<rebuild::Rebuild, Next>>) {
    match plan {
        Some(Ok(rebuild)) => {
            found.remedy(Remedy::Rebuild(Box::new(rebuild)));
        }
        Some(Err(ask)) => {
            found.advice(ask);
        }
        None => {
            found.advice(Next::StopWritersAndRepair);
        }
    }
}

pub(super) fn full(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    entries(survey, report);
    against_history(survey, report);
}

/// Only the name of an entry counts, but it should be an empty file.
fn entries(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    for (worktree, read) in &survey.registers {
        let Ok(state) = read else { continue };
        let Ok(entry) = layout::register(worktree).child(&state.to_string()) else { continue };
        let Ok(stat) = survey.store().stat(&entry) else { continue };
        let check = match stat.kind {
            DirEntryKind::File => continue,
            DirEntryKind::Symlink => Check::Symlink,
            _ => Check::RegisterUnparsable,
        };
        report
            .add(check, &entry, "the entry of the fence register is not a file")
            .of(worktree)
            .remedy(Remedy::ReplaceEntry(entry));
    }
}

/// A register that is older than what was committed through it.
fn against_history(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    sabotage!(Rule::SeenIsNotUndone);
    let newest = newest_commits(survey);
    let reached = newest_states(survey);
    for (worktree, read) in &survey.registers {
        let Ok(seen) = read else { continue };
        // READ again, after everything that it is compared with was read: what
        // was committed meanwhile is no fault.
        let Ok(state) = survey.read_again(worktree) else { continue };
        // Two epochs of one number are those of two worktrees of that name, one of
        // which is gone: they are in no order, and nothing follows from one for the other.
        let ahead = newest
            .get(worktree)
            .filter(|d| (d.epoch, d.commit_seq) > (state.epoch, state.generation));
        let behind_log = reached.get(worktree).filter(|(_, to)| {
            (to.epoch, to.seq) > (state.epoch, state.seq)
                // Nobody waits for a renewal to be durable: a power cut may take it.
                && !history::is_renewal(&state, to)
        });
        let token = newest_token(survey, worktree)
            .filter(|seen| seen.term.epoch == state.epoch && seen.term > state.term());
        let message = match (ahead, behind_log) {
            (Some(d), _) => format!(
                "the register has {} commits in epoch {}, but {} is commit {} of epoch {}: it was \
                 restored from a backup or rolled back",
                state.generation, state.epoch.counter, d.snapshot_id, d.commit_seq, d.epoch.counter
            ),
            (None, Some((place, to))) => format!(
                "the register is at state {} of epoch {}, but {place} says that state {} of epoch \
                 {} was reached: it was restored from a backup or rolled back",
                state.seq, state.epoch.counter, to.seq, to.epoch.counter
            ),
            (None, None) => match token {
                Some(seen) => format!(
                    "the register is at token {} of epoch {}, but according to {} token {} was \
                     granted before: it was rolled back",
                    state.token, state.epoch.counter, seen.path, seen.term.token
                ),
                None => continue,
            },
        };
        if *seen != state {
            // Somebody works with it: the next look will show.
            continue;
        }
        let plan = rebuild::plan_regressed(survey, worktree, &state);
        let path = layout::register(worktree);
        told(report.add(Check::RegisterRegressed, path, message).of(worktree), Some(plan));
    }
}

/// A term that something beside the logs remembers.
struct Remembered {
    term: Term,
    path: RepoPath,
}

/// The highest token of a worktree that its snapshots and its lock record remember.
fn newest_token(survey: &Survey<'_, '_>, worktree: &WorktreeName) -> Option<Remembered> {
    let visible = |kin: &Kin<'_>| survey.is_ready(kin.snapshot_id);
    let of_snapshots = survey.kin_of(worktree).filter(visible).map(|kin| Remembered {
        term: kin.term,
        path: layout::descriptor(&layout::snapshot(kin.snapshot_id)),
    });
    let record = survey.views.get(worktree).and_then(|view| view.found.record());
    let of_record = record
        .map(|record| Remembered { term: record.term(), path: layout::lock_record(worktree) });
    of_snapshots.chain(of_record).max_by_key(|seen| (seen.term.epoch.counter, seen.term.token))
}

/// The newest visible snapshot of each worktree.
fn newest_commits<'s>(survey: &'s Survey<'_, '_>) -> BTreeMap<&'s WorktreeName, &'s Descriptor> {
    let mut newest: BTreeMap<&WorktreeName, &Descriptor> = BTreeMap::new();
    let key = |d: &Descriptor| (d.epoch.counter, d.commit_seq);
    let visible = survey.snapshots.values().filter(|snap| snap.ready);
    for descriptor in visible.filter_map(|snap| snap.described()) {
        let known = newest.entry(&descriptor.worktree_id).or_insert(descriptor);
        if key(descriptor) > key(known) {
            *known = descriptor;
        }
    }
    newest
}

/// The newest state that each worktree's register is said to have reached.
fn newest_states<'s>(
    survey: &'s Survey<'_, '_>,
) -> BTreeMap<&'s WorktreeName, (history::LogLine, State)> {
    let mut newest: BTreeMap<&WorktreeName, (history::LogLine, State)> = BTreeMap::new();
    let key = |state: &State| (state.epoch.counter, state.seq);
    for logged in survey.logs.events.iter().filter(|l| l.event.phase == EventPhase::Done) {
        let Some(worktree) = &logged.event.worktree else { continue };
        let to = logged.event.to.as_deref().and_then(|to| to.parse::<State>().ok());
        let Some(to) = to else { continue };
        let known = newest.entry(worktree).or_insert((logged.place, to));
        if key(&to) > key(&known.1) {
            *known = (logged.place, to);
        }
    }
    newest
}
