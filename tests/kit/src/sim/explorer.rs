//! Visits every state of a world, or many at random, and asks of each whether
//! it may be.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use jvs_repo::clock::Discipline;
use jvs_repo::store::RepoPath;
use rustix::io::Errno;

use super::choice::{Choice, Way, print_choices};
use super::entropy::SimEntropy;
use super::fingerprint::fingerprint;
use super::image::Image;
use super::process::Process;
use super::program::Program;
use super::solo::Solo;
use super::world::{
    Bad, Budgets, End, HostSetup, Machine, PowerCuts, Room, Rules, State, Status, Trace, View,
};

type StateCheck<'c> = Box<dyn Fn(&View<'_>) -> Result<(), String> + 'c>;
type StepCheck<'c> = Box<dyn Fn(&View<'_>, &View<'_>) -> Result<(), String> + 'c>;

/// What is explored: processes, what may go wrong how often, what must hold.
/// See [`crate::sim`] for how a scenario is written.
pub struct Explorer<'c> {
    rules: Rules,
    image: Image,
    always: Vec<StateCheck<'c>>,
    each_step: Vec<StepCheck<'c>>,
    at_end: Vec<StateCheck<'c>>,
    prune: bool,
    shortest: bool,
    max_states: u64,
    max_runs: u64,
}

impl Default for Explorer<'_> {
    fn default() -> Self {
        Explorer::new()
    }
}

impl<'c> Explorer<'c> {
    /// A world without processes in which nothing goes wrong.
    pub fn new() -> Self {
        let budgets = Budgets {
            crashes: 0,
            ambiguous_renames: 0,
            ambiguous_makes: 0,
            ambiguous_removals: 0,
            ambiguous_syncs: 0,
            torn_listings: 0,
            late_renames: 0,
            errors: 0,
            jumps: 0,
            wall_sets: 0,
            power_cuts: 0,
            early_wakes: u32::MAX,
            preemptions: None,
        };
        Explorer {
            rules: Rules {
                processes: Vec::new(),
                hosts: Vec::new(),
                jumps_ms: Vec::new(),
                wall_sets: Vec::new(),
                errors: Vec::new(),
                power_cuts: PowerCuts::EveryPrefix,
                private: None,
                crashes_in_private: false,
                forget_private: false,
                clock_is_a_step: false,
                clocks_apart: false,
                injected: Vec::new(),
                max_calls: 500,
                room: Room::Plenty,
                stale_names_ms: None,
                stale_absences_ms: None,
                budgets,
            },
            image: Image::empty(false),
            always: Vec::new(),
            each_step: Vec::new(),
            at_end: Vec::new(),
            prune: true,
            shortest: false,
            max_states: 5_000_000,
            max_runs: 50_000_000,
        }
    }

    /// What is on disk, durably, before any process starts.
    #[must_use]
    pub fn setup(mut self, setup: impl FnOnce(&Solo)) -> Self {
        let solo = Solo::on(self.image);
        setup(&solo);
        self.image = solo.image();
        self
    }

    /// One more process.
    #[must_use]
    pub fn process(mut self, process: Process) -> Self {
        self.rules.processes.push(process);
        self
    }

    /// More processes.
    #[must_use]
    pub fn processes(mut self, processes: impl IntoIterator<Item = Process>) -> Self {
        self.rules.processes.extend(processes);
        self
    }

    /// At most `n` processes die.
    #[must_use]
    pub fn crashes(mut self, n: u32) -> Self {
        self.rules.budgets.crashes = n;
        self
    }

    /// At most `n` renames are applied and answered with EIO or ENOENT, or, if they
    /// must not replace anything, with EEXIST.
    #[must_use]
    pub fn ambiguous_renames(mut self, n: u32) -> Self {
        self.rules.budgets.ambiguous_renames = n;
        self
    }

    /// At most `n` calls that make a file or a directory are applied and answered
    /// with EEXIST, EIO or EINTR.
    #[must_use]
    pub fn ambiguous_makes(mut self, n: u32) -> Self {
        self.rules.budgets.ambiguous_makes = n;
        self
    }

