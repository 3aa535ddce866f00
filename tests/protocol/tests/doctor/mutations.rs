//! Each rule of repairs, switched off: the exploration must then find what the
//! rule prevents.

use jvs_doctor::mutation::Rule;
use jvs_kit::sim::{Errno, Explorer, Way};
use jvs_lock::Want;
use jvs_lock::worktrees::{self, Base};
use jvs_protocol_tests::necessity::{broken, where_off};
use jvs_repo::code::{Code, Coded};
use jvs_repo::id::OpNonce;
use jvs_repo::layout;
use jvs_repo::record::worktree::Isolation;
use jvs_repo::store::Store;
use jvs_snapshot::Catalog;
use jvs_snapshot::mutation::Rule as Damage;
use jvs_snapshot::stored::proven_manifest;
use jvs_world::sim::ward::Ward;
use jvs_world::sim::{LEASE_MS, snapshot};

use crate::beside::{
    collector_and_doctor, doctor_named, holder_and_its_own_doctor, session, takeover_and_doctor,
    world,
};
use crate::ruins::{RUINS, bury, ruined};

/// The world is broken without the rule, in the way named. That it holds with it
/// is what the other tests show.
#[track_caller]
fn needed(rule: Rule, breaks: &str, world: Explorer<'static>) {
    let world = world.process(doctor_named("d", Some(rule))).preemptions(1);
    broken(rule, breaks, world);
}

#[test]
fn work_is_removed_only_if_it_is_proven_dead() {
    let world = world("a snapshot was never finished").process(session("a", 2, true));
    needed(Rule::ProvenDead, "is missing", world);
}

#[test]
fn the_record_of_a_new_holder_is_put_back() {
    let world = world("a record is stale").process(session("a", 0, true));
    needed(Rule::PutsBack, "holds the lock and has no record", world);
}

#[test]
fn what_a_takeover_wrote_meanwhile_is_put_back() {
    let world = takeover_and_doctor(Some(Rule::PutsBack));
    broken(Rule::PutsBack, "what the takeover wrote is not there", world);
}

#[test]
fn a_repair_in_the_session_that_holds_leaves_it_holding() {
    let world = holder_and_its_own_doctor(Some(Rule::HoldIsLeft)).preemptions(1);
    broken(Rule::HoldIsLeft, "a holds token", world);
}

#[test]
fn a_lineage_is_looked_at_again_before_it_is_called_broken() {
    let world = collector_and_doctor(Some(Rule::BrokenIsLookedAtAgain)).preemptions(1);
    broken(Rule::BrokenIsLookedAtAgain, "a whole lineage was called broken", world);
}

/// Neither a manifest nor anything else is corrupt because it could not be read.
#[test]
fn what_the_filesystem_refuses_to_show_is_not_damaged() {
    for (errno, code) in
        [(Errno::IO, Code::Io), (Errno::STALE, Code::Io), (Errno::ACCESS, Code::Permission)]
    {
        let ward = Ward::new();
        let ready = Catalog::new(ward.store()).open(ward.ids[0]).expect("visible");
        let told = || {
            ward.solo.inject(0, Way::Fails(errno));
            proven_manifest(ward.store(), &ready).map(drop).expect_err("refused").code()
        };
        assert_eq!(told(), code, "{errno}");
        let without = jvs_snapshot::mutation::without(Damage::RefusalIsNotDamage, told);
        assert_eq!(without, Code::DescriptorCorrupt, "{errno}: the rule is not needed");
    }
}

#[test]
fn a_worktree_with_a_record_was_not_removed() {
    let after = |off: Option<Rule>| {
        let ward = ruined(bury);
        // The log remembers, too, unless it is lost as well.
        ward.remove(&layout::audit());
        ward.store().make_dir(&layout::audit()).expect("made");
        drop(where_off(off, || ward.repair("doctor")));
        ward.state().head
    };
    assert_eq!(after(None), ruined(bury).ids.last().copied(), "with the rule it has its head");
    assert_eq!(after(Some(Rule::RecordedIsNotRemoved)), None, "without it the head is lost");
}

