//! That a rule is needed: with it a world holds, without it the exploration finds
//! what the rule prevents. A rule without which nothing goes wrong is not needed, or
//! not tested. Prints the states that were visited and the way that was found.
#![allow(clippy::print_stderr, reason = "how much was explored is worth seeing")]

use std::fmt::Debug;

use jvs_kit::sim::{Ctx, Explorer, Process};
use jvs_repo::mutation::Switch;

/// The world holds with the rule and is broken without it, in the way named.
#[track_caller]
pub fn needed<R: Copy + Debug>(
    rule: R,
    breaks: &str,
    world: impl Fn(Option<R>) -> Explorer<'static>,
) {
    let whole = world(None).run();
    eprintln!("with {rule:?}: {whole}");
    whole.holds();
    broken(rule, breaks, world(Some(rule)));
}

/// Something is so with the rule, and is not without it.
#[track_caller]
pub fn needed_for<R: Copy + Debug>(rule: R, is_so: impl Fn(Option<R>) -> bool) {
    assert!(is_so(None), "not so with {rule:?}");
    assert!(!is_so(Some(rule)), "so without {rule:?}, too");
}

/// The world, in which `rule` is off, is broken in the way named.
#[track_caller]
pub fn broken<R: Debug>(rule: R, breaks: &str, world: Explorer<'static>) {
    let violation = world.run().violation();
    eprintln!("without {rule:?}, in {} steps: {}", violation.choices.len(), violation.message);
    assert!(violation.message.contains(breaks), "{rule:?}: {violation}");
}

/// A process in a world where `off` does not hold. What `act` answers only lets it end
/// early.
pub fn process<R: Switch>(
    name: &str,
    off: Option<R>,
    act: impl Fn(&Ctx) -> Option<()> + Send + Sync + 'static,
) -> Process {
    Process::new(name, move |ctx| {
        let _ = where_off(off, || act(ctx));
    })
}

/// Does `act` in a world where `off`, if it is any rule, does not hold.
pub fn where_off<R: Switch, T>(off: Option<R>, act: impl FnOnce() -> T) -> T {
    let Some(rule) = off else { return act() };
    let (mut act, mut done) = (Some(act), None);
    rule.switched_off(&mut || done = act.take().map(|act| act()));
    done.expect("a switch runs what it is given")
}