    /// At most `n` removals of a file or a directory are applied and answered with
    /// ENOENT, EIO or EINTR.
    #[must_use]
    pub fn ambiguous_removals(mut self, n: u32) -> Self {
        self.rules.budgets.ambiguous_removals = n;
        self
    }

    /// At most `n` times a file or a directory is synced, and EIO is answered.
    #[must_use]
    pub fn ambiguous_syncs(mut self, n: u32) -> Self {
        self.rules.budgets.ambiguous_syncs = n;
        self
    }

    /// At most `n` listings take two batches, and others may come in between: what
    /// they make, remove or rename meanwhile is missed, or is shown as it was and
    /// as it is. A first batch alone is always what was there at one moment.
    #[must_use]
    pub fn torn_listings(mut self, n: u32) -> Self {
        self.rules.budgets.torn_listings = n;
        self
    }

    /// At most `n` renames are answered with EIO and applied at any later
    /// moment at which their source is there, or never.
    #[must_use]
    pub fn late_renames(mut self, n: u32) -> Self {
        self.rules.budgets.late_renames = n;
        self
    }

    /// At most `n` calls fail with one of `errnos` and are not applied.
    #[must_use]
    pub fn errors(mut self, n: u32, errnos: &[Errno]) -> Self {
        self.rules.budgets.errors = n;
        self.rules.errors = errnos.to_vec();
        self
    }

    /// At most `n` times the power goes: everybody dies, and what was not
    /// synced may be gone.
    #[must_use]
    pub fn power_cuts(mut self, n: u32, which: PowerCuts) -> Self {
        self.rules.budgets.power_cuts = n;
        self.rules.power_cuts = which;
        self
    }

    /// The volume has no room for more bytes in files than there are at the start.
    /// Names need none. A file that was refused room goes on being refused for a while.
    #[must_use]
    pub fn full_volume(mut self) -> Self {
        self.rules.room = Room::AsMuchAsIsUsed;
        self
    }

    /// The volume has more in it than it may have: whatever is given up, there is no
    /// room for more bytes.
    #[must_use]
    pub fn overfull_volume(mut self) -> Self {
        self.rules.room = Room::None;
        self
    }

    /// A file that was replaced or removed through one mount may be found by
    /// its path through the others for `ms`.
    #[must_use]
    pub fn stale_reads_for_ms(mut self, ms: u64) -> Self {
        self.rules.stale_names_ms = Some(ms);
        self
    }

    /// A name that was looked up through a mount and was not there may be denied
    /// there for `ms`, though another mount made it since. A listing shows it.
    #[must_use]
    pub fn stale_absences_for_ms(mut self, ms: u64) -> Self {
        self.rules.stale_absences_ms = Some(ms);
        self
    }

    /// At most `n` times, between any two steps, time jumps by one of `values_ms`.
    /// For a process that does not run meanwhile this is a pause or a suspend.
    #[must_use]
    pub fn time_jumps(mut self, n: u32, values_ms: impl IntoIterator<Item = u64>) -> Self {
        self.rules.budgets.jumps = n;
        self.rules.jumps_ms = values_ms.into_iter().collect();
        self
    }

    /// At most `n` times a wall clock is moved: one of (host, by how many ms).
    #[must_use]
    pub fn wall_jumps(mut self, n: u32, moves: impl IntoIterator<Item = (usize, i64)>) -> Self {
        self.rules.budgets.wall_sets = n;
        self.rules.wall_sets = moves.into_iter().collect();
        self
    }

    /// At most `n` times a sleeper wakes while others are still at work; without
    /// this, as often as it likes. Nobody else awake: sleepers always wake.
    #[must_use]
    pub fn early_wakes(mut self, n: u32) -> Self {
        self.rules.budgets.early_wakes = n;
        self
    }

    /// At most `n` times a process that could go on is made to wait for another.
    #[must_use]
    pub fn preemptions(mut self, n: u32) -> Self {
        self.rules.budgets.preemptions = Some(n);
        self
    }

    /// How far the wall clock of `host` is ahead, in ms.
    #[must_use]
    pub fn wall_offset_ms(mut self, host: usize, ms: i64) -> Self {
        self.host(host).wall_offset_ms = ms;
        self
    }

    /// What the kernel of `host` says of its clock.
    #[must_use]
    pub fn discipline(mut self, host: usize, discipline: Discipline) -> Self {
        self.host(host).discipline = discipline;
        self
    }

