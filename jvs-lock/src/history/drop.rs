//! Drops the oldest closed logs once there is more of them than is to be kept. What their
//! readers still have to know goes into an anchor first.
//!
//! Two sessions may do it at once, and each may die anywhere. An anchor has a name that never
//! comes back and is never edited; a log goes only once an anchor that stands for it is
//! durable; an anchor goes only once one that was made of it is. Whoever finds another's
//! anchor after its own was written has not seen all there is, and takes its own back.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use jvs_repo::audit::{
    self, Anchored, Continued, Details, Event, EventKind, EventPhase, LogName, write_anchor,
};
use jvs_repo::clock::WallMs;
use jvs_repo::id::{Epoch, FencingToken, OpNonce, Seq};
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::tag::LoggedTag;
use jvs_repo::record::worktree;
use jvs_repo::sabotage;
use jvs_repo::store::Store;
use serde::Serialize;

use super::anchor;
use super::logs::{Logged, Logs};
use super::{HistoryReport, Witnessed, check, witness};
use crate::mutation::Rule;
use crate::seams::Seams;
use crate::session::Session;
use crate::state::{Hold, State};

/// What was dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Dropped {
    /// How many logs.
    pub logs: u64,
    /// How large they were.
    pub bytes: u64,
}

/// Drops the oldest closed logs, until the others take up `keep` bytes at most. Drops
/// nothing while the logs and the registers do not add up: then they are evidence.
pub fn drop_old(seams: Seams<'_>, session: &Session, keep: u64) -> io::Result<Dropped> {
    let store = seams.store;
    if closed_bytes(store)? <= keep {
        return Ok(Dropped::default());
    }
    let listed = worktree::list(store).map_err(io::Error::other)?;
    let worktrees = listed.worktrees.into_iter().map(|(name, _)| name);
    let is_gone = |name: &WorktreeName| {
        let record = store.stat(&layout::worktree_record(name));
        record.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    let seen = witness(store, seams.clock, worktrees, is_gone).map_err(io::Error::other)?;
    let (registers, logs) = (seen.0, seen.1?);
    let Some(plan) = plan(&registers, &logs, keep) else { return Ok(Dropped::default()) };
    carry_out(seams, session, &logs, &plan)
}

/// How much the closed logs take up. One that is gone meanwhile takes up nothing.
fn closed_bytes(store: &dyn Store) -> io::Result<u64> {
    let closed = audit::logs(store)?.0.into_iter().filter(LogName::is_closed);
    Ok(closed.filter_map(|log| store.stat(&layout::audit_log(log)).ok()).map(|it| it.size).sum())
}

/// Which logs go, and what has to be known without them.
#[derive(Debug, Default)]
struct DropPlan {
    drop: BTreeSet<LogName>,
    floors: BTreeMap<WorktreeName, State>,
}

/// What the logs that go tell of a worktree, at most.
#[derive(Debug, Clone, Copy)]
struct Told {
    epoch: Epoch,
    seq: Seq,
    token: FencingToken,
}

/// Which logs can go: the oldest first. `None` if none can or none has to.
fn plan(registers: &[Witnessed], logs: &Logs, keep: u64) -> Option<DropPlan> {
    let report = check(registers, logs);
    if report.first_bad_link().is_some() || report.is_partial || report.more_flaws > 0 {
        return None;
    }
    let mut closed: Vec<(Option<WallMs>, LogName)> = Vec::new();
    for log in logs.ends.keys().filter(|log| log.is_closed() && has_a_next(logs, log)) {
        let of = logs.events.iter().filter(|logged| logged.place.log == *log);
        closed.push((of.filter_map(|logged| logged.event.at_ms()).max(), *log));
    }
    closed.sort_unstable();
    let bytes = |log: &LogName| logs.ends.get(log).map_or(0, |end| end.bytes);
    let all = logs.ends.keys().filter(|log| log.is_closed());
    let mut left: u64 = all.map(bytes).sum();
    let mut plan = DropPlan::default();
    for (worktree, floor) in anchor::floors(logs) {
        plan.floors.insert(worktree, floor.state);
    }
    for (_, log) in closed {
        if left <= keep {
            break;
        }
        if let Some(floors) = floors_without(registers, logs, &report, &plan.floors, log) {
            plan.floors.extend(floors);
            plan.drop.insert(log);
            left -= bytes(&log);
        }
    }
    (!plan.drop.is_empty()).then_some(plan)
}

/// Did its writer go on in another log? Who closes one makes the next one after that, and
/// says in its first line how the one before ended.
fn has_a_next(logs: &Logs, log: &LogName) -> bool {
    sabotage!(Rule::NextIsThere => true);
    let next: Option<LogName> = log.writer().map(Into::into);
    anchor::continued(logs).any(|(_, before)| before.after == *log)
        || logs.events.iter().any(|logged| Some(logged.place.log) == next)
}

/// Where the histories would begin without `log`. `None` if it has what is not decided yet,
/// or what only it tells.
fn floors_without(
    registers: &[Witnessed],
    logs: &Logs,
    report: &HistoryReport,
    floors: &BTreeMap<WorktreeName, State>,
    log: LogName,
) -> Option<BTreeMap<WorktreeName, State>> {
    let mut told: BTreeMap<&WorktreeName, Told> = BTreeMap::new();
    for Logged { event, .. } in logs.events.iter().filter(|logged| logged.place.log == log) {
        let (Some(worktree), Some(to)) = (&event.worktree, &event.to) else { continue };
        let to: State = to.parse().ok()?;
        told.entry(worktree).or_insert_with(|| Told::of(&to)).take(&to)?;
    }
    let mut raised = BTreeMap::new();
    for (worktree, told) in told {
        let floor = floor_above(registers, report, floors.get(worktree), worktree, told)?;
        raised.insert(worktree.clone(), floor);
    }
    Some(raised)
}

impl Told {
    fn of(State { epoch, seq, token, .. }: &State) -> Self {
        Told { epoch: *epoch, seq: *seq, token: *token }
    }

    /// `None` if it is not known which of two epochs came first.
    fn take(&mut self, state: &State) -> Option<()> {
        self.token = self.token.max(state.token);
        if self.epoch == state.epoch {
            self.seq = self.seq.max(state.seq);
        } else if self.epoch.counter == state.epoch.counter {
            return None;
        } else if self.epoch.counter < state.epoch.counter {
            (self.epoch, self.seq) = (state.epoch, state.seq);
        }
        Some(())
    }
}

/// A state that the worktree's register is known to have been at, above all that is told.
fn floor_above(
    registers: &[Witnessed],
    report: &HistoryReport,
    before: Option<&State>,
    worktree: &WorktreeName,
    told: Told,
) -> Option<State> {
    let life = report.lives.iter().rfind(|life| life.worktree == *worktree)?;
    let last = life.states.last()?;
    let read = registers.iter().find(|seen| seen.worktree == *worktree);
    let is_over = last.hold == Hold::Retired;
    if read.map_or(!is_over, |seen| seen.state.epoch != life.epoch) {
        return None;
    }
    let seq = match told.epoch {
        epoch if epoch == life.epoch => told.seq,
        epoch if epoch.counter < life.epoch.counter => Seq(0),
        _ => return None,
    };
    let seq = seq.max(before.filter(|it| it.epoch == life.epoch).map_or(Seq(0), |it| it.seq));
    decided(life.states.iter().find(|state| state.seq >= seq && state.token >= told.token), last)
}

/// What was only announced may still be reached: nothing above the register is decided.
fn decided(floor: Option<&State>, last: &State) -> Option<State> {
    sabotage!(Rule::OnlyDecidedIsDropped => Some(*floor.unwrap_or(last)));
    let _ = last;
    floor.copied()
}

fn carry_out(
    seams: Seams<'_>,
    session: &Session,
    logs: &Logs,
    plan: &DropPlan,
) -> io::Result<Dropped> {
    let store = seams.store;
    let replaced: Vec<OpNonce> = logs.ends.keys().filter_map(LogName::anchor).collect();
    for worktree in plan.floors.keys() {
        made_durable(store, worktree)?;
    }
    let op = OpNonce::random(seams.entropy);
    let lines = lines(seams, session, logs, plan, op, &replaced);
    anchored(store, op, &lines, &replaced, || remove(store, logs, plan, &replaced))
}

/// Writes the anchor, and only then has removed what it stands for.
fn anchored(
    store: &dyn Store,
    op: OpNonce,
    lines: &[Event],
    replaced: &[OpNonce],
    remove: impl FnOnce() -> Dropped,
) -> io::Result<Dropped> {
    sabotage!(Rule::AnchorFirst => {
        let dropped = remove();
        write_anchor(store, op, lines).map(|()| dropped)
    });
    write_anchor(store, op, lines)?;
    if !is_alone(store, op, replaced)? {
        // It stands for nothing yet. Whoever finds it there may go on from it.
        store.remove(&layout::audit_log(LogName::Anchor(op)))?;
        return Ok(Dropped::default());
    }
    Ok(remove())
}

/// A power cut takes no state that an anchor says was reached.
fn made_durable(store: &dyn Store, worktree: &WorktreeName) -> io::Result<()> {
    sabotage!(Rule::FloorsAreDurable => Ok(()));
    match store.sync_dir(&layout::register(worktree)) {
        // Of a worktree that was removed by a version that took its register away.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        synced => synced,
    }
}

/// Is there no anchor that this one was not made of?
fn is_alone(store: &dyn Store, op: OpNonce, replaced: &[OpNonce]) -> io::Result<bool> {
    sabotage!(Rule::AnchorsSeeEachOther => Ok(true));
    let known = |log: &LogName| log.anchor().is_none_or(|it| it == op || replaced.contains(&it));
    Ok(audit::logs(store)?.0.iter().all(known))
}

/// Removes what the anchor stands for. What cannot be removed is, by the next that comes.
fn remove(store: &dyn Store, logs: &Logs, plan: &DropPlan, replaced: &[OpNonce]) -> Dropped {
    let mut dropped = Dropped::default();
    for log in &plan.drop {
        if store.remove(&layout::audit_log(log)).is_ok() {
            dropped.logs += 1;
            dropped.bytes += logs.ends.get(log).map_or(0, |end| end.bytes);
        }
    }
    for op in replaced {
        let _ = store.remove(&layout::audit_log(LogName::Anchor(*op)));
    }
    dropped
}

/// The lines of the anchor.
fn lines(
    seams: Seams<'_>,
    session: &Session,
    logs: &Logs,
    plan: &DropPlan,
    op: OpNonce,
    replaced: &[OpNonce],
) -> Vec<Event> {
    let bare = Event {
        kind: EventKind::Anchor,
        phase: EventPhase::Done,
        at: seams.clock.now().wall.rfc3339(),
        op,
        worktree: None,
        session_id: session.id().as_str().to_owned(),
        holder_id: session.holder_id(),
        uid: session.identity().uid(),
        from: None,
        to: None,
        reason: None,
        details: None,
    };
    let says = |says: Anchored| Event { details: Some(Details::from(says).into()), ..bare.clone() };
    let mut lines: Vec<Event> = replaced.iter().map(|op| says(Anchored::Replaces(*op))).collect();
    lines.extend(plan.floors.iter().map(|(worktree, floor)| Event {
        worktree: Some(worktree.clone()),
        to: Some(floor.to_string()),
        ..bare.clone()
    }));
    lines.extend(gone_before(logs, plan).into_iter().map(|log| says(Anchored::Dropped(log))));
    lines.extend(tags(logs, plan));
    lines.insert(0, says(Anchored::Lines(lines.len() as u64 + 1)));
    lines
}

/// The logs that are not there any more, or soon are not, and that others go on after. Of
/// those that go some may still be there when their reader comes.
fn gone_before(logs: &Logs, plan: &DropPlan) -> Vec<Continued> {
    let stays = |log: &LogName| logs.ends.contains_key(log) && !plan.drop.contains(log);
    let continued = anchor::continued(logs).map(|(_, before)| before);
    continued.filter(|before| !stays(&before.after)).collect()
}

/// What the logs and anchors that go tell of tags that are there, and of tags that were
/// deleted and of which a log that stays tells that they were made.
fn tags(logs: &Logs, plan: &DropPlan) -> Vec<Event> {
    let goes = |logged: &Logged| {
        let log = logged.place.log;
        log.anchor().is_some() || plan.drop.contains(&log)
    };
    let tag = |logged: &Logged| logged.event.details_as::<LoggedTag>();
    let of = |kind| logs.events.iter().filter(move |logged| logged.event.kind == kind);
    let deleted: Vec<LoggedTag> = of(EventKind::Untag).filter_map(tag).collect();
    let made_and_stay: Vec<LoggedTag> =
        of(EventKind::Tag).filter(|logged| !goes(logged)).filter_map(tag).collect();
    let mut carried: Vec<Event> = Vec::new();
    for logged in logs.events.iter().filter(|logged| goes(logged)) {
        let counts = match logged.event.kind {
            EventKind::Tag => tag(logged).is_some_and(|tag| !deleted.contains(&tag)),
            EventKind::Untag => tag(logged).is_some_and(|tag| made_and_stay.contains(&tag)),
            _ => false,
        };
        if counts && !carried.contains(&logged.event) {
            carried.push(logged.event.clone());
        }
    }
    carried
}
