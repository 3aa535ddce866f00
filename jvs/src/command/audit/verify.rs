//! `jvs audit --verify`: do the logs and the registers tell one story?

use std::io;

use jvs_lock::history::{self, HistoryReport, Logs, Problem, Witnessed};
use jvs_repo::code::{Code, Coded, code_of_io};
use jvs_repo::layout;
use jvs_repo::next::Next;
use jvs_repo::repo::Repo;
use jvs_repo::store::Store;
use serde_json::{Value, json};

use crate::answer::audit::{AuditVerification, ProblemTold};
use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::hint::OwnNext;
use crate::render::Done;

/// No more of one answer is told one by one, to people and to programs: who wrote
/// rubbish into a log decides how much of it there is.
const TOLD: usize = 20;
const TOLD_TO_PROGRAMS: usize = 1_000;

/// The registers of all worktrees, and the logs.
pub(super) fn witness(
    context: &Context<'_>,
    repo: &Repo,
) -> Result<(Vec<Witnessed>, Logs), Failure> {
    let worktrees = repo.worktrees()?.worktrees.into_iter().map(|(name, _)| name);
    // Removed between the two looks: no fault of its register.
    let is_gone = |name: &_| {
        let record = repo.store().stat(&layout::worktree_record(name));
        record.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    let (registers, logs) = history::witness(repo.store(), context.clock(), worktrees, is_gone)?;
    let logs = logs.map_err(|error| Stuck::new("read the audit logs", error))?;
    Ok((registers, logs))
}

pub(super) fn run(context: &Context<'_>, repo: &Repo) -> Result<Done, Failure> {
    let (registers, logs) = witness(context, repo)?;
    let report = history::check(&registers, &logs);
    let answer = told(&report);
    if let Some(first) = report.first_bad_link() {
        return Err(Broken { first: first.clone(), details: json!(answer) }.into());
    }
    if !logs.unread.is_empty() {
        return Err(Unread::new(logs, answer).into());
    }
    let states: usize = report.lives.iter().map(|life| life.states.len()).sum();
    let text = format!(
        "{} events, {states} register states of {} worktrees: every link holds\n",
        report.events,
        registers.len()
    );
    let mut done = Done::new(&answer).with_text(text);
    for warning in warnings(&report, &logs) {
        done = done.with_warning(warning);
    }
    Ok(done)
}

fn warnings(report: &HistoryReport, logs: &Logs) -> Vec<String> {
    let explained = report.problems.iter().map(|problem| match problem.explained_by() {
        Some(cause) => format!("{problem}; {cause} explains it"),
        None => problem.to_string(),
    });
    let foreign = logs.foreign.iter().map(|name| format!("{name:?} is not an audit log"));
    let linked = logs.linked.iter().map(|log| {
        let path = layout::audit_log(log);
        format!("{path} has a second name, so nothing is appended to it any more")
    });
    let all = explained.chain(foreign).chain(linked);
    let more = all.clone().count().saturating_sub(TOLD);
    let mut warnings: Vec<String> = all.take(TOLD).collect();
    if more > 0 {
        warnings.push(format!("{more} more like these; `jvs audit --verify --json` has them"));
    }
    warnings
}

fn told(report: &HistoryReport) -> AuditVerification {
    let problems = report.problems.iter().take(TOLD_TO_PROGRAMS).map(|problem| ProblemTold {
        problem: problem.clone(),
        message: problem.to_string(),
        crash: problem.is_crash(),
        explained: problem.explained_by(),
    });
    let more = report.problems.len().saturating_sub(TOLD_TO_PROGRAMS) as u64 + report.more_flaws;
    AuditVerification {
        verified: report.first_bad_link().is_none(),
        events: report.events,
        states: report.lives.iter().map(|life| life.states.len()).sum(),
        problems: problems.collect(),
        more_problems: more,
        unread: None,
    }
}

/// Some logs cannot be read; what can be read holds.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot read {}: {error}; what the other logs tell holds, as far as it goes without",
    names.join(", ")
)]
struct Unread {
    names: Vec<String>,
    #[source]
    error: io::Error,
    details: Value,
}

impl Unread {
    fn new(logs: Logs, answer: AuditVerification) -> Self {
        let path = |log| layout::audit_log(log).to_string();
        let names: Vec<String> = logs.unread.iter().map(|(log, _)| path(log)).collect();
        let error = logs.unread.into_iter().next().map(|(_, error)| error);
        let unread = Some(names.clone());
        let details = json!(AuditVerification { verified: false, unread, ..answer });
        Unread { names, error: error.unwrap_or(io::ErrorKind::Other.into()), details }
    }
}

impl Coded for Unread {
    fn code(&self) -> Code {
        code_of_io(&self.error)
    }

    fn next(&self) -> Option<Next> {
        let name = self.names.first()?;
        let words =
            format!("look at the mount and at the permissions: ls -l {name}; then try again");
        Some(words.into())
    }

    fn details(&self) -> Option<Value> {
        Some(self.details.clone())
    }
}

/// The logs were changed, or lost more than a crash can take.
#[derive(Debug, thiserror::Error)]
#[error("the audit log does not add up; the first bad link: {first}")]
struct Broken {
    first: Problem,
    details: Value,
}

impl Coded for Broken {
    fn code(&self) -> Code {
        Code::AuditChainBroken
    }

    fn next(&self) -> Option<Next> {
        Some(OwnNext::KeepAuditAndSeeAll.into())
    }

    fn details(&self) -> Option<Value> {
        Some(self.details.clone())
    }
}