    fn host(&mut self, host: usize) -> &mut HostSetup {
        if self.rules.hosts.len() <= host {
            self.rules.hosts.resize(host + 1, HostSetup::default());
        }
        &mut self.rules.hosts[host]
    }

    /// Paths that no two processes share: calls on them are made at once,
    /// nobody comes in between, nothing goes wrong with them.
    #[must_use]
    pub fn private(mut self, is: impl Fn(&RepoPath) -> bool + Send + Sync + 'static) -> Self {
        self.rules.private = Some(Arc::new(is));
        self
    }

    /// Processes may die between calls on private paths, too.
    #[must_use]
    pub fn crashes_in_private(mut self) -> Self {
        self.rules.crashes_in_private = true;
        self
    }

    /// What is written to private files does not tell two states apart, so that
    /// there are fewer. For scenarios in which no check and no process but the
    /// writer reads them.
    #[must_use]
    pub fn forget_private(mut self) -> Self {
        self.rules.forget_private = true;
        self
    }

    /// Others may run, and time may jump, between the answer to a call and
    /// a look at the clock. Without this a process looks at the clock at the
    /// moment of its last answer.
    #[must_use]
    pub fn clock_is_a_step(mut self) -> Self {
        self.rules.clock_is_a_step = true;
        self
    }

    /// The two clocks are read one after the other, each by a step of its own:
    /// a process may be stopped in between, for any time.
    #[must_use]
    pub fn clocks_are_read_apart(mut self) -> Self {
        self.rules.clocks_apart = true;
        self
    }

    /// In every run, call number `call` (from 0) of `process` goes this way.
    #[must_use]
    pub fn inject(mut self, process: usize, call: u32, way: Way) -> Self {
        self.rules.injected.push((process, call, way));
        self
    }

    /// Visits a state again for every way that leads to it. For small worlds.
    #[must_use]
    pub fn without_pruning(mut self) -> Self {
        self.prune = false;
        self
    }

    /// Finds the shortest way to a violation first, for people to read; needs
    /// much more memory.
    #[must_use]
    pub fn shortest_first(mut self) -> Self {
        self.shortest = true;
        self
    }

    /// Gives up, and says so, after this many states.
    #[must_use]
    pub fn max_states(mut self, n: u64) -> Self {
        self.max_states = n;
        self
    }

    /// Gives up, and says so, after this many ends.
    #[must_use]
    pub fn max_runs(mut self, n: u64) -> Self {
        self.max_runs = n;
        self
    }

    /// A process that makes more calls than this never ends.
    #[must_use]
    pub fn max_calls(mut self, n: u32) -> Self {
        self.rules.max_calls = n;
        self
    }

