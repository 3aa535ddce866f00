//! What a check found, and what became of it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;
use jvs_repo::store::RepoPath;

use crate::check::{Check, Severity};
use crate::remedy::Remedy;
use crate::treat::RepairError;

/// What became of a finding's remedy.
#[derive(Debug, Clone)]
pub enum RemedyOutcome {
    /// Applied, and the next look did not find it any more.
    Repaired,
    /// Not applied, and why.
    Refused(Arc<RepairError>),
}

/// One thing that is wrong or worth knowing.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What was looked for.
    pub check: Check,
    /// How much it matters.
    pub severity: Severity,
    /// Where, relative to the repository's root.
    pub path: String,
    /// Whose, if it is one worktree's.
    pub worktree: Option<WorktreeName>,
    /// What was seen, in one sentence.
    pub message: String,
    /// What a person can do.
    pub advice: Option<Next>,
    /// What doctor can do.
    pub remedy: Option<Remedy>,
    /// What came of it.
    pub outcome: Option<RemedyOutcome>,
}

impl Finding {
    /// Was it repaired?
    pub fn is_repaired(&self) -> bool {
        matches!(self.outcome, Some(RemedyOutcome::Repaired))
    }

    /// Does it make the repository unhealthy?
    pub fn counts(&self) -> bool {
        self.severity > Severity::Notice && !self.is_repaired()
    }
}

/// How many findings of one kind in one directory are told one by one: of what is only
/// worth knowing not many, of what is wrong as many as anybody can go through.
const CROWD: usize = 20;
const CROWD_OF_FAULTS: usize = 1_000;

impl Finding {
    /// The directory that it is in.
    pub fn dir(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(dir, _)| dir)
    }

    /// What it says, if it stands for `many`.
    pub fn message_for(&self, many: usize) -> String {
        format!("{many} of them, {} for one: {}", self.path, self.message)
    }

    fn fate(&self) -> u8 {
        match self.outcome {
            None => 0,
            Some(RemedyOutcome::Repaired) => 1,
            Some(RemedyOutcome::Refused(_)) => 2,
        }
    }

    fn most(&self) -> usize {
        if self.severity == Severity::Notice { CROWD } else { CROWD_OF_FAULTS }
    }
}

/// Findings as they are told: each that stands for itself, and of a crowd with one fate
/// the first, with the number of those that it stands for. What doctor can repair is
/// kept one by one, however much of it there is; nobody reads it one by one.
pub fn crowds(findings: &[Finding]) -> Vec<(&Finding, usize)> {
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for finding in findings {
        *counts.entry((key(finding), finding.fate())).or_default() += 1;
    }
    let mut told = Vec::new();
    for finding in findings {
        let Some(count) = counts.get_mut(&(key(finding), finding.fate())) else { continue };
        match *count {
            // Told by the first of them.
            0 => {}
            many if many > finding.most() => {
                told.push((finding, many));
                *count = 0;
            }
            _ => told.push((finding, 1)),
        }
    }
    told
}

/// Collects what the checks find.
#[derive(Debug, Default)]
pub(crate) struct FindingCollector {
    pub(crate) findings: Vec<Finding>,
    /// How many of a kind there are in a directory, of those that have no remedy.
    crowds: BTreeMap<(&'static str, String), usize>,
}

impl FindingCollector {
    /// Adds a finding, to which more can be added.
    pub(crate) fn add(
        &mut self,
        check: Check,
        path: impl fmt::Display,
        message: impl Into<String>,
    ) -> FindingBuilder<'_> {
        self.count_the_last();
        self.findings.push(Finding {
            check,
            severity: check.severity(),
            path: path.to_string(),
            worktree: None,
            message: message.into(),
            advice: None,
            remedy: None,
            outcome: None,
        });
        let at = self.findings.len() - 1;
        FindingBuilder { finding: &mut self.findings[at] }
    }

    /// Forgets the last finding if there are many like it: what others put there must
    /// cost neither memory nor the reader's time.
    fn count_the_last(&mut self) {
        let Some(last) = self.findings.last().filter(|last| last.remedy.is_none()) else { return };
        let most = last.most();
        let count = self.crowds.entry(key(last)).or_default();
        *count += 1;
        if *count > most {
            self.findings.pop();
        }
    }

