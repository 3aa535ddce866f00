//! The next epoch of a register that was lost, doubled or rolled back: which
//! token and head it begins with, from everything that remembers.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;

use jvs_lock::State;
use jvs_repo::audit::EventPhase;
use jvs_repo::entropy::Entropy;
use jvs_repo::id::{Epoch, FencingToken, Generation, OpNonce, SnapshotId};
use jvs_repo::layout;
use jvs_repo::name::{ShownName, WorktreeName};
use jvs_repo::next::Next;
use jvs_repo::sabotage;
use jvs_repo::store::RepoPath;
use jvs_repo::term::Term;

use crate::mutation::Rule;
use crate::read::Fault;
use crate::survey::{Survey, is_absent, is_symlink};

/// What is where the register should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ruin {
    /// Nothing, or an empty directory.
    Nothing,
    /// Entries that are not states: set aside first.
    Garbled(Vec<String>),
    /// States: the next epoch follows the first, the others are removed.
    States(Vec<State>),
    /// A file or a symlink: set aside first.
    NotADirectory,
}

/// A register's next epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuild {
    pub(crate) worktree: WorktreeName,
    pub(crate) ruin: Ruin,
    /// Not a `Term` with the token: each of the two is above all that were seen, whichever
    /// term those were of, and the epoch's random bits are drawn when it is made.
    pub(crate) epoch_counter: u32,
    pub(crate) token: FencingToken,
    pub(crate) generation: Generation,
    pub(crate) head: Option<SnapshotId>,
}

impl Rebuild {
    /// Its first state.
    pub(crate) fn state(&self, entropy: &dyn Entropy) -> State {
        let mut salt = [0; 2];
        entropy.fill(&mut salt);
        let epoch = Epoch { counter: self.epoch_counter, salt: u16::from_be_bytes(salt) };
        State::rebuilt(epoch, self.token, self.generation, self.head, OpNonce::random(entropy))
    }

    /// Its first state, if it follows `state`, which is one of its own.
    pub(crate) fn above(&self, state: &State, entropy: &dyn Entropy) -> State {
        let mut next = self.clone();
        if state.epoch.counter >= Epoch::END || state.is_at_an_end() {
            return next.state(entropy);
        }
        next.epoch_counter = next.epoch_counter.max(state.epoch.counter.saturating_add(1));
        next.token = next.token.max(state.token.next());
        if (state.epoch.counter, state.generation) > (self.epoch_counter - 1, self.generation) {
            (next.head, next.generation) = (state.head, state.generation);
        }
        next.state(entropy)
    }
}

impl fmt::Display for Rebuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = self.head.map_or("none".to_owned(), |head| head.to_string());
        write!(f, "epoch {}, token {}, head {head}, free", self.epoch_counter, self.token)
    }
}

/// What remembers a worktree's register.
#[derive(Debug, Default)]
struct Memory {
    counter: u32,
    token: u64,
    /// Heads by (epoch, number of commits): the largest is the newest.
    heads: BTreeSet<((u32, u64), Option<SnapshotId>)>,
}

impl Memory {
    /// What nobody gets to by counting was made up, and is not gone on from: there
    /// would be nothing after it.
    fn term(&mut self, Term { epoch, token }: Term) {
        if epoch.counter >= Epoch::END || token >= FencingToken::END {
            return;
        }
        self.counter = self.counter.max(epoch.counter);
        self.token = self.token.max(token.0);
    }

    fn state(&mut self, survey: &Survey<'_, '_>, state: &State) {
        self.term(state.term());
        let whole = |id: SnapshotId| survey.kin(id).is_some();
        if state.generation < Generation::END && state.head.is_none_or(whole) {
            let key = (state.epoch.counter, state.generation.0);
            self.heads.insert((key, state.head));
        }
    }

    /// Everything that remembers `worktree`, except its register. An error if
    /// something that may remember more was not shown: a head or a token that is
    /// too low would cost what was committed, or let a dead session publish.
    fn of(survey: &Survey<'_, '_>, worktree: &WorktreeName) -> Result<Self, Next> {
        refuse_unseen(survey)?;
        let mut memory = Memory::default();
        let over = memory.buried(survey, worktree);
        memory.snapshots(survey, worktree, over);
        memory.staging(survey, worktree);
        memory.record(survey, worktree)?;
        if let Some(last) = memory.logged(survey, worktree).filter(|last| last.epoch.counter > over)
        {
            memory.state(survey, &last);
        }
        for state in survey.set_aside(worktree).map_err(|why| unanswered(&why))? {
            memory.term(state.term());
        }
        if memory.heads.is_empty() {
            memory.base(survey, worktree);
        }
        Ok(memory)
    }

