//! `jvs doctor`: looks, mends what it may, and says what is left.

mod logs;
pub(super) mod probe;
mod prometheus;
mod pulse;
mod report;

use std::path::PathBuf;

use jvs_doctor::examine::finding;
use jvs_doctor::{
    Care, Check, ChosenHead, Depth, Examination, Finding, Patient, Rehearsal, Surroundings,
    examine, treat, treat_as,
};
use jvs_repo::code::{Code, Coded};
use jvs_repo::config::Config;
use jvs_repo::id::SnapshotId;
use jvs_repo::name::WorktreeName;
use jvs_repo::next::Next;
use jvs_repo::probe::Filesystem;
use jvs_repo::proc;
use jvs_repo::repo::Repo;
use jvs_repo::store::PosixStore;
use serde_json::json;

use self::pulse::Pulse;
use super::snapshots::counted;
use crate::answer::Text;
use crate::args::{DoctorArgs, ReportFormat};
use crate::context::Context;
use crate::fail::{Failure, Stuck, WrongUsage};
use crate::hint::OwnNext;
use crate::keeper::notes_waiting;
use crate::render::{Done, shown};

pub(crate) fn run(context: &Context<'_>, args: &DoctorArgs) -> Result<Done, Failure> {
    let chosen_head = match args.head.as_deref() {
        None => None,
        // To begin again is too much to be done to whichever worktree it fits.
        Some("none") => {
            let worktree = context.given_worktree()?.unwrap_or_else(WorktreeName::main);
            Some(ChosenHead { head: None, worktree: Some(worktree) })
        }
        Some(id) => Some(ChosenHead { head: Some(head(id)?), worktree: context.given_worktree()? }),
    };
    let root = context.root()?;
    let store = PosixStore::open(&root).map_err(|e| Stuck::new("open the repository", e))?;
    let filesystem =
        Filesystem::at(&root).map_err(|error| Stuck::new("look at the filesystem", error))?;
    let patient = Patient {
        seams: context.seams(&store),
        payloads: &store,
        surroundings: Surroundings {
            filesystem,
            space: store.space().ok(),
            pid_namespace: proc::pid_namespace(),
            lookup: proc::process_stat,
        },
        chosen_head,
    };
    let verdict = match args.probe {
        true => Some(probe::run(context, args, &store, &patient.surroundings.filesystem)?),
        false => probe::kept(&store),
    };
    let full = args.strict || args.repair;
    let care = if args.repair { Care::Repair } else { Care::Clean };
    let depth = if full { Depth::Full } else { Depth::Quick };
    let mut examination = examine(&patient, depth);
    let planned = examination
        .findings
        .iter()
        .any(|f| full && f.remedy.as_ref().is_some_and(|remedy| care.allows(remedy)));
    let mut foreseen = None;
    if planned && args.dry_run {
        foreseen = Some(rehearse(context, &patient, care, &examination)?);
    } else if planned {
        examination = mend(context, &store, &patient, care, examination)?;
    }
    for told in [Some(&mut examination), foreseen.as_mut()].into_iter().flatten() {
        told.add(verdict.iter().flat_map(probe::findings));
        if Check::SessionStale.depth() <= depth {
            told.add(notes(context));
            told.add(leftovers(context));
        }
    }
    let logs = full.then(|| logs::size_of(&store)).flatten();
    let say = report::Saying {
        logs,
        examination: &examination,
        filesystem: &patient.surroundings.filesystem,
        verdict: verdict.as_ref(),
        foreseen: foreseen.as_ref(),
        dry_run: args.dry_run && full,
        full,
    };
    let done = match args.format {
        ReportFormat::Prometheus => {
            let pulse = Pulse::take(context.seams(&store), &examination);
            let now = context.clock().now().wall;
            let text = prometheus::text(&shown(&root), &examination, &pulse, logs, now);
            Done::new(&Text { text: text.clone() }).with_text(text)
        }
        ReportFormat::Human | ReportFormat::Json => {
            Done::new(&say.told()).with_text(say.text(context.paint()))
        }
    };
    if examination.is_healthy() {
        return Ok(done);
    }
    let remains = Remains::of(&examination, args);
    Err(Failure::from(remains).with_report(done))
}