/// A name that is used again begins with any snapshot of its former worktree: what that
/// had published later is nobody's ancestor, and nobody's mistake.
#[test]
fn what_a_former_worktree_of_a_name_had_published_stays_visible() {
    let stays = |off: Option<Rule>| {
        let ward = Ward::new();
        let (name, locks) = ("w".parse().expect("a name"), ward.locks("maker"));
        worktrees::create(&locks, &name, Isolation::Exclusive).expect("made");
        let [first, second] = ["three", "four"].map(|text| {
            let mut lease = locks.acquire(&name, Want::lease(LEASE_MS)).expect("free");
            let ready = snapshot(&ward.solo, &mut lease, text);
            lease.release().expect("released");
            ready.descriptor().clone()
        });
        drop(worktrees::remove(&locks, &name, true).expect("removed"));
        let base = Base { head: first.snapshot_id, generation: first.commit_seq };
        let files = layout::staging().child("files").expect("a path");
        ward.store().make_dir(&files).expect("made");
        let begun = worktrees::begin_from(&locks, &name, Isolation::Exclusive, base);
        begun.expect("begun").finish(&files).expect("made");
        drop(where_off(off, || ward.repair("doctor")));
        let published = [&ward.ids[..], &[first.snapshot_id, second.snapshot_id]].concat();
        ward.check(&published)
    };
    assert_eq!(stays(None), Ok(()), "with the rule it stays");
    let lost = stays(Some(Rule::FormerWorktreesAreLeft)).expect_err("without it it is set aside");
    assert!(lost.contains("was lost"), "{lost}");
}

#[test]
fn nothing_follows_from_what_the_filesystem_did_not_show() {
    let (_, ruin) = RUINS[0];
    let lost = |off: Option<Rule>| {
        (0..400).any(|call| {
            let ward = ruined(ruin);
            ward.solo.inject(call, Way::Fails(Errno::IO));
            drop(where_off(off, || ward.repair("doctor")));
            ward.solo.clear_injected();
            ward.repair("next");
            ward.check(&ward.ids).is_err()
        })
    };
    assert!(!lost(None), "with the rule nothing is lost");
    assert!(lost(Some(Rule::UnseenIsNotGone)), "without it a head is");
}

/// A tag that is being made: nobody knows whether its name is taken while the
/// filesystem does not show it.
#[test]
fn a_name_that_was_not_shown_proves_nothing() {
    let tmp = layout::tag_tmp(&"new".parse().expect("a tag"), OpNonce([7; 8]));
    let ward = || {
        let ward = Ward::new();
        drop(ward.store().create_new(&tmp).expect("made"));
        ward
    };
    let calls = {
        let ward = ward();
        let before = ward.solo.call_count();
        ward.repair("doctor");
        ward.solo.call_count() - before
    };
    for call in 0..calls {
        let ward = ward();
        ward.solo.inject(call, Way::Fails(Errno::IO));
        ward.repair("doctor");
        ward.solo.clear_injected();
        assert!(ward.store().is_there(&tmp).expect("shown"), "call {call}");
    }
}

#[test]
fn a_register_below_what_was_seen_of_it_was_set_back() {
    let (_, from_a_backup) =
        RUINS.iter().find(|(what, _)| *what == "the register is from a backup").expect("a ruin");
    let head = |off: Option<Rule>| {
        let ward = ruined(*from_a_backup);
        drop(where_off(off, || ward.repair("doctor")));
        (ward.state().head, ward.ids.last().copied())
    };
    let (with, last) = head(None);
    assert_eq!(with, last, "with the rule what was committed is the head again");
    let (without, last) = head(Some(Rule::SeenIsNotUndone));
    assert_ne!(without, last, "without it the head is an earlier one");
}

/// Every rule that can be switched off is switched off by a test.
#[test]
fn no_rule_is_left_out() {
    let tests = [include_str!("mutations.rs"), include_str!("../worktrees/unshown.rs")];
    for rule in Rule::ALL {
        let ways = [
            format!("needed(Rule::{rule:?},"),
            format!("Some(Rule::{rule:?})"),
            format!("without(Repair::{rule:?},"),
        ];
        let is_off = |test: &&str| ways.iter().any(|way| test.contains(way));
        assert!(tests.iter().any(is_off), "{rule:?} is never switched off");
    }
}
