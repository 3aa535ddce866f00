use jvs_repo::clock::WallMs;
use jvs_repo::id::Epoch;
use jvs_repo::term::Term;

use super::*;
use crate::judge::Evidence;

const ME: HolderNonce = HolderNonce([1; 16]);
const OTHER: HolderNonce = HolderNonce([2; 16]);
const OP: OpNonce = OpNonce([7; 8]);
const EARLIER: OpNonce = OpNonce([6; 8]);
const HEAD: SnapshotId = SnapshotId { created_ms: 5, random: 5 };
const NEXT: SnapshotId = SnapshotId { created_ms: 6, random: 6 };

fn free() -> State {
    State::birth(Epoch { counter: 1, salt: 0 }, OpNonce([0; 8]))
}

fn held_by(holder: HolderNonce) -> State {
    free().granted(holder, 30_000, WallMs(1_000), EARLIER)
}

fn bound(state: &State) -> Bound {
    Bound { term: state.term(), holder: ME }
}

fn judged(standing: Standing, method: Method, skew: u64) -> Judgement {
    Judgement {
        standing,
        method,
        remaining_ms: 0,
        stealable_in_ms: 0,
        watch_ms: 0,
        nobody_renews: false,
        observed_skew_ms: skew,
        evidence: vec![Evidence::RenewedInTheFuture { by_ms: skew }],
    }
}

fn policy() -> LockPolicy {
    LockPolicy::default()
}

fn try_acquire(state: &State, judgement: Option<Judgement>) -> Result<Acquire, Refusal> {
    acquire(state, ME, OP, judgement.as_ref(), &LockPolicy::default())
}

#[test]
fn a_free_lock_is_granted_and_a_retired_one_never() {
    assert_eq!(try_acquire(&free(), None), Ok(Acquire::Grant));
    assert_eq!(try_acquire(&free().retired(EARLIER), None), Err(Refusal::Retired));
}

#[test]
fn ones_own_lock_is_refreshed_even_when_its_lease_is_over() {
    let over = judged(Standing::Stealable, Method::WallClock, 999_999);
    assert_eq!(try_acquire(&held_by(ME), Some(over)), Ok(Acquire::Refresh));
}

#[test]
fn only_this_operations_own_state_counts_as_its_success() {
    let mine = free().granted(ME, 30_000, WallMs(1_000), OP);
    assert_eq!(try_acquire(&mine, None), Ok(Acquire::Done));
    assert_eq!(try_acquire(&held_by(ME), None), Ok(Acquire::Refresh));
}

#[test]
fn anothers_lock_is_stolen_only_when_it_is_stealable_and_clocks_agree() {
    let other = held_by(OTHER);
    for standing in [Standing::Live, Standing::Expired] {
        let judgement = judged(standing, Method::WallClock, 0);
        assert_eq!(try_acquire(&other, Some(judgement.clone())), Err(Refusal::Conflict));
    }
    for (method, skew, stolen) in [
        (Method::WallClock, 2_000, true),
        (Method::WallClock, 2_001, false),
        (Method::SameBoot, 3_600_000, true),
        (Method::Observed, 3_600_000, true),
    ] {
        let judgement = judged(Standing::Stealable, method, skew);
        let expected = if stolen { Ok(Acquire::Steal) } else { Err(Refusal::Skew) };
        assert_eq!(try_acquire(&other, Some(judgement)), expected, "{method:?} {skew}");
    }
}

#[test]
fn a_freeze_keeps_everybody_out_until_it_is_over() {
    let frozen = free().frozen(ME, 60_000, WallMs(0), EARLIER);
    let live = judged(Standing::Live, Method::SameBoot, 0);
    assert_eq!(try_acquire(&frozen, Some(live.clone())), Err(Refusal::Frozen));
    let over = judged(Standing::Stealable, Method::SameBoot, 0);
    assert_eq!(try_acquire(&frozen, Some(over)), Ok(Acquire::Grant));
}

#[test]
fn a_claim_that_nobody_judged_is_somebodys() {
    assert_eq!(try_acquire(&held_by(OTHER), None), Err(Refusal::Conflict));
}

#[test]
fn an_operation_is_bound_to_its_token() {
    let first = held_by(ME);
    // Stolen, released, and taken again by the same session: not the same hold.
    let again = first.granted(OTHER, 1, WallMs(0), EARLIER).released(EARLIER).granted(
        ME,
        30_000,
        WallMs(0),
        EARLIER,
    );
    let fenced = LostTerm::Fenced { current: again.token };
    assert_eq!(renew(&again, bound(&first), OP), Err(fenced));
    assert_eq!(release(&again, bound(&first), false), Err(fenced));
    assert_eq!(commit(&again, bound(&first), None, NEXT, false), Err(NoCommit::Lost(fenced)));
}