fn mend(
    context: &Context<'_>,
    store: &PosixStore,
    patient: &Patient<'_>,
    care: Care,
    first: Examination,
) -> Result<Examination, Failure> {
    // A configuration that cannot be read is a finding, not a reason to give up.
    let policy = Config::read(store).map(|config| config.lock).unwrap_or_default();
    let acting = context.session(None)?;
    let locks = context.locks(store, policy, &acting)?;
    // Of a repository that cannot even say which one it is there are no holds.
    let repo = Repo::open(store.root_path()).ok();
    let holds = |worktree: &WorktreeName| context.holds(repo.as_ref()?, worktree, &acting).ok();
    Ok(treat_as(patient, &locks, &holds, care, first))
}

/// What [`mend`] would do: the same code on a repository whose changes stay in
/// memory.
fn rehearse(
    context: &Context<'_>,
    patient: &Patient<'_>,
    care: Care,
    first: &Examination,
) -> Result<Examination, Failure> {
    let store = Rehearsal::new(patient.seams.store, patient.payloads);
    let policy = Config::read(&store).map(|config| config.lock).unwrap_or_default();
    let locks = context.locks_to_rehearse(&store, policy)?;
    let patient = Patient { seams: context.seams(&store), payloads: &store, ..patient.clone() };
    Ok(treat(&patient, &locks, care, first.clone()))
}

/// Words to sessions of this user that lost their lock and did not come back.
fn notes(context: &Context<'_>) -> Option<Finding> {
    let (number, dir) = notes_waiting(context)?;
    let message = format!(
        "{} of this user on this host lost a lock and has not been told yet",
        counted(number as u64, "session")
    );
    let advice =
        "the session's next command tells it; if there will be none, remove the files in it";
    Some(finding(Check::SessionStale, shown(&dir), message, advice.into()))
}

/// What sessions of this user left when they died in the middle of their first
/// command. Outside the repository, and so not doctor's to remove.
fn leftovers(context: &Context<'_>) -> Vec<Finding> {
    let told = |path: PathBuf| {
        let path = shown(&path);
        let message = "a session died while it created its secret; it has another one".to_owned();
        let advice = format!("nobody can still need it: rm {path}");
        finding(Check::SessionStale, path, message, advice.into())
    };
    context.session_leftovers().into_iter().map(told).collect()
}

fn head(text: &str) -> Result<SnapshotId, Failure> {
    text.parse().map_err(|_| {
        WrongUsage::new(
            format!("\"{text}\" is not the whole id of a snapshot"),
            OwnNext::GiveIdAsDoctor,
        )
        .into()
    })
}

/// Something is wrong and still there.
#[derive(Debug, thiserror::Error)]
#[error(
    "the repository is not healthy: {}, {}",
    counted(*errors as u64, "error"),
    counted(*warnings as u64, "warning")
)]
struct Remains {
    errors: usize,
    warnings: usize,
    next: Next,
}

impl Remains {
    fn of(examination: &Examination, args: &DoctorArgs) -> Self {
        let [(_, errors), (_, warnings), _] = jvs_doctor::examine::tally(&examination.findings);
        let mendable = examination
            .findings
            .iter()
            .any(|f| f.counts() && f.remedy.is_some() && f.outcome.is_none());
        let next = match (args.strict || args.repair, mendable) {
            (false, _) => OwnNext::SeeAllOfDoctor.into(),
            (true, true) if !args.repair => OwnNext::SeeRepairs.into(),
            (true, true) if args.dry_run => OwnNext::Repair.into(),
            _ => "each finding says what to do by hand".into(),
        };
        Remains { errors, warnings, next }
    }
}

impl Coded for Remains {
    fn code(&self) -> Code {
        Code::DriftRemains
    }

    fn next(&self) -> Option<Next> {
        Some(self.next.clone())
    }

    fn details(&self) -> Option<serde_json::Value> {
        Some(json!({ "errors": self.errors, "warnings": self.warnings }))
    }
}
