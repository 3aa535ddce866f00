//! One state of the simulated world, what can happen next in it, and what
//! that does.
//!
//! **Must not know.** In which order states are visited: that is the explorer's.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use jvs_repo::clock::Discipline;
use rustix::io::Errno;

use super::board::{Board, Value};
use super::cache::Caching;
use super::call::{Answer, Call, Effect, Request};
use super::choice::{Choice, Way};
use super::fault::carry_out;
use super::image::Image;
use super::kernel::{Caller, Kernel};
use super::process::{Process, RUNNING, Start};
use super::program::{Clocks, History, IsPrivate, Pool, Program};

/// Wall time when a world begins: 2025-01-01T00:00:00Z.
pub(crate) const WALL_AT_START_MS: u64 = 1_735_689_600_000;
/// For how long host `n` has been up when a world begins: `n + 1` times this.
pub(crate) const UP_AT_START_MS: u64 = 1_000_000;
/// For how long a host has been up when its processes start after a power cut.
const UP_AFTER_POWER_CUT_MS: u64 = 10_000;

/// How many more times each kind of event may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Budgets {
    pub(crate) crashes: u32,
    pub(crate) ambiguous_renames: u32,
    pub(crate) ambiguous_makes: u32,
    pub(crate) ambiguous_removals: u32,
    pub(crate) ambiguous_syncs: u32,
    pub(crate) torn_listings: u32,
    pub(crate) late_renames: u32,
    pub(crate) errors: u32,
    pub(crate) jumps: u32,
    pub(crate) wall_sets: u32,
    pub(crate) power_cuts: u32,
    pub(crate) early_wakes: u32,
    /// `None`: as many as there are.
    pub(crate) preemptions: Option<u32>,
}

/// One host's clocks at the start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostSetup {
    pub(crate) wall_offset_ms: i64,
    pub(crate) discipline: Discipline,
}

impl Default for HostSetup {
    fn default() -> Self {
        let discipline = Discipline::Synchronised { max_error_ms: 1 };
        HostSetup { wall_offset_ms: 0, discipline }
    }
}

/// Which of the images that a power cut may leave are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerCuts {
    /// Only what was synced, and everything.
    Extremes,
    /// Every prefix of the changes of every directory.
    EveryPrefix,
}

/// How much there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Plenty,
    /// What is given up makes room for as much.
    AsMuchAsIsUsed,
    /// More is used than there is.
    None,
}

/// What may happen in a world. Stays the same while it is explored.
pub(crate) struct Rules {
    pub(crate) processes: Vec<Process>,
    pub(crate) hosts: Vec<HostSetup>,
    pub(crate) jumps_ms: Vec<u64>,
    /// (host, by how much its wall clock is moved).
    pub(crate) wall_sets: Vec<(usize, i64)>,
    pub(crate) errors: Vec<Errno>,
    pub(crate) power_cuts: PowerCuts,
    pub(crate) private: Option<IsPrivate>,
    pub(crate) crashes_in_private: bool,
    pub(crate) forget_private: bool,
    pub(crate) clock_is_a_step: bool,
    pub(crate) clocks_apart: bool,
    /// (process, number of its call, how it goes).
    pub(crate) injected: Vec<(usize, u32, Way)>,
    pub(crate) max_calls: u32,
    pub(crate) room: Room,
    pub(crate) stale_names_ms: Option<u64>,
    pub(crate) stale_absences_ms: Option<u64>,
    pub(crate) budgets: Budgets,
}

impl Rules {
    fn host(&self, process: usize) -> usize {
        self.processes[process].host.unwrap_or(process)
    }

    fn mount(&self, process: usize) -> usize {
        self.processes[process].mount.unwrap_or_else(|| self.host(process))
    }

    pub(crate) fn programs(&self) -> Vec<Program> {
        let pool = Pool::new();
        let program = |(n, process): (usize, &Process)| {
            let host = self.host(n);
            let setup = self.hosts.get(host).copied().unwrap_or_default();
            let clocks = Clocks {
                host,
                discipline: setup.discipline,
                time_namespace: process.time_namespace.id,
                apart: self.clocks_apart,
            };
            let body = process.body.clone();
            let private = self.private.clone();
            Program::new(n, &process.name, clocks, body, private, pool.clone())
        };
        self.processes.iter().enumerate().map(program).collect()
    }
}

