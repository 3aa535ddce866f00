//! The audit logs: every line as it was written, every state accounted for.

use jvs_lock::history::{self, EpochHistory, Problem, Witnessed};
use jvs_repo::layout;
use jvs_repo::next::Next;
use jvs_repo::store::RepoPath;

use crate::check::{Check, Severity};
use crate::finding::FindingCollector;
use crate::rebuild;
use crate::remedy::Remedy;
use crate::survey::Survey;

/// At most this many lines are reported one by one.
const TOLD: usize = 100;

const EVIDENCE: &str = "keep a copy of the audit directory and find out who did it; a log is \
                        evidence and is never rewritten";

pub(super) fn full(survey: &Survey<'_, '_>, report: &mut FindingCollector) {
    let seen: Vec<Witnessed> = survey
        .registers
        .iter()
        .filter_map(|(worktree, read)| {
            // READ again, now that the logs were read.
            let (state, still) = (**read.as_ref().ok()?, survey.is_unchanged(worktree));
            Some(Witnessed { worktree: worktree.clone(), state, still })
        })
        .collect();
    let found = history::check(&seen, &survey.logs);
    let told = found.problems.iter().filter(|problem| {
        // What is missing may be in a log that cannot be read, which is told. So is
        // a register that was set back, by the check of registers.
        let untold = found.is_partial && problem.is_of_absence();
        !untold && !matches!(problem, Problem::SetBack { .. })
    });
    let more = told.clone().count().saturating_sub(TOLD) as u64 + found.more_flaws;
    for problem in told.take(TOLD) {
        let over = found.lives.iter().any(|life| life.is_over && life.problems.contains(problem));
        tell(problem, over, report);
    }
    if more > 0 {
        let message = format!("{more} more lines or links are inconsistent");
        report.add(Check::AuditForged, layout::audit(), message).advice(Next::VerifyAuditInFull);
    }
    for life in found.lives.iter().filter(|life| !life.is_over) {
        forged_register(survey, life, report);
    }
    for log in &survey.logs.linked {
        let message = "the log has a second name, so nothing is appended to it any more";
        report.add(Check::AuditLinked, layout::audit_log(log), message).advice(
            "nothing needs to be done: its session goes on in a log of its own; `find -samefile` \
             finds the other name",
        );
    }
}

fn tell(problem: &Problem, over: bool, report: &mut FindingCollector) {
    let check = match problem {
        problem if problem.explained_by().is_some() => Check::AuditTorn,
        Problem::Gap { .. } | Problem::Unannounced { .. } | Problem::LogMissing { .. } => {
            Check::AuditGap
        }
        _ => Check::AuditForged,
    };
    let advice = match problem.explained_by() {
        Some(cause) => format!("nothing needs to be done: {cause} explains it"),
        None => EVIDENCE.to_owned(),
    };
    let found = report.add(check, path_of(problem), problem.to_string()).advice(advice);
    if over {
        // Rebuilt since: it stays to be seen, and nothing rests on it any more.
        found.severity(Severity::Notice);
    }
}

fn path_of(problem: &Problem) -> RepoPath {
    match problem {
        Problem::Line { place, .. }
        | Problem::NotAState { place }
        | Problem::BadLink { place, .. }
        | Problem::LostRenewals { place, .. }
        | Problem::Spliced { place, .. }
        | Problem::AnchorCut { place }
        | Problem::NotInHistory { place, .. } => layout::audit_log(place.log),
        Problem::Forged { worktree, .. }
        | Problem::Unlawful { worktree, .. }
        | Problem::UntoldRelease { worktree, .. }
        | Problem::SetBack { worktree, .. } => layout::register(worktree),
        Problem::LogMissing { after, .. } => layout::audit_log(after),
        Problem::Gap { .. } | Problem::Unannounced { .. } | Problem::UnloggedRenewals { .. } => {
            layout::audit()
        }
    }
}

/// A register that somebody wrote to gets a new epoch above all that was ever seen:
/// until then a token may have been granted twice.
fn forged_register(survey: &Survey<'_, '_>, life: &EpochHistory, report: &mut FindingCollector) {
    let Some(Ok(state)) = survey.registers.get(&life.worktree) else { return };
    let told = |problem: &Problem| matches!(problem, Problem::SetBack { .. });
    let forged = life.problems.iter().any(|p| p.of_register().is_some() && !told(p));
    if !forged || state.epoch != life.epoch || !survey.is_unchanged(&life.worktree) {
        return;
    }
    let path = layout::register(&life.worktree);
    if report.findings.iter().any(|found| found.path == path.as_str() && found.remedy.is_some()) {
        return;
    }
    let message = "no sequence of operations explains its history: somebody wrote to the register";
    let found = report.add(Check::RegisterChain, path, message).of(&life.worktree);
    match rebuild::plan_regressed(survey, &life.worktree, state) {
        Ok(rebuild) => found.remedy(Remedy::Rebuild(Box::new(rebuild))),
        Err(ask) => found.advice(ask),
    };
}
