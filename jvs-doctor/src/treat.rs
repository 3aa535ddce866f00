//! Applying remedies: one at a time, in a safe order, each with its event in
//! the audit log, and a new look after each round. May be killed anywhere and
//! run again, beside a second doctor and beside sessions at work.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use jvs_lock::worktrees::unfinished;
use jvs_lock::{How, Lease, Locks, Want, history, legacy, rebuild as reborn};
use jvs_repo::audit::{Kind as Event, Phase};
use jvs_repo::clock::WallMs;
use jvs_repo::id::{OpNonce, SnapshotId};
use jvs_repo::json;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::quarantine;
use jvs_repo::record::format::Format;
use jvs_repo::record::worktree::{self, Isolation, WorktreeRecord};
use jvs_repo::store::{Kind, RepoPath};
use jvs_snapshot::gc::{self, Plan};
use jvs_snapshot::{Catalog, Snapshots, ready, tags};
use serde_json::json;

use crate::examine::{Examination, examine};
use crate::finding::{Depth, Finding, Outcome};
use crate::mutation::Rule;
use crate::patient::Patient;
use crate::rebuild::{Rebuild, Ruin};
use crate::remedy::Remedy;
use crate::survey::{is_absent, read_register};

/// Rounds of looking and mending: one remedy may make way for the next.
const ROUNDS: usize = 6;
/// A lock is only taken to be released again.
const LEASE_MS: u64 = 30_000;

/// What may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// Remove what is proven dead.
    Clean,
    /// Apply every remedy.
    Repair,
}

impl Care {
    /// May this remedy be applied?
    pub fn allows(self, remedy: &Remedy) -> bool {
        self == Care::Repair || remedy.is_cleanup()
    }
}

/// Applies what `care` allows of the remedies that the full examination `first`
/// proposed, looks again, and goes on until nothing changes any more.
pub fn treat(
    patient: &Patient<'_>,
    locks: &Locks<'_>,
    care: Care,
    first: Examination,
) -> Examination {
    let began = patient.seams.clock.now().boot;
    let first_ms = first.took_ms;
    let mut applied: Vec<Finding> = Vec::new();
    let mut refused: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut retry: BTreeSet<(String, String)> = BTreeSet::new();
    let key = |f: &Finding| (f.check.as_str().to_owned(), f.path.clone());
    let mut last = first;
    for _ in 0..ROUNDS {
        let mut todo: Vec<Finding> = last
            .findings
            .iter()
            .filter(|f| f.remedy.as_ref().is_some_and(|remedy| care.allows(remedy)))
            .filter(|f| !refused.contains_key(&key(f)) || retry.contains(&key(f)))
            .cloned()
            .collect();
        todo.sort_by_key(|f| f.remedy.as_ref().map_or(0, Remedy::rank));
        if todo.is_empty() {
            break;
        }
        let before = applied.len();
        let mut stuck = BTreeMap::new();
        for finding in todo {
            let Some(remedy) = &finding.remedy else { continue };
            match apply(patient, locks, &finding, remedy) {
                Ok(()) => applied.push(finding),
                Err(why) => {
                    stuck.insert(key(&finding), why);
                }
            }
        }
        // What was mended may have stood in the way of the others.
        if applied.len() > before {
            refused.clear();
        }
        refused.extend(stuck);
        if applied.len() > before {
            retry.extend(refused.keys().cloned());
        } else {
            retry.clear();
        }
        last = examine(patient, Depth::Full);
    }
    let took_ms = first_ms + patient.seams.clock.now().boot.since(began);
    settle(last, applied, refused, took_ms)
}

/// Tells what was mended from what is still there.
fn settle(
    mut last: Examination,
    applied: Vec<Finding>,
    mut refused: BTreeMap<(String, String), String>,
    took_ms: u64,
) -> Examination {
    for finding in &mut last.findings {
        let key = (finding.check.as_str().to_owned(), finding.path.clone());
        finding.outcome = refused.remove(&key).map(Outcome::Refused);
    }
    for mut finding in applied.clone() {
        let same = |f: &Finding| f.check == finding.check && f.path == finding.path;
        if last.findings.iter().any(same) {
            continue;
        }
        finding.outcome = Some(Outcome::Repaired);
        if finding.remedy.as_ref().is_some_and(Remedy::is_cleanup) {
            if !last.cleaned.iter().any(same) {
                last.cleaned.push(finding);
            }
        } else {
            last.findings.push(finding);
        }
    }
    last.applied = applied;
    last.took_ms = took_ms;
    last.sort();
    last
}

