//! The nemesis: what it does, and when, is drawn from the seed before anything begins.

use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::book::{Book, Fault, Line};
use super::ground::{Ground, Way};
use super::host::{Host, TAG};
use super::{Wish, in_ms};
use crate::clock::boot_ms;
use crate::dice::Dice;

/// How far clocks of two hosts may differ in these repositories, halved: one may be
/// ahead while the other one is behind.
const TRUE_ENOUGH_MS: i64 = 250;

/// What happens to a process of a torture.
#[derive(Debug, Clone, Copy)]
pub(super) enum Blow {
    Kill,
    /// Stopped, and continued so much later.
    Stop(u64),
}

/// What is going to happen.
#[derive(Debug, Clone, Copy)]
pub(super) enum Strike {
    /// To the `pick`-th of the processes of that kind that are there.
    Process(Prey, u64, Blow),
    /// A host's wall clock is set.
    Clock(usize, i64),
    /// The ground fails under a host, for so long.
    Ground(Way, usize, u64),
}

/// Which process is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prey {
    /// Any command, in the middle of its work.
    Command,
    Keeper,
    Guardian,
    Run,
    /// What runs under `jvs run`.
    Child,
}

/// A strike, and how long after the one before it.
pub(super) type Plan = Vec<(u64, Strike)>;

/// What happens to processes and clocks, and what to the ground: two lanes, so that
/// one may happen during the other, but never two things of one lane.
pub(super) struct Plans {
    processes: Plan,
    ground: Plan,
}

pub(super) fn plan(wish: &Wish, ground: &Ground) -> Plans {
    let length = u64::try_from(wish.time.as_millis()).unwrap_or(u64::MAX);
    let hosts = wish.hosts as u64;
    let ways = ground.ways();
    let (mut first, mut second) = (Dice::new(wish.seed, 1), Dice::new(wish.seed, 2));
    Plans {
        processes: lane(length, &mut first, 350, |dice| process_or_clock(dice, hosts)),
        ground: lane(length, &mut second, 4000, |dice| {
            let way = *dice.pick(ways).expect("every ground can fail");
            let host = usize::try_from(dice.below(hosts)).unwrap_or(0);
            Strike::Ground(way, host, dice.between(200, 3500))
        }),
    }
}

fn lane(
    length: u64,
    dice: &mut Dice,
    pause: u64,
    mut draw: impl FnMut(&mut Dice) -> Strike,
) -> Plan {
    let (mut plan, mut at) = (Plan::new(), 0);
    loop {
        let wait = dice.below(2 * pause);
        let strike = draw(dice);
        at += wait + strike.lasts();
        if at >= length {
            return plan;
        }
        plan.push((wait, strike));
    }
}

fn process_or_clock(dice: &mut Dice, hosts: u64) -> Strike {
    if hosts > 1 && dice.hits(1, 8) {
        let host = usize::try_from(dice.between(1, hosts - 1)).unwrap_or(1);
        let near = i64::try_from(dice.below(500)).unwrap_or(0) - TRUE_ENOUGH_MS;
        let far = [-3_600_000, -60_000, 60_000, 3_600_000];
        let ms = if dice.hits(1, 4) { *dice.pick(&far).unwrap_or(&0) } else { near };
        return Strike::Clock(host, ms);
    }
    let prey = match dice.below(10) {
        0..=3 => Prey::Command,
        4..=5 => Prey::Keeper,
        6 => Prey::Guardian,
        7..=8 => Prey::Run,
        _ => Prey::Child,
    };
    let blow = match dice.below(3) {
        0 => Blow::Kill,
        1 => Blow::Stop(dice.between(20, 400)),
        _ => Blow::Stop(dice.between(400, 3500)),
    };
    Strike::Process(prey, dice.next(), blow)
}

impl Strike {
    fn lasts(self) -> u64 {
        match self {
            Self::Process(_, _, Blow::Stop(ms)) | Self::Ground(_, _, ms) => ms,
            _ => 0,
        }
    }
}

/// How long a clock that is far off stays so.
const FAR_OFF_MS: u64 = 3_000;

/// Carries out the plans, side by side, and leaves nothing stopped.
pub(super) fn strike(wish: &Wish, plans: &Plans, ground: &Ground, hosts: &[Host], book: &Book) {
    let end = in_ms(wish.time);
    thread::scope(|scope| {
        for plan in [&plans.processes, &plans.ground] {
            scope.spawn(move || {
                for (wait, strike) in plan {
                    if boot_ms() + wait >= end {
                        return;
                    }
                    sleep(*wait);
                    book_of(*strike, ground, hosts, book);
                }
                sleep(end.saturating_sub(boot_ms()));
            });
        }
    });
    hosts.iter().for_each(|host| host.set_clock(0));
}

