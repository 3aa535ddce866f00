//! What an operation may do, seeing a state. Pure: register state, judgement and
//! session in, decision out. Nothing here reads a clock or a file.

use jvs_repo::config::LockPolicy;
use jvs_repo::id::{FencingToken, HolderNonce, OpNonce, SnapshotId};
use jvs_repo::sabotage;
use jvs_repo::term::Term;

use crate::judge::{Judgement, Method, Standing};
use crate::mutation::Rule;
use crate::state::{Hold, State};

/// What an operation is bound to from its beginning to its end: a hold under
/// another token of the same session is not the same hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// The term it began under.
    pub term: Term,
    /// Public nonce of the session.
    pub holder: HolderNonce,
}

impl Bound {
    /// Is `state` this very hold?
    pub fn holds_in(&self, state: &State) -> bool {
        state.is_held_by(self.term, self.holder)
    }
}

/// Why another's claim, or nobody's, may not be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Another session holds it and it is not stealable.
    Conflict,
    /// An operator froze it.
    Frozen,
    /// It looks over, but the clocks disagree too far to believe that.
    Skew,
    /// It looks over by another host's clock, and was not watched for long enough
    /// to believe that.
    Unproven,
    /// The worktree was removed.
    Retired,
}

/// Why an operation that is bound to a term may not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostTerm {
    /// This session does not hold it.
    NotHeld,
    /// Another took it over.
    Fenced {
        /// The token now.
        current: FencingToken,
    },
    /// Nobody held it, and the worktree was removed.
    Retired,
}

/// Why nothing is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoCommit {
    /// The right to commit is lost.
    Lost(LostTerm),
    /// The head is not the parent that the commit was built on.
    HeadMoved {
        /// The head now.
        current: Option<SnapshotId>,
    },
}

/// Why a freeze is not lifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoThaw {
    /// The one that is meant is not there.
    NotFrozen,
    /// It is not over.
    Refused(Refusal),
}

/// What acquire does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acquire {
    /// Free: take it.
    Grant,
    /// Another's, and over: take it under a new token.
    Steal,
    /// This session's already: make it last longer.
    Refresh,
    /// An earlier attempt of this operation was applied.
    Done,
}

/// May `me` have it? `judgement` is of the state's claim, if it has one.
pub fn acquire(
    state: &State,
    me: HolderNonce,
    op: OpNonce,
    judgement: Option<&Judgement>,
    policy: &LockPolicy,
) -> Result<Acquire, Refusal> {
    match (&state.hold, judgement) {
        (Hold::Retired, _) => Err(Refusal::Retired),
        (Hold::Free, _) => Ok(Acquire::Grant),
        // Not "mine, therefore done": another process of this session may have
        // made this state, and its lease counts from *its* clock reading.
        (Hold::Held(claim), _) if claim.holder == me && state.op == op => Ok(Acquire::Done),
        (Hold::Held(claim), _) if claim.holder == me => Ok(Acquire::Refresh),
        (Hold::Held(_), judged) => may_take_over(state, judged, policy).map(|()| Acquire::Steal),
        (Hold::Frozen(_), judged) => may_take_over(state, judged, policy).map(|()| Acquire::Grant),
    }
}

/// May another's claim, or nobody's, be taken over? The one answer to that
/// question, for the process that acquires, steals, freezes, retires or lifts a freeze:
/// asked about the very state that is then moved.
pub fn may_take_over(
    state: &State,
    judgement: Option<&Judgement>,
    policy: &LockPolicy,
) -> Result<(), Refusal> {
    let judged = match (&state.hold, judgement) {
        (Hold::Retired, _) => return Err(Refusal::Retired),
        (Hold::Free, _) => return Ok(()),
        // A claim that nobody judged is somebody's.
        (Hold::Frozen(_), None) => return Err(Refusal::Frozen),
        (Hold::Held(_), None) => return Err(Refusal::Conflict),
        (_, Some(judged)) => judged,
    };
    match (judged.standing, &state.hold) {
        (Standing::Stealable, _) if is_skewed(judged, policy) => Err(Refusal::Skew),
        (Standing::Stealable, _) if judged.watch_ms > 0 => Err(Refusal::Unproven),
        (Standing::Stealable, _) => Ok(()),
        (_, Hold::Frozen(_)) => Err(Refusal::Frozen),
        _ => Err(Refusal::Conflict),
    }
}

