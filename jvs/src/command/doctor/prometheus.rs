//! What was found, for the textfile collector of the Prometheus node exporter.

//!
//! Every sample has the repository among its labels: what is said of two of them on one host
//! can be collected together.

use std::collections::BTreeMap;
use std::fmt::Write;

use jvs_doctor::{Check, Examination, Severity};
use jvs_repo::clock::WallMs;
use jvs_repo::inert;

use super::pulse::Pulse;
use crate::answer::doctor::LogsSize;

pub(super) fn text(
    repository: &str,
    examination: &Examination,
    pulse: &Pulse,
    logs: Option<LogsSize>,
    now: WallMs,
) -> String {
    let vitals = &examination.vitals;
    let mut page = MetricsPage { repository: repository.to_owned(), text: String::new() };
    page.family("jvs_build_info", "1, and which version looked");
    page.sample("jvs_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
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
    pulse.add_to(&mut page);
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

/// Milliseconds as Prometheus has them.
pub(super) fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// Text in the exposition format, about one repository.
pub(super) struct MetricsPage {
    repository: String,
    text: String,
}

impl MetricsPage {
    pub(super) fn family(&mut self, name: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} gauge");
    }

    pub(super) fn sample(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        value: impl std::fmt::Display,
    ) {
        let repository = [("repository", self.repository.as_str())];
        let labels: Vec<String> = repository
            .iter()
            .chain(labels)
            .map(|(key, value)| format!("{key}=\"{}\"", escaped(value)))
            .collect();
        let _ = writeln!(self.text, "{name}{{{}}} {value}", labels.join(","));
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
            let mut page = MetricsPage { repository: value.to_owned(), text: String::new() };
            page.sample("x", &[("worktree", value), ("code", "c")], 7);
            let line = page.text.strip_suffix('\n').expect("a line");
            assert!(!line.contains(inert::acts), "{line}");
            // Up to the first quote that no backslash takes away.
            let after_value = |rest: &'_ str| {
                let mut escaped = false;
                let end = rest.char_indices().find(|(_, c)| {
                    let ends = *c == '"' && !escaped;
                    escaped = *c == '\\' && !escaped;
                    ends
                });
                let (value_ends, _) = end.expect("a quote");
                rest[value_ends..].to_owned()
            };
            let rest = after_value(line.strip_prefix("x{repository=\"").expect("a label"));
            let rest = after_value(rest.strip_prefix("\",worktree=\"").expect("the next"));
            assert_eq!(rest, "\",code=\"c\"} 7", "{line}");
        }
    }
}
