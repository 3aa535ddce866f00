//! Applying remedies: one at a time, in a safe order, each with its event in
//! the audit log, and a new look after each round. May be killed anywhere and
//! run again, beside a second doctor and beside sessions at work.

mod error;
mod hand;
mod lock;
mod register;
#[cfg(feature = "mutations")]
mod sabotage;
mod snapshot;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jvs_lock::Locks;
use jvs_lock::hold::Holds;
use jvs_repo::audit::{EventKind as Event, EventPhase};
use jvs_repo::id::OpNonce;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::audit::Repaired;

use crate::check::{Check, Depth};
use crate::examine::{Examination, examine};
use crate::finding::{Finding, RemedyOutcome};
use crate::patient::Patient;
use crate::remedy::{Remedy, Tense};

pub use error::RepairError;

use hand::Hand;

/// What a finding is recognised by in the next look.
type Key = (Check, String);

/// The remedies that were not applied, and why.
type Refused = BTreeMap<Key, Arc<RepairError>>;

fn key(finding: &Finding) -> Key {
    (finding.check, finding.path.clone())
}

/// Rounds of looking and repairing: one remedy may make way for the next.
const ROUNDS: usize = 6;

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

/// The hold that the session that repairs has of a worktree; `None` if there is no
/// place for one.
pub type HoldsOf<'h> = &'h dyn Fn(&WorktreeName) -> Option<Holds<'h>>;

/// Applies what `care` allows of the remedies that the full examination `first`
/// proposed, looks again, and goes on until nothing changes any more. By nobody who has
/// holds of its own, as in a rehearsal.
pub fn treat(
    patient: &Patient<'_>,
    locks: &Locks<'_>,
    care: Care,
    first: Examination,
) -> Examination {
    treat_as(patient, locks, &|_| None, care, first)
}

/// The same, by a session with these holds: it repairs with a stake in them.
pub fn treat_as(
    patient: &Patient<'_>,
    locks: &Locks<'_>,
    holds: HoldsOf<'_>,
    care: Care,
    first: Examination,
) -> Examination {
    let began = patient.seams.clock.now().boot;
    let first_ms = first.took_ms;
    let mut applied: Vec<Finding> = Vec::new();
    let mut refused = Refused::new();
    let mut retry: BTreeSet<Key> = BTreeSet::new();
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
        let mut stuck = Refused::new();
        for finding in todo {
            let Some(remedy) = &finding.remedy else { continue };
            match apply(patient, locks, holds, &finding, remedy) {
                Ok(()) => applied.push(finding),
                Err(why) => {
                    stuck.insert(key(&finding), Arc::new(why));
                }
            }
        }
        // What was repaired may have stood in the way of the others.
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

/// Tells what was repaired from what is still there.
fn settle(
    mut last: Examination,
    applied: Vec<Finding>,
    mut refused: Refused,
    took_ms: u64,
) -> Examination {
    for finding in &mut last.findings {
        finding.outcome = refused.remove(&key(finding)).map(RemedyOutcome::Refused);
    }
    let mut told: BTreeSet<Key> = last.findings.iter().map(key).collect();
    for mut finding in applied.clone() {
        if !told.insert(key(&finding)) {
            continue;
        }
        finding.outcome = Some(RemedyOutcome::Repaired);
        if finding.remedy.as_ref().is_some_and(Remedy::is_cleanup) {
            last.cleaned.push(finding);
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
    holds: HoldsOf<'_>,
    finding: &Finding,
    remedy: &Remedy,
) -> Result<(), RepairError> {
    let op = OpNonce::random(patient.seams.entropy);
    let kind = match remedy {
        Remedy::Migrate(_) => Event::Migrate,
        _ => Event::Repair,
    };
    let repaired =
        Repaired { check: finding.check.as_str().to_owned(), path: finding.path.clone() };
    let note = |phase| {
        let tense = if phase == EventPhase::Done { Tense::Did } else { Tense::Does };
        let sentence = format!("doctor {}", remedy.sentence(tense));
        let details = Some(repaired.clone().into());
        locks.note(kind, phase, op, finding.worktree.as_ref(), Some(&sentence), details)
    };
    let unwritable = note(EventPhase::Intent).err();
    if let Some(error) = unwritable {
        // The log itself is what has to be repaired first.
        let repairs_the_log =
            matches!(remedy, Remedy::MakeDirectory(_) | Remedy::Quarantine { .. })
                && finding.path.starts_with(layout::audit().as_str());
        if !repairs_the_log {
            return Err(RepairError::LogUnwritable(error));
        }
    }
    let done = Hand { patient, locks, holds, op }.carry_out(remedy);
    let phase = if done.is_ok() { EventPhase::Done } else { EventPhase::NotApplied };
    // Best effort: what was done shows in what is there.
    let _ = note(phase);
    done
}