#[test]
fn renewing_goes_on_while_held_and_ends_with_its_own_state() {
    let mine = held_by(ME);
    assert_eq!(renew(&mine, bound(&mine), OP), Ok(Own::Try));
    let renewed = mine.extended(30_000, WallMs(2_000), OP);
    assert_eq!(renew(&renewed, bound(&mine), OP), Ok(Own::Done));
    let released = mine.released(EARLIER);
    assert_eq!(renew(&released, bound(&mine), OP), Err(LostTerm::NotHeld));
}

#[test]
fn a_release_is_done_once_it_is_not_mine_any_more_but_only_if_it_was_tried() {
    let mine = held_by(ME);
    assert_eq!(release(&mine, bound(&mine), true), Ok(Own::Try));
    for gone in [mine.released(EARLIER), mine.granted(OTHER, 1, WallMs(0), EARLIER)] {
        assert_eq!(release(&gone, bound(&mine), true), Ok(Own::Done));
        assert!(release(&gone, bound(&mine), false).is_err());
    }
}

#[test]
fn a_commit_needs_the_hold_and_the_parent_unless_it_is_there_already() {
    let mine = held_by(ME).with_head(HEAD, EARLIER);
    assert_eq!(commit(&mine, bound(&mine), Some(HEAD), NEXT, false), Ok(Own::Try));
    assert_eq!(
        commit(&mine, bound(&mine), None, NEXT, false),
        Err(NoCommit::HeadMoved { current: Some(HEAD) })
    );
    assert_eq!(commit(&mine, bound(&mine), None, HEAD, false), Ok(Own::Done));
    let stolen = mine.granted(OTHER, 1, WallMs(0), EARLIER);
    assert_eq!(commit(&stolen, bound(&mine), Some(HEAD), HEAD, false), Ok(Own::Done));
    assert_eq!(commit(&stolen, bound(&mine), Some(HEAD), NEXT, true), Ok(Own::Done));
}

#[test]
fn a_freeze_is_known_by_its_operation_and_lifted_by_its_token() {
    let frozen = free().frozen(ME, 1, WallMs(0), OP);
    let freeze = |state: &State, op, judged: Option<&Judgement>, force| {
        freeze(state, op, judged, force, &policy())
    };
    assert_eq!(freeze(&frozen, OP, None, false), Ok(Own::Done));
    let live = judged(Standing::Live, Method::SameBoot, 0);
    assert_eq!(freeze(&frozen, EARLIER, Some(&live), false), Err(Refusal::Frozen));
    assert_eq!(freeze(&held_by(OTHER), OP, Some(&live), false), Err(Refusal::Conflict));
    assert_eq!(freeze(&held_by(OTHER), OP, Some(&live), true), Ok(Own::Try));
    let meant = frozen.term();
    assert_eq!(unfreeze(&frozen, meant, false), Ok(Own::Try));
    let another = Term { token: FencingToken(0), ..meant };
    assert_eq!(unfreeze(&frozen, another, false), Err(NoThaw::NotFrozen));
    assert_eq!(unfreeze(&free(), meant, true), Ok(Own::Done));
}

#[test]
fn everybody_who_takes_over_asks_one_question() {
    let (other, policy) = (held_by(OTHER), policy());
    let skewed = judged(Standing::Stealable, Method::WallClock, 3_600_000);
    let unproven =
        Judgement { watch_ms: 11_000, ..judged(Standing::Stealable, Method::WallClock, 0) };
    for (judged, refusal) in [(&skewed, Refusal::Skew), (&unproven, Refusal::Unproven)] {
        let judgement = Some(judged);
        assert_eq!(acquire(&other, ME, OP, judgement, &policy), Err(refusal));
        assert_eq!(freeze(&other, OP, judgement, false, &policy), Err(refusal));
        assert_eq!(retire(&other, judgement, ME, OP, &policy), Err(refusal));
    }
    let frozen = free().frozen(OTHER, 60_000, WallMs(0), EARLIER);
    let meant = frozen.term();
    let lift = |judged: &Judgement| lift(&frozen, meant, false, Some(judged), &policy);
    assert_eq!(lift(&skewed), Err(NoThaw::Refused(Refusal::Skew)));
    let live = judged(Standing::Live, Method::SameBoot, 0);
    assert_eq!(lift(&live), Err(NoThaw::Refused(Refusal::Frozen)), "frozen again meanwhile");
    assert_eq!(lift(&judged(Standing::Stealable, Method::SameBoot, 0)), Ok(Own::Try));
    let again = frozen.released(OP).frozen(OTHER, 60_000, WallMs(0), OP);
    let over = judged(Standing::Stealable, Method::SameBoot, 0);
    let lifted = super::lift(&again, meant, false, Some(&over), &policy);
    assert_eq!(lifted, Err(NoThaw::NotFrozen), "another freeze than the one that was seen");
}