    /// Must hold in every state.
    #[must_use]
    pub fn always(mut self, check: impl Fn(&View<'_>) -> Result<(), String> + 'c) -> Self {
        self.always.push(Box::new(check));
        self
    }

    /// Must hold of every step: the state before it, and the one after.
    #[must_use]
    pub fn each_step(
        mut self,
        check: impl Fn(&View<'_>, &View<'_>) -> Result<(), String> + 'c,
    ) -> Self {
        self.each_step.push(Box::new(check));
        self
    }

    /// Must hold whenever every process has ended or died.
    #[must_use]
    pub fn at_end(mut self, check: impl Fn(&View<'_>) -> Result<(), String> + 'c) -> Self {
        self.at_end.push(Box::new(check));
        self
    }

    /// Visits every reachable state.
    #[must_use = "a report that nobody reads proves nothing"]
    pub fn run(&self) -> Report {
        let mut search = Search::new(self);
        let verdict = if self.shortest { search.breadth_first() } else { search.depth_first() };
        search.report(verdict)
    }

    /// Walks `walks` times at random from the start to an end.
    #[must_use = "a report that nobody reads proves nothing"]
    pub fn sample(&self, seed: u64, walks: u64) -> Report {
        let mut search = Search::new(self);
        let verdict = search.at_random(seed, walks);
        search.report(verdict)
    }

    /// Makes these choices, and tells what happened.
    pub fn replay(&self, choices: &[Choice]) -> Replay {
        let mut machine = self.machine(true);
        let wrong = self.follow(&mut machine, choices).err();
        Replay { trace: machine.trace.lines.unwrap_or_default(), violation: wrong }
    }

    /// Who takes part, and what may go wrong how often, in one line.
    fn told(&self) -> String {
        let Budgets {
            crashes,
            ambiguous_renames,
            ambiguous_makes,
            ambiguous_removals,
            ambiguous_syncs,
            torn_listings,
            late_renames,
            errors,
            jumps,
            wall_sets,
            power_cuts,
            early_wakes,
            preemptions,
        } = &self.rules.budgets;
        let names: Vec<&str> = self.rules.processes.iter().map(|p| p.name.as_str()).collect();
        let mut told = format!("actors {}", names.join(" "));
        told += &match preemptions {
            Some(n) => format!("; preemptions {n}"),
            None => "; preemptions any".to_owned(),
        };
        for (what, n) in [
            ("crashes", crashes),
            ("ambiguous renames", ambiguous_renames),
            ("ambiguous makes", ambiguous_makes),
            ("ambiguous removals", ambiguous_removals),
            ("ambiguous syncs", ambiguous_syncs),
            ("torn listings", torn_listings),
            ("late renames", late_renames),
            ("errors", errors),
            ("time jumps", jumps),
            ("clocks set", wall_sets),
            ("power cuts", power_cuts),
        ] {
            if *n > 0 {
                told += &format!("; {what} {n}");
            }
        }
        if *early_wakes != u32::MAX {
            told += &format!("; early wakes {early_wakes}");
        }
        told
    }

    fn machine(&self, traced: bool) -> Machine<'_> {
        let trace = Trace { lines: traced.then(Vec::new) };
        Machine { rules: &self.rules, programs: self.rules.programs(), trace }
    }

    fn follow(&self, machine: &mut Machine<'_>, choices: &[Choice]) -> Result<(), Bad> {
        let mut state = State::first(&self.image, machine)?;
        self.check_state(&state)?;
        for &choice in choices {
            let mut after = state.clone();
            after.apply(machine, choice)?;
            self.check_step(&state, &after)?;
            self.check_state(&after)?;
            state = after;
        }
        Ok(())
    }

    fn check_state(&self, state: &State) -> Result<(), Bad> {
        let view = state.view(&self.rules);
        self.always.iter().try_for_each(|check| check(&view))?;
        if state.ended() {
            self.at_end.iter().try_for_each(|check| check(&view))?;
        }
        Ok(())
    }

    fn check_step(&self, before: &State, after: &State) -> Result<(), Bad> {
        let (before, after) = (before.view(&self.rules), after.view(&self.rules));
        self.each_step.iter().try_for_each(|check| check(&before, &after))
    }
}

/// Fingerprints are evenly spread already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_le_bytes(word);
        }
    }
}

type Fingerprints = HashSet<u128, BuildHasherDefault<AsIs>>;

struct Frame {
    state: State,
    choices: Vec<Choice>,
    next: usize,
}

struct Search<'e, 'c> {
    explorer: &'e Explorer<'c>,
    machine: Machine<'e>,
    seen: Fingerprints,
    ends: Fingerprints,
    states: u64,
    steps: u64,
    runs: u64,
    max_depth: usize,
}

impl<'e, 'c> Search<'e, 'c> {
    fn new(explorer: &'e Explorer<'c>) -> Self {
        Search {
            explorer,
            machine: explorer.machine(false),
            seen: Fingerprints::default(),
            ends: Fingerprints::default(),
            states: 0,
            steps: 0,
            runs: 0,
            max_depth: 0,
        }
    }

    fn depth_first(&mut self) -> Verdict {
        let (state, choices) = match self.first() {
            Ok(first) => first,
            Err(wrong) => return self.violated(wrong, Vec::new()),
        };
        let mut stack = vec![Frame { state, choices, next: 0 }];
        while let Some(frame) = stack.last_mut() {
            let Some(&choice) = frame.choices.get(frame.next) else {
                stack.pop();
                continue;
            };
            frame.next += 1;
            let made = self.step(&frame.state, &mut frame.choices, choice);
            match made.and_then(|state| Ok((self.arrive(&state, stack.len())?, state))) {
                Ok((Some(choices), state)) => stack.push(Frame { state, choices, next: 0 }),
                Ok((None, _)) => {}
                Err(wrong) => {
                    let path = stack.iter().map(|frame| frame.choices[frame.next - 1]).collect();
                    return self.violated(wrong, path);
                }
            }
            if let Some(why) = self.too_much() {
                return Verdict::Incomplete(why);
            }
        }
        Verdict::Holds
    }

