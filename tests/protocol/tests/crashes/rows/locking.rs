//! Locks that are taken, kept, given back, taken over, handed over and frozen.

use jvs_lock::queue::Queue;
use jvs_lock::{Hold, Locks, State, Want};
use jvs_repo::code::Code;
use jvs_repo::config::ReclaimRules;
use jvs_repo::proc::ProcessStat;
use jvs_world::any_error::AnyError;
use jvs_world::repository::main;
use jvs_world::sim::ward::{Ward, locks_of};
use jvs_world::sim::{LEASE_MS, LONG_MS};

use super::{Row, Told};
use crate::standing::Standing;

const HEIR: &str = "heir";
const LEASE: Want<'static> = Want::lease(LEASE_MS);

pub(super) fn locks<'w>(ward: &'w Ward<'_>, who: &str) -> Locks<'w> {
    locks_of(ward.seams(), who)
}

fn holds(ward: &Ward<'_>, who: &str) -> bool {
    ward.state().holder() == Some(locks(ward, who).session().nonce())
}

fn acquired(ward: &Ward<'_>, who: &str) -> Told {
    locks(ward, who).acquire(&main(), LEASE).map(drop)?;
    Ok(())
}

fn held_by(ward: &Ward<'_>, who: &str) {
    acquired(ward, who).expect("it is free");
}

fn is_new_holder(ward: &Ward<'_>, who: &str, before: &Standing) -> bool {
    holds(ward, who) && ward.state().token > before.state.token
}

fn is_free(ward: &Ward<'_>, _: &str, _: &Standing) -> bool {
    ward.state().hold == Hold::Free
}

fn ends(state: &State) -> Option<u64> {
    state.hold.claim().map(|claim| claim.expires.0)
}

const ACQUIRE: Row = Row::new("lock acquire", acquired, is_new_holder);

const RENEW: Row = Row {
    prepare: |ward| held_by(ward, "dead"),
    // A renewal that a power cut took was relied on by nobody who is left.
    is_durable: false,
    refusals: &[Code::LockNotHeld],
    ..Row::new(
        "lock renew",
        |ward, who| Ok(locks(ward, who).resume(&main(), None)?.renew()?),
        |ward, who, before| holds(ward, who) && ends(&ward.state()) > ends(&before.state),
    )
};

const RELEASE: Row = Row {
    prepare: |ward| held_by(ward, "dead"),
    refusals: &[Code::LockNotHeld],
    ..Row::new(
        "lock release",
        |ward, who| match locks(ward, who).resume(&main(), None)?.release() {
            Ok(_) => Ok(()),
            Err(failed) => Err(failed.error.into()),
        },
        is_free,
    )
};

const STEAL: Row = Row {
    prepare: |ward| {
        held_by(ward, "gone");
        ward.solo.pass_ms(LONG_MS);
    },
    refusals: &[Code::LockNotHeld],
    ..Row::new(
        "lock steal",
        |ward, who| {
            let want = Want { reason: Some("a test"), ..LEASE };
            locks(ward, who).steal(&main(), want, &all_are_there).map(drop)?;
            Ok(())
        },
        is_new_holder,
    )
};

const RECLAIM: Row = Row {
    prepare: |ward| held_by(ward, "other"),
    ..Row::new(
        "lock reclaim",
        |ward, who| {
            let rules = ReclaimRules { same_user: true, ..ReclaimRules::default() };
            let want = Want { reason: Some("a test"), ..LEASE };
            locks(ward, who).reclaim(&main(), want, &rules, false, &|_| None).map(drop)?;
            Ok(())
        },
        is_new_holder,
    )
};

/// In these worlds nobody can tell of a process that it is gone.
fn all_are_there(_pid: u32) -> Option<ProcessStat> {
    Some(ProcessStat { start_ticks: 1, session_leader: 1, zombie: false })
}

fn hands_over(ward: &Ward<'_>, who: &str) -> Told {
    let locks = locks(ward, who);
    let lease = locks.resume(&main(), None)?;
    let heir = HEIR.parse().expect("a plain word");
    let Some(waiter) = locks.waiter(&main(), &heir, &all_are_there)? else {
        panic!("the heir waits");
    };
    match lease.transfer(&waiter, LEASE_MS, "a test") {
        Ok(_) => {
            locks.wake(&main(), &waiter);
            Ok(())
        }
        Err(failed) => Err(failed.error.into()),
    }
}

const TRANSFER: Row = Row {
    prepare: |ward| {
        held_by(ward, "dead");
        let heir = locks(ward, HEIR);
        let queue = Queue::new(ward.seams(), &main());
        // It goes on standing there.
        std::mem::forget(queue.join(heir.session(), LEASE_MS).expect("in line"));
    },
    refusals: &[Code::LockNotHeld],
    ..Row::new("lock transfer", hands_over, |ward, _, before| is_new_holder(ward, HEIR, before))
};

fn is_frozen(ward: &Ward<'_>, _: &str, _: &Standing) -> bool {
    matches!(ward.state().hold, Hold::Frozen(_))
}

fn frozen(ward: &Ward<'_>, who: &str) -> Told {
    match locks(ward, who).freeze(&main(), LEASE_MS, "maintenance", false) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

const FREEZE: Row = Row::new("lock freeze", frozen, is_frozen);

const UNFREEZE: Row = Row {
    prepare: |ward| frozen(ward, "operator").expect("frozen"),
    refusals: &[Code::LockNotHeld],
    ..Row::new(
        "lock unfreeze",
        |ward, who| match locks(ward, who).unfreeze(&main(), "done") {
            Ok(_) => Ok(()),
            Err(error) => Err(AnyError::from(error)),
        },
        is_free,
    )
};

/// Locks, and what runs under them.
pub(crate) const ROWS: &[Row] =
    &[ACQUIRE, RENEW, RELEASE, STEAL, RECLAIM, TRANSFER, FREEZE, UNFREEZE];
