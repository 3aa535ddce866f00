//! One epoch of a register: all states that anybody told of, and the way back from
//! the newest to the first.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use jvs_repo::audit::{EventKind, EventPhase};
use jvs_repo::id::Seq;
use jvs_repo::name::WorktreeName;
use jvs_repo::sabotage;

use super::anchor::Floor;
use super::law::{broken_by, is_renewal};
use super::logs::LogLine;
use super::problem::{Problem, Wrong};
use crate::mutation::Rule;
use crate::state::State;

/// What a log says of a state.
struct Mention {
    place: LogLine,
    kind: EventKind,
    phase: EventPhase,
    from: Option<State>,
}

/// All that is known of one epoch of a register.
#[derive(Default)]
pub(super) struct KnownStates {
    by_seq: BTreeMap<Seq, Vec<State>>,
    /// What announced a state, or told that it was reached.
    told: HashMap<State, Vec<Mention>>,
    /// States that were there by somebody's word: READ by one who went on from
    /// them, or said to be done.
    witnessed: HashMap<State, LogLine>,
    current: Option<(State, bool)>,
    floor: Option<Floor>,
}

impl KnownStates {
    fn add(&mut self, state: State) {
        let states = self.by_seq.entry(state.seq).or_default();
        if !states.contains(&state) {
            states.push(state);
        }
    }

    /// Somebody saw the register at `state`.
    pub(super) fn was_seen(&mut self, state: State, place: LogLine) {
        self.add(state);
        self.witnessed.entry(state).or_insert(place);
    }

    /// An event says that `from` was to become `to`, and what came of it.
    pub(super) fn was_told(
        &mut self,
        from: Option<State>,
        to: State,
        place: LogLine,
        kind: EventKind,
        phase: EventPhase,
    ) {
        self.add(to);
        if phase == EventPhase::Done {
            self.witnessed.entry(to).or_insert(place);
        }
        self.told.entry(to).or_default().push(Mention { place, kind, phase, from });
    }

    /// The register shows `state`; `still` if it did so also after the logs were read.
    pub(super) fn shows(&mut self, state: State, still: bool) {
        self.add(state);
        self.current = Some((state, still));
    }

    /// What is before `floor` was dropped.
    pub(super) fn begins_with(&mut self, floor: Floor) {
        self.was_seen(floor.state, floor.place);
        self.floor = Some(floor);
    }

    fn witnesses(&self) -> impl DoubleEndedIterator<Item = (&State, LogLine)> {
        let all = self.by_seq.values().flatten();
        all.filter_map(|state| Some((state, *self.witnessed.get(state)?)))
    }

    /// Where to start: at the register, or, for an epoch that is over, at the
    /// last state that is known to have been reached.
    fn newest(&self) -> Option<State> {
        let reached = || self.witnesses().next_back().map(|(state, _)| *state);
        self.current.map(|(state, _)| state).or_else(reached)
    }

    /// The states from the first to the newest, and what does not add up on the way.
    pub(super) fn walk_back(&self, worktree: &WorktreeName) -> (Vec<State>, Vec<Problem>) {
        let Some(newest) = self.newest() else { return (Vec::new(), Vec::new()) };
        let mut walk = Walk { known: self, worktree, found: Vec::new(), unknown: Vec::new() };
        let mut path = vec![newest];
        let mut current = newest;
        let first = self.floor.map_or(Seq(0), |floor| floor.state.seq);
        while current.seq > first {
            let Some(previous) = walk.step_back(&current) else { break };
            path.push(previous);
            current = previous;
        }
        if self.floor.is_none() {
            walk.check_birth(&current);
        }
        path.reverse();
        walk.found.reverse();
        walk.check_claims(newest.seq, &path);
        if let Some((state, true)) = self.current {
            walk.check_set_back(&state);
        }
        (path, walk.found)
    }

    /// The last state up to `seq` that was reached, if it `fits`. One that was only
    /// announced was reached if it fits: nobody but who announced it can have gone on from
    /// it. Of what came of it nothing is told where a full volume had no room for that.
    fn last_reached(&self, seq: Seq, fits: impl Fn(&State) -> bool) -> Option<State> {
        for state in self.by_seq.range(..=seq).rev().flat_map(|(_, states)| states) {
            if fits(state) {
                return Some(*state);
            }
            if self.witnessed.contains_key(state) {
                return None;
            }
        }
        None
    }

