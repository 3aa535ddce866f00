//! What anchors say of logs that were dropped, and whether the logs that are there go on
//! after them.

use std::collections::{BTreeMap, BTreeSet};

use jvs_repo::audit::{Anchored, Continued, EventKind, LogName, Sum};
use jvs_repo::id::OpNonce;
use jvs_repo::name::WorktreeName;

use super::logs::{LogLine, Logged, Logs};
use super::problem::Problem;
use crate::state::State;

/// Where the history of a worktree begins, if what is before that was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Floor {
    pub(super) state: State,
    pub(super) place: LogLine,
}

impl Floor {
    /// Is a state from before it, or the floor itself?
    pub(super) fn covers(&self, state: &State) -> bool {
        let (floor, epoch) = (&self.state, state.epoch);
        epoch.counter < floor.epoch.counter || epoch == floor.epoch && state.seq <= floor.seq
    }

    fn rank(&self) -> (u32, u64) {
        (self.state.epoch.counter, self.state.seq.0)
    }
}

fn anchored(logged: &Logged) -> Option<Anchored> {
    let is_one = logged.event.kind == EventKind::Anchor && logged.place.log.anchor().is_some();
    logged.event.details_as().filter(|_| is_one)
}

/// Leaves out what anchors say whose place another one has taken: it is not known there
/// what was done since.
pub(super) fn leave_out_replaced(logs: &mut Logs) {
    let replaced: BTreeSet<OpNonce> = logs
        .events
        .iter()
        .filter_map(|logged| match anchored(logged)? {
            Anchored::Replaces(op) => Some(op),
            _ => None,
        })
        .collect();
    let counts = |log: &LogName| log.anchor().is_none_or(|op| !replaced.contains(&op));
    logs.events.retain(|logged| counts(&logged.place.log));
    logs.replaced = replaced;
}

/// Where each history begins: the latest that an anchor says.
pub(super) fn floors(logs: &Logs) -> BTreeMap<WorktreeName, Floor> {
    let mut floors: BTreeMap<WorktreeName, Floor> = BTreeMap::new();
    for Logged { place, event } in &logs.events {
        if event.kind != EventKind::Anchor || place.log.anchor().is_none() {
            continue;
        }
        let state = event.to.as_deref().and_then(|to| to.parse::<State>().ok());
        let Some((worktree, state)) = event.worktree.as_ref().zip(state) else { continue };
        let floor = Floor { state, place: *place };
        let known = floors.entry(worktree.clone()).or_insert(floor);
        if floor.rank() > known.rank() {
            *known = floor;
        }
    }
    floors
}

/// The log that each log says it goes on after, and where it says so.
pub(super) fn continued(logs: &Logs) -> impl Iterator<Item = (LogLine, Continued)> {
    let begins = |logged: &&Logged| logged.place.line == 1 && logged.place.log.anchor().is_none();
    let of_kind = |logged: &&Logged| logged.event.kind == EventKind::Continue;
    let all = logs.events.iter().filter(begins).filter(of_kind);
    all.filter_map(|logged| Some((logged.place, logged.event.details_as()?)))
}

/// How logs that were dropped ended, by the anchors, oldest first.
pub(super) fn dropped(logs: &Logs) -> impl Iterator<Item = Continued> {
    logs.events.iter().filter_map(|logged| match anchored(logged)? {
        Anchored::Dropped(log) => Some(log),
        _ => None,
    })
}

/// Logs that do not go on after what they say, and anchors that are not whole.
pub(super) fn broken(logs: &Logs) -> Vec<Problem> {
    let dropped: BTreeMap<LogName, Sum> = dropped(logs).map(|log| (log.after, log.last)).collect();
    let mut broken = Vec::new();
    let anchors = logs.ends.keys().filter(|log| {
        let op = log.anchor();
        op.is_some_and(|op| !logs.replaced.contains(&op))
    });
    let mut lines: BTreeMap<LogName, (u64, Option<u64>)> =
        anchors.map(|log| (*log, (0, None))).collect();
    for logged in logs.events.iter().filter(|logged| logged.place.log.anchor().is_some()) {
        let (there, said) = lines.entry(logged.place.log).or_default();
        *there += 1;
        if let Some(Anchored::Lines(count)) = anchored(logged) {
            *said = Some(count);
        }
    }
    let cut = lines.into_iter().filter(|(_, (there, said))| Some(*there) != *said);
    broken.extend(cut.map(|(log, (line, _))| Problem::AnchorCut { place: LogLine { log, line } }));
    for (place, Continued { after, last }) in continued(logs) {
        let is_unread = logs.unread.iter().any(|(log, _)| *log == after);
        let ends = logs.ends.get(&after).map(|end| end.last);
        match ends.or_else(|| dropped.get(&after).copied()) {
            Some(ends) if ends == last => {}
            Some(_) => broken.push(Problem::Spliced { place, after }),
            None if is_unread => {}
            None => broken.push(Problem::LogMissing { place, after }),
        }
    }
    broken
}