    /// All findings, a crowd of them told as one.
    pub(crate) fn told(mut self) -> Vec<Finding> {
        self.count_the_last();
        let FindingCollector { findings, mut crowds } = self;
        let mut told: Vec<Finding> = Vec::new();
        for mut finding in findings {
            let key = key(&finding);
            match crowds.get_mut(&key).filter(|_| finding.remedy.is_none()) {
                // Told by the first of them.
                Some(0) => continue,
                Some(count) if *count > finding.most() => {
                    finding.message = finding.message_for(*count);
                    (finding.path, finding.worktree) = (key.1, None);
                    *count = 0;
                }
                _ => {}
            }
            told.push(finding);
        }
        told
    }

    /// A part of the control plane that the filesystem did not show.
    pub(crate) fn unreadable(&mut self, path: &RepoPath, error: &dyn fmt::Display) {
        let message = format!("it cannot be read: {error}");
        // The store says whose it is and who asks.
        let advice = match message.contains("permission denied") {
            true => Next::HaveOwnerAskDoctor,
            false => Next::CheckMountAndAskDoctor,
        };
        self.add(Check::Unreadable, path, message).advice(advice);
    }
}

/// A finding that is being written down.
pub(crate) struct FindingBuilder<'f> {
    finding: &'f mut Finding,
}

impl FindingBuilder<'_> {
    pub(crate) fn of(self, worktree: &WorktreeName) -> Self {
        self.finding.worktree = Some(worktree.clone());
        self
    }

    pub(crate) fn advice(self, advice: impl Into<Next>) -> Self {
        self.finding.advice = Some(advice.into());
        self
    }

    pub(crate) fn remedy(self, remedy: Remedy) -> Self {
        self.finding.remedy = Some(remedy);
        self
    }

    pub(crate) fn maybe(self, remedy: Option<Remedy>) -> Self {
        self.finding.remedy = remedy;
        self
    }

    pub(crate) fn severity(self, severity: Severity) -> Self {
        self.finding.severity = severity;
        self
    }
}

fn key(finding: &Finding) -> (&'static str, String) {
    (finding.check.as_str(), finding.dir().to_owned())
}

#[cfg(test)]
mod crowds {
    use super::*;

    #[test]
    fn a_crowd_is_told_as_one_finding() {
        let mut report = FindingCollector::default();
        for n in 0..=CROWD {
            report.add(Check::ForeignFile, format!("a/{n}"), "not ours").advice("move it");
            report.add(Check::ForeignFile, format!("b/{n}"), "not ours").advice("move it");
        }
        report.add(Check::ForeignFile, "c/1", "not ours");
        let told = report.told();
        let told: Vec<_> = told.iter().map(|it| (it.path.as_str(), it.message.as_str())).collect();
        let a = ("a", "21 of them, a/0 for one: not ours");
        let b = ("b", "21 of them, b/0 for one: not ours");
        assert_eq!(told, [a, b, ("c/1", "not ours")]);
    }

    #[test]
    fn what_can_be_repaired_is_kept_one_by_one_and_told_as_one() {
        let mut report = FindingCollector::default();
        let path = |n: usize| {
            let dir = RepoPath::root().child("a").expect("plain");
            dir.child(&n.to_string()).expect("plain")
        };
        for n in 0..=CROWD_OF_FAULTS {
            let remedy = Remedy::MakeDirectory(path(n));
            report.add(Check::DirectoryMissing, path(n), "missing").remedy(remedy);
        }
        report.add(Check::DirectoryMissing, "b/1", "missing");
        let mut found = report.told();
        assert_eq!(found.len(), CROWD_OF_FAULTS + 2);
        let told = |found: &[Finding]| -> Vec<_> {
            crowds(found).iter().map(|(finding, many)| (finding.path.clone(), *many)).collect()
        };
        assert_eq!(told(&found), [("a/0".into(), CROWD_OF_FAULTS + 1), ("b/1".into(), 1)]);
        // What became of one is not told of the others.
        found[7].outcome = Some(RemedyOutcome::Repaired);
        assert_eq!(told(&found).len(), CROWD_OF_FAULTS + 2);
    }

    #[test]
    fn a_few_are_told_one_by_one() {
        let mut report = FindingCollector::default();
        for n in 0..CROWD {
            report.add(Check::ForeignFile, format!("a/{n}"), "not ours");
        }
        assert_eq!(report.told().len(), CROWD);
    }
}