    fn is_done(&self, state: &State) -> bool {
        let told = self.told.get(state);
        told.is_some_and(|told| told.iter().any(|told| told.phase == EventPhase::Done))
    }
}

/// The way back through one epoch.
struct Walk<'k> {
    known: &'k KnownStates,
    worktree: &'k WorktreeName,
    found: Vec<Problem>,
    /// Places of which nothing is known. As ranges: a forged place may be anywhere.
    unknown: Vec<Range<Seq>>,
}

impl Walk<'_> {
    fn step_back(&mut self, current: &State) -> Option<State> {
        let before = Seq(current.seq.0 - 1);
        if let Some((previous, kind)) = self.announced_from(current) {
            let silent = previous.head != current.head && kind != EventKind::Publish;
            let why = broken_by(&previous, current).or(silent.then_some(Wrong::HeadMoved));
            self.unlawful(&previous, current, why);
            return Some(previous);
        }
        let candidates = self.known.by_seq.get(&before).into_iter().flatten();
        let follows: Vec<&State> = candidates.filter(|prev| current.follows(prev)).collect();
        // Those of the first format may be several: the chain tells them not apart.
        let seen = follows.iter().find(|state| self.known.witnessed.contains_key(state));
        if let Some(previous) = seen.or(follows.first()) {
            self.check_unannounced(previous, current);
            self.unlawful(previous, current, broken_by(previous, current));
            return Some(**previous);
        }
        let lost = self.known.last_reached(before, |state| {
            is_renewal(state, current)
                && took_time(state, current)
                && !is_right_before(state, current)
        });
        let (worktree, to) = (self.worktree.clone(), current.to_string());
        if let Some(held) = self.held_before(current) {
            return Some(held);
        }
        let Some(earlier) = lost else {
            let done = self.last_done_before(before);
            let after = done.map(|state| state.to_string());
            self.found.push(Problem::Gap { worktree, after, before: to });
            self.unknown.extend(done.map(|done| done.seq.next()..current.seq));
            return done;
        };
        let count = current.seq.0 - earlier.seq.0;
        self.found.push(Problem::UnloggedRenewals { worktree, count, before: to });
        self.unknown.push(earlier.seq.next()..current.seq);
        Some(earlier)
    }

    /// What was held until a release that nobody told of, and that says so, after
    /// renewals that nobody told of either.
    fn held_before(&mut self, released: &State) -> Option<State> {
        if !released.is_untold_release() {
            return None;
        }
        let earlier = self.known.last_reached(Seq(released.seq.0 - 1), |earlier| {
            earlier.holder().is_some()
                && broken_by(earlier, released).is_none()
                && earlier.token == released.token
                && earlier.head == released.head
                && earlier.seq.next() < released.seq
        })?;
        let worktree = || self.worktree.clone();
        let before = released.to_string();
        let count = released.seq.0 - earlier.seq.0 - 1;
        let renewals =
            Problem::UnloggedRenewals { worktree: worktree(), count, before: before.clone() };
        let untold = Problem::UntoldRelease { worktree: worktree(), to: before };
        self.found.extend([untold, renewals]);
        self.unknown.push(earlier.seq.next()..released.seq);
        Some(earlier)
    }

    /// The state from which those who announced `state` went on. Where they do not
    /// agree, somebody made one up.
    fn announced_from(&mut self, state: &State) -> Option<(State, EventKind)> {
        let told = self.known.told.get(state)?;
        let first = told.first()?;
        let (from, kind) = (first.from?, first.kind);
        let other = told.iter().find_map(|told| told.from.filter(|other| excludes(other, &from)));
        if let Some(other) = other {
            self.forged(&from, &other, first.place);
        }
        Some((from, kind))
    }

    fn is_unknown(&self, seq: Seq) -> bool {
        self.unknown.iter().any(|range| range.contains(&seq))
    }

    fn last_done_before(&self, seq: Seq) -> Option<State> {
        let earlier = self.known.by_seq.range(..=seq).rev().flat_map(|(_, states)| states);
        earlier.into_iter().find(|state| self.known.is_done(state)).copied()
    }

    fn forged(&mut self, state: &State, instead: &State, place: LogLine) {
        self.found.push(Problem::Forged {
            worktree: self.worktree.clone(),
            state: state.to_string(),
            instead: instead.to_string(),
            place,
        });
    }

    fn unlawful(&mut self, from: &State, to: &State, why: Option<Wrong>) {
        sabotage!(Rule::LawfulSteps);
        if let Some(why) = why {
            self.found.push(Problem::Unlawful {
                worktree: self.worktree.clone(),
                from: from.to_string(),
                to: to.to_string(),
                why,
            });
        }
    }

    /// Every transition but a renewal has an event that was written before it, or says
    /// that there was no room for one.
    fn check_unannounced(&mut self, previous: &State, state: &State) {
        let (worktree, to) = (self.worktree.clone(), state.to_string());
        self.found.push(if is_renewal(previous, state) {
            Problem::UnloggedRenewals { worktree, count: 1, before: to }
        } else if previous.holder().is_some() && state.is_untold_release() {
            Problem::UntoldRelease { worktree, to }
        } else {
            Problem::Unannounced { worktree, to }
        });
    }

    /// The first state commits to itself, and was announced.
    fn check_birth(&mut self, first: &State) {
        if first.seq != Seq(0) {
            return;
        }
        let (worktree, name) = (self.worktree.clone(), first.to_string());
        if !first.is_birth() {
            self.found.push(Problem::Gap { worktree, after: None, before: name });
        } else if !self.known.told.contains_key(first) {
            self.found.push(Problem::Unannounced { worktree, to: name });
        }
    }

    /// Whatever was seen or is said to be done must be in the history, and nothing
    /// else in its place.
    fn check_claims(&mut self, newest: Seq, path: &[State]) {
        let by_seq: BTreeMap<Seq, &State> = path.iter().map(|state| (state.seq, state)).collect();
        let mut strays: Vec<(LogLine, Problem)> = Vec::new();
        for (state, place) in self.known.witnesses() {
            let there = by_seq.get(&state.seq).copied();
            if state.seq > newest || there == Some(state) || self.is_unknown(state.seq) {
                continue;
            }
            let before = path.iter().rfind(|before| before.seq < state.seq);
            let of_renewals = before.is_some_and(|before| is_renewal(before, state));
            let worktree = self.worktree.clone();
            strays.push((
                place,
                match there {
                    _ if of_renewals && self.may_have_lost_renewals(there) => {
                        Problem::LostRenewals { worktree, lost: state.to_string(), place }
                    }
                    Some(there) if excludes(there, state) => Problem::Forged {
                        worktree,
                        state: there.to_string(),
                        instead: state.to_string(),
                        place,
                    },
                    _ if self.known.is_done(state) => {
                        Problem::NotInHistory { place, to: state.to_string() }
                    }
                    _ => continue,
                },
            ));
        }
        strays.sort_by_key(|(place, _)| *place);
        self.found.extend(strays.into_iter().map(|(_, problem)| problem));
    }

    /// May `there` be in the place of renewals? A power cut may take them, which nobody
    /// waits for, from the register and leave what was told of them. What came instead was
    /// announced.
    fn may_have_lost_renewals(&self, there: Option<&State>) -> bool {
        sabotage!(Rule::OneStateAPlace => true);
        there.is_some_and(|there| self.known.told.contains_key(there))
    }

    /// Nothing that is told is ahead of a register that stood still.
    fn check_set_back(&mut self, state: &State) {
        let reached = self.known.witnesses().rfind(|(reached, _)| reached.seq > state.seq);
        let Some((reached, place)) = reached else { return };
        let worktree = self.worktree.clone();
        self.found.push(if is_renewal(state, reached) {
            Problem::LostRenewals { worktree, lost: reached.to_string(), place }
        } else {
            let (state, reached) = (state.to_string(), reached.to_string());
            Problem::SetBack { worktree, state, reached, place }
        });
    }
}

/// Two states of one place in a history: one of them is a forgery.
fn excludes(one: &State, other: &State) -> bool {
    sabotage!(Rule::OneStateAPlace => false);
    one.seq == other.seq && one != other
}

/// Is `state` known to be in the place that `current`, which does not follow it, came from?
fn is_right_before(state: &State, current: &State) -> bool {
    sabotage!(Rule::OneStateAPlace => false);
    state.seq.next() == current.seq
}

/// Is the later end late enough for all the renewals in between? Each of them moves
/// the end by a millisecond at least.
fn took_time(earlier: &State, later: &State) -> bool {
    let end = |state: &State| state.hold.claim().map_or(0, |claim| claim.expires.0);
    end(later).saturating_sub(end(earlier)) >= later.seq.0 - earlier.seq.0
}
