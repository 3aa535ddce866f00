//! What a register went through from one look to another: from the names that it showed, and
//! from what the logs tell of the way between. Pure.
//!
//! Nothing is made up. A step is told if both of its states are known and the later one's
//! chain follows from the earlier; what is between two states and known to nobody is a gap
//! that says how much is missing.

use std::collections::BTreeMap;

use jvs_repo::audit::{Event, EventKind, EventPhase};
use jvs_repo::id::Seq;
use jvs_repo::name::WorktreeName;
use serde::Serialize;

use super::law::is_renewal;
use super::logs::Logged;
use crate::state::{Hold, State};

/// What became of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LockChangeKind {
    /// Its worktree was made.
    Created,
    /// Its register was rebuilt.
    Rebuilt,
    /// It was free, or its time was over, and somebody took it.
    Acquired,
    /// Its holder keeps it for longer.
    Renewed,
    /// Its holder gave it up.
    Released,
    /// Its holder was fenced, and nobody has it.
    Lost,
    /// Somebody took over what was left behind.
    Stolen,
    /// Somebody took it from a holder who may be at work.
    Reclaimed,
    /// Its holder handed it over.
    Transferred,
    /// Somebody else has it now; no log says how that came about.
    Taken,
    /// An operator keeps everybody out.
    Frozen,
    /// Nobody is kept out any more.
    Unfrozen,
    /// A snapshot was published under it: the worktree has a new head.
    Published,
    /// Its worktree has another name from now on.
    Renamed,
    /// Its worktree was removed.
    Retired,
    /// The time for which it was taken is over, by the clock of who looks. It is still held
    /// until somebody does something about it.
    Expired,
    /// Its register cannot be read.
    Unreadable,
    /// Changes of which no log tells.
    Gap,
}

/// One step of a register, or a gap.
#[derive(Debug, Clone)]
pub struct RegisterChange {
    /// What it was; `None` if it changed nothing that anybody waits for.
    pub kind: Option<LockChangeKind>,
    /// Where it started; of a gap the last state that is known before it, if there is one.
    pub from: Option<State>,
    /// Where it led.
    pub to: State,
    /// What the logs say of it.
    pub event: Option<Event>,
    /// How many changes are not told: of a gap, or renewals before this one.
    pub missed: u64,
}

/// What the logs say of the states of registers.
#[derive(Debug, Default)]
pub struct ToldStates {
    worktrees: BTreeMap<WorktreeName, BTreeMap<Place, Vec<Telling>>>,
}

/// By epoch, by number.
type Place = ((u32, u16), Seq);

fn place(state: &State) -> Place {
    (state.epoch.grouping(), state.seq)
}

/// A state that the logs name.
#[derive(Debug, Clone)]
struct Telling {
    state: State,
    /// What led there, if anybody says so: from where, and how.
    step: Option<(Option<State>, Event)>,
    /// Somebody saw it, or says that it was reached.
    reached: bool,
}

impl ToldStates {
    /// Takes in what one line says.
    pub fn add(&mut self, logged: &Logged) {
        let event = &logged.event;
        let (Some(worktree), Some(to)) = (&event.worktree, &event.to) else { return };
        let Ok(to) = to.parse::<State>() else { return };
        let from = match event.from.as_ref().map(|from| from.parse::<State>()) {
            Some(Ok(from)) => Some(from),
            Some(Err(_)) => return,
            None => None,
        };
        if let Some(from) = from {
            self.telling(worktree, from).reached = true;
        }
        let linked = from.map_or_else(|| to.is_birth(), |from| to.follows(&from));
        if !linked {
            return;
        }
        let done = event.phase == EventPhase::Done;
        let telling = self.telling(worktree, to);
        telling.reached |= done;
        match &mut telling.step {
            None => telling.step = Some((from, event.clone())),
            // The time is that of the outcome; the reason is often told with the intent alone.
            Some((_, told)) if done => {
                told.at.clone_from(&event.at);
                told.phase = event.phase;
                told.details = told.details.take().or_else(|| event.details.clone());
                told.reason = told.reason.take().or_else(|| event.reason.clone());
            }
            Some(_) => {}
        }
    }

    /// Forgets what is before `state`, which was told of.
    pub fn forget_before(&mut self, worktree: &WorktreeName, state: &State) {
        if let Some(told) = self.worktrees.get_mut(worktree) {
            *told = told.split_off(&place(state));
        }
    }

