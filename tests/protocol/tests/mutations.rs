//! Each rule of the protocol, switched off: the exploration must then find what
//! the rule prevents. A rule without which nothing goes wrong is not needed, or
//! not tested. Each test prints the states it visited and the way it found.

use jvs_kit::sim::Explorer;
use jvs_lock::mutation::Rule;
use jvs_protocol_tests::actor::{LEASE_AND_MARGIN_MS, LEASE_MS};
use jvs_protocol_tests::necessity::needed;
use jvs_protocol_tests::{Actor, Stage, Step, invariant};

const PUBLISH: &[Step] = &[Step::Acquire, Step::Commit];
const TAKE: &[Step] = &[Step::Acquire];

fn alone(script: &'static [Step]) -> impl Fn(Option<Rule>) -> Explorer<'static> {
    move |off| Stage::coarse(&[Actor::new("a", script)], off)
}

#[test]
fn enoent_is_unknown() {
    needed(Rule::EnoentIsUnknown, "but it was committed", |off| {
        alone(PUBLISH)(off).ambiguous_renames(1)
    });
}

#[test]
fn unchanged_is_not_failed() {
    needed(Rule::UnchangedIsNotFailed, "but it was committed", |off| {
        alone(PUBLISH)(off).late_renames(1)
    });
}

#[test]
fn a_cas_lost_to_ones_own_session_is_tried_again() {
    const HOLD: &[Step] = &[Step::Acquire, Step::Renew];
    const GO_ON: &[Step] = &[Step::Resume, Step::Commit];
    needed(Rule::LostToSelfIsRetried, "fenced by its own session", |off| {
        let actors = [Actor::new("a", HOLD).on_host(0), Actor::new("a", GO_ON).on_host(0)];
        Stage::coarse(&actors, off).always(invariant::nobody_is_fenced_by_its_own_session)
    });
}

#[test]
fn operations_are_bound_to_their_token() {
    const AGAIN: &[Step] = &[Step::Acquire, Step::Acquire];
    needed(Rule::BoundToToken, "was applied under token", |off| {
        // The same session commits in one process and comes back in another.
        let actors = [
            Actor::new("a", PUBLISH).on_host(0),
            Actor::new("b", &[Step::Acquire, Step::Release]).on_host(1),
            Actor::new("a", AGAIN).on_host(0),
        ];
        Stage::coarse(&actors, off)
            .time_jumps(1, [LEASE_AND_MARGIN_MS])
            .preemptions(3)
            .early_wakes(0)
    });
}

#[test]
fn the_rename_that_moves_the_head_proves_the_hold() {
    needed(Rule::CommitIsFenced, "was applied under token", |off| {
        let actors = [Actor::new("a", PUBLISH).on_host(0), Actor::new("b", TAKE).on_host(1)];
        Stage::coarse(&actors, off).time_jumps(1, [LEASE_AND_MARGIN_MS])
    });
}

#[test]
fn the_margin_before_a_steal_includes_the_skew() {
    needed(Rule::SkewInStealMargin, "believes in token", |off| {
        let actors = [Actor::new("a", PUBLISH).on_host(0), Actor::new("b", TAKE).on_host(1)];
        Stage::coarse(&actors, off).wall_offset_ms(1, 2_000).time_jumps(1, [LEASE_MS - 500])
    });
}

#[test]
fn a_head_move_copies_the_end_of_the_lease() {
    needed(Rule::HeadMoveCopiesExpiry, "believes in token", |off| {
        let thief = Actor::new("b", TAKE).on_host(1).watching();
        Stage::coarse(&[Actor::new("a", PUBLISH).on_host(0), thief], off)
    });
}

#[test]
fn a_renewal_never_shortens_the_lease() {
    const SHORT: &[Step] = &[Step::AcquireBriefly];
    const LONG: &[Step] = &[Step::Acquire, Step::Renew];
    needed(Rule::RenewalNeverShortens, "believes in token", |off| {
        let actors = [
            Actor::new("a", LONG).on_host(0),
            Actor::new("a", SHORT).on_host(0),
            Actor::new("b", TAKE).on_host(1),
        ];
        Stage::coarse(&actors, off).time_jumps(1, [LEASE_MS - 5_000]).preemptions(3)
    });
}

#[test]
fn belief_counts_from_before_the_call() {
    needed(Rule::BeliefFromBefore, "believes in token", |off| {
        let actors = [
            Actor::new("a", &[Step::Acquire, Step::Commit]).on_host(0),
            Actor::new("b", TAKE).on_host(1),
        ];
        Stage::coarse(&actors, off).time_jumps(2, [LEASE_MS - 500, 5_000])
    });
}

#[test]
fn belief_ends_before_a_release_is_issued() {
    const GIVE_BACK: &[Step] = &[Step::Acquire, Step::Release];
    needed(Rule::BeliefEndsBeforeRelease, "believes in token", |off| {
        alone(GIVE_BACK)(off).ambiguous_renames(1)
    });
}

#[test]
fn a_steal_raises_the_token() {
    needed(Rule::StealRaisesToken, "two holders of one token", |off| {
        let actors = [Actor::new("a", TAKE), Actor::new("b", TAKE)];
        Stage::coarse(&actors, off).time_jumps(1, [LEASE_AND_MARGIN_MS])
    });
}

#[test]
fn a_release_keeps_the_token() {
    const GIVE_BACK: &[Step] = &[Step::Acquire, Step::Release];
    needed(Rule::ReleaseKeepsToken, "the token went back", alone(GIVE_BACK));
}

#[test]
fn all_attempts_of_an_operation_share_one_nonce() {
    const FREEZE: &[Step] = &[Step::Freeze];
    needed(Rule::OneOpForAllAttempts, "the freeze failed", |off| {
        alone(FREEZE)(off).late_renames(2)
    });
}

#[test]
fn what_is_older_than_what_was_seen_is_ignored() {
    needed(Rule::MonotoneReads, "failed, but it was committed", |off| {
        let actor = Actor::new("a", PUBLISH).seeing_old_listings(2);
        Stage::coarse(&[actor], off).ambiguous_renames(1)
    });
}

#[test]
fn a_grant_is_made_durable_before_anyone_is_told() {
    needed(Rule::GrantIsDurable, "was granted to two sessions", |off| {
        let actors = [Actor::new("a", TAKE), Actor::after_the_power_cut("b")];
        Stage::with_power_cut(&actors, off)
    });
}

#[test]
fn a_release_and_a_freeze_are_made_durable_before_anyone_is_told() {
    const GIVE_BACK: &[Step] = &[Step::Acquire, Step::Release];
    for (script, breaks) in [
        (GIVE_BACK, "the power cut took a release back"),
        (&[Step::Freeze], "the power cut took a freeze back"),
    ] {
        needed(Rule::DurableBeforeTold, breaks, |off| {
            let actors = [Actor::new("a", script), Actor::after_the_power_cut("b")];
            Stage::with_power_cut(&actors, off)
        });
    }
}

/// The same id, the same home, two hosts: without the rule the second refreshes the
/// first one's hold and gives it back under its feet.
#[test]
fn a_secret_is_of_one_host_and_boot() {
    const HOLD: &[Step] = &[Step::Acquire, Step::Renew];
    const GIVE_BACK: &[Step] = &[Step::Resume, Step::Release];
    needed(Rule::SecretIsOfHost, "believes", |off| {
        let actors = [
            Actor::new("a", HOLD).on_host(0).of_its_host(),
            Actor::new("a", GIVE_BACK).on_host(1).of_its_host(),
        ];
        Stage::coarse(&actors, off)
    });
}

/// Every rule that can be switched off is switched off by a test above, or by one
/// of those about clocks, or by one that chooses the bad moment by hand.
#[test]
fn no_rule_is_left_out() {
    let tests = [
        include_str!("mutations.rs"),
        include_str!("clocks.rs"),
        include_str!("full.rs"),
        include_str!("targeted/surroundings.rs"),
        include_str!("history.rs"),
        include_str!("targeted/confirmed.rs"),
        include_str!("worktrees/needed.rs"),
        include_str!("worktrees/paused.rs"),
        include_str!("worktrees/failures.rs"),
        include_str!("worktrees/reserved.rs"),
        include_str!("worktrees/unshown.rs"),
        include_str!("deadlock.rs"),
        include_str!("policy.rs"),
        include_str!("dropping.rs"),
    ];
    for rule in Rule::ALL {
        let ways = [format!("needed(Rule::{rule:?}"), format!("without(Rule::{rule:?}")];
        let is_off = |test: &&str| ways.iter().any(|way| test.contains(way));
        assert!(tests.iter().any(is_off), "{rule:?} is never switched off");
    }
}
