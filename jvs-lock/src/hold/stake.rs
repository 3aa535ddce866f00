//! A stake: one reason to go on holding. All that is decided by is in the name of
//! its (empty) file, so that one look at the directory tells all of them and none
//! can be torn.

use std::fmt;
use std::str::FromStr;

use jvs_repo::clock::BootMs;
use jvs_repo::id::{FencingToken, NotAnId, OpNonce, strict_decimal};
use jvs_repo::proc::ProcessStat;
use jvs_repo::sabotage;
use jvs_repo::term::Term;

use super::rule::HoldRule;

/// What needs the hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StakeKind {
    /// `lock acquire`: somebody said so, for a terminal, a process or a time.
    Acquire,
    /// `jvs shell`: said so, too, and a command that runs.
    Shell,
    /// `jvs run`.
    Run,
    /// A command that works under the lock and then ends: snapshot, restore, repair.
    Work,
    /// The keeper of a run: what the run started may live on when it was killed.
    Guard,
}

impl StakeKind {
    const ALL: [StakeKind; 5] =
        [StakeKind::Acquire, StakeKind::Shell, StakeKind::Run, StakeKind::Work, StakeKind::Guard];

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            StakeKind::Acquire => "acquire",
            StakeKind::Shell => "shell",
            StakeKind::Run => "run",
            StakeKind::Work => "work",
            StakeKind::Guard => "guard",
        }
    }

    /// Is it a command that runs something, for as long as that runs?
    pub const fn is_run(self) -> bool {
        matches!(self, StakeKind::Shell | StakeKind::Run)
    }

    /// Did somebody say explicitly that the session is to hold?
    pub const fn is_explicit(self) -> bool {
        matches!(self, StakeKind::Acquire | StakeKind::Shell)
    }
}

/// A process, told from every other on this boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Who {
    /// Process id.
    pub pid: u32,
    /// When it started, in clock ticks after boot.
    pub start: u64,
}

/// When a stake that has answered is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StakeEnd {
    /// With this process.
    pub with: Option<Who>,
    /// At this time.
    pub at: Option<BootMs>,
}

/// One stake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stake {
    /// Tells it from every other.
    pub id: OpNonce,
    /// The hold it is in; none yet while its process is still asking.
    pub term: Option<Term>,
    /// What for.
    pub kind: StakeKind,
    /// A run that no other run may join unasked.
    pub exclusive: bool,
    /// The process that put it there.
    pub maker: Who,
    /// The PID namespace of the processes in it.
    pub pid_namespace: Option<u64>,
    /// The time namespace that its time is told in.
    pub time_namespace: Option<u64>,
    /// When it is over.
    pub over: StakeEnd,
    /// Has its command answered? Told by a file of its own, not by the name.
    pub answered: bool,
}

/// Where a stake is looked at from.
#[derive(Clone, Copy)]
pub struct Viewpoint<'h> {
    /// This process's PID namespace.
    pub pid_namespace: Option<u64>,
    /// This process's time namespace.
    pub time_namespace: Option<u64>,
    /// The present time.
    pub now: BootMs,
    /// Looks a process up.
    pub lookup: &'h dyn Fn(u32) -> Option<ProcessStat>,
}

/// What is seen of a stake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// It is a reason to hold.
    Alive,
    /// It is over.
    Dead,
    /// Its process cannot be seen from here: it must be taken for alive.
    Unseen,
}

impl Stake {
    /// Is it still a reason to hold? What cannot be seen is alive.
    pub fn is_alive(&self, here: Viewpoint<'_>) -> bool {
        self.sight(here) != Sight::Dead
    }

    /// Until it has answered, and for a command for as long as it runs, it is its own
    /// process that counts: nobody else knows of it.
    pub(super) fn is_over_with_its_maker(&self) -> bool {
        !self.answered || self.kind != StakeKind::Acquire
    }

