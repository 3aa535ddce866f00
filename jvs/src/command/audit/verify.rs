//! `jvs audit --verify`: do the logs and the registers tell one story?

use std::fmt;

use jvs_lock::history::{self, Problem, Report};
use jvs_lock::register::Register;
use jvs_repo::code::{Code, Coded};
use jvs_repo::repo::Repo;
use serde_json::{Value, json};

use crate::context::Context;
use crate::fail::{Failure, Stuck};
use crate::render::Done;

pub(super) fn run(context: &Context<'_>, repo: &Repo) -> Result<Done, Failure> {
    // The registers first: an event is on disk before its state is in the
    // register, so that whatever is added meanwhile is not taken for a gap.
    let mut registers = Vec::new();
    for (name, _) in repo.worktrees()?.worktrees {
        let register = Register::new(repo.store(), context.clock(), name.clone());
        registers.push((name, register.read()?));
    }
    let logs = history::read_logs(repo.store())
        .map_err(|error| Stuck::new("read the audit logs", error))?;
    let report = history::check(&registers, &logs);
    let foreign: Vec<String> =
        logs.foreign.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if let Some(first) = report.first_bad_link() {
        return Err(Broken { first: first.clone(), details: data(&report) }.into());
    }
    let states: usize = report.lives.iter().map(|life| life.states.len()).sum();
    let text = format!(
        "{} events, {states} register states of {} worktrees: every link holds\n",
        report.events,
        registers.len()
    );
    let mut done = Done::new(data(&report)).with_text(text);
    for problem in &report.problems {
        done = done.with_warning(format!("{problem}; a crash explains it"));
    }
    for name in foreign {
        done = done.with_warning(format!("{name:?} lies among the logs and is none"));
    }
    Ok(done)
}

fn data(report: &Report) -> Value {
    let problems = report.problems.iter().map(|problem| {
        let mut data = json!(problem);
        data["message"] = json!(problem.to_string());
        data["crash"] = json!(problem.is_crash());
        data
    });
    json!({
        "verified": report.first_bad_link().is_none(),
        "events": report.events,
        "states": report.lives.iter().map(|life| life.states.len()).sum::<usize>(),
        "problems": problems.collect::<Vec<_>>(),
    })
}

/// The logs were changed, or lost more than a crash can take.
#[derive(Debug)]
struct Broken {
    first: Problem,
    details: Value,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the audit log does not add up; the first bad link: {}", self.first)
    }
}

impl std::error::Error for Broken {}

impl Coded for Broken {
    fn code(&self) -> Code {
        Code::AuditChainBroken
    }

    fn hint(&self) -> Option<String> {
        Some(
            "keep a copy of the audit directory, then see all of it: `jvs audit --verify --json`"
                .into(),
        )
    }

    fn details(&self) -> Option<Value> {
        Some(self.details.clone())
    }
}
