//! What the registers went through, pieced together from the audit logs, and
//! whether it adds up: every state follows from the one before, every
//! transition but a renewal was announced, nothing that was said to be done is
//! missing from the history that the register itself commits to.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::fmt;
use std::io;

use jvs_repo::audit::{self, Event, Flaw, Kind, Phase, WriterId};
use jvs_repo::id::{Epoch, Seq};
use jvs_repo::name::WorktreeName;
use jvs_repo::store::Store;
use serde::Serialize;

use crate::state::State;

/// Where an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// Whose log.
    pub writer: WriterId,
    /// Which line, counted from 1.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of log {}", self.line, self.writer)
    }
}

/// An event and where it stands.
#[derive(Debug, Clone)]
pub struct Logged {
    /// Where.
    pub place: Place,
    /// What.
    pub event: Event,
}

/// All logs, read once.
#[derive(Debug, Default)]
pub struct Logs {
    /// The events that can be read, log by log, in the order of each log.
    pub events: Vec<Logged>,
    /// The lines that are not as they were written.
    pub flaws: Vec<(Place, Flaw)>,
    /// Files among the logs that are none.
    pub foreign: Vec<OsString>,
}

/// Reads all logs.
pub fn read_logs(store: &dyn Store) -> io::Result<Logs> {
    let (writers, foreign) = audit::writers(store)?;
    let mut logs = Logs { foreign, ..Logs::default() };
    for writer in writers {
        audit::read_log(store, &writer, |line| {
            let place = Place { writer, line: line.number };
            logs.flaws.extend(line.flaw.map(|flaw| (place, flaw)));
            logs.events.extend(line.event.map(|event| Logged { place, event }));
        })?;
    }
    Ok(logs)
}

/// Something that does not add up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "problem")]
pub enum Problem {
    /// A line is not as it was written.
    Line {
        /// Where.
        place: Place,
        /// What is wrong with it.
        flaw: Flaw,
    },
    /// An event names register states that cannot be read.
    NotAState {
        /// Where.
        place: Place,
    },
    /// An event's new state does not follow from its old one.
    BadLink {
        /// Where.
        place: Place,
        /// The new state.
        to: String,
    },
    /// States are missing from the history, and lost renewals do not explain it.
    Gap {
        /// The worktree.
        worktree: WorktreeName,
        /// The last state before the gap, if any is known.
        after: Option<String>,
        /// The first state after it.
        before: String,
    },
    /// A transition that must be announced was not.
    Unannounced {
        /// The worktree.
        worktree: WorktreeName,
        /// The state it led to.
        to: String,
    },
    /// An event says it was done, but the history does not contain it.
    NotInHistory {
        /// Where.
        place: Place,
        /// The state it claims.
        to: String,
    },
    /// Renewals whose event was lost with their process. A crash explains it.
    UnloggedRenewals {
        /// The worktree.
        worktree: WorktreeName,
        /// How many.
        count: u64,
        /// The state after them.
        before: String,
    },
}

impl Problem {
    /// Can crashes alone explain it?
    pub fn is_crash(&self) -> bool {
        match self {
            Problem::Line { flaw, .. } => flaw.is_crash(),
            Problem::UnloggedRenewals { .. } => true,
            _ => false,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Line { place, flaw } => match flaw {
                Flaw::TornEnd | Flaw::TornInside => write!(f, "{place} was cut short by a crash"),
                Flaw::BrokenLink => write!(
                    f,
                    "{place} does not follow from the lines before it: it, or one before it, was \
                     changed, removed or moved"
                ),
                Flaw::Unreadable => write!(f, "{place} is not an event"),
                Flaw::TooLong => write!(f, "{place} is longer than any event"),
            },
            Problem::NotAState { place } => write!(f, "{place} names a state that is none"),
            Problem::BadLink { place, to } => {
                write!(f, "{place} leads to a state that does not follow from the one before: {to}")
            }
            Problem::Gap { worktree, after: Some(after), before } => write!(
                f,
                "the history of worktree '{worktree}' has a gap between {after} and {before}"
            ),
            Problem::Gap { worktree, after: None, before } => {
                write!(f, "the history of worktree '{worktree}' before {before} is missing")
            }
            Problem::Unannounced { worktree, to } => {
                write!(f, "no event announces that worktree '{worktree}' went to {to}")
            }
            Problem::NotInHistory { place, to } => write!(
                f,
                "{place} says that {to} was reached, but the register's history does not have it"
            ),
            Problem::UnloggedRenewals { worktree, count, .. } => write!(
                f,
                "{count} renewal(s) of worktree '{worktree}' have no event: their process died first"
            ),
        }
    }
}

