//! What the stakes of a hold say of its end.

use jvs_lock::hold::{Holds, Stake, Who};
use jvs_lock::kept::{self, Kept};
use jvs_repo::clock::{Clock as _, SystemClock};
use jvs_repo::proc;
use jvs_repo::term::Term;

/// Until when the hold `term` is kept, and the live stakes that say so. `None` if they
/// cannot be seen.
pub(crate) fn kept(
    holds: &Holds<'_>,
    term: Term,
    idle_ms: Option<u64>,
) -> Option<(Kept, Vec<Stake>)> {
    let scan = holds.scan().ok()?;
    let alive = holds.alive(&scan).into_iter();
    let stakes: Vec<&Stake> = alive.filter(|it| it.term == Some(term)).collect();
    let is_terminal = |who: Who| proc::leads_terminal(who.pid);
    let yields = |stake: &Stake| scan.yields(stake);
    let kept = kept::of(&stakes, SystemClock.now(), idle_ms, &yields, &is_terminal);
    Some((kept, stakes.into_iter().copied().collect()))
}