    /// What removed worktrees of that name remember. Answers the last epoch that
    /// ended with a removal: what was committed before it is of another worktree.
    fn buried(&mut self, survey: &Survey<'_, '_>, worktree: &WorktreeName) -> u32 {
        let mut over = 0;
        let removed = is_removed(survey, worktree);
        for (epoch, state) in survey.buried.get(worktree).into_iter().flatten() {
            self.counter = self.counter.max(epoch.counter);
            if removed {
                over = over.max(epoch.counter);
            }
            self.token = self.token.max(state.as_ref().map_or(0, |read| read.token.0));
        }
        over
    }

    /// What the snapshots that there are, and those that were collected, remember.
    fn snapshots(&mut self, survey: &Survey<'_, '_>, worktree: &WorktreeName, over: u32) {
        for kin in survey.kin_of(worktree) {
            self.term(kin.term);
            let ready = survey.is_ready(kin.snapshot_id);
            let counted = kin.commit_seq < Generation::END;
            if ready && counted && kin.term.epoch.counter > over {
                let key = (kin.term.epoch.counter, kin.commit_seq.0);
                self.heads.insert((key, Some(kin.snapshot_id)));
            }
        }
    }

    /// What work in progress remembers.
    fn staging(&mut self, survey: &Survey<'_, '_>, worktree: &WorktreeName) {
        for term in survey.begun_in(worktree) {
            self.term(term);
        }
    }

    /// What the lock record remembers.
    fn record(&mut self, survey: &Survey<'_, '_>, worktree: &WorktreeName) -> Result<(), Next> {
        match jvs_lock::record::read(survey.store(), worktree) {
            Ok(jvs_lock::record::FoundRecord::Record(record)) => {
                self.term(record.term());
            }
            Ok(jvs_lock::record::FoundRecord::Refused(why)) => return Err(unanswered(&why)),
            Err(error) if !is_absent(&error) && !is_symlink(&error) => {
                return Err(unanswered(&error.to_string()));
            }
            _ => {}
        }
        Ok(())
    }

    /// What the audit logs remember. Answers the last state that they show to have
    /// been reached.
    fn logged(&mut self, survey: &Survey<'_, '_>, worktree: &WorktreeName) -> Option<State> {
        let mut last: Option<State> = None;
        for event in survey.events_of(worktree) {
            let parse = |text: &Option<String>| text.as_deref()?.parse::<State>().ok();
            let (from, to) = (parse(&event.from), parse(&event.to));
            for state in [from, to].into_iter().flatten() {
                self.term(state.term());
            }
            // What was the state before another, and what was said to be done.
            let reached = to.filter(|_| event.phase == EventPhase::Done);
            for state in [from, reached].into_iter().flatten() {
                let newer = |last: &State| {
                    (last.epoch.counter, last.seq) < (state.epoch.counter, state.seq)
                };
                if last.as_ref().is_none_or(newer) {
                    last = Some(state);
                }
            }
        }
        last
    }

    /// A worktree that never committed anything has the head that it was made from.
    fn base(&mut self, survey: &Survey<'_, '_>, worktree: &WorktreeName) {
        let base = survey.worktrees.of(worktree).and_then(|record| record.as_ref().ok()?.base);
        if let Some(kin) = base.and_then(|id| survey.kin(id)) {
            self.heads.insert(((0, kin.commit_seq.0), Some(kin.snapshot_id)));
        }
    }

    fn next(
        self,
        worktree: &WorktreeName,
        ruin: Ruin,
        head: Option<SnapshotId>,
        commits: u64,
    ) -> Rebuild {
        Rebuild {
            worktree: worktree.clone(),
            ruin,
            epoch_counter: self.counter.saturating_add(1),
            token: FencingToken(self.token.saturating_add(1)),
            generation: Generation(commits),
            head,
        }
    }
}

fn unanswered(what: &str) -> Next {
    format!("first make the filesystem accessible: {what}").into()
}

/// How many names a person is asked to type at once.
const MOST_TYPED: usize = 3;

fn below(dir: &RepoPath, name: &OsString) -> OsString {
    let mut path = OsString::from(dir.as_str());
    path.push("/");
    path.push(name);
    path
}