    /// What is seen of it.
    pub fn sight(&self, here: Viewpoint<'_>) -> Sight {
        if self.has_run_out(here) {
            return Sight::Dead;
        }
        let who = if self.is_over_with_its_maker() { Some(self.maker) } else { self.over.with };
        let sees = self.pid_namespace.is_some() && self.pid_namespace == here.pid_namespace;
        if !sees {
            return Sight::Unseen;
        }
        let lives = who.is_none_or(|who| {
            (here.lookup)(who.pid)
                .is_some_and(|stat| self.is_start_of(who, stat.start_ticks, here) && !stat.zombie)
        });
        if lives { Sight::Alive } else { Sight::Dead }
    }

    /// Is the process that has the pid of `who` now, and began at `start_ticks`, that one?
    /// Another time namespace is told another start of the same process.
    fn is_start_of(&self, who: Who, start_ticks: u64, here: Viewpoint<'_>) -> bool {
        sabotage!(HoldRule::StakesTellPidsApart => true);
        start_ticks == who.start || self.time_namespace != here.time_namespace
    }

    /// Does its time count? From when somebody was told of it: a process that is about to be told
    /// must not find it released.
    fn counts_its_time(&self) -> bool {
        sabotage!(HoldRule::TimeCountsWhenTold => true);
        self.answered
    }

    /// Was it asked for a time, which is over?
    pub fn has_run_out(&self, here: Viewpoint<'_>) -> bool {
        let tells_time =
            self.time_namespace.is_some() && self.time_namespace == here.time_namespace;
        tells_time && self.counts_its_time() && self.over.at.is_some_and(|at| here.now >= at)
    }

    /// The same reason, told again: what replaces it makes it superfluous.
    pub fn is_for_the_same(&self, other: &Stake) -> bool {
        self.kind == StakeKind::Acquire
            && other.kind == StakeKind::Acquire
            && self.over.with == other.over.with
            && self.pid_namespace == other.pid_namespace
    }

    /// Was it asked for by that process, for as long as it runs?
    pub fn is_for(&self, who: Option<Who>, pid_namespace: Option<u64>) -> bool {
        let same = who.is_some() && self.over.with == who && self.pid_namespace == pid_namespace;
        self.kind == StakeKind::Acquire && same
    }

    /// The name of the file that says that it has answered.
    pub fn answered_name(&self) -> String {
        format!("{}.{ANSWERED}", self.id)
    }

    /// The name of the file that says that it is over with the session's signs of life.
    pub(super) fn yields_name(&self) -> String {
        format!("{}.{YIELDS}", self.id)
    }
}

/// The end of the name of a file that says that a stake has answered.
pub(super) const ANSWERED: &str = "answered";
/// The end of the name of a file that says that a stake yields.
pub(super) const YIELDS: &str = "yields";
const NONE: &str = "-";

fn number(value: Option<u64>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| value.to_string())
}

fn parsed(text: &str) -> Option<Option<u64>> {
    if text == NONE { Some(None) } else { strict_decimal(text).map(Some) }
}

impl fmt::Display for Stake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stake { id, term, kind, maker, over, .. } = self;
        let epoch = term.map_or_else(|| NONE.to_owned(), |term| term.epoch.to_string());
        let token = number(term.map(|term| term.token.0));
        let exclusive = if self.exclusive { "exclusive" } else { "shared" };
        write!(f, "{id}.{epoch}.{token}.{}.{exclusive}", kind.as_str())?;
        write!(f, ".{}.{}", maker.pid, maker.start)?;
        write!(f, ".{}.{}", number(self.pid_namespace), number(self.time_namespace))?;
        let (pid, start) = (over.with.map(|who| who.pid.into()), over.with.map(|who| who.start));
        write!(f, ".{}.{}.{}", number(pid), number(start), number(over.at.map(|at| at.0)))
    }
}

impl FromStr for Stake {
    type Err = NotAnId;

