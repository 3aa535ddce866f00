//! Everything that a run has started: the command, its children and theirs, whatever
//! process group, session or namespace they have made themselves.
//!
//! A **guardian** stands between `jvs run` and its command. It is the process that
//! orphans of the tree are given to, so it has no children exactly when nobody of the
//! tree is left; and it is the process that ends them if both `jvs run` and its keeper
//! are killed. A process that watches the lease (the keeper, `jvs run`) can end the tree
//! without the guardian's help: it may have been stopped.

pub(crate) mod cgroup;
pub(crate) mod mark;

use std::collections::BTreeSet;
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::str::FromStr;

use jvs_repo::clock::{BootMs, Clock, SystemClock};
use jvs_repo::proc::{self, Process};
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open, pidfd_send_signal,
};
use serde::Serialize;

pub(crate) use cgroup::Cgroup;
pub(crate) use mark::TreeMark;

use crate::alarm::Alarm;
use crate::args::Follow;

/// Between two rounds of ending what does not want to end.
const AGAIN_MS: u64 = 20;

/// What holds a tree together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Containment {
    /// A cgroup of its own: the kernel's list, and its way to end all at once.
    Cgroup(Cgroup),
    /// A PID namespace of its own, which ends with its first process, the guardian.
    Namespace,
    /// Orphans are given to the guardian, so that all are its descendants.
    Reaper,
}

impl Containment {
    /// The word for it, in `--contain`, on the wire and in JSON.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Containment::Cgroup(_) => "cgroup",
            Containment::Namespace => "pidns",
            Containment::Reaper => "reap",
        }
    }

    /// Does the kernel list anybody in it?
    pub(crate) fn has_members(&self) -> bool {
        match self {
            Containment::Cgroup(cgroup) => !cgroup.members().is_empty(),
            Containment::Namespace | Containment::Reaper => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessTree {
    pub(crate) guardian: Follow,
    /// The command, which leads a process group.
    pub(crate) leader: Follow,
    pub(crate) mark: TreeMark,
    pub(crate) hold: Containment,
}

/// A process of a tree, for the process that is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Process"))]
pub(crate) struct Member {
    /// Process id.
    pub(crate) pid: u32,
    /// Its words.
    pub(crate) command: String,
    #[serde(skip)]
    start_time: u64,
    #[serde(skip)]
    group: u32,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.command, self.pid)
    }
}

/// For people: the first few of them.
pub(crate) fn listed(members: &[Member]) -> String {
    const SHOWN: usize = 5;
    let mut names: Vec<String> = members.iter().take(SHOWN).map(Member::to_string).collect();
    if members.len() > SHOWN {
        names.push(format!("{} more", members.len() - SHOWN));
    }
    names.join(", ")
}

impl From<&Process> for Member {
    fn from(process: &Process) -> Self {
        let Process { pid, start_ticks, group, name, .. } = process;
        let command = name.clone();
        Member { pid: *pid, command, start_time: *start_ticks, group: *group }
    }
}

impl ProcessTree {
    /// Who is there now, the guardian not counted. Not one moment: it may miss the process that
    /// was being born, so that nobody is there for certain only when the guardian has
    /// ended.
    pub(crate) fn members(&self) -> Vec<Member> {
        self.members_among(&proc::processes())
    }

    fn members_among(&self, all: &[Process]) -> Vec<Member> {
        let mut members = match all.iter().find(|process| self.is_guardian(process)) {
            Some(guardian) => below(all, guardian.pid),
            // Its orphans were given to somebody who knows nothing of them.
            None => self.mark.carried_by(all),
        };
        if let Containment::Cgroup(cgroup) = &self.hold {
            let listed = cgroup.members();
            members.extend(
                all.iter().filter(|process| listed.contains(&process.pid) && !process.zombie),
            );
        }
        let mut members: Vec<Member> = members.into_iter().map(Member::from).collect();
        members.sort_by_key(|member| member.pid);
        members.dedup();
        members
    }

    fn is_guardian(&self, process: &Process) -> bool {
        let Follow { pid, start_time } = self.guardian;
        // One that nobody has waited for yet has no children any more.
        process.pid == pid && process.start_ticks == start_time && !process.zombie
    }

    /// Asks all of them to end.
    pub(crate) fn ask(&self) {
        let told = self.signal_group(&[Signal::TERM, Signal::CONT]);
        for member in self.members() {
            // Once each: to be asked again means something else to many programs.
            if !(told && member.group == self.leader.pid) {
                member.ask();
            }
        }
    }

    /// Signals the command's process group, if the command is there: many at once, before
    /// anything is looked up. On a busy machine looking takes its time.
    fn signal_group(&self, signals: &[Signal]) -> bool {
        let group = i32::try_from(self.leader.pid).ok().and_then(Pid::from_raw);
        let (Some(group), Some(_)) = (group, handle(self.leader.pid, self.leader.start_time))
        else {
            return false;
        };
        signals.iter().all(|signal| kill_process_group(group, *signal).is_ok())
    }