/// How to rebuild the register of `worktree`, or what a person must decide.
pub(crate) fn plan(
    survey: &Survey<'_, '_>,
    worktree: &WorktreeName,
    fault: &Fault,
) -> Result<Rebuild, Next> {
    let mut memory = Memory::of(survey, worktree)?;
    let ruin = match fault {
        Fault::Missing | Fault::Empty => Ruin::Nothing,
        Fault::Unparsable(entries) => Ruin::Garbled(entries.clone()),
        Fault::NotUtf8(names) => {
            let dir = layout::register(worktree);
            let typed = |name: &OsString| ShownName::new(&below(&dir, name)).typed();
            let words: Vec<String> = names.iter().take(MOST_TYPED).map(typed).collect();
            return Err(format!("remove it by hand: rm {}", words.join(" ")).into());
        }
        Fault::NotADirectory(_) => Ruin::NotADirectory,
        Fault::Several(states) => return of_several(survey, worktree, memory, states),
        Fault::Newer(_) => return Err("use the version of jvs that wrote it".into()),
        Fault::Io(error) => return Err(unanswered(error)),
    };
    let newest = memory.heads.last().map(|(key, _)| *key);
    let mut candidates: Vec<Option<SnapshotId>> =
        memory.heads.iter().filter(|(key, _)| Some(*key) == newest).map(|(_, id)| *id).collect();
    if candidates.len() > 1
        && let Some(chosen) = survey.patient.chosen_for(worktree)
    {
        candidates.retain(|id| *id == chosen);
    }
    let commits = newest.map_or(0, |(_, commits)| commits);
    match candidates.as_slice() {
        [] if survey.patient.chosen_for(worktree).is_none_or(|head| head.is_none()) => {
            Ok(memory.next(worktree, ruin, None, 0))
        }
        [head] => {
            let head = *head;
            memory.heads.clear();
            Ok(memory.next(worktree, ruin, head, commits))
        }
        _ => Err(ask(memory.heads.iter().filter(|(key, _)| Some(*key) == newest).map(|h| h.1))),
    }
}

/// The next epoch of a register that is older than what was committed through it.
pub(crate) fn plan_regressed(
    survey: &Survey<'_, '_>,
    worktree: &WorktreeName,
    state: &State,
) -> Result<Rebuild, Next> {
    let mut rebuild = plan(survey, worktree, &Fault::Missing)?;
    if state.epoch.counter < Epoch::END && state.token < FencingToken::END {
        rebuild.epoch_counter = rebuild.epoch_counter.max(state.epoch.counter.saturating_add(1));
        rebuild.token = rebuild.token.max(state.token.next());
    }
    rebuild.ruin = Ruin::States(vec![*state]);
    Ok(rebuild)
}

/// The next epoch of a register whose head is lost for good: the head that a person
/// chose, if it is a visible snapshot of that worktree, or none.
pub(crate) fn plan_chosen(
    survey: &Survey<'_, '_>,
    worktree: &WorktreeName,
    state: &State,
) -> Option<Rebuild> {
    let head = survey.patient.chosen_for(worktree)?;
    let commits = match head {
        Some(id) => {
            let snap = survey.snapshots.get(&id).filter(|snap| snap.ready)?;
            let descriptor = snap.described().filter(|d| d.worktree_id == *worktree)?;
            descriptor.commit_seq.0
        }
        None => 0,
    };
    let mut memory = Memory::of(survey, worktree).ok()?;
    memory.term(state.term());
    Some(memory.next(worktree, Ruin::States(vec![*state]), head, commits))
}

/// Latest epoch, then most commits, then a visible head, else ask.
fn of_several(
    survey: &Survey<'_, '_>,
    worktree: &WorktreeName,
    mut memory: Memory,
    states: &[State],
) -> Result<Rebuild, Next> {
    for state in states {
        memory.term(state.term());
    }
    let visible = |state: &State| state.head.is_none_or(|head| survey.was_ready(head));
    let rank = |state: &State| (state.epoch.counter, state.generation, visible(state));
    let best = states.iter().map(rank).max();
    let mut kept: Vec<&State> = states.iter().filter(|state| Some(rank(state)) == best).collect();
    let heads: BTreeSet<_> = kept.iter().map(|state| state.head).collect();
    if heads.len() > 1 {
        match survey.patient.chosen_for(worktree) {
            Some(chosen) if heads.contains(&chosen) => {
                kept.retain(|state| state.head == chosen);
            }
            _ => return Err(ask(heads.into_iter())),
        }
    }
    let Some(keep) = kept.into_iter().max_by_key(|state| state.seq) else {
        return Err("none of its entries is a state".into());
    };
    let rest = states.iter().filter(|state| *state != keep);
    let ruin = Ruin::States(std::iter::once(keep).chain(rest).copied().collect());
    let (head, commits) = (keep.head, keep.generation.0);
    Ok(memory.next(worktree, ruin, head, commits))
}

/// Nothing follows from what the filesystem did not show: it may remember more.
fn refuse_unseen(survey: &Survey<'_, '_>) -> Result<(), Next> {
    sabotage!(Rule::UnseenIsNotGone => Ok(()));
    match survey.unseen.first() {
        Some(unseen) => Err(unanswered(&unseen.to_string())),
        None => Ok(()),
    }
}

/// Was a worktree removed, whose register was buried? One that has a record was not:
/// whatever buried its register, its visible snapshots are all that knows its head. A later
/// epoch that anything else remembers counts before them.
fn is_removed(survey: &Survey<'_, '_>, worktree: &WorktreeName) -> bool {
    sabotage!(Rule::RecordedIsNotRemoved => true);
    !survey.is_recorded(worktree)
}

fn ask(heads: impl Iterator<Item = Option<SnapshotId>>) -> Next {
    Next::ChooseHead(heads.collect())
}