fn sleep(ms: u64) {
    thread::sleep(Duration::from_millis(ms));
}

/// Makes a fault, and writes it down if it hit something.
fn book_of(strike: Strike, ground: &Ground, hosts: &[Host], book: &Book) {
    let from = boot_ms();
    let (kind, what) = match strike {
        Strike::Process(prey, pick, blow) => {
            let mut found = processes(hosts[0].tag(), prey);
            if found.is_empty() {
                found = processes(hosts[0].tag(), Prey::Command);
            }
            let at = usize::try_from(pick % (found.len() as u64).max(1)).unwrap_or(0);
            let Some((pid, words)) = found.get(at) else { return };
            let kind = match blow {
                Blow::Kill => format!("kill {prey:?}"),
                Blow::Stop(_) => format!("stop {prey:?}"),
            };
            hit(*pid, blow);
            (kind.to_lowercase(), words.clone())
        }
        Strike::Clock(host, ms) => {
            hosts[host].set_clock(ms);
            let far = ms.abs() > TRUE_ENOUGH_MS;
            if far {
                sleep(FAR_OFF_MS);
                hosts[host].set_clock(0);
            }
            let kind = if far { "clock far off" } else { "clock set" };
            (kind.to_owned(), format!("host {host} {ms} ms"))
        }
        Strike::Ground(way, host, ms) => {
            ground.strike(way, host);
            sleep(ms);
            ground.undo(way, host);
            (format!("{way:?}"), format!("host {host}"))
        }
    };
    book.write(&Line::Fault(Fault { kind, what, from, until: boot_ms() }));
}

fn hit(pid: Pid, blow: Blow) {
    match blow {
        Blow::Kill => drop(kill_process(pid, Signal::KILL)),
        Blow::Stop(ms) => {
            if kill_process(pid, Signal::STOP).is_ok() {
                sleep(ms);
                let _ = kill_process(pid, Signal::CONT);
            }
        }
    }
}

/// A process of a torture.
pub(crate) struct Tagged {
    pub(crate) pid: Pid,
    parent: Option<Pid>,
    pub(crate) words: Vec<String>,
}

/// Processes of a torture, by what they have in their environment.
pub(crate) fn tagged(tag: &str) -> Vec<Tagged> {
    let mark = format!("{TAG}={tag}");
    let Ok(all) = fs_err::read_dir("/proc") else { return Vec::new() };
    let known = |entry: std::io::Result<fs_err::DirEntry>| {
        let path = entry.ok()?.path();
        let pid = Pid::from_raw(path.file_name()?.to_str()?.parse().ok()?)?;
        let environment = fs_err::read(path.join("environ")).ok()?;
        environment.split(|byte| *byte == 0).find(|word| *word == mark.as_bytes())?;
        let line = fs_err::read(path.join("cmdline")).ok()?;
        let words = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into());
        let stat = fs_err::read_to_string(path.join("stat")).ok()?;
        // After the name, which may have anything in it: state, parent.
        let parent = stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?;
        Some(Tagged { pid, parent: Pid::from_raw(parent), words: words.collect() })
    };
    all.filter_map(known).collect()
}

fn processes(tag: &str, prey: Prey) -> Vec<(Pid, String)> {
    let all = tagged(tag);
    let runs: Vec<Pid> = all.iter().filter(|one| runs(&one.words)).map(|one| one.pid).collect();
    let is = |one: &&Tagged| match kind_of(&one.words) {
        // A guardian has the words of the run that it was forked from.
        Some(Prey::Run) if one.parent.is_some_and(|parent| runs.contains(&parent)) => {
            prey == Prey::Guardian
        }
        kind => kind == Some(prey),
    };
    let named = |one: &Tagged| (one.pid, one.words.join(" ").chars().take(200).collect());
    all.iter().filter(is).map(named).collect()
}

fn runs(words: &[String]) -> bool {
    kind_of(words) == Some(Prey::Run)
}

/// What a process is, by its words.
fn kind_of(words: &[String]) -> Option<Prey> {
    let program = words.first()?;
    if words.get(1).is_some_and(|word| word == "beat") {
        return Some(Prey::Child);
    }
    if program.rsplit('/').next() != Some("jvs") {
        return None;
    }
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    Some(match () {
        () if has("__keeper") => Prey::Keeper,
        () if has("beat") => Prey::Run,
        () => Prey::Command,
    })
}