/// How far a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Not started: it starts last, or after a power cut.
    Waiting,
    /// Somewhere between its first call and its end.
    Running,
    /// It came to its end.
    Done,
    /// It died.
    Crashed,
}

#[derive(Debug, Clone)]
struct Proc {
    status: Status,
    at: History,
    wakes_at_ms: Option<u64>,
    calls: u32,
    board: Arc<Board>,
}

/// Of a process that is over only what it published can still matter.
impl Hash for Proc {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.status.hash(state);
        self.board.hash(state);
        if self.status == Status::Running {
            self.at.hash(state);
            self.wakes_at_ms.hash(state);
        }
    }
}

#[derive(Debug, Clone, Hash)]
struct Host {
    wall_offset_ms: i64,
    up_at_ms: i64,
    boots: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct LateRename {
    call: Call,
    mount: usize,
}

/// Everything that decides what can happen from here on.
#[derive(Debug, Clone)]
pub(crate) struct State {
    kernel: Kernel,
    processes: Vec<Proc>,
    hosts: Vec<Host>,
    now_ms: u64,
    late: Vec<LateRename>,
    left: Budgets,
    /// Who ran last; kept only if preemptions are counted.
    last: Option<usize>,
}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kernel.hash(state);
        self.processes.hash(state);
        self.hosts.hash(state);
        self.now_ms.hash(state);
        self.late.hash(state);
        self.left.hash(state);
        self.last.hash(state);
    }
}

/// What an end looks like to someone who does not know how it came about.
pub(crate) struct End<'a>(pub(crate) &'a State);

impl Hash for End<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.kernel.image.hash(state);
        for process in &self.0.processes {
            process.status.hash(state);
            process.board.hash(state);
        }
    }
}

/// Lines for people, written only when someone will read them.
#[derive(Default)]
pub(crate) struct Trace {
    pub(crate) lines: Option<Vec<String>>,
}

impl Trace {
    fn line(&mut self, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(line());
        }
    }
}

/// The rules and what the processes were seen to do: what a state is moved with.
pub(crate) struct Machine<'r> {
    pub(crate) rules: &'r Rules,
    pub(crate) programs: Vec<Program>,
    pub(crate) trace: Trace,
}

/// A state that no scenario wants: why.
pub(crate) type Bad = String;

impl State {
    pub(crate) fn first(image: &Image, machine: &mut Machine<'_>) -> Result<State, Bad> {
        let rules = machine.rules;
        let count = rules.processes.len();
        let hosts = (0..count).map(|p| rules.host(p) + 1).max().unwrap_or(0);
        let mounts = (0..count).map(|p| rules.mount(p) + 1).max().unwrap_or(0);
        let mut image = image.clone();
        image.track(rules.budgets.power_cuts > 0);
        let caching = Caching {
            mounts,
            names_ms: rules.stale_names_ms,
            absences_ms: rules.stale_absences_ms,
        };
        let process = |process: &Process| Proc {
            status: match process.start {
                Start::AtOnce => Status::Running,
                Start::Last | Start::AfterPowerCut => Status::Waiting,
            },
            at: Program::START,
            wakes_at_ms: None,
            calls: 0,
            board: Arc::default(),
        };
        let host = |n: usize| Host {
            wall_offset_ms: rules.hosts.get(n).copied().unwrap_or_default().wall_offset_ms,
            up_at_ms: -((n as i64 + 1) * UP_AT_START_MS as i64),
            boots: 1,
        };
        let mut kernel = Kernel::new(image, caching);
        match rules.room {
            Room::Plenty => {}
            Room::AsMuchAsIsUsed => kernel.fill(),
            Room::None => kernel.overfill(),
        }
        let mut state = State {
            kernel,
            processes: rules.processes.iter().map(process).collect(),
            hosts: (0..hosts).map(host).collect(),
            now_ms: 0,
            late: Vec::new(),
            left: rules.budgets,
            last: None,
        };
        state.settle(machine)?;
        Ok(state)
    }

    pub(crate) fn ended(&self) -> bool {
        self.processes.iter().all(|p| p.status != Status::Running)
    }