/// [`may_take_over`], for those who move the register and take nothing for themselves.
fn may_move(
    state: &State,
    judgement: Option<&Judgement>,
    policy: &LockPolicy,
) -> Result<(), Refusal> {
    sabotage!(Rule::OneTakeOver => crate::sabotage::may_move(state, judgement, policy));
    may_take_over(state, judgement, policy)
}

/// Do the clocks disagree too far for this judgement? Judgements that need no
/// wall clock are never in doubt.
pub fn is_skewed(judged: &Judgement, policy: &LockPolicy) -> bool {
    judged.method == Method::WallClock && judged.observed_skew_ms > policy.max_clock_skew_ms
}

/// What an operation on one's own hold does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// Go on from this state.
    Try,
    /// An earlier attempt of this operation was applied.
    Done,
}

/// May the hold `bound` be renewed? That its lease is not over by the holder's
/// own clock was asked before.
pub fn renew(state: &State, bound: Bound, op: OpNonce) -> Result<Own, LostTerm> {
    still_held(state, bound)?;
    Ok(if state.op == op { Own::Done } else { Own::Try })
}

/// May the hold `bound` be released? `tried` says whether this operation has
/// issued a CAS already: then "not mine any more" is its success.
pub fn release(state: &State, bound: Bound, tried: bool) -> Result<Own, LostTerm> {
    match still_held(state, bound) {
        Ok(()) => Ok(Own::Try),
        Err(_) if tried => Ok(Own::Done),
        Err(lost) => Err(lost),
    }
}

/// May the hold `bound` be handed to `to`? `tried` says whether this operation
/// has issued a CAS already: then "theirs under the next token" is its success.
pub fn transfer(
    state: &State,
    bound: Bound,
    to: HolderNonce,
    tried: bool,
) -> Result<Own, LostTerm> {
    let next = Term { token: bound.term.token.next(), ..bound.term };
    match still_held(state, bound) {
        Ok(()) => Ok(Own::Try),
        Err(_) if tried && state.is_held_by(next, to) => Ok(Own::Done),
        Err(lost) => Err(lost),
    }
}

/// May `head` be committed on top of `parent` under the hold `bound`?
/// `committed` says whether it is known to be committed already.
pub fn commit(
    state: &State,
    bound: Bound,
    parent: Option<SnapshotId>,
    head: SnapshotId,
    committed: bool,
) -> Result<Own, NoCommit> {
    commit_if(may_commit(state, bound), state, parent, head, committed)
}

/// The right to commit is the hold: a commit proves that it still stands.
fn may_commit(state: &State, bound: Bound) -> Result<(), LostTerm> {
    sabotage!(Rule::CommitIsFenced => Ok(()));
    still_held(state, bound)
}

/// As [`commit`], where `stands` says whether the right to commit still does.
fn commit_if(
    stands: Result<(), LostTerm>,
    state: &State,
    parent: Option<SnapshotId>,
    head: SnapshotId,
    committed: bool,
) -> Result<Own, NoCommit> {
    // What is committed is committed, no matter who holds the lock by now.
    if committed || state.head == Some(head) {
        return Ok(Own::Done);
    }
    stands.map_err(NoCommit::Lost)?;
    if state.head != parent {
        return Err(NoCommit::HeadMoved { current: state.head });
    }
    Ok(Own::Try)
}

