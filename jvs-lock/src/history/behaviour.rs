//! What the logs tell, as the steps of each register in the order in which it took
//! them: what a checker walks along that shares no code with this one.
//!
//! Nothing is judged here. An event is a step if its own outcome, or somebody who saw
//! where it led, says that it was applied; else something that was tried.

use std::collections::{BTreeMap, HashMap, HashSet};

use jvs_repo::audit::{EventKind, EventPhase};
use jvs_repo::id::Seq;
use jvs_repo::name::WorktreeName;

use super::{HistoryReport, LogLine, Logs, Witnessed, anchor};
use crate::state::State;

/// What an item of a behaviour says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Said {
    /// A renewal that the register's history does not have: a power cut took it.
    Lost,
    /// An operation was about to make this step, which did not come about.
    Tried,
    /// The register took this step.
    Step,
    /// The register took this step, and says itself why no log tells of it.
    Untold,
    /// The register is here now.
    Shows,
    /// An event names states that cannot be read.
    Unreadable,
}

/// One item of a behaviour.
#[derive(Debug, Clone, Copy)]
pub struct TraceItem {
    /// What it says.
    pub said: Said,
    /// The operation.
    pub kind: Option<EventKind>,
    /// The state that it started from; none for the first one of a register.
    pub from: Option<State>,
    /// The state that it led to.
    pub to: Option<State>,
    /// The first line that says so.
    pub place: Option<LogLine>,
}

/// What happened to the register of one worktree, oldest first.
#[derive(Debug, Clone)]
pub struct Behaviour {
    /// The worktree.
    pub worktree: WorktreeName,
    /// Where the register was when what is told begins; `None` if it begins with its birth.
    pub first: Option<State>,
    /// The items.
    pub items: Vec<TraceItem>,
}

/// The behaviours of all registers that the logs, or `registers`, tell of. `report` is
/// of the same.
pub fn behaviours(registers: &[Witnessed], logs: &Logs, report: &HistoryReport) -> Vec<Behaviour> {
    let mut tales: BTreeMap<WorktreeName, Tale> = BTreeMap::new();
    let floors = anchor::floors(logs);
    for (worktree, floor) in &floors {
        tales.entry(worktree.clone()).or_default().first = Some(floor.state);
    }
    for life in &report.lives {
        let tale = tales.entry(life.worktree.clone()).or_default();
        tale.path.extend(life.states.iter().copied());
    }
    for logged in &logs.events {
        let event = &logged.event;
        let (Some(worktree), Some(to)) = (&event.worktree, &event.to) else { continue };
        let tale = tales.entry(worktree.clone()).or_default();
        let from = event.from.as_ref().map(|from| from.parse::<State>());
        match (from.transpose(), to.parse::<State>()) {
            (_, Ok(to)) if floors.get(worktree).is_some_and(|floor| floor.covers(&to)) => {}
            (Ok(from), Ok(to)) => {
                tale.seen.extend(from);
                let key = Told { kind: event.kind, from, to };
                tale.tell(key, logged.place, event.phase == EventPhase::Done);
            }
            _ => tale.add_unreadable(event.kind, logged.place),
        }
    }
    for seen in registers {
        let tale = tales.entry(seen.worktree.clone()).or_default();
        tale.shown = Some((seen.state, seen.still));
    }
    tales.into_iter().map(|(worktree, tale)| tale.in_order(worktree)).collect()
}

/// One event, whatever its phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Told {
    kind: EventKind,
    from: Option<State>,
    to: State,
}

/// Where an item belongs: by epoch, by place in it, what only was tried before what moved it.
type Place = ((u32, u16), Seq, Said, Option<LogLine>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    At(Place),
    Last,
}

/// All that is told of one register.
#[derive(Default)]
struct Tale {
    told: HashMap<Told, (LogLine, bool)>,
    /// Where the register came along, as the history has it.
    path: HashSet<State>,
    /// What somebody saw and went on from.
    seen: HashSet<State>,
    items: Vec<(Order, TraceItem)>,
    shown: Option<(State, bool)>,
    first: Option<State>,
}

impl Tale {
    fn tell(&mut self, told: Told, place: LogLine, done: bool) {
        let (first, was_done) = self.told.entry(told).or_insert((place, done));
        *first = place.min(*first);
        *was_done |= done;
    }

    fn add_unreadable(&mut self, kind: EventKind, place: LogLine) {
        let (said, kind, place) = (Said::Unreadable, Some(kind), Some(place));
        self.items.push((Order::Last, TraceItem { said, kind, from: None, to: None, place }));
    }

    fn in_order(mut self, worktree: WorktreeName) -> Behaviour {
        let at = |said, to: &State, place| Order::At((to.epoch.grouping(), to.seq, said, place));
        let tos: HashSet<State> = self.told.keys().map(|told| told.to).collect();
        let there: HashMap<_, &State> =
            self.path.iter().map(|state| ((state.epoch, state.seq), state)).collect();
        // May a power cut have taken this renewal? Then what is in its place was told of,
        // too, or nothing is.
        let may_be_lost = |renewed: &State| {
            let instead = there.get(&(renewed.epoch, renewed.seq));
            instead.is_none_or(|instead| tos.contains(*instead))
        };
        for (&Told { kind, from, to }, &(place, done)) in &self.told {
            let is_in = self.path.contains(&to);
            let said = match kind {
                EventKind::Renew if done && !is_in && may_be_lost(&to) => Said::Lost,
                _ if done || is_in || self.seen.contains(&to) => Said::Step,
                _ => Said::Tried,
            };
            let item = TraceItem { said, kind: Some(kind), from, to: Some(to), place: Some(place) };
            self.items.push((at(said, &to, Some(place)), item));
        }
        for state in &self.path {
            let began = Some(*state) == self.first;
            if state.is_untold_release() && !tos.contains(state) && !began {
                let (said, to) = (Said::Untold, Some(*state));
                let item = TraceItem { said, kind: None, from: None, to, place: None };
                self.items.push((at(said, state, None), item));
            }
        }
        if let Some((state, still)) = self.shown {
            let said = Said::Shows;
            let item = TraceItem { said, kind: None, from: None, to: Some(state), place: None };
            // Nothing is told that is ahead of a register that stood still.
            let order = if still { Order::Last } else { at(said, &state, None) };
            self.items.push((order, item));
        }
        self.items.sort_by_key(|(order, item)| (*order, item.place));
        let first = self.first;
        Behaviour { worktree, first, items: self.items.into_iter().map(|(_, item)| item).collect() }
    }
}