    pub(crate) fn status(&self, process: usize) -> Status {
        self.processes[process].status
    }

    pub(crate) fn may_crash(&self) -> bool {
        self.left.crashes > 0
    }

    fn is_awake(&self, process: usize) -> bool {
        let process = &self.processes[process];
        process.status == Status::Running && process.wakes_at_ms.is_none_or(|t| t <= self.now_ms)
    }

    fn caller(&self, machine: &Machine<'_>, process: usize) -> Caller {
        let private = machine.programs[process].is_private(self.processes[process].at);
        Caller {
            // Lane 0 is the setup's.
            lane: process + 1,
            mount: machine.rules.mount(process),
            now_ms: self.now_ms,
            forgotten: private && machine.rules.forget_private,
        }
    }

    fn request<'m>(&self, machine: &'m Machine<'_>, process: usize) -> &'m Request {
        machine.programs[process].request(self.processes[process].at)
    }

    /// Everything that can happen next.
    pub(crate) fn choices(&self, machine: &Machine<'_>) -> Vec<Choice> {
        for process in 0..self.processes.len() {
            if let Some(choices) = self.quiet_choices(machine, process) {
                return choices;
            }
        }
        let rules = machine.rules;
        let mut choices = Vec::new();
        let bound_to = self.last.filter(|&p| self.left.preemptions == Some(0) && self.is_awake(p));
        let all = 0..self.processes.len();
        for process in all.clone().filter(|&p| self.is_awake(p)) {
            if bound_to.is_none_or(|only| only == process) {
                self.add_steps(machine, process, &mut choices);
            }
        }
        if self.left.crashes > 0 {
            let begun = |p: &usize| {
                self.processes[*p].status == Status::Running
                    && *self.request(machine, *p) != Request::Start
            };
            choices.extend(all.clone().filter(begun).map(Choice::Crash));
        }
        let asleep = self.first_to_wake().is_some();
        if asleep && (self.left.early_wakes > 0 || !all.clone().any(|p| self.is_awake(p))) {
            choices.push(Choice::Wake);
        }
        if !self.ended() {
            if self.left.jumps > 0 {
                choices.extend((0..rules.jumps_ms.len()).map(Choice::Jump));
            }
            if self.left.wall_sets > 0 {
                choices.extend((0..rules.wall_sets.len()).map(Choice::SetWall));
            }
        }
        let landing = |&n: &usize| self.kernel.has_source_of(&self.late[n].call);
        choices.extend((0..self.late.len()).filter(landing).map(Choice::Land));
        if self.left.power_cuts > 0 {
            let outcomes = self.kernel.image.power_cut_outcomes();
            match rules.power_cuts {
                PowerCuts::EveryPrefix => choices.extend((0..outcomes).map(Choice::PowerCut)),
                PowerCuts::Extremes => {
                    choices.push(Choice::PowerCut(0));
                    if outcomes > 1 {
                        choices.push(Choice::PowerCut(outcomes - 1));
                    }
                }
            }
        }
        choices
    }

    fn first_to_wake(&self) -> Option<u64> {
        let running = self.processes.iter().filter(|p| p.status == Status::Running);
        running.filter_map(|p| p.wakes_at_ms).filter(|&t| t > self.now_ms).min()
    }

    fn add_steps(&self, machine: &Machine<'_>, process: usize, choices: &mut Vec<Choice>) {
        let mut add = |way| choices.push(Choice::Step(process, way));
        match self.request(machine, process) {
            Request::Pick(below) => (0..*below).for_each(|n| add(Way::Picks(n))),
            Request::Call(call) => {
                add(Way::Plain);
                if self.kernel.could_be_stale(self.caller(machine, process), call) {
                    add(Way::Stale);
                }
                self.ambiguous(call).iter().for_each(|&errno| add(Way::AppliedBut(errno)));
                if call.is_rename() && self.left.late_renames > 0 && self.kernel.applies(call) {
                    add(Way::Late);
                }
                if self.may_be_torn(call) {
                    add(Way::Torn);
                }
                if self.left.errors > 0 {
                    machine.rules.errors.iter().for_each(|&errno| add(Way::Fails(errno)));
                }
            }
            _ => add(Way::Plain),
        }
    }