    /// Makes all of them end that can be seen. Those that were being born meanwhile
    /// need another round, unless the kernel ends all at once: by cgroup, by namespace, or
    /// by process group. One by one alone could go on for ever against those who multiply.
    pub(crate) fn kill(&self) {
        match &self.hold {
            Containment::Cgroup(cgroup) => cgroup.kill(),
            Containment::Namespace => {
                if let Some(guardian) = self.guardian() {
                    let _ = pidfd_send_signal(&guardian, Signal::KILL);
                }
            }
            Containment::Reaper => drop(self.signal_group(&[Signal::KILL])),
        }
        let all = proc::processes();
        let members = self.members_among(&all);
        if self.hold == Containment::Reaper {
            whole_groups(&all, &members).for_each(Member::kill_group);
        }
        members.iter().for_each(Member::kill);
    }

    /// A handle on the guardian; `None` if it has ended.
    pub(crate) fn guardian(&self) -> Option<OwnedFd> {
        handle(self.guardian.pid, self.guardian.start_time)
    }

    /// Asks everybody to end, makes them at `kill_at`, and answers who is left at
    /// `last`. For a process that has nothing else to do meanwhile.
    pub(crate) fn end(&self, kill_at: BootMs, last: BootMs) -> Vec<Member> {
        self.ask();
        // How often nobody was to be seen after everybody was made to end: a process that was
        // missed while being born is seen the next time.
        let mut empty = 0;
        loop {
            let now = SystemClock.now().boot;
            let until = if now < kill_at { kill_at } else { now.plus(AGAIN_MS).min(last) };
            if now >= kill_at {
                self.kill();
            }
            // One that ends says that nobody is left, unless it was killed itself. One that
            // is stopped does not end.
            let unguarded = self.guardian_ends_before(until);
            let left = self.members();
            let now = SystemClock.now().boot;
            empty = if left.is_empty() && now >= kill_at { empty + 1 } else { 0 };
            if left.is_empty() && (unguarded || empty > 2) || now >= last {
                self.clear_away();
                return left;
            }
            if unguarded {
                // Asked already, they have as long as with a guardian.
                SystemClock.sleep_ms(AGAIN_MS);
            }
        }
    }

    fn guardian_ends_before(&self, at: BootMs) -> bool {
        if self.is_unguarded() {
            return true;
        }
        let ended = self.guardian().and_then(|guardian| {
            let alarm = Alarm::new().ok()?;
            alarm.wait([Some(guardian.as_fd())], Some(at)).ok()
        });
        ended.map_or_else(
            || {
                SystemClock.sleep_ms(AGAIN_MS.min(at.since(SystemClock.now().boot)));
                self.is_unguarded()
            },
            |[ended]| ended,
        )
    }

    fn is_unguarded(&self) -> bool {
        !is_there(self.guardian.pid, self.guardian.start_time)
    }

    /// Removes what is left of a cgroup whose guardian was killed. One that has processes
    /// stays.
    pub(crate) fn clear_away(&self) {
        if let Containment::Cgroup(cgroup) = &self.hold {
            cgroup.remove();
        }
    }

    /// Is it certain that nobody is left whom [`Self::members`] does not show? Where only
    /// the guardian has all of them below it, that takes the guardian's word.
    pub(crate) fn is_seen_whole(&self, guardian_said_so: bool) -> bool {
        self.hold != Containment::Reaper || !self.is_unguarded() || guardian_said_so
    }
}

impl Member {
    /// Asks it to end. A stopped process cannot even refuse, so it is continued.
    pub(crate) fn ask(&self) {
        self.signal(&[Signal::TERM, Signal::CONT]);
    }

    pub(crate) fn kill(&self) {
        self.signal(&[Signal::KILL]);
    }

    /// Ends its process group while it is there itself, so that it is that group.
    fn kill_group(&self) {
        let group = i32::try_from(self.group).ok().and_then(Pid::from_raw);
        if let (Some(group), Some(_)) = (group, handle(self.pid, self.start_time)) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    fn signal(&self, signals: &[Signal]) {
        // Through a handle: its number may be somebody else's by now.
        if let Some(process) = handle(self.pid, self.start_time) {
            for signal in signals {
                let _ = pidfd_send_signal(&process, *signal);
            }
        } else if is_there(self.pid, self.start_time) {
            // No handle is to be had: a sandbox forbids them, or too many files are open.
            let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
            for (pid, signal) in
                pid.into_iter().flat_map(|pid| signals.iter().map(move |s| (pid, s)))
            {
                let _ = kill_process(pid, *signal);
            }
        }
    }
}

/// Every living descendant of `root` among `all`.
pub(crate) fn below(all: &[Process], root: u32) -> Vec<&Process> {
    let mut found = Vec::new();
    let mut seen = vec![root];
    let mut next = 0;
    while let Some(parent) = seen.get(next).copied() {
        next += 1;
        for process in all.iter().filter(|process| process.parent == parent) {
            // Pids that were used again while they were read may go round in a circle.
            if !seen.contains(&process.pid) {
                seen.push(process.pid);
                found.extend((!process.zombie).then_some(process));
            }
        }
    }
    found
}

/// One of each process group of which all that live are `members`.
fn whole_groups<'m>(all: &[Process], members: &'m [Member]) -> impl Iterator<Item = &'m Member> {
    let is_member =
        |process: &Process| members.binary_search_by_key(&process.pid, |member| member.pid).is_ok();
    let others = all.iter().filter(|process| !process.zombie && !is_member(process));
    let mut seen: BTreeSet<u32> = others.map(|process| process.group).collect();
    // Of another PID namespace, where it has no number here.
    seen.insert(0);
    members.iter().filter(move |member| seen.insert(member.group))
}

