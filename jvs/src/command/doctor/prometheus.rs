//! What was found, for the textfile collector of the Prometheus node exporter.

use std::collections::BTreeMap;
use std::fmt::Write;

use jvs_doctor::{Check, Examination, Severity};
use jvs_repo::clock::WallMs;
use jvs_repo::inert;

use crate::answer::doctor::LogsSize;

pub(super) fn text(examination: &Examination, logs: Option<LogsSize>, now: WallMs) -> String {
    let vitals = &examination.vitals;
    let seconds = |ms: u64| format!("{}.{:03}", ms / 1000, ms % 1000);
    let mut page = Page::default();
    let healthy = u64::from(examination.is_healthy());
    page.one("jvs_healthy", "1 if nothing is wrong with the repository", healthy);
    let mut counts: BTreeMap<(Check, Severity), u64> = BTreeMap::new();
    for finding in examination.findings.iter().filter(|f| !f.is_repaired()) {
        *counts.entry((finding.check, finding.severity)).or_default() += 1;
    }
    page.family("jvs_findings", "Findings that remain, by code");
    for ((check, severity), count) in counts {
        let labels = [("code", check.as_str()), ("severity", severity.as_str())];
        page.sample("jvs_findings", &labels, count);
    }
    let repaired = examination.findings.iter().filter(|f| f.is_repaired()).count();
    page.one("jvs_findings_repaired", "Findings that this run repaired", repaired);
    page.one("jvs_cleaned", "Leftovers that this run removed", examination.cleaned.len());
    page.one("jvs_worktrees", "Worktrees of the repository", vitals.worktrees);
    page.one("jvs_locks_held", "Locks whose lease runs", vitals.held);
    page.one("jvs_locks_expired", "Locks whose lease is over", vitals.expired);
    page.one("jvs_worktrees_frozen", "Worktrees that an operator froze", vitals.frozen);
    page.family("jvs_lock_age_seconds", "Time since a held lock was taken");
    for lock in &vitals.locks {
        if let Some(age) = lock.age_ms {
            page.sample("jvs_lock_age_seconds", &[("worktree", &lock.worktree)], seconds(age));
        }
    }
    page.family("jvs_lock_remaining_seconds", "Time until the lease of a held lock ends");
    for lock in &vitals.locks {
        let labels = [("worktree", lock.worktree.as_str())];
        page.sample("jvs_lock_remaining_seconds", &labels, seconds(lock.remaining_ms));
    }
    if let Some(snapshots) = vitals.snapshots {
        page.one("jvs_snapshots", "Snapshots, hidden ones included", snapshots);
    }
    if let Some(logs) = logs {
        page.one("jvs_audit_log_bytes", "Size of all audit logs", logs.bytes);
    }
    let clocks = &examination.clocks;
    let skew = seconds(clocks.observed_skew_ms);
    page.one("jvs_clock_skew_seconds", "Difference between hosts that records prove", skew);
    if let Some(error) = clocks.max_error_ms {
        page.one("jvs_clock_error_seconds", "Largest error of this host's clock", seconds(error));
    }
    let took = seconds(examination.took_ms);
    page.one("jvs_doctor_duration_seconds", "How long the examination took", took);
    let at = seconds(now.0);
    page.one("jvs_doctor_last_run_timestamp_seconds", "When the examination ended", at);
    page.text
}

/// Text in the exposition format.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn family(&mut self, name: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} gauge");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let labels: Vec<String> =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.text, "{name}{labels} {value}");
    }

    fn one(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.family(name, help);
        self.sample(name, &[], value);
    }
}

/// A value of a label. The format knows three escapes; what else could end a line for
/// some reader is spelled in plain characters first.
fn escaped(value: &str) -> String {
    let plain = |c| inert::acts(c) && c != '\n';
    inert::escaped(value, plain).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_of_a_label_ends_its_quotes_or_its_line() {
        let hostile = [
            "\"} 1\njvs_healthy 1",
            "\\",
            "\\\"",
            "a\\n\"",
            "\r\u{85}\u{2028}\u{2029}\u{202e}\u{1b}[2J\0",
        ];
        for value in hostile {
            let mut page = Page::default();
            page.sample("x", &[("worktree", value), ("code", "c")], 7);
            let line = page.text.strip_suffix('\n').expect("a line");
            assert!(!line.contains(inert::acts), "{line}");
            let rest = line.strip_prefix("x{worktree=\"").expect("a label");
            // Up to the first quote that no backslash takes away.
            let mut escaped = false;
            let end = rest.char_indices().find(|(_, c)| {
                let ends = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                ends
            });
            let (value_ends, _) = end.expect("a quote");
            assert_eq!(&rest[value_ends..], "\",code=\"c\"} 7", "{line}");
        }
    }
}