fn apply(
    patient: &Patient<'_>,
    locks: &Locks<'_>,
    finding: &Finding,
    remedy: &Remedy,
) -> Result<(), String> {
    let op = OpNonce::random(patient.seams.entropy);
    let kind = match remedy {
        Remedy::Migrate(_) => Event::Migrate,
        _ => Event::Repair,
    };
    let details = json!({ "check": finding.check.as_str(), "path": finding.path });
    let sentence = format!("doctor {remedy}");
    let note = |phase| {
        let details = Some(details.clone());
        locks.note(kind, phase, op, finding.worktree.as_ref(), Some(&sentence), details)
    };
    let unwritable = note(Phase::Intent).err();
    if let Some(error) = unwritable {
        // The log itself is what has to be mended first.
        let mends_the_log = matches!(remedy, Remedy::MakeDirectory(_) | Remedy::Quarantine { .. })
            && finding.path.starts_with(layout::audit().as_str());
        if !mends_the_log {
            return Err(format!("the audit log cannot be written: {error}"));
        }
    }
    let done = Hand { patient, locks, op }.carry_out(remedy);
    let phase = if done.is_ok() { Phase::Done } else { Phase::NotApplied };
    // Best effort: what was done shows in what is there.
    let _ = note(phase);
    done
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Carries one remedy out.
struct Hand<'h, 'p, 'l> {
    patient: &'h Patient<'p>,
    locks: &'h Locks<'l>,
    op: OpNonce,
}

