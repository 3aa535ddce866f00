//! What was found, for people and for programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use jvs_doctor::finding::crowds;
use jvs_doctor::{Check, Examination, Finding, RemedyOutcome, RepairError, Severity, Tense};
use jvs_repo::probe::{Filesystem, JuiceFsMount};
use jvs_repo::record::probe::Verdict;

use super::super::snapshots::counted;
use super::logs;
use super::probe;
use crate::answer::doctor::{
    FilesystemSeen, FindingTold, JuiceFs, LogsSize, Remaining, Report, StepTold,
};
use crate::answer::{self, shown_path};
use crate::fail::on_one_line;
use crate::hint::spell_remedy;
use crate::render::Paint;

pub(super) struct Saying<'s> {
    pub(super) examination: &'s Examination,
    pub(super) filesystem: &'s Filesystem,
    pub(super) verdict: Option<&'s Verdict>,
    /// What a repair would come to, if none was to be made.
    pub(super) foreseen: Option<&'s Examination>,
    /// Only looked at in a full examination.
    pub(super) logs: Option<LogsSize>,
    pub(super) dry_run: bool,
    pub(super) full: bool,
}

/// What a finding is recognised by.
type Key<'f> = (Check, &'f str);

fn key(finding: &Finding) -> Key<'_> {
    (finding.check, &finding.path)
}

/// What a repair would do about which finding.
#[derive(Default)]
struct Foreseen<'s> {
    done: BTreeMap<Key<'s>, &'s Finding>,
    refused: BTreeMap<Key<'s>, &'s RepairError>,
}

impl<'s> Foreseen<'s> {
    fn of(examination: Option<&'s Examination>) -> Self {
        let mut foreseen = Foreseen::default();
        for finding in examination.into_iter().flat_map(|it| &it.applied) {
            foreseen.done.entry(key(finding)).or_insert(finding);
        }
        for finding in examination.into_iter().flat_map(|it| &it.findings) {
            if let Some(RemedyOutcome::Refused(why)) = &finding.outcome {
                foreseen.refused.entry(key(finding)).or_insert(why);
            }
        }
        foreseen
    }
}

impl Saying<'_> {
    /// What only comes to light, or becomes possible, once the first is mended.
    fn then(&self) -> Vec<Finding> {
        let mut told: BTreeSet<Key<'_>> = self.examination.findings.iter().map(key).collect();
        let planned = self.foreseen.iter().flat_map(|foreseen| &foreseen.applied);
        planned.filter(|planned| told.insert(key(planned))).cloned().collect()
    }

    /// What would still count after it.
    fn left(&self) -> Vec<Finding> {
        let last = self.foreseen.unwrap_or(self.examination);
        last.findings.iter().filter(|finding| finding.counts()).cloned().collect()
    }

    /// For programs.
    pub(super) fn told(&self) -> Report {
        let examination = self.examination;
        let told = |findings: &[Finding]| crowds(findings).into_iter().map(finding).collect();
        let planned = self.foreseen.map_or(&[][..], |foreseen| &foreseen.applied);
        let (dry_run, is_full) = (self.dry_run, self.full);
        Report {
            healthy: examination.is_healthy(),
            strict: is_full,
            findings: told(&examination.findings),
            cleaned: told(&examination.cleaned),
            clock: examination.clocks.clone(),
            filesystem: self.filesystem(),
            vitals: examination.vitals.clone(),
            took_ms: examination.took_ms,
            audit_logs: self.logs,
            planned: dry_run.then(|| steps(planned)),
            would_remain: dry_run
                .then(|| crowds(&self.left()).into_iter().map(remaining).collect()),
            done: (is_full && !dry_run).then(|| steps(&examination.applied)),
        }
    }

    fn filesystem(&self) -> FilesystemSeen {
        let (mount_point, mount_point_bytes) = answer::path(&self.filesystem.mount_point);
        let juicefs = match &self.filesystem.juicefs {
            Some(JuiceFsMount::Mounted { version, writeback, readdir_cache, caches }) => {
                let caches = caches.iter().map(|(name, span)| (name.to_string(), span.as_ms()));
                Some(JuiceFs {
                    version: version.clone(),
                    writeback: *writeback,
                    readdir_cache: *readdir_cache,
                    caches_ms: caches.collect(),
                })
            }
            _ => None,
        };
        FilesystemSeen {
            kind: self.filesystem.kind.clone(),
            probe: self.verdict.cloned(),
            mount_point,
            mount_point_bytes,
            juicefs,
        }
    }

    pub(super) fn text(&self, paint: Paint) -> String {
        let mut text = String::new();
        let foreseen = Foreseen::of(self.foreseen);
        for (finding, many) in crowds(&self.examination.findings) {
            told(finding, many, &foreseen, paint, &mut text);
        }
        let then = self.then();
        if !then.is_empty() {
            let _ = writeln!(text, "after that:");
        }
        for (finding, many) in crowds(&then) {
            told(finding, many, &foreseen, paint, &mut text);
        }
        for (finding, many) in crowds(&self.examination.cleaned) {
            let path = on_one_line(place(finding, many));
            let _ = write!(text, "{} {path}: {}", paint.bold("removed"), finding.check);
            let _ = if many > 1 { writeln!(text, ", {many} of them") } else { writeln!(text) };
        }
        let [(_, errors), (_, warnings), (_, notices)] =
            jvs_doctor::examine::tally(&self.examination.findings);
        let repaired = self.examination.findings.iter().filter(|f| f.is_repaired()).count();
        let state = if self.examination.is_healthy() { "healthy" } else { "not healthy" };
        let depth = if self.full { "full examination" } else { "quick look" };
        let found = [(errors, "error"), (warnings, "warning"), (notices, "notice")];
        let found = found.map(|(number, what)| counted(number as u64, what));
        let _ = write!(text, "{state}: {}", found.join(", "));
        if repaired + self.examination.cleaned.len() > 0 {
            let _ =
                write!(text, ", {repaired} repaired, {} removed", self.examination.cleaned.len());
        }
        let _ = writeln!(text, " ({depth})");
        self.foretold(&mut text);
        text += &self.logs.and_then(logs::line).unwrap_or_default();
        if let Some(verdict) = self.verdict {
            let _ = writeln!(text, "probe: {}", on_one_line(&probe::sentence(verdict)));
        }
        text
    }

    /// How it would end.
    fn foretold(&self, text: &mut String) {
        let Some(foreseen) = self.foreseen else {
            if self.dry_run {
                let _ = writeln!(text, "nothing would be done");
            }
            return;
        };
        let number = counted(foreseen.applied.len() as u64, "repair");
        let left = self.left();
        let _ = match left.as_slice() {
            [] => writeln!(text, "after {number}: healthy"),
            left => {
                let codes: std::collections::BTreeSet<_> =
                    left.iter().map(|f| f.check.as_str()).collect();
                let codes: Vec<_> = codes.into_iter().collect();
                writeln!(text, "after {number}: not healthy ({})", codes.join(", "))
            }
        };
    }
}

