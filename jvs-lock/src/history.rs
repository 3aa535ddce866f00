//! What the registers went through, pieced together from the audit logs, and
//! whether it adds up: every state follows from the one before by a step that an
//! operation makes, every transition but a renewal was announced, nothing that was
//! seen or said to be done is missing from the history that the register itself
//! commits to, and no place in that history has two states.

mod anchor;
mod behaviour;
mod changes;
mod drop;
mod epoch;
mod law;
mod logs;
mod problem;

use std::collections::BTreeMap;

use jvs_repo::clock::Clock;
use jvs_repo::id::{Epoch, FencingToken};
use jvs_repo::name::WorktreeName;
use jvs_repo::sabotage;
use jvs_repo::store::Store;

use crate::mutation::Rule;
use crate::register::{ReadError, Register};
use crate::state::State;
use anchor::Floor;
use epoch::KnownStates;

pub use behaviour::{Behaviour, Said, TraceItem, behaviours};
pub use changes::{LockChangeKind, RegisterChange, ToldStates, changes_between, renamed_to};
pub use drop::{Dropped, drop_old};
pub use law::is_renewal;
pub use logs::{LogLine, Logged, Logs, read_logs, read_logs_since};
pub use problem::{Problem, Wrong};

/// One epoch of one register, as far as it is known, oldest state first.
#[derive(Debug, Clone)]
pub struct EpochHistory {
    /// The worktree.
    pub worktree: WorktreeName,
    /// Which epoch.
    pub epoch: Epoch,
    /// The states it went through.
    pub states: Vec<State>,
    /// What does not add up in it.
    pub problems: Vec<Problem>,
    /// Did another epoch take its place?
    pub is_over: bool,
}

/// What a check found.
#[derive(Debug, Default)]
pub struct HistoryReport {
    /// How many events were read.
    pub events: u64,
    /// The histories.
    pub lives: Vec<EpochHistory>,
    /// What does not add up, the first bad link first.
    pub problems: Vec<Problem>,
    /// How many more lines are not as they were written.
    pub more_flaws: u64,
    /// Were there logs that could not be read? What is missing may be in them.
    pub is_partial: bool,
}

impl HistoryReport {
    /// The first thing that is not explained.
    pub fn first_bad_link(&self) -> Option<&Problem> {
        self.problems.iter().find(|problem| self.is_bad(problem))
    }

    /// Is `problem` explained neither by itself nor by a log that cannot be read?
    pub fn is_bad(&self, problem: &Problem) -> bool {
        let untold = self.is_partial && problem.is_of_absence();
        problem.explained_by().is_none() && !untold
    }
}

/// A register as it was READ before the logs were read, and whether a READ after
/// that still showed the same. An event is on disk before its state is in the
/// register, and is written only by one who saw the state that it starts from: so
/// nothing that is told can be ahead of a register that stood still.
#[derive(Debug, Clone)]
pub struct Witnessed {
    /// The worktree.
    pub worktree: WorktreeName,
    /// What it showed.
    pub state: State,
    /// Did it stand still?
    pub still: bool,
}

/// READs the registers of `worktrees`, then the logs, then the registers again. A
/// worktree whose register is gone by then and which `is_gone` says was removed is
/// left out.
pub fn witness(
    store: &dyn Store,
    clock: &dyn Clock,
    worktrees: impl IntoIterator<Item = WorktreeName>,
    is_gone: impl Fn(&WorktreeName) -> bool,
) -> Result<(Vec<Witnessed>, std::io::Result<Logs>), ReadError> {
    let mut read = Vec::new();
    for worktree in worktrees {
        let register = Register::new(store, clock, worktree.clone());
        match register.read() {
            Ok(state) => read.push((register, Witnessed { worktree, state, still: false })),
            Err(ReadError::Missing { .. }) if is_gone(&worktree) => {}
            Err(error) => return Err(error),
        }
    }
    let logs = read_logs(store);
    let again = |(register, seen): (Register<'_>, Witnessed)| {
        let still = register.read().is_ok_and(|state| state == seen.state);
        Witnessed { still, ..seen }
    };
    Ok((read.into_iter().map(again).collect(), logs))
}

/// Lives by worktree, earlier ones first.
type EpochKey = (WorktreeName, (u32, u16));

fn epoch_key(worktree: &WorktreeName, state: &State) -> EpochKey {
    (worktree.clone(), state.epoch.grouping())
}