/// One life of one register, as far as it is known, oldest state first.
#[derive(Debug, Clone)]
pub struct Life {
    /// The worktree.
    pub worktree: WorktreeName,
    /// Which life.
    pub epoch: Epoch,
    /// The states it went through.
    pub states: Vec<State>,
}

/// What a check found.
#[derive(Debug, Default)]
pub struct Report {
    /// How many events were read.
    pub events: u64,
    /// The histories.
    pub lives: Vec<Life>,
    /// What does not add up, the first bad link first.
    pub problems: Vec<Problem>,
}

impl Report {
    /// The first thing that crashes cannot explain.
    pub fn first_bad_link(&self) -> Option<&Problem> {
        self.problems.iter().find(|problem| !problem.is_crash())
    }
}

/// Checks `logs` against the registers. `registers` must have been READ before
/// the logs were: an event is on disk before its state is in the register.
pub fn check(registers: &[(WorktreeName, State)], logs: &Logs) -> Report {
    let mut problems: Vec<Problem> = logs
        .flaws
        .iter()
        .map(|(place, flaw)| Problem::Line { place: *place, flaw: *flaw })
        .collect();
    let mut lives: BTreeMap<(WorktreeName, Epoch), Known> = BTreeMap::new();
    for logged in &logs.events {
        if let Err(problem) = take_in(&mut lives, logged) {
            problems.push(problem);
        }
    }
    for (worktree, state) in registers {
        let known = lives.entry((worktree.clone(), state.epoch)).or_default();
        known.add(*state);
        known.current = Some(*state);
    }
    let lives = lives
        .into_iter()
        .map(|((worktree, epoch), known)| {
            let states = known.walk_back(&worktree, &mut problems);
            Life { worktree, epoch, states }
        })
        .collect();
    Report { events: logs.events.len() as u64, lives, problems }
}

fn take_in(
    lives: &mut BTreeMap<(WorktreeName, Epoch), Known>,
    logged: &Logged,
) -> Result<(), Problem> {
    let Logged { place, event } = logged;
    let (Some(worktree), Some(to)) = (&event.worktree, &event.to) else { return Ok(()) };
    let not_a_state = || Problem::NotAState { place: *place };
    let to: State = to.parse().map_err(|_| not_a_state())?;
    let from: Option<State> = match &event.from {
        Some(from) => Some(from.parse().map_err(|_| not_a_state())?),
        None => None,
    };
    let linked = from.map_or_else(|| to.is_birth(), |from| to.follows(&from));
    if !linked {
        return Err(Problem::BadLink { place: *place, to: to.to_string() });
    }
    let known = lives.entry((worktree.clone(), to.epoch)).or_default();
    from.into_iter().for_each(|from| known.add(from));
    known.add(to);
    known.events.entry(to).or_default().push((*place, event.kind, event.phase));
    Ok(())
}

/// All that is known of one life of a register.
#[derive(Default)]
struct Known {
    by_seq: BTreeMap<Seq, Vec<State>>,
    events: HashMap<State, Vec<(Place, Kind, Phase)>>,
    current: Option<State>,
}

impl Known {
    fn add(&mut self, state: State) {
        let states = self.by_seq.entry(state.seq).or_default();
        if !states.contains(&state) {
            states.push(state);
        }
    }

    fn is_done(&self, state: &State) -> bool {
        let events = self.events.get(state);
        events.is_some_and(|events| events.iter().any(|(_, _, phase)| *phase == Phase::Done))
    }

    /// Where to start: at the register, or, for a life that is over, at the
    /// last state that is known to have been reached.
    fn newest(&self) -> Option<State> {
        let reached = || {
            let states = self.by_seq.values().rev().flatten();
            states.into_iter().find(|state| self.is_done(state)).copied()
        };
        self.current.or_else(reached)
    }