/// Tells of a finding that stands for `many`.
fn told(finding: &Finding, many: usize, foreseen: &Foreseen<'_>, paint: Paint, text: &mut String) {
    let word = match finding.severity {
        _ if finding.is_repaired() => paint.bold("repaired"),
        Severity::Error => paint.red("error"),
        Severity::Warning => paint.yellow("warning"),
        Severity::Notice => paint.dim("notice"),
    };
    let path = on_one_line(place(finding, many));
    let message = on_one_line(&message(finding, many));
    let _ = writeln!(text, "{word}[{}] {path}: {message}", finding.check);
    match &finding.outcome {
        Some(RemedyOutcome::Repaired) => {
            let _ = writeln!(text, "  done: {}", on_one_line(&said(finding, Tense::Did)));
        }
        Some(RemedyOutcome::Refused(why)) => {
            let _ = writeln!(text, "  not repaired: {}", on_one_line(&why.to_string()));
        }
        None => {
            let key = key(finding);
            let line = match (foreseen.done.get(&key), foreseen.refused.get(&key)) {
                (Some(done), _) => format!("would {}", said(done, Tense::Would)),
                (None, Some(why)) => format!("would not be repaired: {why}"),
                (None, None) => format!("remedy: {}", spell_remedy(finding)),
            };
            let _ = writeln!(text, "  {}", on_one_line(&line));
        }
    }
}

fn finding((finding, many): (&Finding, usize)) -> FindingTold {
    let (path, path_bytes) = shown_path(place(finding, many));
    FindingTold {
        code: finding.check.as_str(),
        severity: finding.severity,
        worktree: finding.worktree.clone().filter(|_| many == 1),
        message: message(finding, many),
        remedy: spell_remedy(finding),
        repaired: finding.is_repaired(),
        path,
        path_bytes,
        refused: match &finding.outcome {
            Some(RemedyOutcome::Refused(why)) => Some(why.to_string()),
            _ => None,
        },
    }
}

fn steps(applied: &[Finding]) -> Vec<StepTold> {
    let step = |(f, many): (&Finding, usize)| {
        let (path, path_bytes) = shown_path(place(f, many));
        StepTold { code: f.check.as_str(), does: said(f, Tense::Does), path, path_bytes }
    };
    crowds(applied).into_iter().map(step).collect()
}

fn remaining((finding, many): (&Finding, usize)) -> Remaining {
    let (path, path_bytes) = shown_path(place(finding, many));
    Remaining { code: finding.check.as_str(), path, path_bytes }
}

/// Where it is, or all of those that it stands for.
fn place(finding: &Finding, many: usize) -> &str {
    if many > 1 { finding.dir() } else { &finding.path }
}

fn message(finding: &Finding, many: usize) -> String {
    if many > 1 { finding.message_for(many) } else { finding.message.clone() }
}

fn said(finding: &Finding, tense: Tense) -> String {
    finding.remedy.as_ref().map(|remedy| remedy.sentence(tense)).unwrap_or_default()
}
