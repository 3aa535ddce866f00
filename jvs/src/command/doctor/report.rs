//! What was found, for people and for programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use jvs_doctor::finding::crowds;
use jvs_doctor::{Check, Examination, Finding, RemedyOutcome, RepairError, Severity, Tense};
use jvs_repo::probe::{Filesystem, JuiceFsMount};
use jvs_repo::record::probe::Verdict;
use serde_json::{Value, json};

use super::super::snapshots::counted;
use super::logs::LogsSize;
use super::probe;
use crate::fail::on_one_line;
use crate::hint::spell_remedy;
use crate::render::{Paint, tell_path, tell_shown};

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

    pub(super) fn data(&self) -> Value {
        let examination = self.examination;
        let told = |findings: &[Finding]| -> Vec<Value> {
            crowds(findings).into_iter().map(finding).collect()
        };
        let (findings, cleaned) = (told(&examination.findings), told(&examination.cleaned));
        let mut data = json!({
            "healthy": examination.is_healthy(),
            "strict": self.full,
            "findings": findings,
            "cleaned": cleaned,
            "clock": examination.clocks,
            "filesystem": self.filesystem(),
            "vitals": examination.vitals,
            "took_ms": examination.took_ms,
        });
        if let Some(logs) = self.logs {
            data["audit_logs"] = json!(logs);
        }
        let steps = |applied: &[Finding]| -> Value {
            let step = |(f, many): (&Finding, usize)| {
                let mut step = json!({ "code": f.check.as_str(), "does": said(f, Tense::Does) });
                tell_shown(&mut step, "path", place(f, many));
                step
            };
            crowds(applied).into_iter().map(step).collect()
        };
        if self.dry_run {
            data["planned"] = steps(self.foreseen.map_or(&[], |foreseen| &foreseen.applied));
            let left = |(f, many): (&Finding, usize)| {
                let mut left = json!({ "code": f.check.as_str() });
                tell_shown(&mut left, "path", place(f, many));
                left
            };
            data["would_remain"] = crowds(&self.left()).into_iter().map(left).collect();
        } else if self.full {
            data["done"] = steps(&examination.applied);
        }
        data
    }

    fn filesystem(&self) -> Value {
        let mut data = json!({
            "kind": self.filesystem.kind,
            "probe": self.verdict,
        });
        tell_path(&mut data, "mount_point", &self.filesystem.mount_point);
        if let Some(JuiceFsMount::Mounted { version, writeback, readdir_cache, caches }) =
            &self.filesystem.juicefs
        {
            let caches = caches.iter().map(|(name, span)| (name.to_string(), json!(span.as_ms())));
            data["juicefs"] = json!({
                "version": version,
                "writeback": writeback,
                "readdir_cache": readdir_cache,
                "caches_ms": caches.collect::<serde_json::Map<_, _>>(),
            });
        }
        data
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
        text += &self.logs.and_then(LogsSize::line).unwrap_or_default();
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

fn finding((finding, many): (&Finding, usize)) -> Value {
    let mut data = json!({
        "code": finding.check.as_str(),
        "severity": finding.severity,
        "worktree": finding.worktree.as_ref().filter(|_| many == 1),
        "message": message(finding, many),
        "remedy": spell_remedy(finding),
        "repaired": finding.is_repaired(),
    });
    tell_shown(&mut data, "path", place(finding, many));
    if let Some(RemedyOutcome::Refused(why)) = &finding.outcome {
        data["refused"] = json!(why.to_string());
    }
    data
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