    fn telling(&mut self, worktree: &WorktreeName, state: State) -> &mut Telling {
        let there = self.worktrees.entry(worktree.clone()).or_default();
        let there = there.entry(place(&state)).or_default();
        let at = there.iter().position(|telling| telling.state == state).unwrap_or_else(|| {
            there.push(Telling { state, step: None, reached: false });
            there.len() - 1
        });
        &mut there[at]
    }

    fn of(&self, worktree: &WorktreeName, state: &State) -> Option<&Telling> {
        let there = self.worktrees.get(worktree)?.get(&place(state))?;
        there.iter().find(|telling| telling.state == *state)
    }

    /// The state right before this one, by its chain.
    fn right_before(&self, worktree: &WorktreeName, state: &State) -> Option<State> {
        let before = (state.epoch.grouping(), Seq(state.seq.0.checked_sub(1)?));
        let there = self.worktrees.get(worktree)?.get(&before)?;
        let follows: Vec<_> = there.iter().filter(|it| state.follows(&it.state)).collect();
        let seen = follows.iter().find(|telling| telling.reached);
        seen.or(follows.first()).map(|telling| telling.state)
    }

    /// The last state before this one that was certainly reached.
    fn last_reached(&self, worktree: &WorktreeName, state: &State) -> Option<State> {
        let there = self.worktrees.get(worktree)?;
        let earlier = there.range(..place(state)).rev().flat_map(|(_, tellings)| tellings);
        earlier.into_iter().find(|telling| telling.reached).map(|telling| telling.state)
    }
}

/// What the register of `worktree` went through until `now`: from `before`, or from the first
/// state that anybody tells of.
pub fn changes_between(
    worktree: &WorktreeName,
    before: Option<&State>,
    now: &State,
    told: &ToldStates,
) -> Vec<RegisterChange> {
    let is_before = |state: &State| before.is_some_and(|before| place(state) < place(before));
    let mut steps = Vec::new();
    let mut current = *now;
    while before != Some(&current) {
        let told_of = told.of(worktree, &current).and_then(|telling| telling.step.as_ref());
        let event = told_of.map(|(_, event)| event.clone());
        let near = match told_of {
            Some((from, _)) => *from,
            None => before
                .filter(|before| current.follows(before))
                .copied()
                .or_else(|| told.right_before(worktree, &current)),
        };
        if let Some(from) = near.filter(|from| !is_before(from)) {
            steps.push(step(Some(from), current, event));
            current = from;
            continue;
        }
        if current.is_birth() {
            steps.push(step(None, current, event));
        }
        // Not by a step that anybody knows of.
        let reached = told.last_reached(worktree, &current);
        let Some(earlier) = reached.filter(|state| !is_before(state)).or(before.copied()) else {
            break;
        };
        let other_life = earlier.epoch != current.epoch;
        if place(&earlier) >= place(&current) {
            // It went back: nothing that is known leads here.
            steps.push(gap(before.copied(), current, 0));
            break;
        }
        if !(current.is_birth() && other_life) {
            steps.push(untold(earlier, current));
        }
        current = earlier;
    }
    steps.reverse();
    steps
}

fn step(from: Option<State>, to: State, event: Option<Event>) -> RegisterChange {
    let kind = kind_of(from.as_ref(), &to, event.as_ref());
    RegisterChange { kind, from, to, event, missed: 0 }
}

fn gap(from: Option<State>, to: State, missed: u64) -> RegisterChange {
    RegisterChange { kind: Some(LockChangeKind::Gap), from, to, event: None, missed }
}

/// From a state that was reached to a later one, and no log says how. Renewals need not be told.
fn untold(earlier: State, current: State) -> RegisterChange {
    if is_renewal(&earlier, &current) {
        let kind = Some(LockChangeKind::Renewed);
        let missed = (current.seq.0 - earlier.seq.0).saturating_sub(1);
        return RegisterChange { kind, from: Some(earlier), to: current, event: None, missed };
    }
    let same_life = earlier.epoch == current.epoch;
    let missed = if same_life { current.seq.0 - earlier.seq.0 } else { current.seq.0 + 1 };
    gap(Some(earlier), current, missed)
}