    /// Reads a name; whether it has answered is told elsewhere.
    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let parse = || {
            let parts: Vec<&str> = text.split('.').collect();
            let [id, epoch, token, kind, exclusive, pid, start, pids, times, with, since, at] =
                parts[..]
            else {
                return None;
            };
            let term = match (epoch, parsed(token)?) {
                (NONE, None) => None,
                (epoch, Some(token)) => {
                    Some(Term { epoch: epoch.parse().ok()?, token: FencingToken(token) })
                }
                _ => return None,
            };
            let as_pid = |text| u32::try_from(strict_decimal(text)?).ok();
            let with = match (with, parsed(since)?) {
                (NONE, None) => None,
                (text, Some(start)) => Some(Who { pid: as_pid(text)?, start }),
                _ => return None,
            };
            Some(Stake {
                id: id.parse().ok()?,
                term,
                kind: StakeKind::ALL.into_iter().find(|known| known.as_str() == kind)?,
                exclusive: match exclusive {
                    "exclusive" => true,
                    "shared" => false,
                    _ => return None,
                },
                maker: Who { pid: as_pid(pid)?, start: strict_decimal(start)? },
                pid_namespace: parsed(pids)?,
                time_namespace: parsed(times)?,
                over: StakeEnd { with, at: parsed(at)?.map(BootMs) },
                answered: false,
            })
        };
        parse().ok_or(NotAnId::expected("a stake"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stake(kind: StakeKind) -> Stake {
        Stake {
            id: OpNonce([1; 8]),
            term: Some(Term { epoch: "1-a3f0".parse().expect("an epoch"), token: FencingToken(7) }),
            kind,
            exclusive: false,
            maker: Who { pid: 10, start: 100 },
            pid_namespace: Some(1),
            time_namespace: Some(2),
            over: StakeEnd { with: Some(Who { pid: 20, start: 200 }), at: Some(BootMs(1_000)) },
            answered: true,
        }
    }

    /// Processes 10 and 20 as they were, unless said otherwise.
    fn alive(stake: &Stake, now: u64, gone: &[u32]) -> bool {
        let lookup = |pid: u32| {
            let start_ticks = u64::from(pid) * 10;
            (!gone.contains(&pid)).then_some(ProcessStat {
                start_ticks,
                session_leader: 1,
                zombie: false,
            })
        };
        let (pid_namespace, time_namespace) = (Some(1), Some(2));
        stake.is_alive(Viewpoint {
            pid_namespace,
            time_namespace,
            now: BootMs(now),
            lookup: &lookup,
        })
    }

    #[test]
    fn a_stake_s_name_tells_all_of_it() {
        let none_yet = Stake { term: None, over: StakeEnd::default(), ..stake(StakeKind::Run) };
        let hidden = Stake { pid_namespace: None, time_namespace: None, ..stake(StakeKind::Work) };
        let alone = Stake { exclusive: true, ..stake(StakeKind::Shell) };
        for stake in [stake(StakeKind::Acquire), none_yet, hidden, alone] {
            let read: Stake = stake.to_string().parse().expect("a stake");
            assert_eq!(read, Stake { answered: false, ..stake });
            assert!(stake.to_string().len() < 200);
        }
        for bad in ["", "x", "0101010101010101.answered", "lost.1-a3f0.7"] {
            assert!(bad.parse::<Stake>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_stake_is_over_with_its_process_or_with_its_time() {
        let acquired = stake(StakeKind::Acquire);
        assert!(alive(&acquired, 999, &[10]), "the command that made it has ended, as it should");
        assert!(!alive(&acquired, 1_000, &[]), "its time");
        assert!(!alive(&acquired, 0, &[20]), "the process it is for");
        let asking = Stake { answered: false, ..acquired };
        assert!(!alive(&asking, 0, &[10]), "nobody was told of it");
        assert!(alive(&asking, 1_000, &[]), "somebody is about to be told");
        assert!(!alive(&stake(StakeKind::Run), 0, &[10]), "a command that has ended");
    }

    #[test]
    fn a_pid_that_was_used_again_is_another_process() {
        let mut late = stake(StakeKind::Run);
        late.maker.start = 99;
        assert!(!alive(&late, 0, &[]));
    }

    #[test]
    fn what_cannot_be_seen_is_alive() {
        let elsewhere = Stake { pid_namespace: Some(9), ..stake(StakeKind::Run) };
        assert!(alive(&elsewhere, 0, &[10, 20]));
        let other_time = Stake { time_namespace: None, ..stake(StakeKind::Acquire) };
        assert!(alive(&other_time, 5_000, &[]));
    }

    #[test]
    fn another_time_namespace_tells_another_start_of_the_same_process() {
        let mut shifted = Stake { time_namespace: Some(9), ..stake(StakeKind::Run) };
        shifted.maker.start += 1_000;
        assert!(alive(&shifted, 0, &[]));
        assert!(!alive(&shifted, 0, &[10]), "nobody has its pid");
    }

    #[test]
    fn a_process_that_only_waits_to_be_reaped_is_gone() {
        let run = stake(StakeKind::Run);
        let seen = |zombie| {
            let lookup = |_| Some(ProcessStat { start_ticks: 100, session_leader: 1, zombie });
            let (pid_namespace, time_namespace) = (Some(1), Some(2));
            run.sight(Viewpoint { pid_namespace, time_namespace, now: BootMs(0), lookup: &lookup })
        };
        assert_eq!((seen(false), seen(true)), (Sight::Alive, Sight::Dead));
    }

    #[test]
    fn two_who_do_not_know_their_namespaces_are_not_in_one() {
        let unknown =
            Stake { pid_namespace: None, time_namespace: None, ..stake(StakeKind::Acquire) };
        let nobody = |_| None;
        let here = Viewpoint {
            pid_namespace: None,
            time_namespace: None,
            now: BootMs(5_000),
            lookup: &nobody,
        };
        assert!(!unknown.has_run_out(here), "its time is told on a clock that may not be ours");
        assert_eq!(unknown.sight(here), Sight::Unseen);
    }

    #[test]
    fn what_was_asked_for_again_replaces_what_was_asked_for_the_same() {
        let acquired = stake(StakeKind::Acquire);
        let who = acquired.over.with;
        let later = Stake {
            id: OpNonce([2; 8]),
            maker: Who { pid: 11, start: 110 },
            over: StakeEnd { at: None, ..acquired.over },
            ..acquired
        };
        assert!(later.is_for_the_same(&acquired) && later.is_for(who, Some(1)));
        let other = Some(Who { pid: 21, start: 210 });
        for odd in [
            Stake { kind: StakeKind::Shell, ..later },
            Stake { over: StakeEnd { with: other, at: None }, ..later },
            Stake { over: StakeEnd::default(), ..later },
            Stake { pid_namespace: Some(9), ..later },
        ] {
            assert!(!odd.is_for_the_same(&acquired) && !acquired.is_for_the_same(&odd), "{odd}");
            assert!(!odd.is_for(who, Some(1)), "{odd}");
        }
        let for_a_time = Stake { over: StakeEnd::default(), ..acquired };
        assert!(!for_a_time.is_for(None, Some(1)), "nobody's process is no process");
    }

    #[test]
    fn what_a_stake_tells_beside_its_name_is_told_by_names_like_it() {
        let stake = stake(StakeKind::Acquire);
        assert_eq!(stake.answered_name(), format!("{}.answered", stake.id));
        assert_eq!(stake.yields_name(), format!("{}.yields", stake.id));
    }

    #[test]
    fn a_name_that_tells_half_of_a_thing_is_no_stake() {
        let whole = stake(StakeKind::Acquire).to_string();
        let with = |place: usize, text: &str| {
            let mut parts: Vec<&str> = whole.split('.').collect();
            parts[place] = text;
            parts.join(".").parse::<Stake>().is_ok()
        };
        assert!(with(3, "guard") && with(4, "exclusive") && with(11, "-"));
        for (place, text) in [
            (1, "-"),
            (2, "-"),
            (3, "wish"),
            (4, "perhaps"),
            (5, "4294967296"),
            (6, "-"),
            (9, "-"),
            (10, "-"),
        ] {
            assert!(!with(place, text), "{place}: {text}");
        }
    }
}
