//! Who may join a hold, and whom a release must not cut off. Pure: the live
//! stakes and the applicant in, answer out.

use super::rule::HoldRule;
use super::stake::{Stake, StakeKind};
use jvs_repo::sabotage;
use jvs_repo::term::Term;

/// A command that wants to join a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applicant {
    /// What for.
    pub kind: StakeKind,
    /// It was handed the token by the command that it runs under.
    pub handed_down: bool,
    /// It was told to share (`--join`).
    pub joins: bool,
}

/// May it come in, seeing the stakes that live? Answers whether it is exclusive;
/// refuses with the stake that is in its way.
///
/// A run is exclusive unless somebody said explicitly that the session is to hold,
/// and was answered, before it came: two commands that were never told of each
/// other must not write at once only because they share a session.
pub fn admit<'s>(applicant: Applicant, alive: &[&'s Stake]) -> Result<bool, &'s Stake> {
    let Applicant { kind, handed_down, joins } = applicant;
    if !kind.is_run() || handed_down || joins {
        return Ok(false);
    }
    let mut runs = alive.iter().filter(|stake| stake.kind.is_run());
    if let Some(run) = runs.clone().find(|stake| stake.exclusive) {
        return Err(run);
    }
    let said_so = alive.iter().any(|stake| stake.kind.is_explicit() && stake.answered);
    if said_so {
        return Ok(false);
    }
    match runs.next() {
        Some(run) => Err(run),
        None => Ok(has_it_to_itself(kind)),
    }
}

/// Does a command of that kind have the hold to itself, if nothing was said? A shell does
/// not: it is a place for other commands of the session.
fn has_it_to_itself(kind: StakeKind) -> bool {
    sabotage!(HoldRule::ExclusiveIsInTheStake => false);
    kind == StakeKind::Run
}

/// Which of the live stakes in `term` still rely on it when somebody says that the
/// session is to release it: commands, and those who were not answered yet.
pub fn relying<'s>(term: Term, alive: &[&'s Stake]) -> Vec<&'s Stake> {
    let runs = alive.iter().any(|stake| stake.kind.is_run());
    let relies = |stake: &&&Stake| {
        // None yet: it may be just about to join.
        stake.term.is_none_or(|its| its == term)
            && match stake.kind {
                StakeKind::Acquire => !stake.answered,
                // Named only where its run is gone, and what it started may not be.
                StakeKind::Guard => !runs,
                StakeKind::Shell | StakeKind::Run | StakeKind::Work => true,
            }
    };
    alive.iter().filter(relies).copied().collect()
}

#[cfg(test)]
mod tests {
    use jvs_repo::id::{FencingToken, OpNonce};

    use super::super::stake::{StakeEnd, Who};
    use super::*;

    fn term() -> Term {
        Term { epoch: "1-a3f0".parse().expect("an epoch"), token: FencingToken(7) }
    }

    fn stake(kind: StakeKind, exclusive: bool, answered: bool) -> Stake {
        Stake {
            id: OpNonce([1; 8]),
            term: Some(term()),
            kind,
            exclusive,
            maker: Who { pid: 1, start: 1 },
            pid_namespace: None,
            time_namespace: None,
            over: StakeEnd::default(),
            answered,
        }
    }

    fn run(handed_down: bool, joins: bool) -> Applicant {
        Applicant { kind: StakeKind::Run, handed_down, joins }
    }

    #[test]
    fn two_runs_do_not_run_at_once_unless_they_were_told_to() {
        let first = stake(StakeKind::Run, true, true);
        assert_eq!(admit(run(false, false), &[]), Ok(true));
        assert_eq!(admit(run(false, false), &[&first]), Err(&first));
        assert_eq!(admit(run(true, false), &[&first]), Ok(false), "it runs under the first");
        assert_eq!(admit(run(false, true), &[&first]), Ok(false), "--join");
        let work = Applicant { kind: StakeKind::Work, ..run(false, false) };
        assert_eq!(admit(work, &[&first]), Ok(false), "a snapshot beside a run");
        let shell = Applicant { kind: StakeKind::Shell, ..run(false, false) };
        assert_eq!(admit(shell, &[]), Ok(false), "a place for other commands");
    }

    #[test]
    fn a_lock_that_was_asked_for_lets_runs_in_but_not_past_one_that_was_there_before() {
        let acquired = stake(StakeKind::Acquire, false, true);
        let asking = stake(StakeKind::Acquire, false, false);
        let (shared, alone) =
            (stake(StakeKind::Run, false, true), stake(StakeKind::Run, true, true));
        assert_eq!(admit(run(false, false), &[&acquired]), Ok(false));
        assert_eq!(admit(run(false, false), &[&acquired, &shared]), Ok(false));
        assert_eq!(admit(run(false, false), &[&acquired, &alone]), Err(&alone));
        assert_eq!(admit(run(false, false), &[&asking]), Ok(true), "nobody was told yet");
        assert_eq!(admit(run(false, false), &[&shared]), Err(&shared));
    }

    #[test]
    fn commands_and_the_unanswered_rely_on_a_hold() {
        let answered = stake(StakeKind::Acquire, false, true);
        let asking = stake(StakeKind::Acquire, false, false);
        let none_yet = Stake { term: None, ..stake(StakeKind::Run, true, false) };
        let mut elsewhere = stake(StakeKind::Run, true, true);
        elsewhere.term = Some(Term { token: FencingToken(6), ..term() });
        let work = stake(StakeKind::Work, false, false);
        let all = [&answered, &asking, &none_yet, &elsewhere, &work];
        assert_eq!(relying(term(), &all), [&asking, &none_yet, &work]);
        let guard = stake(StakeKind::Guard, false, true);
        assert_eq!(relying(term(), &[&guard, &answered]), [&guard], "its run is gone");
        let run = stake(StakeKind::Run, true, true);
        assert_eq!(relying(term(), &[&guard, &run]), [&run], "its run says so itself");
    }
}
