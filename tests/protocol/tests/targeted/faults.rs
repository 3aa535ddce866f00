//! Every call of every operation goes wrong once, in every way: what the caller
//! is told is true and helps, and the next command works.

use jvs_kit::sim::{Errno, Way};
use jvs_lock::mutation::{self, Rule};
use jvs_lock::{Hold, Lease, LeaseOrigin, State};
use jvs_repo::code::{Code, Coded as _};
use jvs_repo::id::SnapshotId;
use jvs_world::any_error::AnyError;

use crate::world::{LEASE, LEASE_MS, World, main};

const X: SnapshotId = SnapshotId { created_ms: 7, random: 7 };
/// More calls than any operation makes, its retries included.
const FOR_EVER: usize = 400;

/// How a call goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Just this once.
    Once(Way),
    /// Just this once, and the rename lands only after the next command.
    LandsLast,
    /// The mount does not answer from this call on.
    Gone(Errno),
    /// The same, but this call was carried out.
    DoneThenGone,
}

const FAULTS: [Fault; 16] = [
    Fault::Once(Way::Fails(Errno::IO)),
    Fault::Once(Way::Fails(Errno::NOSPC)),
    Fault::Once(Way::Fails(Errno::ACCESS)),
    Fault::Once(Way::Fails(Errno::INTR)),
    Fault::Once(Way::AppliedBut(Errno::IO)),
    Fault::Once(Way::AppliedBut(Errno::NOENT)),
    Fault::Once(Way::Fails(Errno::BUSY)),
    Fault::Once(Way::AppliedBut(Errno::BUSY)),
    Fault::Gone(Errno::BUSY),
    Fault::Once(Way::DiesFirst),
    Fault::Once(Way::ThenDies),
    Fault::Once(Way::Late),
    Fault::LandsLast,
    Fault::Gone(Errno::IO),
    Fault::Gone(Errno::NOSPC),
    Fault::DoneThenGone,
];

impl Fault {
    /// Answers that lie are told of renames only.
    fn is_of_renames(self) -> bool {
        matches!(self, Fault::Once(Way::Late | Way::AppliedBut(Errno::NOENT)) | Fault::LandsLast)
    }

    fn inject(self, world: &World, n: usize) {
        let fail_from = |n: usize, errno| {
            (n..n + FOR_EVER).for_each(|call| world.solo.inject(call, Way::Fails(errno)));
        };
        match self {
            Fault::Once(way) => world.solo.inject(n, way),
            Fault::LandsLast => world.solo.inject(n, Way::Late),
            Fault::Gone(errno) => fail_from(n, errno),
            Fault::DoneThenGone => {
                world.solo.inject(n, Way::AppliedBut(Errno::IO));
                fail_from(n + 1, Errno::IO);
            }
        }
    }
}

type Told<'t> = &'t mut dyn FnMut(Result<(), AnyError>) -> bool;