#[test]
fn a_freeze_after_waiting_is_made_from_ones_own_hold() {
    let mine = held_by(ME);
    assert_eq!(freeze_own(&mine, bound(&mine), OP), Ok(Own::Try));
    let taken = mine.granted(OTHER, 30_000, WallMs(0), EARLIER);
    let fenced = LostTerm::Fenced { current: taken.token };
    assert_eq!(freeze_own(&taken, bound(&mine), OP), Err(fenced));
    assert_eq!(freeze_own(&taken.frozen(ME, 1, WallMs(0), OP), bound(&mine), OP), Ok(Own::Done));
}

#[test]
fn a_worktree_with_a_live_holder_is_not_retired() {
    let live = judged(Standing::Live, Method::SameBoot, 0);
    let retire = |state: &State, judged: Option<&Judgement>, me, op| {
        retire(state, judged, me, op, &policy())
    };
    assert_eq!(retire(&free(), None, ME, OP), Ok(Own::Try));
    assert_eq!(retire(&held_by(ME), None, ME, OP), Ok(Own::Try));
    assert_eq!(retire(&held_by(OTHER), Some(&live), ME, OP), Err(Refusal::Conflict));
    let over = judged(Standing::Stealable, Method::SameBoot, 0);
    assert_eq!(retire(&held_by(OTHER), Some(&over), ME, OP), Ok(Own::Try));
    assert_eq!(retire(&free().retired(OP), None, ME, OP), Ok(Own::Done));
    let others = free().retired(EARLIER);
    assert_eq!(retire(&others, None, ME, OP), Err(Refusal::Retired), "another's is not its own");
}

#[test]
fn without_a_holder_a_head_moves_only_under_the_token_it_was_bound_to() {
    let shared = free().with_head(HEAD, EARLIER);
    let bound = shared.term();
    let commit = |state: &State| commit_unheld(state, bound, Some(HEAD), NEXT, false);
    assert_eq!(commit(&shared), Ok(Own::Try));
    assert_eq!(commit(&shared.with_head(NEXT, OP)), Ok(Own::Done));
    let other = SnapshotId { created_ms: 7, random: 7 };
    let moved = shared.with_head(other, OP);
    assert_eq!(commit(&moved), Err(NoCommit::HeadMoved { current: Some(other) }));
    assert_eq!(commit_unheld(&moved, bound, Some(HEAD), NEXT, true), Ok(Own::Done));

    let held = shared.granted(OTHER, 30_000, WallMs(0), OP);
    let frozen = shared.frozen(OTHER, 30_000, WallMs(0), OP);
    for taken in [held, held.released(OP), frozen, frozen.released(OP), shared.fenced(OP)] {
        let lost = LostTerm::Fenced { current: FencingToken(shared.token.0 + 1) };
        let fenced = Err(NoCommit::Lost(lost));
        assert_eq!(commit(&taken), fenced, "{taken}");
    }
    let rebuilt = State { epoch: Epoch { counter: 2, salt: 0 }, ..shared };
    assert_eq!(commit(&rebuilt), Err(NoCommit::Lost(LostTerm::Fenced { current: shared.token })));
    assert_eq!(commit(&shared.retired(OP)), Err(NoCommit::Lost(LostTerm::Retired)));
}

#[test]
fn a_hold_of_another_life_with_the_same_counter_was_taken_whatever_the_salts_are() {
    let of = |salt| State { epoch: Epoch { counter: 1, salt }, ..held_by(ME) };
    for (mine, now) in [(of(1), of(2)), (of(2), of(1))] {
        for now in [now, now.released(EARLIER)] {
            let fenced = LostTerm::Fenced { current: now.token };
            assert_eq!(renew(&now, bound(&mine), OP), Err(fenced), "{now}");
            let committed = commit(&now, bound(&mine), None, NEXT, false);
            assert_eq!(committed, Err(NoCommit::Lost(fenced)), "{now}");
        }
    }
}

#[test]
fn a_transfer_is_known_by_its_heir_under_the_next_token_but_only_if_it_was_tried() {
    let held = held_by(ME);
    let bound = bound(&held);
    assert_eq!(transfer(&held, bound, OTHER, false), Ok(Own::Try));
    let handed = held_by(ME).granted(OTHER, 30_000, WallMs(1_000), OP);
    assert_eq!(transfer(&handed, bound, OTHER, true), Ok(Own::Done));
    let fenced = Err(LostTerm::Fenced { current: handed.token });
    assert_eq!(transfer(&handed, bound, OTHER, false), fenced);
    // Somebody else got it.
    assert_eq!(transfer(&handed, bound, HolderNonce([3; 16]), true), fenced);
}