/// What a step was: by its two states, and by the event where they leave it open.
fn kind_of(from: Option<&State>, to: &State, event: Option<&Event>) -> Option<LockChangeKind> {
    let told = event.map(|event| event.kind);
    let Some(from) = from else {
        return (told == Some(EventKind::Rebuild)).then_some(LockChangeKind::Rebuilt);
    };
    if to.generation != from.generation {
        return Some(LockChangeKind::Published);
    }
    let granted = to.token != from.token;
    Some(match (&from.hold, &to.hold) {
        (_, Hold::Retired) if from.hold == Hold::Retired => return None,
        (_, Hold::Retired) if event.is_some_and(|it| renamed_to(it).is_some()) => {
            LockChangeKind::Renamed
        }
        (_, Hold::Retired) => LockChangeKind::Retired,
        (_, Hold::Frozen(_)) if granted => LockChangeKind::Frozen,
        (Hold::Held(a), Hold::Held(b)) if !granted && a != b => LockChangeKind::Renewed,
        (Hold::Free, Hold::Held(_)) => LockChangeKind::Acquired,
        (_, Hold::Held(_)) if granted => match told {
            Some(EventKind::Steal) => LockChangeKind::Stolen,
            Some(EventKind::Reclaim) => LockChangeKind::Reclaimed,
            Some(EventKind::Transfer) => LockChangeKind::Transferred,
            Some(EventKind::Acquire | EventKind::Migrate) => LockChangeKind::Acquired,
            _ => LockChangeKind::Taken,
        },
        (Hold::Frozen(_), Hold::Free) => LockChangeKind::Unfrozen,
        (Hold::Held(_), Hold::Free) if granted => LockChangeKind::Lost,
        (Hold::Held(_), Hold::Free) => LockChangeKind::Released,
        // The name of a new worktree is reserved by its register's first state, and given
        // by the second.
        (Hold::Free, Hold::Free) if told == Some(EventKind::Create) => LockChangeKind::Created,
        _ => return None,
    })
}