/// Checks `logs` against the registers.
pub fn check(registers: &[Witnessed], logs: &Logs) -> HistoryReport {
    let mut problems: Vec<Problem> = logs
        .flaws
        .iter()
        .map(|(place, flaw)| Problem::Line { place: *place, flaw: *flaw })
        .collect();
    problems.extend(anchor::broken(logs));
    let floors = anchor::floors(logs);
    let mut known: BTreeMap<EpochKey, KnownStates> = BTreeMap::new();
    let mut before = LastStep::default();
    for logged in &logs.events {
        if let Err(problem) = take_in(&mut known, &floors, &mut before, logged) {
            problems.push(problem);
        }
    }
    for (worktree, floor) in &floors {
        known.entry(epoch_key(worktree, &floor.state)).or_default().begins_with(*floor);
    }
    for seen in registers {
        let known = known.entry(epoch_key(&seen.worktree, &seen.state)).or_default();
        known.shows(seen.state, seen.still);
    }
    let mut lives: Vec<EpochHistory> = Vec::new();
    for ((worktree, (counter, salt)), known) in known {
        let epoch = Epoch { counter, salt };
        let (states, mut found) = known.walk_back(&worktree);
        // Lives are in order: what is before this one and of the same name came first.
        let before = lives.iter_mut().filter(|life| life.worktree == worktree);
        for life in before.filter(|life| life.epoch < epoch) {
            life.is_over = true;
            found.extend(fallen_between(life, &states));
        }
        problems.extend(found.iter().cloned());
        lives.push(EpochHistory { worktree, epoch, states, problems: found, is_over: false });
    }
    HistoryReport {
        events: logs.events.len() as u64,
        lives,
        problems,
        more_flaws: logs.more_flaws,
        is_partial: !logs.unread.is_empty(),
    }
}

/// An epoch whose first token is not above those of an epoch before it.
fn fallen_between(earlier: &EpochHistory, states: &[State]) -> Option<Problem> {
    sabotage!(Rule::LawfulSteps => None);
    let first = states.first()?;
    let token = |state: &State| -> FencingToken { state.token };
    let last = earlier.states.iter().max_by_key(|state| token(state))?;
    (first.token < last.token).then(|| Problem::Unlawful {
        worktree: earlier.worktree.clone(),
        from: last.to_string(),
        to: first.to_string(),
        why: Wrong::TokenFell,
    })
}

fn take_in<'l>(
    lives: &mut BTreeMap<EpochKey, KnownStates>,
    floors: &BTreeMap<WorktreeName, Floor>,
    before: &mut LastStep<'l>,
    logged: &'l Logged,
) -> Result<(), Problem> {
    let Logged { place, event } = logged;
    let (Some(worktree), Some(to)) = (&event.worktree, &event.to) else { return Ok(()) };
    let step = before.step(event.from.as_deref(), to);
    let Step { from, to, linked } = step.ok_or(Problem::NotAState { place: *place })?;
    if floors.get(worktree).is_some_and(|floor| floor.covers(&to)) {
        return Ok(());
    }
    if let Some(from) = from {
        // Whatever comes of the event: its writer saw that state.
        lives.entry(epoch_key(worktree, &from)).or_default().was_seen(from, *place);
    }
    if !linked {
        return Err(Problem::BadLink { place: *place, to: to.to_string() });
    }
    let known = lives.entry(epoch_key(worktree, &to)).or_default();
    known.was_told(from, to, *place, event.kind, event.phase);
    Ok(())
}

/// What an event says: from which state to which, and whether the one follows the other.
#[derive(Debug, Clone, Copy)]
struct Step {
    from: Option<State>,
    to: State,
    linked: bool,
}

impl Step {
    /// `None` if one of them is no state.
    fn read(from: Option<&str>, to: &str) -> Option<Step> {
        let to: State = to.parse().ok()?;
        let from: Option<State> = from.map(str::parse).transpose().ok()?;
        let linked = from.map_or_else(|| to.is_birth(), |from| to.follows(&from));
        Some(Step { from, to, linked })
    }
}

/// The step that was read last. What is done is told by the same words that announced it,
/// most often in the next line, and reading them costs more than all else.
#[derive(Default)]
struct LastStep<'l> {
    last: Option<(Option<&'l str>, &'l str, Option<Step>)>,
}

impl<'l> LastStep<'l> {
    fn step(&mut self, from: Option<&'l str>, to: &'l str) -> Option<Step> {
        match self.last {
            Some((same, as_before, step)) if same == from && as_before == to => step,
            _ => {
                let step = Step::read(from, to);
                self.last = Some((from, to, step));
                step
            }
        }
    }
}

#[cfg(test)]
mod tests;