impl Hand<'_, '_, '_> {
    fn carry_out(&self, remedy: &Remedy) -> Result<(), String> {
        match remedy {
            Remedy::MakeDirectory(path) => self.make_dir(path).map_err(text),
            Remedy::RewriteFormat { replace } => self.rewrite_format(*replace).map_err(text),
            Remedy::Rebuild(rebuild) => self.rebuild(rebuild),
            Remedy::Quarantine { path } => {
                quarantine::set_aside(self.store(), self.op, path).map(drop).map_err(text)
            }
            Remedy::Migrate(worktree) => self.migrate(worktree),
            Remedy::Free(worktree) => self.free(worktree),
            Remedy::Unfreeze { worktree, meant } => {
                self.locks.lift(worktree, *meant, "it was over").map(drop).map_err(text)
            }
            Remedy::RemoveRecord { worktree, .. } => self.remove_record(worktree).map_err(text),
            Remedy::Show { worktree, id, write } => self.show(worktree, *id, *write),
            Remedy::RestoreReady(id) => self.restore_ready(*id),
            Remedy::WriteWorktreeRecord { worktree, replace } => {
                self.write_worktree_record(worktree, *replace)
            }
            Remedy::EndUnfinished(worktree) => unfinished::end(self.locks, worktree).map_err(text),
            Remedy::Replace { path, seen, bytes, .. } => {
                self.replace(path, seen, bytes).map_err(text)
            }
            Remedy::RestoreTag(told) => {
                // Read after the tag was found missing: who deletes says so first.
                let logs = history::read_logs(self.store()).map_err(text)?;
                if let Some((writer, error)) = logs.unread.first() {
                    return Err(format!("{} cannot be read: {error}", layout::audit_log(writer)));
                }
                let events = logs.events.iter().map(|logged| &logged.event);
                if !tags::remembered(events).contains(told) {
                    return Err("it was deleted meanwhile".to_owned());
                }
                let tmp = layout::tag_tmp(&told.tag, self.op);
                let written =
                    self.store().write_new(&tmp, &layout::tag(&told.tag), &told.to_bytes());
                ignore(written, io::ErrorKind::AlreadyExists).map_err(text)
            }
            Remedy::ReplaceEntry(entry) => self.replace_entry(entry).map_err(text),
            Remedy::SetMode { path, mode } => {
                self.patient.payloads.set_mode(path, *mode).map_err(text)
            }
            Remedy::Remove { path, .. } => self.unlink(path).map_err(text),
            Remedy::RemoveTakeover { worktree, seen, .. } => {
                self.remove_takeover(worktree, seen).map_err(text)
            }
            Remedy::RemoveBirth { path, .. } => self.remove_birth(path).map_err(text),
            Remedy::Collect { dead, .. } => {
                self.collect(Plan { dead: vec![(dead.clone(), None)], ..Plan::default() })
            }
            Remedy::FinishGc(name) => {
                self.collect(Plan { unfinished: vec![name.clone()], ..Plan::default() })
            }
        }
    }

    fn store(&self) -> &dyn jvs_repo::store::Store {
        self.patient.seams.store
    }

    fn make_dir(&self, path: &RepoPath) -> io::Result<()> {
        let parent = path.parent();
        if parent != RepoPath::root() && parent != layout::control_dir() {
            self.make_one(&parent)?;
        }
        self.make_one(path)?;
        self.store().sync_dir(&parent)
    }

    /// A directory that its users can use, also if it is root who repairs.
    fn make_one(&self, path: &RepoPath) -> io::Result<()> {
        match self.store().make_dir(path) {
            Ok(()) => self.patient.payloads.copy_access(&layout::control_dir(), path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn unlink(&self, path: &RepoPath) -> io::Result<()> {
        ignore(self.store().unlink(path), io::ErrorKind::NotFound)
    }

    /// The empty directory that this repair sets things aside in.
    fn aside(&self) -> io::Result<RepoPath> {
        quarantine::make(self.store(), self.op)
    }

    /// Sets something aside that is certainly no directory: a rename over a file
    /// refuses one, so a register that was mended meanwhile stays.
    fn quarantine_file(&self, path: &RepoPath) -> io::Result<()> {
        let to = self.aside()?.child(path.split().1)?;
        drop(self.store().create_new(&to)?);
        self.store().rename(path, &to)
    }

    /// Puts an empty file in the place of an entry that is something else. An
    /// exchange needs both to be there, so a register that moved on stays as it is.
    fn replace_entry(&self, entry: &RepoPath) -> io::Result<()> {
        let aside = self.aside()?.child("entry")?;
        drop(self.store().create_new(&aside)?);
        self.store().exchange(&aside, entry)?;
        self.store().sync_dir(&entry.parent())
    }

    /// Puts a file in the place of another, which goes aside, in one step. What
    /// is no longer what was seen is put back.
    fn replace(&self, path: &RepoPath, seen: &[u8], bytes: &[u8]) -> io::Result<()> {
        let aside = self.aside()?.child(path.split().1)?;
        self.store().write_tmp(&aside, bytes)?;
        self.store().exchange(&aside, path)?;
        if self.store().read(&aside, json::Limits::RECORD.size)? != seen {
            self.store().exchange(&aside, path)?;
            return Err(io::Error::other("somebody else is mending it"));
        }
        self.store().sync_dir(&path.parent())
    }

    fn rewrite_format(&self, replace: bool) -> io::Result<()> {
        if replace {
            self.quarantine_file(&layout::format())?;
        }
        let format = Format::fresh(self.patient.seams.entropy);
        let tmp = layout::format_tmp(self.op);
        let bytes = format.to_bytes();
        ignore(
            self.store().write_new(&tmp, &layout::format(), &bytes),
            io::ErrorKind::AlreadyExists,
        )
    }

    fn rebuild(&self, rebuild: &Rebuild) -> Result<(), String> {
        let worktree = &rebuild.worktree;
        let dir = layout::register(worktree);
        let state = rebuild.state(self.patient.seams.entropy);
        let reason = "its register was lost, damaged or rolled back";
        match &rebuild.ruin {
            Ruin::Nothing => {}
            Ruin::NotADirectory => self.quarantine_file(&dir).map_err(text)?,
            Ruin::Garbled(entries) => {
                let aside = self.aside().map_err(text)?;
                for entry in entries {
                    let (from, to) = (dir.child(entry), aside.child(entry));
                    let (from, to) = (from.map_err(text)?, to.map_err(text)?);
                    let moved = self.store().rename_new(&from, &to);
                    ignore(moved, io::ErrorKind::NotFound).map_err(text)?;
                }
                if let Ok(state) = read_register(self.patient, worktree) {
                    // One that is a state was among them, and is the register.
                    return reborn::replace(
                        self.locks,
                        worktree,
                        &state,
                        rebuild.above(&state, self.patient.seams.entropy),
                        reason,
                    )
                    .map(drop)
                    .map_err(text);
                }
            }
            Ruin::States(states) => {
                let (keep, rest) = states.split_first().ok_or("there is no entry to keep")?;
                // First the new life, then the leftovers: whoever is interrupted
                // in between leaves several entries, of which the new one wins.
                reborn::replace(self.locks, worktree, keep, state, reason).map_err(text)?;
                for other in rest {
                    let path = dir.child(&other.to_string()).map_err(text)?;
                    self.unlink(&path).map_err(text)?;
                }
                return Ok(());
            }
        }
        for entry in self.store().list(&dir).unwrap_or_default() {
            // Dot-names are not counted, but would keep the directory.
            if let Some(name) = entry.name.to_str().filter(|name| name.starts_with(".probe-")) {
                self.unlink(&dir.child(name).map_err(text)?).map_err(text)?;
            }
        }
        reborn::install(self.locks, worktree, state, reason).map(drop).map_err(text)
    }

    fn migrate(&self, worktree: &WorktreeName) -> Result<(), String> {
        let migrated = legacy::migrate(self.locks, worktree).map_err(text)?;
        let kept = migrated.iter().any(|m| matches!(m, legacy::Migrated::Kept { .. }));
        if kept {
            return Err("it never ends, or somebody holds our lock as well: decide by hand".into());
        }
        Ok(())
    }

    /// What is over is taken and given back, so that its holder is fenced. One's
    /// own is given back as it was seen: were it renewed since, it is in use.
    fn free(&self, worktree: &WorktreeName) -> Result<(), String> {
        let view = self.locks.inspect(worktree).map_err(text)?;
        if view.mine && Rule::HoldIsLeft.holds() {
            return self.locks.release_abandoned(&view).map_err(text);
        }
        let want =
            Want { reason: Some("its lease was over for long enough"), ..Want::lease(LEASE_MS) };
        let lease = self.locks.acquire(worktree, want).map_err(text)?;
        leave(lease)
    }

    /// Between the look and the removal a new holder may put its own record
    /// there: it is put back.
    fn remove_record(&self, worktree: &WorktreeName) -> io::Result<()> {
        let path = layout::lock_record(worktree);
        let state = read_register(self.patient, worktree)
            .map_err(|_| io::Error::other("its register cannot be read any more"))?;
        let mark = format!("{}-{}-{}", state.epoch, state.token, self.op);
        let tmp = layout::lock_tmp(worktree, &mark);
        match self.store().rename_new(&path, &tmp) {
            Err(error) if is_absent(&error) => return Ok(()),
            other => other?,
        }
        let bytes = self.store().read(&tmp, 64 * 1024).unwrap_or_default();
        if Rule::PutsBack.holds()
            && let jvs_lock::record::Found::Record(record) =
                jvs_lock::record::parse(&bytes, worktree)
            && let Ok(state) = read_register(self.patient, worktree)
            && record.is_of(&state)
            && self.store().rename_new(&tmp, &path).is_ok()
        {
            return Err(io::Error::other("a new holder wrote it meanwhile"));
        }
        self.unlink(&tmp)
    }

    /// Its name is one for all, so another takeover may be writing there by now:
    /// what is not what was seen is put back.
    fn remove_takeover(&self, worktree: &WorktreeName, seen: &[u8]) -> io::Result<()> {
        let path = layout::takeover(worktree);
        let state = read_register(self.patient, worktree)
            .map_err(|_| io::Error::other("its register cannot be read any more"))?;
        let mark = format!("{}-{}-{}", state.epoch, state.token, self.op);
        let aside = layout::lock_tmp(worktree, &mark);
        match self.store().rename_new(&path, &aside) {
            Err(error) if is_absent(&error) => return Ok(()),
            other => other?,
        }
        let there = self.store().read(&aside, json::Limits::RECORD.size)?;
        if Rule::PutsBack.holds() && there != seen {
            self.store().rename_new(&aside, &path)?;
            return Err(io::Error::other("somebody else takes it over meanwhile"));
        }
        self.unlink(&aside)
    }

    /// Through the lock: whoever may commit may show what was committed.
    fn show(&self, worktree: &WorktreeName, id: SnapshotId, write: bool) -> Result<(), String> {
        if write {
            self.write_ready_draft(id)?;
        }
        let at = Snapshots::new(self.patient.seams, self.patient.payloads);
        let shared = worktree::read(self.store(), worktree)
            .ok()
            .flatten()
            .is_some_and(|record| record.isolation == Isolation::Shared);
        if shared {
            let mut shared = self.locks.share(worktree).map_err(text)?;
            let fence = shared.fence();
            let state = fence.read().map_err(text)?;
            return at.help(&fence, &state).map_err(text);
        }
        // What this session holds is used as it is.
        let held = self.locks.resume(worktree, None).ok().filter(|_| Rule::HoldIsLeft.holds());
        let mut lease = match held {
            Some(lease) => lease,
            None => self.locks.acquire(worktree, Want::lease(LEASE_MS)).map_err(text)?,
        };
        let shown = lease.fence().map_err(text).and_then(|fence| {
            let state = fence.read().map_err(text)?;
            at.help(&fence, &state).map_err(text)
        });
        leave(lease)?;
        shown
    }

    /// READY has one possible content, which the descriptor gives.
    fn write_ready_draft(&self, id: SnapshotId) -> Result<(), String> {
        let dir = layout::snapshot(id);
        let described = Catalog::new(self.store()).describe(id).map_err(text)?;
        let (_, checksum) = described.ok_or("it has no descriptor")?;
        let (tmp, to) = (layout::snapshot_tmp(&dir, self.op), layout::ready_staged(&dir));
        let written = self.store().write_new(&tmp, &to, &ready::bytes(id, checksum));
        ignore(written, io::ErrorKind::AlreadyExists).map_err(text)
    }

    fn restore_ready(&self, id: SnapshotId) -> Result<(), String> {
        let dir = layout::snapshot(id);
        let described = Catalog::new(self.store()).describe(id).map_err(text)?;
        let (_, checksum) = described.ok_or("it has no descriptor")?;
        let tmp = layout::snapshot_tmp(&dir, self.op);
        let bytes = ready::bytes(id, checksum);
        // In one step: what was committed is at no moment taken for a draft.
        self.store().write_over(&tmp, &layout::ready(&dir), &bytes).map_err(text)
    }

    fn write_worktree_record(&self, worktree: &WorktreeName, replace: bool) -> Result<(), String> {
        if replace {
            self.quarantine_file(&layout::worktree_record(worktree)).map_err(text)?;
        }
        if worktree.is_main() {
            self.make_dir(&layout::payload(worktree)).map_err(text)?;
        }
        let now: WallMs = self.patient.seams.clock.now().wall;
        let record = WorktreeRecord::new(Isolation::Exclusive, now);
        match worktree::create(self.store(), worktree, &record, self.op) {
            Err(error) => {
                let there = self.store().stat(&layout::worktree_record(worktree));
                if there.is_ok_and(|stat| stat.kind == Kind::File) {
                    Ok(())
                } else {
                    Err(text(error))
                }
            }
            Ok(()) => Ok(()),
        }
    }

    fn remove_birth(&self, path: &RepoPath) -> io::Result<()> {
        let entries = match self.store().list(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return self.unlink(path),
            Err(error) if is_absent(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            if let Some(name) = entry.name.to_str() {
                self.unlink(&path.child(name)?)?;
            }
        }
        ignore(self.store().remove_dir(path), io::ErrorKind::NotFound)
    }

    fn collect(&self, plan: Plan) -> Result<(), String> {
        let at = Snapshots::new(self.patient.seams, self.patient.payloads);
        gc::run(&at, self.locks, &plan, &mut |_, _| {}).map(drop).map_err(text)
    }
}

/// Gives back what was taken here, and only that: a lease that this session had
/// before, or that another process of it has joined since, is relied on.
fn leave(lease: Lease<'_>) -> Result<(), String> {
    match lease.how() {
        _ if !Rule::HoldIsLeft.holds() => {
            lease.release().map_err(|failed| failed.error.to_string())
        }
        How::Acquired | How::Stolen | How::Reclaimed => lease.release_if_alone().map_err(text),
        How::Refreshed | How::Resumed => Ok(()),
    }
}

fn ignore(answer: io::Result<()>, kind: io::ErrorKind) -> io::Result<()> {
    match answer {
        Err(error) if error.kind() == kind => Ok(()),
        answer => answer,
    }
}