/// What is tried, from a world in which it can succeed.
struct Operation {
    name: &'static str,
    prepare: fn(&World),
    /// Tries it as one process of the session `me`, and again for as long as
    /// whoever is told wants it.
    attempts: fn(&World, Told<'_>),
    /// Does the register show it?
    applied: fn(before: &State, now: &State) -> bool,
    /// What a second attempt is told if the first, in doubt, was applied.
    already: Option<Code>,
}

const OPERATIONS: [Operation; 8] = [
    Operation {
        name: "acquire",
        prepare: |_| {},
        attempts: acquire,
        applied: |before, now| now.token > before.token && now.holder().is_some(),
        already: None,
    },
    Operation {
        name: "refresh",
        prepare: held_by_me,
        attempts: acquire,
        applied: extended,
        already: None,
    },
    Operation {
        name: "renew",
        prepare: held_by_me,
        attempts: renew,
        applied: extended,
        already: None,
    },
    Operation {
        name: "steal",
        prepare: |world| {
            world.takes("other");
            world.lease_runs_out();
        },
        attempts: acquire,
        applied: |before, now| now.token > before.token && now.holder().is_some(),
        already: None,
    },
    Operation {
        name: "release",
        prepare: held_by_me,
        attempts: release,
        applied: |_, now| now.hold == Hold::Free,
        already: Some(Code::LockNotHeld),
    },
    Operation {
        name: "freeze",
        prepare: |_| {},
        attempts: |world, told| {
            let locks = world.session("me");
            while told(
                locks
                    .freeze(&main(), LEASE_MS, "maintenance", false)
                    .map(drop)
                    .map_err(AnyError::from),
            ) {}
        },
        applied: |_, now| matches!(now.hold, Hold::Frozen(_)),
        already: Some(Code::LockFrozen),
    },
    Operation {
        name: "unfreeze",
        prepare: |world| {
            world.session("me").freeze(&main(), LEASE_MS, "maintenance", false).expect("free");
        },
        attempts: |world, told| {
            let locks = world.session("me");
            while told(locks.unfreeze(&main(), "done").map(drop).map_err(AnyError::from)) {}
        },
        applied: |_, now| now.hold == Hold::Free,
        already: Some(Code::LockNotHeld),
    },
    Operation {
        name: "commit",
        prepare: held_by_me,
        attempts: commit,
        applied: |_, now| now.head == Some(X),
        already: None,
    },
];

fn held_by_me(world: &World) {
    world.takes("me");
}

fn extended(before: &State, now: &State) -> bool {
    let end = |state: &State| state.hold.claim().map(|claim| claim.expires);
    end(now) > end(before)
}

fn acquire(world: &World, told: Told<'_>) {
    let locks = world.session("me");
    while told(locks.acquire(&main(), LEASE).map(drop).map_err(AnyError::from)) {}
}

/// Goes on with the session's hold and does something with it, keeping the
/// lease for the next attempt.
fn with_lease(world: &World, told: Told<'_>, act: fn(&mut Lease<'_>) -> Result<(), AnyError>) {
    let locks = world.session("me");
    let mut lease = None;
    loop {
        let result = match &mut lease {
            Some(lease) => act(lease),
            none => match locks.resume(&main(), None) {
                Ok(resumed) => act(none.insert(resumed)),
                Err(error) => Err(error.into()),
            },
        };
        if !told(result) {
            return;
        }
    }
}

fn renew(world: &World, told: Told<'_>) {
    with_lease(world, told, |lease| Ok(lease.renew()?));
}

fn commit(world: &World, told: Told<'_>) {
    with_lease(world, told, |lease| {
        lease.fence()?.commit(None, X, &|| Ok(false))?;
        Ok(())
    });
}

fn release(world: &World, told: Told<'_>) {
    let locks = world.session("me");
    let mut lease: Option<Lease<'_>> = None;
    loop {
        let held = lease.take().map_or_else(|| locks.resume(&main(), None), Ok);
        let result = held.and_then(|held| {
            held.release().map_err(|failed| {
                lease = Some(*failed.lease);
                failed.error
            })
        });
        if !told(result.map(drop).map_err(AnyError::from)) {
            return;
        }
    }
}

/// Does the error leave open whether it happened?
fn is_open(error: &AnyError) -> bool {
    matches!(error.code(), Code::OutcomeUnknown | Code::UnsafeFilesystem)
}

/// Runs one case; `false` if the operation makes no such call.
fn run_case(operation: &Operation, n: usize, fault: Fault) -> bool {
    let world = World::new();
    (operation.prepare)(&world);
    // So that a renewal shows in the end of the lease.
    world.solo.pass_ms(1_000);
    let before = world.register();
    world.solo.forget_calls();
    fault.inject(&world, n);

    let case = format!("{}, call {n}, {fault:?}", operation.name);
    let applied = |when: &str| {
        let now = world.register();
        assert!(now.token >= before.token && now.seq >= before.seq, "{case}, {when}: went back");
        (operation.applied)(&before, &now)
    };
    let mut called = true;
    let mut first: Option<Result<(), AnyError>> = None;
    let lived = world.solo.run(|| {
        (operation.attempts)(&world, &mut |result| {
            if let Some(first) = &first {
                let open = first.as_ref().is_err_and(is_open);
                match result {
                    Ok(()) => assert!(applied("again"), "{case}: told done again, but it is not"),
                    Err(error) => assert!(
                        open && applied("again") && Some(error.code()) == operation.already,
                        "{case}: first {first:?}, then {}: {error}",
                        error.code()
                    ),
                }
                return false;
            }
            let calls = world.solo.calls();
            called = calls.len() > n;
            called &= !fault.is_of_renames() || calls[n].starts_with("rename");
            world.solo.clear_injected();
            let was_applied = applied("at once");
            if fault != Fault::LandsLast {
                world.solo.land_late_renames();
            }
            match &result {
                Ok(()) => {
                    assert!(was_applied && applied("later"), "{case}: told done, but it is not");
                }
                Err(error) => {
                    let code = error.code();
                    assert_ne!(code, Code::Internal, "{case}: {error}");
                    assert!(error.to_string().len() > 10, "{case}: says nothing: {error}");
                    assert!(error.next().is_some(), "{case}: gives no hint: {error}");
                    assert!(
                        is_open(error) || !was_applied && !applied("later"),
                        "{case}: told failed, but it was done: {code}: {error}"
                    );
                }
            }
            let again = result.is_err();
            first = Some(result);
            again
        });
    });
    world.solo.clear_injected();
    if lived.is_some() && !called {
        return false;
    }
    applied("afterwards");
    the_next_command_works(&world, &before, &case);
    if fault == Fault::LandsLast {
        let now = world.register();
        assert_eq!(world.solo.land_late_renames(), 0, "{case}: it was fenced off");
        assert_eq!(world.register(), now, "{case}");
    }
    true
}