    /// The errors that `call` may be answered with though it was applied.
    fn ambiguous(&self, call: &Call) -> &'static [Errno] {
        let left = match call {
            Call::CreateNew(_) | Call::MakeDir(_) | Call::Link(..) => self.left.ambiguous_makes,
            Call::Unlink(_) | Call::RemoveDir(_) => self.left.ambiguous_removals,
            Call::Sync(_) | Call::SyncDir(_) => self.left.ambiguous_syncs,
            _ => self.left.ambiguous_renames,
        };
        if left > 0 && self.kernel.applies(call) { call.ambiguous_answers() } else { &[] }
    }

    fn may_be_torn(&self, call: &Call) -> bool {
        match call {
            Call::List(_) => self.left.torn_listings > 0,
            // Paid for at its first batch.
            Call::ListRest(..) => true,
            _ => false,
        }
    }

    /// What may happen next if this process's request concerns nobody else, so
    /// that nobody needs to come in between; `None` if it does.
    fn quiet_choices(&self, machine: &Machine<'_>, process: usize) -> Option<Vec<Choice>> {
        if !self.is_awake(process) {
            return None;
        }
        let Request::Call(call) = self.request(machine, process) else { return None };
        let rules = machine.rules;
        let mut choices = vec![Choice::Step(process, Way::Plain)];
        if machine.programs[process].is_private(self.processes[process].at) {
            if rules.crashes_in_private && self.left.crashes > 0 {
                choices.push(Choice::Crash(process));
            }
            return Some(choices);
        }
        let nothing_to_sync = !self.kernel.image.is_tracking();
        match call {
            Call::Inode(_) => {}
            Call::Sync(_) | Call::SyncDir(_) if nothing_to_sync => {}
            _ => return None,
        }
        let ambiguous = self.ambiguous(call).iter().map(|&e| Way::AppliedBut(e));
        choices.extend(ambiguous.map(|way| Choice::Step(process, way)));
        if self.left.errors > 0 {
            choices.extend(rules.errors.iter().map(|&e| Choice::Step(process, Way::Fails(e))));
        }
        Some(choices)
    }

    /// Makes `choice` happen, and then all that happens without a choice.
    pub(crate) fn apply(&mut self, machine: &mut Machine<'_>, choice: Choice) -> Result<(), Bad> {
        match choice {
            Choice::Step(process, way) => {
                self.count_preemption(process);
                self.step(machine, process, way)?;
            }
            Choice::Crash(process) => {
                self.left.crashes = self.left.crashes.saturating_sub(1);
                machine.trace.line(|| format!("{} dies", name(machine.rules, process)));
                self.kill(process);
            }
            Choice::Wake => {
                let awake = (0..self.processes.len()).any(|p| self.is_awake(p));
                if awake && self.left.early_wakes != u32::MAX {
                    self.left.early_wakes = self.left.early_wakes.saturating_sub(1);
                }
                let then = self.first_to_wake().unwrap_or(self.now_ms);
                machine.trace.line(|| format!("{} ms pass", then - self.now_ms));
                self.pass_time(then);
            }
            Choice::Jump(n) => {
                self.left.jumps = self.left.jumps.saturating_sub(1);
                let ms = machine.rules.jumps_ms[n];
                machine.trace.line(|| format!("{ms} ms pass"));
                self.pass_time(self.now_ms + ms);
            }
            Choice::SetWall(n) => {
                self.left.wall_sets = self.left.wall_sets.saturating_sub(1);
                let (host, by_ms) = machine.rules.wall_sets[n];
                machine.trace.line(|| format!("wall clock of host {host} moves by {by_ms} ms"));
                self.hosts[host].wall_offset_ms += by_ms;
            }
            Choice::Land(n) => {
                let LateRename { call, mount } = self.late.remove(n);
                let caller = Caller { lane: 0, mount, now_ms: self.now_ms, forgotten: false };
                let answer = self.kernel.perform(caller, &call, false);
                machine.trace.line(|| format!("late {call} = {answer}"));
            }
            Choice::PowerCut(outcome) => self.power_cut(machine, outcome),
        }
        self.settle(machine)
    }

    fn count_preemption(&mut self, process: usize) {
        let Some(left) = self.left.preemptions else { return };
        if self.last.is_some_and(|last| last != process && self.is_awake(last)) {
            self.left.preemptions = Some(left.saturating_sub(1));
        }
        self.last = Some(process);
    }

    fn kill(&mut self, process: usize) {
        self.processes[process].status = Status::Crashed;
        self.kernel.close_all(process + 1);
    }

    fn pass_time(&mut self, until_ms: u64) {
        self.now_ms = until_ms;
        self.kernel.expire_caches(until_ms);
    }

    fn power_cut(&mut self, machine: &mut Machine<'_>, outcome: usize) {
        self.left.power_cuts = self.left.power_cuts.saturating_sub(1);
        machine.trace.line(|| {
            let outcomes = self.kernel.image.power_cut_outcomes();
            let kept = match outcome {
                _ if outcomes == 1 => "everything was synced".to_owned(),
                0 => "only what was synced is left".to_owned(),
                n if n + 1 == outcomes => "everything is left".to_owned(),
                n => format!("image {n} of {outcomes} is left"),
            };
            format!("power cut: {kept}")
        });
        for process in 0..self.processes.len() {
            if self.processes[process].status == Status::Running {
                self.kill(process);
            }
        }
        self.late.clear();
        self.kernel.power_cut(outcome);
        if self.left.power_cuts == 0 {
            self.kernel.image.track(false);
        }
        for host in &mut self.hosts {
            host.boots += 1;
            host.up_at_ms = self.now_ms as i64 - UP_AFTER_POWER_CUT_MS as i64;
        }
        for (process, setup) in self.processes.iter_mut().zip(&machine.rules.processes) {
            if setup.start == Start::AfterPowerCut && process.status == Status::Waiting {
                process.status = Status::Running;
            }
        }
    }

    fn step(&mut self, machine: &mut Machine<'_>, process: usize, way: Way) -> Result<(), Bad> {
        let request = self.request(machine, process).clone();
        let (answer, note) = match &request {
            Request::Start => {
                let boots = self.hosts[machine.rules.host(process)].boots;
                (Answer::Started { boots }, "")
            }
            Request::Call(call) => {
                let injected = self.injected(machine.rules, process);
                let way = injected.unwrap_or(way);
                let caller = self.caller(machine, process);
                let outcome = carry_out(&mut self.kernel, caller, call, way);
                if injected.is_none() {
                    self.pay_for(call, way, outcome.note);
                }
                self.processes[process].calls += 1;
                if outcome.late {
                    self.late.push(LateRename { call: call.clone(), mount: caller.mount });
                }
                if outcome.died {
                    machine.trace.line(|| {
                        format!("{} {call}{}", name(machine.rules, process), outcome.note)
                    });
                    self.kill(process);
                    return Ok(());
                }
                (outcome.answer, outcome.note)
            }
            Request::Now => (self.time(machine.rules, process), ""),
            Request::Boot => (Answer::Number(self.clocks(machine.rules, process).0), ""),
            Request::Wall => (Answer::Number(self.clocks(machine.rules, process).1), ""),
            Request::Pick(_) => match way {
                Way::Picks(n) => (Answer::Picked(n), ""),
                _ => (Answer::Picked(0), ""),
            },
            Request::Look { process, key } => (self.seen(*process, key), ""),
            Request::Sleep { .. } | Request::Pause => (Answer::Done, ""),
            Request::End | Request::Panicked(_) | Request::Stuck => return Ok(()),
        };
        machine
            .trace
            .line(|| format!("{} {request} = {answer}{note}", name(machine.rules, process)));
        self.hear(machine, process, &answer)
    }

    fn injected(&self, rules: &Rules, process: usize) -> Option<Way> {
        let call = self.processes[process].calls;
        rules.injected.iter().find(|(p, n, _)| (*p, *n) == (process, call)).map(|(.., way)| *way)
    }

    fn pay_for(&mut self, call: &Call, way: Way, note: &str) {
        let budget = match way {
            // An ambiguous answer to what failed anyway was none.
            Way::AppliedBut(_) if note.is_empty() => return,
            Way::AppliedBut(_) => match call {
                Call::CreateNew(_) | Call::MakeDir(_) | Call::Link(..) => {
                    &mut self.left.ambiguous_makes
                }
                Call::Unlink(_) | Call::RemoveDir(_) => &mut self.left.ambiguous_removals,
                Call::Sync(_) | Call::SyncDir(_) => &mut self.left.ambiguous_syncs,
                _ => &mut self.left.ambiguous_renames,
            },
            Way::Torn if matches!(call, Call::ListRest(..)) => return,
            Way::Torn => &mut self.left.torn_listings,
            Way::Late => &mut self.left.late_renames,
            Way::Fails(_) => &mut self.left.errors,
            Way::DiesFirst | Way::ThenDies => &mut self.left.crashes,
            Way::Plain | Way::Stale | Way::Picks(_) => return,
        };
        *budget = budget.saturating_sub(1);
    }

    fn time(&self, rules: &Rules, process: usize) -> Answer {
        let (boot_ms, wall_ms) = self.clocks(rules, process);
        Answer::Time { wall_ms, boot_ms }
    }

    /// Boot time and wall time as the process reads them.
    fn clocks(&self, rules: &Rules, process: usize) -> (u64, u64) {
        let host = &self.hosts[rules.host(process)];
        let up_ms = (self.now_ms as i64 - host.up_at_ms).max(0) as u64;
        let boot_ms = up_ms + rules.processes[process].time_namespace.boot_offset_ms;
        let wall_ms = (WALL_AT_START_MS + self.now_ms).saturating_add_signed(host.wall_offset_ms);
        (boot_ms, wall_ms)
    }

    fn seen(&self, process: usize, key: &str) -> Answer {
        if key == RUNNING {
            let runs = |p: &&Proc| matches!(p.status, Status::Waiting | Status::Running);
            let running = self.processes.get(process).filter(runs);
            return Answer::Seen(running.map(|_| Value::from(1_u64)));
        }
        Answer::Seen(self.processes.get(process).and_then(|p| p.board.get(key)).cloned())
    }

    /// The process goes on from `answer` to its next request that takes time.
    fn hear(
        &mut self,
        machine: &mut Machine<'_>,
        process: usize,
        answer: &Answer,
    ) -> Result<(), Bad> {
        let mut answer = answer.clone();
        loop {
            let program = &mut machine.programs[process];
            let at = program.answered(self.processes[process].at, &answer);
            self.processes[process].at = at;
            self.processes[process].wakes_at_ms = None;
            for effect in program.effects(at) {
                self.effect(machine.rules, &mut machine.trace, process, effect);
            }
            let who = || name(machine.rules, process);
            answer = match program.request(at) {
                Request::Now if !machine.rules.clock_is_a_step => self.time(machine.rules, process),
                Request::Look { process, key } => self.seen(*process, key),
                Request::Sleep { ms } => {
                    self.processes[process].wakes_at_ms = Some(self.now_ms.saturating_add(*ms));
                    return Ok(());
                }
                Request::End => {
                    machine.trace.line(|| format!("{} ends", who()));
                    self.processes[process].status = Status::Done;
                    self.kernel.close_all(process + 1);
                    return Ok(());
                }
                Request::Panicked(message) => return Err(format!("{} panicked: {message}", who())),
                Request::Stuck => {
                    return Err(format!(
                        "{} computes without end, or waits for what is not simulated",
                        who()
                    ));
                }
                Request::Call(_) if self.processes[process].calls >= machine.rules.max_calls => {
                    return Err(format!(
                        "{} made {} calls and goes on",
                        who(),
                        machine.rules.max_calls
                    ));
                }
                _ => return Ok(()),
            };
        }
    }

    fn effect(&mut self, rules: &Rules, trace: &mut Trace, process: usize, effect: &Effect) {
        let board = &mut self.processes[process].board;
        match effect {
            Effect::Close(fd) => self.kernel.close(process + 1, *fd),
            Effect::Claim(key, value) => {
                trace.line(|| format!("{}   {key}: {value}", name(rules, process)));
                Arc::make_mut(board).insert(key, value.clone());
            }
            Effect::Append(key, value) => {
                trace.line(|| format!("{}   {key} += {value}", name(rules, process)));
                let list = Arc::make_mut(board).entry(key).or_insert(Value::List(Vec::new()));
                if let Value::List(parts) = list {
                    parts.push(value.clone());
                } else {
                    *list = Value::List(vec![list.clone(), value.clone()]);
                }
            }
            Effect::Retract(key) => {
                trace.line(|| format!("{}   no {key} any more", name(rules, process)));
                Arc::make_mut(board).remove(key);
            }
            Effect::Say(text) => trace.line(|| format!("{}   \"{text}\"", name(rules, process))),
        }
    }

    /// Lets happen what needs no choice: starts, and calls that concern nobody.
    fn settle(&mut self, machine: &mut Machine<'_>) -> Result<(), Bad> {
        loop {
            if self.ended() {
                let mut setups = machine.rules.processes.iter();
                let next = self.processes.iter_mut().find(|p| {
                    let last = setups.next().is_some_and(|s| s.start == Start::Last);
                    last && p.status == Status::Waiting
                });
                match next {
                    Some(next) => next.status = Status::Running,
                    None => return Ok(()),
                }
            }
            let mut quiet = None;
            for process in 0..self.processes.len() {
                if self.starts_quietly(machine, process)
                    || self.quiet_choices(machine, process).is_some_and(|c| c.len() == 1)
                {
                    quiet = Some(process);
                    break;
                }
            }
            match quiet {
                Some(process) => self.step(machine, process, Way::Plain)?,
                None if self.ended() => {}
                None => return Ok(()),
            }
        }
    }

    /// A start is a step of its own only for a process that looks at the clock
    /// before its first call: when it started makes no difference otherwise.
    fn starts_quietly(&self, machine: &mut Machine<'_>, process: usize) -> bool {
        if self.processes[process].status != Status::Running
            || *self.request(machine, process) != Request::Start
        {
            return false;
        }
        let boots = self.hosts[machine.rules.host(process)].boots;
        let program = &mut machine.programs[process];
        let begun = program.answered(Program::START, &Answer::Started { boots });
        !matches!(
            program.request(begun),
            Request::Now
                | Request::Boot
                | Request::Wall
                | Request::Look { .. }
                | Request::Sleep { .. }
        )
    }

    pub(crate) fn view<'a>(&'a self, rules: &'a Rules) -> View<'a> {
        View { state: self, rules }
    }
}