    fn breadth_first(&mut self) -> Verdict {
        let (state, choices) = match self.first() {
            Ok(first) => first,
            Err(wrong) => return self.violated(wrong, Vec::new()),
        };
        // How each state was first come to: from which, by what choice.
        let mut ways: Vec<Option<(usize, Choice)>> = vec![None];
        let mut waiting = VecDeque::from([(0, 0, state, choices)]);
        while let Some((id, depth, state, mut choices)) = waiting.pop_front() {
            let mut next = 0;
            while let Some(&choice) = choices.get(next) {
                next += 1;
                let made = self.step(&state, &mut choices, choice);
                match made.and_then(|state| Ok((self.arrive(&state, depth + 1)?, state))) {
                    Ok((Some(choices), state)) => {
                        waiting.push_back((ways.len(), depth + 1, state, choices));
                        ways.push(Some((id, choice)));
                    }
                    Ok((None, _)) => {}
                    Err(wrong) => {
                        let mut path = vec![choice];
                        let mut here = id;
                        while let Some((from, choice)) = ways[here] {
                            path.push(choice);
                            here = from;
                        }
                        path.reverse();
                        return self.violated(wrong, path);
                    }
                }
                if let Some(why) = self.too_much() {
                    return Verdict::Incomplete(why);
                }
            }
        }
        Verdict::Holds
    }

    fn first(&mut self) -> Result<(State, Vec<Choice>), Bad> {
        let state = State::first(&self.explorer.image, &mut self.machine)?;
        let choices = self.arrive(&state, 0)?.unwrap_or_default();
        Ok((state, choices))
    }

    /// The state after `choice`, one of `choices`.
    fn step(
        &mut self,
        from: &State,
        choices: &mut Vec<Choice>,
        choice: Choice,
    ) -> Result<State, Bad> {
        self.steps += 1;
        let mut after = from.clone();
        after.apply(&mut self.machine, choice)?;
        // Dying after a call is dying before the next, except after the last.
        if let Choice::Step(process, Way::Plain) = choice
            && after.status(process) == Status::Done
            && from.may_crash()
        {
            choices.push(Choice::Step(process, Way::ThenDies));
        }
        self.explorer.check_step(from, &after)?;
        Ok(after)
    }

    /// Looks at a state. What can happen next, if that was not asked before.
    fn arrive(&mut self, state: &State, depth: usize) -> Result<Option<Vec<Choice>>, Bad> {
        let is_new = self.seen.insert(fingerprint(state));
        if self.explorer.prune && !is_new {
            return Ok(None);
        }
        self.states += 1;
        self.max_depth = self.max_depth.max(depth);
        self.explorer.check_state(state)?;
        if state.ended() {
            self.runs += 1;
            self.ends.insert(fingerprint(&End(state)));
        }
        Ok(Some(state.choices(&self.machine)))
    }

    fn too_much(&self) -> Option<String> {
        let (states, runs) = (self.explorer.max_states, self.explorer.max_runs);
        if self.states > states {
            return Some(format!("more than {states} states"));
        }
        (self.runs > runs).then(|| format!("more than {runs} runs"))
    }