/// Is the very process with that pid and start time there, and not only its status?
pub(crate) fn is_there(pid: u32, start_time: u64) -> bool {
    proc::process_stat(pid).is_some_and(|stat| stat.start_ticks == start_time && !stat.zombie)
}

/// A handle on the very process with that pid and start time.
pub(crate) fn handle(pid: u32, start_time: u64) -> Option<OwnedFd> {
    let raw = Pid::from_raw(i32::try_from(pid).ok()?)?;
    let handle = pidfd_open(raw, PidfdFlags::empty()).ok()?;
    // Looked up after the handle was opened: it cannot change any more.
    is_there(pid, start_time).then_some(handle)
}

impl fmt::Display for ProcessTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dir = match &self.hold {
            Containment::Cgroup(cgroup) => cgroup.dir(),
            Containment::Namespace | Containment::Reaper => Path::new("-"),
        };
        let ProcessTree { guardian, leader, mark, hold } = self;
        write!(f, "{guardian} {leader} {mark} {} {}", hold.word(), dir.display())
    }
}

impl FromStr for ProcessTree {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words = text.splitn(5, ' ');
        let mut next = || words.next().ok_or(());
        let guardian = next()?.parse().map_err(|_| ())?;
        let leader = next()?.parse().map_err(|_| ())?;
        let mark = next()?.parse()?;
        let hold = match (next()?, next()?) {
            ("cgroup", dir) if dir.starts_with('/') => {
                Containment::Cgroup(Cgroup::at(Path::new(dir)))
            }
            ("pidns", "-") => Containment::Namespace,
            ("reap", "-") => Containment::Reaper,
            _ => return Err(()),
        };
        Ok(ProcessTree { guardian, leader, mark, hold })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, parent: u32, zombie: bool) -> Process {
        Process { pid, parent, group: 1, start_ticks: 1, zombie, name: "p".into() }
    }

    #[test]
    fn descendants_are_found_through_the_dead_and_in_any_order() {
        let all = [
            process(1, 0, false),
            process(9, 7, false),
            process(7, 5, true),
            process(5, 2, false),
            process(2, 1, false),
            process(3, 1, false),
        ];
        let mut found: Vec<u32> = below(&all, 2).iter().map(|process| process.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [5, 9], "neither the dead one nor whoever is beside");
        // A parent of its own, as process 0 is where nothing can be seen of it.
        assert_eq!(below(&[process(4, 4, false)], 4), Vec::<&Process>::new());
    }

    #[test]
    fn only_a_group_that_is_all_theirs_is_ended_at_once() {
        let of = |pid: u32, group: u32| Process { group, ..process(pid, 1, false) };
        let all = [of(2, 2), of(3, 2), of(4, 4), of(5, 4), of(6, 6), of(7, 0)];
        let members: Vec<Member> = [2, 3, 4, 6, 7]
            .map(|pid| Member::from(all.iter().find(|it| it.pid == pid).unwrap()))
            .into();
        let found: Vec<u32> = whole_groups(&all, &members).map(|member| member.pid).collect();
        assert_eq!(found, [2, 6], "not that of 5, nor one that has no number here");
    }

    #[test]
    fn a_tree_is_told_and_understood() {
        let guardian = Follow { pid: 7, start_time: 9 };
        let leader = Follow { pid: 8, start_time: 10 };
        for hold in [
            Containment::Reaper,
            Containment::Namespace,
            Containment::Cgroup(Cgroup::at(Path::new("/c/a b/jvs"))),
        ] {
            let mark = "00ff00ff00ff00ff".parse().expect("a mark");
            let tree = ProcessTree { guardian, leader, mark, hold };
            assert_eq!(tree.to_string().parse(), Ok(tree));
        }
        for nonsense in [
            "",
            "7:9 8:9",
            "7:9 8:9 reap -",
            "7:9 8:9 00ff00ff00ff00ff reap",
            "7:9 8:9 00ff00ff00ff00ff cgroup -",
            "7:9 8:9 00ff00ff00ff00ff cage -",
            "7:9 00ff00ff00ff00ff reap -",
        ] {
            assert_eq!(nonsense.parse::<ProcessTree>(), Err(()), "{nonsense}");
        }
    }
}
