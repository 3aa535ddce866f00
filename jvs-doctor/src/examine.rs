//! One examination: looks at everything that its depth asks for, and changes
//! nothing.

use jvs_lock::View;
use jvs_repo::clock::Discipline;
use jvs_repo::next::Next;
use jvs_repo::record::format::{FormatError, FormatRecord};
use serde::Serialize;

use crate::check::{self, Check, Depth, Family, Severity};
use crate::finding::{Finding, FindingCollector};
use crate::patient::Patient;
use crate::survey::Survey;

/// What the clocks were found to be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Clocks {
    /// Does something steer this host's wall clock? `None` if the kernel does not say.
    pub synchronised: Option<bool>,
    /// The largest error that the kernel thinks possible.
    pub max_error_ms: Option<u64>,
    /// The largest difference between hosts that records prove.
    pub observed_skew_ms: u64,
    /// What the policy allows.
    pub max_clock_skew_ms: u64,
}

/// Numbers about the repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Vitals {
    /// Worktrees with metadata.
    pub worktrees: u64,
    /// Locks whose lease runs.
    pub held: u64,
    /// Locks whose lease is over.
    pub expired: u64,
    /// Frozen worktrees.
    pub frozen: u64,
    /// Of each lock that is held: worktree, age and time left, in milliseconds.
    pub locks: Vec<LockVital>,
    /// Directories of snapshots; known after a full examination only.
    pub snapshots: Option<u64>,
}

/// How old a lock is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LockVital {
    /// The worktree that it locks.
    pub worktree: String,
    /// Time since it was taken.
    pub age_ms: Option<u64>,
    /// Time until its lease ends.
    pub remaining_ms: u64,
}

/// What an examination, or a treatment, came to.
#[derive(Debug, Clone, Default)]
pub struct Examination {
    /// What was found, worst first.
    pub findings: Vec<Finding>,
    /// What was removed because it was proven dead.
    pub cleaned: Vec<Finding>,
    /// Every remedy that was applied, in that order.
    pub applied: Vec<Finding>,
    /// What the clocks were found to be.
    pub clocks: Clocks,
    /// Numbers about the repository.
    pub vitals: Vitals,
    /// How long it took.
    pub took_ms: u64,
}

impl Examination {
    /// Is nothing wrong that was not repaired?
    pub fn is_healthy(&self) -> bool {
        !self.findings.iter().any(Finding::counts)
    }

    /// Adds what somebody else found.
    pub fn add(&mut self, findings: impl IntoIterator<Item = Finding>) {
        self.findings.extend(findings);
        self.sort();
    }

    pub(crate) fn sort(&mut self) {
        self.findings.sort_by(|a, b| {
            let key = |f: &Finding| (std::cmp::Reverse(f.severity), f.check, f.path.clone());
            key(a).cmp(&key(b))
        });
    }
}

/// Looks at the repository.
pub fn examine(patient: &Patient<'_>, depth: Depth) -> Examination {
    let began = patient.seams.clock.now().boot;
    let mut examination = look(patient, depth);
    examination.took_ms = patient.seams.clock.now().boot.since(began);
    examination.sort();
    examination
}

fn look(patient: &Patient<'_>, depth: Depth) -> Examination {
    let mut report = FindingCollector::default();
    let format = FormatRecord::read(patient.seams.store);
    if let Err(FormatError::Unsupported { .. }) = &format {
        // Whatever else is there has another shape: nothing is believed.
        check::control::format(&format, None, &mut report);
        return Examination { findings: report.told(), ..Examination::default() };
    }
    let survey = Survey::take(patient, depth, &mut report);
    check::control::format(&format, Some(&survey), &mut report);
    for look in Family::ALL.iter().flat_map(|family| family.quick()) {
        look(&survey, &mut report);
    }
    if depth == Depth::Full {
        for look in Family::ALL.iter().flat_map(|family| family.full()) {
            look(&survey, &mut report);
        }
    }
    Examination {
        clocks: clocks(&survey),
        vitals: vitals(&survey),
        findings: report.told(),
        ..Examination::default()
    }
}

fn clocks(survey: &Survey<'_, '_>) -> Clocks {
    let (synchronised, max_error_ms) = match survey.patient.seams.clock.discipline() {
        Discipline::Synchronised { max_error_ms } => (Some(true), Some(max_error_ms)),
        Discipline::Unsynchronised => (Some(false), None),
        Discipline::Unknown => (None, None),
    };
    let skews = survey.views.values().filter_map(|view| view.judgement.as_ref());
    Clocks {
        synchronised,
        max_error_ms,
        observed_skew_ms: skews.map(|judged| judged.observed_skew_ms).max().unwrap_or(0),
        max_clock_skew_ms: survey.policy.max_clock_skew_ms,
    }
}

fn vitals(survey: &Survey<'_, '_>) -> Vitals {
    use jvs_lock::StatusWord;
    let count = |word: StatusWord| survey.views.values().filter(|view| view.word() == word).count();
    let held = survey.views.values().filter(|view| view.state.holder().is_some());
    let age = |view: &View| {
        let created = view.record().and_then(|record| record.created())?;
        Some(view.at.wall.since(created))
    };
    Vitals {
        worktrees: survey.worktrees.worktrees.len() as u64,
        held: count(StatusWord::Held) as u64,
        expired: (count(StatusWord::Expired) + count(StatusWord::Stealable)) as u64,
        frozen: count(StatusWord::Frozen) as u64,
        locks: held
            .map(|view| LockVital {
                worktree: view.worktree.to_string(),
                age_ms: age(view),
                remaining_ms: view.remaining_ms(),
            })
            .collect(),
        snapshots: (survey.depth == Depth::Full).then_some(survey.snapshots.len() as u64),
    }
}

/// A finding of a check that is made outside this crate.
pub fn finding(check: Check, path: String, message: String, advice: Next) -> Finding {
    Finding {
        check,
        severity: check.severity(),
        path,
        worktree: None,
        message,
        advice: Some(advice),
        remedy: None,
        outcome: None,
    }
}

/// The number of findings of each severity that still count.
pub fn tally(findings: &[Finding]) -> [(Severity, usize); 3] {
    [Severity::Error, Severity::Warning, Severity::Notice].map(|severity| {
        let of = |f: &&Finding| f.severity == severity && !f.is_repaired();
        (severity, findings.iter().filter(of).count())
    })
}