    fn at_random(&mut self, seed: u64, walks: u64) -> Verdict {
        const LONGEST: usize = 100_000;
        let random = SimEntropy::new(seed);
        let below = |n: usize| (random.next() % n as u64) as usize;
        for _ in 0..walks {
            let mut path = Vec::new();
            let mut state = match State::first(&self.explorer.image, &mut self.machine) {
                Ok(first) => first,
                Err(wrong) => return self.violated(wrong, path),
            };
            loop {
                if self.seen.insert(fingerprint(&state)) {
                    self.states += 1;
                }
                if let Err(wrong) = self.explorer.check_state(&state) {
                    return self.violated(wrong, path);
                }
                let choices = state.choices(&self.machine);
                if state.ended() {
                    self.ends.insert(fingerprint(&End(&state)));
                }
                if choices.is_empty() || path.len() > LONGEST || state.ended() && below(2) == 0 {
                    break;
                }
                // Mostly nothing goes wrong, or walks would end before they got anywhere.
                let is_plain =
                    |c: &&Choice| matches!(c, Choice::Step(_, Way::Plain | Way::Picks(_)));
                let plain: Vec<Choice> = choices.iter().filter(is_plain).copied().collect();
                let from = if plain.is_empty() || below(8) == 0 { &choices } else { &plain };
                let choice = from[below(from.len())];
                path.push(choice);
                self.steps += 1;
                let before = state.clone();
                let moved = state.apply(&mut self.machine, choice);
                let moved = moved.and_then(|()| self.explorer.check_step(&before, &state));
                if let Err(wrong) = moved {
                    return self.violated(wrong, path);
                }
            }
            self.runs += 1;
            self.max_depth = self.max_depth.max(path.len());
        }
        Verdict::Holds
    }

    fn violated(&self, message: Bad, choices: Vec<Choice>) -> Verdict {
        let trace = self.explorer.replay(&choices).trace;
        Verdict::Violated(Violation { message, trace, choices })
    }

    fn report(&self, verdict: Verdict) -> Report {
        Report {
            world: self.explorer.told(),
            states: self.states,
            steps: self.steps,
            runs: self.runs,
            distinct_ends: self.ends.len() as u64,
            histories: self.machine.programs.iter().map(Program::histories).sum::<usize>() as u64,
            max_depth: self.max_depth as u64,
            verdict,
        }
    }
}

/// What replayed choices led to.
#[derive(Debug, Clone)]
pub struct Replay {
    /// Step by step, for people.
    pub trace: Vec<String>,
    /// What was wrong, if anything was.
    pub violation: Option<String>,
}

/// A way into a state that must not be.
#[derive(Debug, Clone)]
pub struct Violation {
    /// What is wrong.
    pub message: String,
    /// Step by step, for people.
    pub trace: Vec<String>,
    /// The way there, for [`Explorer::replay`].
    pub choices: Vec<Choice>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.message)?;
        for (n, line) in self.trace.iter().enumerate() {
            writeln!(f, "{:>4}  {line}", n + 1)?;
        }
        write!(f, "choices: {}", print_choices(&self.choices))
    }
}

/// How an exploration ended.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// Every state was visited, every check passed.
    Holds,
    /// A check failed.
    Violated(Violation),
    /// It was given up: why.
    Incomplete(String),
}

/// What an exploration found.
#[derive(Debug, Clone)]
pub struct Report {
    /// Who took part, and what could go wrong how often.
    pub world: String,
    /// Distinct states (without pruning: states visited).
    pub states: u64,
    /// Steps made between them.
    pub steps: u64,
    /// Ends arrived at.
    pub runs: u64,
    /// Ends that differ in what is on disk, in who died, or in what was claimed.
    pub distinct_ends: u64,
    /// Distinct histories of processes: how often library code really ran on.
    pub histories: u64,
    /// Choices on the longest way.
    pub max_depth: u64,
    /// How it ended.
    pub verdict: Verdict,
}

impl Report {
    /// Fails the test unless everything was visited and nothing was wrong.
    #[track_caller]
    pub fn holds(self) -> Self {
        assert!(matches!(self.verdict, Verdict::Holds), "{self}");
        self
    }

    /// The violation; fails the test if there is none.
    #[track_caller]
    pub fn violation(self) -> Violation {
        match self.verdict {
            Verdict::Violated(violation) => violation,
            _ => panic!("a violation was expected: {self}"),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verdict {
            Verdict::Holds => f.write_str("holds")?,
            Verdict::Violated(violation) => writeln!(f, "violated: {violation}")?,
            Verdict::Incomplete(why) => write!(f, "incomplete: {why}")?,
        }
        write!(
            f,
            " ({}; {} states, {} steps, {} runs to {} ends, {} histories, depth {})",
            self.world,
            self.states,
            self.steps,
            self.runs,
            self.distinct_ends,
            self.histories,
            self.max_depth
        )
    }
}
