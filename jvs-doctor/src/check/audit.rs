//! The audit logs: every line as it was written, every state accounted for.

use jvs_lock::history::{self, Problem};
use jvs_repo::audit::Flaw;
use jvs_repo::layout;

use crate::finding::{Check, Report};
use crate::survey::Survey;

/// No more lines of one examination are told one by one.
const TOLD: usize = 100;

pub(super) fn run(survey: &Survey<'_, '_>, report: &mut Report) {
    let registers: Vec<_> = survey
        .registers
        .iter()
        .filter_map(|(name, read)| Some((name.clone(), *read.as_ref().ok()?)))
        .collect();
    let found = history::check(&registers, &survey.logs);
    let more = found.problems.len().saturating_sub(TOLD);
    for problem in found.problems.into_iter().take(TOLD) {
        let path = match &problem {
            Problem::Line { place, .. }
            | Problem::NotAState { place }
            | Problem::BadLink { place, .. }
            | Problem::NotInHistory { place, .. } => layout::audit_log(&place.writer),
            Problem::Gap { .. }
            | Problem::Unannounced { .. }
            | Problem::UnloggedRenewals { .. } => layout::audit(),
        };
        let check = match &problem {
            problem if problem.is_crash() => Check::AuditTorn,
            Problem::Gap { .. } | Problem::Unannounced { .. } => Check::AuditGap,
            Problem::Line { flaw: Flaw::TornEnd | Flaw::TornInside, .. } => Check::AuditTorn,
            _ => Check::AuditForged,
        };
        let advice = match check {
            Check::AuditTorn => "nothing needs to be done: a crash explains it",
            _ => {
                "keep a copy of the audit directory and find out who did it; a log is evidence \
                 and is never rewritten"
            }
        };
        report.add(check, path, problem.to_string()).advice(advice);
    }
    if more > 0 {
        let message = format!("{more} more lines or links do not add up");
        report
            .add(Check::AuditForged, layout::audit(), message)
            .advice("jvs audit --verify --json");
    }
}
