//! At which calls a command is struck, and that it is struck there.

use jvs_kit::live::calls::{self, Blow, Call};

use crate::user::User;

/// How many of the points there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Every call that changes something.
    All,
    /// Every rename, because whatever becomes visible does so by one, and a
    /// spread of the others.
    Spread,
}

/// Of the calls that are no renames a spread has one in so many.
const ONE_IN: usize = 9;

/// `JVS_LONG=1` strikes at every call on every filesystem, in both ways.
pub(crate) fn long() -> bool {
    std::env::var_os("JVS_LONG").is_some()
}

fn blows(calls: &[Call], extent: Extent) -> Vec<(&Call, Blow)> {
    if long() {
        let both = |call| [(call, Blow::DiesFirst), (call, Blow::ThenDies)];
        return calls.iter().flat_map(both).collect();
    }
    // To be dead before a call is made is to be dead after the one before it,
    // and a sync is nothing that the living could see.
    let changing: Vec<&Call> = calls.iter().filter(|call| !call.only_syncs()).collect();
    match extent {
        Extent::All => {
            let last = changing.last().map(|call| (*call, Blow::ThenDies));
            changing.iter().map(|call| (*call, Blow::DiesFirst)).chain(last).collect()
        }
        Extent::Spread => {
            let wanted = |(n, call): &(usize, &&Call)| call.renames() || n.is_multiple_of(ONE_IN);
            let blow = |call: &Call| if call.renames() { Blow::ThenDies } else { Blow::DiesFirst };
            let chosen = changing.iter().enumerate().filter(wanted).map(|(_, call)| *call);
            chosen.map(|call| (call, blow(call))).collect()
        }
    }
}

/// Runs `words` once to its end and then again and again, each time dead at
/// another call. Before each run `prepare` does the same, and after it `check`
/// holds; both are told the number of the run, and `check` which it was.
pub(crate) fn dead_at_each_call(
    user: &User,
    words: &str,
    extent: Extent,
    mut prepare: impl FnMut(usize),
    mut check: impl FnMut(usize, &str),
) {
    let command = user.command(words);
    // The first run of a home makes what later ones find.
    prepare(0);
    calls::record(&command).outcome.ok();
    check(0, "a whole run");
    prepare(1);
    let recorded = calls::record(&command);
    recorded.outcome.ok();
    check(1, "a whole run");

    let blows = blows(&recorded.calls, extent);
    let mut missed = Vec::new();
    for (n, (call, blow)) in blows.iter().enumerate() {
        prepare(n + 2);
        let outcome = calls::strike(&command, call, *blow);
        let what = format!("{blow:?} at {call}");
        if outcome.signal().is_none() {
            outcome.ok();
            missed.push(what.clone());
        }
        check(n + 2, &what);
    }
    let (struck, all) = (blows.len() - missed.len(), recorded.calls.len());
    eprintln!(
        "{words}: {struck} deaths at {all} calls; {} calls cannot be aimed at, {} were missed",
        recorded.out_of_reach,
        missed.len()
    );
    // Some calls depend on the moment: a probe that is not made again, a retry.
    assert!(missed.len() * 5 <= blows.len(), "most runs die where they should: {missed:#?}");
}