/// Does nobody hold it, in the very term that was seen at the beginning? That is what an
/// operation on a worktree that many write to is bound to.
/// Taking and freezing raise the token, so a hold in between shows afterwards.
pub fn still_unheld(state: &State, bound: Term) -> Result<(), LostTerm> {
    match state.hold {
        Hold::Retired => Err(LostTerm::Retired),
        Hold::Free if state.term() == bound => Ok(()),
        _ => Err(LostTerm::Fenced { current: state.token }),
    }
}

/// As [`commit`], in a worktree that many write to.
pub fn commit_unheld(
    state: &State,
    bound: Term,
    parent: Option<SnapshotId>,
    head: SnapshotId,
    committed: bool,
) -> Result<Own, NoCommit> {
    commit_if(still_unheld(state, bound), state, parent, head, committed)
}

/// May an operator freeze it? A held lock is a conflict unless it is forced.
pub fn freeze(
    state: &State,
    op: OpNonce,
    judgement: Option<&Judgement>,
    force: bool,
    policy: &LockPolicy,
) -> Result<Own, Refusal> {
    if state.op == op {
        return Ok(Own::Done);
    }
    match may_move(state, judgement, policy) {
        Err(Refusal::Retired) => Err(Refusal::Retired),
        Err(_) if force => Ok(Own::Try),
        decided => decided.map(|()| Own::Try),
    }
}

/// May the holder of `bound` turn its own hold into a freeze? Nobody else's.
pub fn freeze_own(state: &State, bound: Bound, op: OpNonce) -> Result<Own, LostTerm> {
    if state.op == op {
        return Ok(Own::Done);
    }
    still_held(state, bound).map(|()| Own::Try)
}

/// May anybody lift a freeze? Only the one that was seen: freezing raises the token, so
/// the term says which it is.
pub fn unfreeze(state: &State, meant: Term, tried: bool) -> Result<Own, NoThaw> {
    match matches!(state.hold, Hold::Frozen(_)) && state.term() == meant {
        true => Ok(Own::Try),
        false if tried => Ok(Own::Done),
        false => Err(NoThaw::NotFrozen),
    }
}

/// May a freeze that was found to be over be lifted? Only that one, and only if
/// it is over still.
pub fn lift(
    state: &State,
    meant: Term,
    tried: bool,
    judgement: Option<&Judgement>,
    policy: &LockPolicy,
) -> Result<Own, NoThaw> {
    let decided = unfreeze(state, meant, tried)?;
    if decided == Own::Try {
        may_take_over(state, judgement, policy).map_err(NoThaw::Refused)?;
    }
    Ok(decided)
}

/// May the operation `op` retire a worktree? Not over the live claim of another, and
/// not what another operation retired: that one ends it.
pub fn retire(
    state: &State,
    judgement: Option<&Judgement>,
    me: HolderNonce,
    op: OpNonce,
    policy: &LockPolicy,
) -> Result<Own, Refusal> {
    match &state.hold {
        Hold::Retired if is_made_by(state, op) => Ok(Own::Done),
        Hold::Held(claim) if claim.holder == me => Ok(Own::Try),
        _ => may_move(state, judgement, policy).map(|()| Own::Try),
    }
}

/// A retirement is done only if it is this operation's.
fn is_made_by(state: &State, op: OpNonce) -> bool {
    sabotage!(Rule::RetiredByItself => true);
    state.op == op
}

fn still_held(state: &State, bound: Bound) -> Result<(), LostTerm> {
    if bound.holds_in(state) {
        return Ok(());
    }
    Err(match nobody_took_it(state, bound) {
        true => LostTerm::NotHeld,
        false => LostTerm::Fenced { current: state.token },
    })
}

/// Said only where the order of terms shows it. Of another epoch with the same counter
/// nobody knows whether it came before: the hold counts as taken.
fn nobody_took_it(state: &State, bound: Bound) -> bool {
    sabotage!(Rule::BoundToToken => false);
    state.term() <= bound.term
}

#[cfg(test)]
mod tests;
