//! What was found, for people and for programs.

use std::fmt::Write;

use jvs_doctor::{Examination, Finding, Outcome, RepairError, Severity, Tense};
use jvs_repo::probe::{Filesystem, JuiceFs};
use jvs_repo::record::probe::Verdict;
use serde_json::{Value, json};

use super::super::snapshots::counted;
use super::probe;
use crate::fail::on_one_line;
use crate::hint::spell_remedy;
use crate::render::Paint;

pub(super) struct Saying<'s> {
    pub(super) examination: &'s Examination,
    pub(super) filesystem: &'s Filesystem,
    pub(super) verdict: Option<&'s Verdict>,
    /// What a repair would come to, if none was to be made.
    pub(super) foreseen: Option<&'s Examination>,
    pub(super) dry_run: bool,
    pub(super) full: bool,
}

impl Saying<'_> {
    /// What would be done about a finding.
    fn would(&self, finding: &Finding) -> Option<String> {
        let applied = &self.foreseen?.applied;
        applied.iter().find(|planned| is_same(planned, finding)).map(|f| said(f, Tense::Would))
    }

    /// Why it would not.
    fn would_refuse(&self, finding: &Finding) -> Option<&RepairError> {
        let left = &self.foreseen?.findings;
        match &left.iter().find(|left| is_same(left, finding))?.outcome {
            Some(Outcome::Refused(why)) => Some(why),
            _ => None,
        }
    }

    /// What only comes to light, or becomes possible, once the first is mended.
    fn then(&self) -> Vec<&Finding> {
        let told = &self.examination.findings;
        let mut then: Vec<&Finding> = Vec::new();
        for planned in self.foreseen.iter().flat_map(|foreseen| &foreseen.applied) {
            let known = |f: &Finding| is_same(f, planned);
            if !told.iter().any(known) && !then.iter().any(|f| known(f)) {
                then.push(planned);
            }
        }
        then
    }

    /// What would still count after it.
    fn left(&self) -> Vec<&Finding> {
        let last = self.foreseen.unwrap_or(self.examination);
        last.findings.iter().filter(|finding| finding.counts()).collect()
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
        let steps = |applied: &[Finding]| -> Value {
            let step = |f: &Finding| json!({ "code": f.check.as_str(), "path": f.path, "does": said(f, Tense::Does) });
            applied.iter().map(step).collect()
        };
        if self.dry_run {
            data["planned"] = steps(self.foreseen.map_or(&[], |foreseen| &foreseen.applied));
            let left = self.left();
            data["would_remain"] =
                left.iter().map(|f| json!({ "code": f.check.as_str(), "path": f.path })).collect();
        } else if self.full {
            data["done"] = steps(&examination.applied);
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
            "remedy": spell_remedy(finding),
            "repaired": finding.is_repaired(),
        });
        if let Some(Outcome::Refused(why)) = &finding.outcome {
            data["refused"] = json!(why.to_string());
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
        let then = self.then();
        if !then.is_empty() {
            let _ = writeln!(text, "after that:");
        }
        for finding in then {
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
        self.foretold(&mut text);
        if let Some(verdict) = self.verdict {
            let _ = writeln!(text, "probe: {}", on_one_line(&probe::sentence(verdict)));
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
            Some(Outcome::Repaired) => {
                let _ = writeln!(text, "  done: {}", on_one_line(&said(finding, Tense::Did)));
            }
            Some(Outcome::Refused(why)) => {
                let _ = writeln!(text, "  not repaired: {}", on_one_line(&why.to_string()));
            }
            None => {
                let line = match (self.would(finding), self.would_refuse(finding)) {
                    (Some(would), _) => format!("would {would}"),
                    (None, Some(why)) => format!("would not be repaired: {why}"),
                    (None, None) => format!("remedy: {}", spell_remedy(finding)),
                };
                let _ = writeln!(text, "  {}", on_one_line(&line));
            }
        }
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

fn is_same(one: &Finding, other: &Finding) -> bool {
    one.check == other.check && one.path == other.path
}

fn said(finding: &Finding, tense: Tense) -> String {
    finding.remedy.as_ref().map(|remedy| remedy.sentence(tense)).unwrap_or_default()
}