fn name(rules: &Rules, process: usize) -> &str {
    &rules.processes[process].name
}

/// What an invariant may look at.
#[derive(Clone, Copy)]
pub struct View<'a> {
    state: &'a State,
    rules: &'a Rules,
}

impl<'a> View<'a> {
    /// The filesystem as running processes see it.
    pub fn live(&self) -> &'a Image {
        &self.state.kernel.image
    }

    /// Milliseconds since the world began, on nobody's clock.
    pub fn now_ms(&self) -> u64 {
        self.state.now_ms
    }

    /// One process, by the order in which they were given.
    pub fn process(&self, index: usize) -> ProcessView<'a> {
        ProcessView { view: *self, index }
    }

    /// All processes.
    pub fn processes(&self) -> impl Iterator<Item = ProcessView<'a>> + use<'a> {
        let view = *self;
        (0..view.state.processes.len()).map(move |index| ProcessView { view, index })
    }

    /// Renames that were answered with EIO and may still be applied.
    pub fn late_renames(&self) -> usize {
        self.state.late.len()
    }
}

/// What an invariant may know of a process.
#[derive(Clone, Copy)]
pub struct ProcessView<'a> {
    view: View<'a>,
    index: usize,
}

impl<'a> ProcessView<'a> {
    /// Its number.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Its name.
    pub fn name(&self) -> &'a str {
        name(self.view.rules, self.index)
    }

    /// How far it is.
    pub fn status(&self) -> Status {
        self.view.state.processes[self.index].status
    }

    /// Did it die?
    pub fn crashed(&self) -> bool {
        self.status() == Status::Crashed
    }

    /// What it published under `key`.
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.view.state.processes[self.index].board.get(key)
    }

    /// The number it published under `key`.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.number()
    }

    /// The words it published under `key`.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.get(key)?.text()
    }

    /// Boot time on its host.
    pub fn boot_ms(&self) -> u64 {
        self.view.state.clocks(self.view.rules, self.index).0
    }

    /// Wall time on its host.
    pub fn wall_ms(&self) -> u64 {
        self.view.state.clocks(self.view.rules, self.index).1
    }
}