    fn walk_back(&self, worktree: &WorktreeName, problems: &mut Vec<Problem>) -> Vec<State> {
        let Some(newest) = self.newest() else { return Vec::new() };
        let mut path = vec![newest];
        let mut unknown: HashSet<Seq> = HashSet::new();
        let mut found = Vec::new();
        let mut current = newest;
        while current.seq > Seq(0) {
            let before = Seq(current.seq.0 - 1);
            let direct = self.by_seq.get(&before).into_iter().flatten();
            let previous = match direct.into_iter().find(|previous| current.follows(previous)) {
                Some(previous) => {
                    self.check_announced(worktree, previous, &current, &mut found);
                    *previous
                }
                None => {
                    let candidate = self.before_lost_renewals(&current);
                    found.push(match candidate {
                        Some(earlier) => Problem::UnloggedRenewals {
                            worktree: worktree.clone(),
                            count: current.seq.0
                                - earlier.seq.0
                                - u64::from(self.events.contains_key(&current)),
                            before: current.to_string(),
                        },
                        None => Problem::Gap {
                            worktree: worktree.clone(),
                            after: self.last_done_before(before).map(|state| state.to_string()),
                            before: current.to_string(),
                        },
                    });
                    let Some(earlier) = candidate.or_else(|| self.last_done_before(before)) else {
                        break;
                    };
                    unknown.extend((earlier.seq.0 + 1..current.seq.0).map(Seq));
                    earlier
                }
            };
            path.push(previous);
            current = previous;
        }
        if current.seq == Seq(0) && !current.is_birth() {
            found.push(Problem::Gap {
                worktree: worktree.clone(),
                after: None,
                before: current.to_string(),
            });
        }
        path.reverse();
        found.reverse();
        problems.extend(found);
        self.check_claims(newest.seq, &path, &unknown, problems);
        path
    }

    /// Every transition but a renewal has an event that was written before it.
    fn check_announced(
        &self,
        worktree: &WorktreeName,
        previous: &State,
        state: &State,
        problems: &mut Vec<Problem>,
    ) {
        if self.events.contains_key(state) {
            return;
        }
        let to = state.to_string();
        let worktree = worktree.clone();
        problems.push(if is_renewal(previous, state) {
            Problem::UnloggedRenewals { worktree, count: 1, before: to }
        } else {
            Problem::Unannounced { worktree, to }
        });
    }

    /// The newest known state from which lost renewals alone lead to `state`.
    fn before_lost_renewals(&self, state: &State) -> Option<State> {
        let earlier = self.by_seq.range(..state.seq).rev().flat_map(|(_, states)| states);
        earlier.into_iter().find(|earlier| is_renewal(earlier, state)).copied()
    }

    fn last_done_before(&self, seq: Seq) -> Option<State> {
        let earlier = self.by_seq.range(..=seq).rev().flat_map(|(_, states)| states);
        earlier.into_iter().find(|state| self.is_done(state)).copied()
    }

    /// Whatever is said to be done must be in the history.
    fn check_claims(
        &self,
        newest: Seq,
        path: &[State],
        unknown: &HashSet<Seq>,
        problems: &mut Vec<Problem>,
    ) {
        let path: HashSet<&State> = path.iter().collect();
        let mut strays: Vec<Problem> = Vec::new();
        for (state, events) in &self.events {
            if state.seq > newest || path.contains(state) || unknown.contains(&state.seq) {
                continue;
            }
            for (place, _, phase) in events {
                if *phase == Phase::Done {
                    strays.push(Problem::NotInHistory { place: *place, to: state.to_string() });
                }
            }
        }
        strays.sort_by_key(|problem| match problem {
            Problem::NotInHistory { place, .. } => Some(*place),
            _ => None,
        });
        problems.extend(strays);
    }
}

/// Do renewals alone lead from `earlier` to `later`?
fn is_renewal(earlier: &State, later: &State) -> bool {
    earlier.token == later.token
        && earlier.head == later.head
        && earlier.generation == later.generation
        && earlier.holder().is_some()
        && earlier.holder() == later.holder()
}

#[cfg(test)]
mod tests;
