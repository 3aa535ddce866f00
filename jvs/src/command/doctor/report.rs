//! What was found, for people and for programs.

use std::fmt::Write;

use jvs_doctor::{Care, Examination, Finding, Outcome, Severity};
use jvs_repo::probe::{Filesystem, JuiceFs};
use serde_json::{Value, json};

use super::super::snapshots::counted;
use super::probe::Verdict;
use crate::fail::on_one_line;
use crate::render::Paint;

pub(super) struct Saying<'s> {
    pub(super) examination: &'s Examination,
    pub(super) filesystem: &'s Filesystem,
    pub(super) verdict: Option<&'s Verdict>,
    /// What would be applied, if nothing is to be.
    pub(super) plan: Option<Care>,
    pub(super) full: bool,
}

impl Saying<'_> {
    fn would(&self, finding: &Finding) -> bool {
        let allowed = |care: Care| finding.remedy.as_ref().is_some_and(|r| care.allows(r));
        self.plan.is_some_and(allowed)
    }

    pub(super) fn data(&self) -> Value {
        let examination = self.examination;
        let findings = examination.findings.iter().map(|f| self.finding(f)).collect::<Vec<_>>();
        let cleaned = examination.cleaned.iter().map(|f| self.finding(f)).collect::<Vec<_>>();
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
        if self.plan.is_some() {
            let planned = examination.findings.iter().filter(|f| self.would(f));
            let planned = planned.map(|f| {
                let does = f.remedy.as_ref().map(ToString::to_string);
                json!({ "code": f.check.as_str(), "path": f.path, "does": does })
            });
            data["planned"] = planned.collect();
        }
        data
    }

    fn finding(&self, finding: &Finding) -> Value {
        let mut data = json!({
            "code": finding.check.as_str(),
            "severity": finding.severity,
            "path": finding.path,
            "worktree": finding.worktree,
            "message": finding.message,
            "remedy": finding.remedy_text(),
            "repaired": finding.is_repaired(),
        });
        if let Some(Outcome::Refused(why)) = &finding.outcome {
            data["refused"] = json!(why);
        }
        data
    }

    fn filesystem(&self) -> Value {
        let mut data = json!({
            "kind": self.filesystem.kind,
            "mount_point": crate::render::shown(&self.filesystem.mount_point),
            "probe": self.verdict,
        });
        if let Some(JuiceFs::Mounted { version, writeback, readdir_cache, caches }) =
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
        for finding in &self.examination.findings {
            self.told(finding, paint, &mut text);
        }
        for finding in &self.examination.cleaned {
            let path = on_one_line(&finding.path);
            let _ = writeln!(text, "{} {path}: {}", paint.bold("removed"), finding.check);
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
        if let Some(verdict) = self.verdict {
            let _ = writeln!(text, "probe: {}", on_one_line(&verdict.sentence()));
        }
        text
    }

    fn told(&self, finding: &Finding, paint: Paint, text: &mut String) {
        let word = match finding.severity {
            _ if finding.is_repaired() => paint.bold("repaired"),
            Severity::Error => paint.red("error"),
            Severity::Warning => paint.yellow("warning"),
            Severity::Notice => paint.dim("notice"),
        };
        let path = on_one_line(&finding.path);
        let message = on_one_line(&finding.message);
        let _ = writeln!(text, "{word}[{}] {path}: {message}", finding.check);
        match &finding.outcome {
            Some(Outcome::Repaired) => {}
            Some(Outcome::Refused(why)) => {
                let _ = writeln!(text, "  not repaired: {}", on_one_line(why));
            }
            None if self.would(finding) => {
                let does = finding.remedy.as_ref().map(ToString::to_string).unwrap_or_default();
                let _ = writeln!(text, "  would be done: {}", on_one_line(&does));
            }
            None => {
                let _ = writeln!(text, "  remedy: {}", on_one_line(&finding.remedy_text()));
            }
        }
    }
}
