//! This host's clock, and what records of other hosts prove about it.

use jvs_lock::span::Span;
use jvs_repo::clock::Discipline;
use jvs_repo::layout;

use crate::check::{Check, Severity};
use crate::finding::FindingCollector;
use crate::survey::Survey;

const HERE: &str = "this host";

pub(super) fn quick(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    let allowed = survey.policy.max_clock_skew_ms;
    let advice = "have chrony, ntpd or systemd-timesyncd synchronise the clock of every host";
    match survey.patient.seams.clock.discipline() {
        Discipline::Unsynchronised => {
            report
                .add(
                    Check::ClockUnsynchronised,
                    HERE,
                    "according to the kernel, nothing synchronises this host's clock",
                )
                .advice(advice);
        }
        Discipline::Synchronised { max_error_ms } if max_error_ms > allowed / 2 => {
            let message = format!(
                "this host's clock may be wrong by {}; locks tolerate {} between any two hosts",
                Span(max_error_ms),
                Span(allowed)
            );
            report.add(Check::ClockInexact, HERE, message).advice(advice);
        }
        Discipline::Synchronised { .. } | Discipline::Unknown => {}
    }
    for (worktree, view) in &survey.views {
        let Some(judged) = &view.judgement else { continue };
        if judged.observed_skew_ms <= allowed / 2 {
            continue;
        }
        let evidence: Vec<String> = judged.evidence.iter().map(ToString::to_string).collect();
        let message = format!(
            "clocks differ by at least {}, and locks tolerate {}: {}",
            Span(judged.observed_skew_ms),
            Span(allowed),
            evidence.join("; ")
        );
        let worse = judged.observed_skew_ms > allowed;
        report
            .add(Check::ClockSkew, layout::lock_record(worktree), message)
            .of(worktree)
            .severity(if worse { Severity::Error } else { Severity::Warning })
            .advice(advice);
    }
}