/// The name that a worktree which was retired has now, if it was renamed.
pub fn renamed_to(event: &Event) -> Option<WorktreeName> {
    if event.kind != EventKind::Retire {
        return None;
    }
    event.reason.as_ref()?.strip_prefix("renamed to ")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use jvs_repo::audit::WriterId;
    use jvs_repo::clock::WallMs;
    use jvs_repo::id::{Epoch, HolderNonce, OpNonce, SnapshotId};
    use serde_json::json;

    use super::*;
    use crate::history::LogLine;

    const NOW: WallMs = WallMs(1_763_283_600_000);
    const HEAD: SnapshotId = SnapshotId { created_ms: 1_763_283_600_123, random: 42 };

    fn main() -> WorktreeName {
        WorktreeName::main()
    }

    fn op(number: u8) -> OpNonce {
        OpNonce([number; 8])
    }

    fn holder(number: u8) -> HolderNonce {
        HolderNonce([number; 16])
    }

    fn birth() -> State {
        State::birth(Epoch { counter: 1, salt: 7 }, op(1))
    }

    /// What a log says of the step.
    fn says(kind: &str, phase: &str, from: Option<&State>, to: &State) -> Logged {
        let event = json!({
            "kind": kind, "phase": phase, "at": "2025-11-16T09:00:00.000Z",
            "op": to.op, "worktree": "main", "session_id": "s", "holder_id": "h:ann:1:2",
            "from": from.map(State::to_string), "to": to.to_string(),
        });
        let event = serde_json::from_value(event).expect("an event");
        Logged { place: LogLine { log: WriterId([0; 12]).into(), line: 1 }, event }
    }

    fn told(logged: &[Logged]) -> ToldStates {
        let mut told = ToldStates::default();
        logged.iter().for_each(|logged| told.add(logged));
        told
    }

    fn kinds(before: Option<&State>, now: &State, told: &ToldStates) -> Vec<(LockChangeKind, u64)> {
        let steps = changes_between(&main(), before, now, told);
        steps.iter().filter_map(|step| Some((step.kind?, step.missed))).collect()
    }

    #[test]
    fn what_happened_between_two_looks_is_told_step_by_step() {
        use LockChangeKind::*;
        let begun = birth();
        let confirmed = begun.advanced(op(2));
        let held = confirmed.granted(holder(1), 1000, NOW, op(3));
        let renewed = held.extended(1000, NOW.plus(10), op(4));
        let published = renewed.with_head(HEAD, op(5));
        let stolen = published.granted(holder(2), 1000, NOW.plus(20), op(6));
        let free = stolen.released(op(7));
        let log = told(&[
            says("create", "done", None, &begun),
            says("create", "done", Some(&begun), &confirmed),
            says("acquire", "intent", Some(&confirmed), &held),
            says("acquire", "done", Some(&confirmed), &held),
            says("publish", "intent", Some(&renewed), &published),
            says("steal", "done", Some(&published), &stolen),
            says("release", "intent", Some(&stolen), &free),
        ]);
        let all = [Created, Acquired, Renewed, Published, Stolen, Released];
        let all: Vec<_> = all.into_iter().map(|kind| (kind, 0)).collect();
        assert_eq!(kinds(None, &free, &log), all);
        assert_eq!(kinds(Some(&held), &free, &log), all[2..]);
        assert_eq!(kinds(Some(&free), &free, &log), []);
    }

    #[test]
    fn what_no_log_tells_is_a_gap_and_nothing_is_made_up() {
        use LockChangeKind::*;
        let free = birth().advanced(op(2));
        let held = free.granted(holder(1), 1000, NOW, op(3));
        let published = held.with_head(HEAD, op(4));
        let released = published.released(op(5));
        let taken = released.granted(holder(2), 1000, NOW, op(6));
        let nothing = ToldStates::default();
        assert_eq!(kinds(Some(&free), &taken, &nothing), [(Gap, 4)]);
        // One that follows is certain by its chain.
        assert_eq!(kinds(Some(&free), &held, &nothing), [(Acquired, 0)]);
        let other = held.granted(holder(2), 1000, NOW, op(7));
        assert_eq!(kinds(Some(&held), &other, &nothing), [(Taken, 0)]);
        // One that was only announced was perhaps never there.
        let announced = held.released(op(8));
        let log = told(&[
            says("release", "intent", Some(&held), &announced),
            says("acquire", "done", Some(&released), &taken),
        ]);
        assert_eq!(kinds(Some(&free), &taken, &log), [(Acquired, 0), (Gap, 2), (Acquired, 0)]);
    }

    #[test]
    fn renewals_need_not_be_told() {
        let held = birth().granted(holder(1), 1000, NOW, op(2));
        let mut now = held;
        for number in 3..8 {
            now = now.extended(1000, NOW.plus(u64::from(number)), op(number));
        }
        let nothing = ToldStates::default();
        assert_eq!(kinds(Some(&held), &now, &nothing), [(LockChangeKind::Renewed, 4)]);
    }

    #[test]
    fn a_forged_event_leads_nowhere() {
        let held = birth().granted(holder(1), 1000, NOW, op(2));
        let far = held.released(op(3)).granted(holder(2), 1000, NOW, op(4));
        // It says that the one became the other, which the chain denies.
        let log = told(&[says("reclaim", "done", Some(&held), &far)]);
        assert_eq!(kinds(Some(&held), &far, &log), [(LockChangeKind::Gap, 2)]);
        // A register that was set back.
        assert_eq!(kinds(Some(&far), &held, &log), [(LockChangeKind::Gap, 0)]);
    }

    #[test]
    fn another_life_of_a_name_begins_after_the_end_of_the_first() {
        use LockChangeKind::*;
        let retired = birth().retired(op(2));
        let epoch = Epoch { counter: 2, salt: 9 };
        let begun = State::rebuilt(epoch, retired.token, retired.generation, None, op(3));
        let confirmed = begun.advanced(op(4));
        let log = told(&[
            says("retire", "done", Some(&birth()), &retired),
            says("create", "done", None, &begun),
            says("create", "done", Some(&begun), &confirmed),
        ]);
        let both = [(Retired, 0), (Created, 0)];
        assert_eq!(kinds(Some(&birth()), &confirmed, &log), both);
        assert_eq!(kinds(None, &confirmed, &log), both);
        assert_eq!(kinds(Some(&retired), &confirmed, &log), both[1..]);
    }

    #[test]
    fn what_was_told_is_forgotten() {
        let held = birth().granted(holder(1), 1000, NOW, op(2));
        let free = held.released(op(3));
        let mut log = told(&[
            says("acquire", "done", Some(&birth()), &held),
            says("release", "done", Some(&held), &free),
        ]);
        log.forget_before(&main(), &free);
        assert_eq!(log.worktrees[&main()].len(), 1);
    }
}