fn the_next_command_works(world: &World, before: &State, case: &str) {
    let me = world.session("me");
    if matches!(world.register().hold, Hold::Frozen(_)) {
        me.unfreeze(&main(), "over").unwrap_or_else(|error| panic!("{case}: unfreeze: {error}"));
    }
    let lease = me.acquire(&main(), LEASE);
    let lease = lease.unwrap_or_else(|error| panic!("{case}: the same session: {error}"));
    assert!(lease.drift().is_empty(), "{case}: {:?}", lease.drift());
    assert!(lease.token() >= before.token, "{case}");
    let token = lease.token();
    drop(lease);
    world.audit_adds_up();
    let error = world.session("next").acquire(&main(), LEASE).expect_err("it is held");
    assert_eq!(error.code(), Code::LockConflict, "{case}: {error}");
    world.lease_runs_out();
    let next = world.session("next");
    let lease = next.acquire(&main(), LEASE);
    let lease = lease.unwrap_or_else(|error| panic!("{case}: another session: {error}"));
    assert_eq!((lease.how(), lease.token()), (LeaseOrigin::Stolen, token.next()), "{case}");
    assert_eq!(world.record_names().as_deref(), Some("next"), "{case}");
    lease.release().unwrap_or_else(|failed| panic!("{case}: release: {failed}"));
    world.audit_adds_up();
}

/// Tries everything; how many cases that were.
fn every_case_of(operation: &Operation) -> usize {
    let calls = {
        let world = World::new();
        (operation.prepare)(&world);
        world.solo.forget_calls();
        (operation.attempts)(&world, &mut |result| {
            result.unwrap_or_else(|error| panic!("{}: {error}", operation.name));
            false
        });
        world.solo.call_count()
    };
    let cases = (0..calls).flat_map(|n| FAULTS.map(|fault| (n, fault)));
    let tried = cases.filter(|(n, fault)| run_case(operation, *n, *fault)).count();
    // Five errors, two deaths and three ways of the mount to go, at least.
    assert!(tried >= calls * 10, "{}: {tried} cases of {calls} calls", operation.name);
    tried
}

#[test]
#[expect(clippy::print_stderr, reason = "how much was tried is part of the answer")]
fn whatever_call_goes_wrong_the_caller_is_told_the_truth_and_the_next_command_works() {
    let mut all = 0;
    for operation in &OPERATIONS {
        let tried = every_case_of(operation);
        eprintln!("{}: {tried} cases", operation.name);
        all += tried;
    }
    eprintln!("{all} cases in all");
}

#[test]
fn the_cases_notice_when_a_doubtful_answer_is_believed() {
    for rule in [Rule::EnoentIsUnknown, Rule::UnchangedIsNotFailed] {
        let all = || mutation::without(rule, || OPERATIONS.iter().map(every_case_of).sum());
        let tried: Result<usize, _> = std::panic::catch_unwind(all);
        assert!(tried.is_err(), "{rule:?} was off, and all {tried:?} cases passed");
    }
}
