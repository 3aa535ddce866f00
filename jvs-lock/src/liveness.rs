//! Is the process that holds a lock still there? Three answers, and "cannot
//! know" is never "dead".

use jvs_repo::clock::BootClock;
use jvs_repo::proc::ProcessStat;
use jvs_repo::record::worktree::MakerProcess;
use serde::Serialize;

use crate::record::{Keeper, Record};

/// What is known of the holder's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Liveness {
    /// It runs on this host.
    Alive,
    /// It ran on this host and has ended.
    Dead,
    /// It runs on another host, or where its pid means nothing here.
    Unknown(Unknowable),
}

/// Why nothing can be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unknowable {
    /// Another host, another boot of a host that may not be this one, or another
    /// time namespace of it.
    OtherHost,
    /// Another PID namespace on this host: a container.
    OtherPidNamespace,
    /// The record does not say which process.
    NoProcess,
    /// What rests on the hold lies in a private directory that is not this user's.
    OtherUser,
}

/// Where the question is asked from.
#[derive(Debug, Clone, Copy)]
pub struct Observer<'h> {
    /// This boot-time clock: start times are counted on it.
    pub clock: &'h BootClock,
    /// This process's PID namespace.
    pub pid_namespace: Option<u64>,
}

/// Judges by host, boot, namespace, pid and start time.
pub fn liveness(
    record: &Record,
    here: Observer<'_>,
    lookup: impl FnOnce(u32) -> Option<ProcessStat>,
) -> Liveness {
    if !here.clock.is(&record.boot_id, record.time_namespace) {
        // Host names are not unique: another boot id may be another machine.
        return Liveness::Unknown(Unknowable::OtherHost);
    }
    if record.pid_namespace.is_none() || record.pid_namespace != here.pid_namespace {
        return Liveness::Unknown(Unknowable::OtherPidNamespace);
    }
    let mut parts = record.holder_id.rsplit(':');
    let start: Option<u64> = parts.next().and_then(|text| text.parse().ok());
    let pid: Option<u32> = parts.next().and_then(|text| text.parse().ok());
    let (Some(start), Some(pid)) = (start, pid) else {
        return Liveness::Unknown(Unknowable::NoProcess);
    };
    is_running(pid, start, lookup)
}

/// Is the process that keeps a lease renewed still there?
pub fn keeper_liveness(
    keeper: &Keeper,
    here: Observer<'_>,
    lookup: impl FnOnce(u32) -> Option<ProcessStat>,
) -> Liveness {
    if !here.clock.is(&keeper.boot_id, keeper.time_namespace) {
        return Liveness::Unknown(Unknowable::OtherHost);
    }
    if keeper.pid_namespace.is_none() || keeper.pid_namespace != here.pid_namespace {
        return Liveness::Unknown(Unknowable::OtherPidNamespace);
    }
    is_running(keeper.pid, keeper.start_time, lookup)
}

/// Is the process that was at work on a worktree still there?
pub fn maker_liveness(
    maker: &MakerProcess,
    here: Observer<'_>,
    lookup: impl FnOnce(u32) -> Option<ProcessStat>,
) -> Liveness {
    if !here.clock.is(&maker.boot_id, maker.time_namespace) {
        return Liveness::Unknown(Unknowable::OtherHost);
    }
    if maker.pid_namespace.is_none() || maker.pid_namespace != here.pid_namespace {
        return Liveness::Unknown(Unknowable::OtherPidNamespace);
    }
    is_running(maker.pid, maker.start_time, lookup)
}

fn is_running(pid: u32, start: u64, lookup: impl FnOnce(u32) -> Option<ProcessStat>) -> Liveness {
    match lookup(pid) {
        Some(stat) if stat.start_ticks == start && !stat.zombie => Liveness::Alive,
        // Gone, a zombie, or the pid belongs to somebody else by now.
        _ => Liveness::Dead,
    }
}

#[cfg(test)]
mod tests {
    use jvs_repo::clock::BootId;

    use super::*;
    use crate::record::tests::granted;

    fn ask(change: impl FnOnce(&mut Record), found: Option<(u64, bool)>) -> Liveness {
        let (_, mut record) = granted();
        change(&mut record);
        let clock = BootClock { boot_id: BootId("boot-a".into()), time_namespace: Some(1) };
        let here = Observer { clock: &clock, pid_namespace: Some(1) };
        liveness(&record, here, |pid| {
            assert_eq!(pid, 100);
            found.map(|(start_ticks, zombie)| ProcessStat {
                start_ticks,
                session_leader: 1,
                zombie,
            })
        })
    }

    #[test]
    fn a_process_is_its_pid_and_its_start() {
        assert_eq!(ask(|_| (), Some((5, false))), Liveness::Alive);
        assert_eq!(ask(|_| (), Some((5, true))), Liveness::Dead, "a zombie");
        assert_eq!(ask(|_| (), Some((6, false))), Liveness::Dead, "the pid was used again");
        assert_eq!(ask(|_| (), None), Liveness::Dead);
    }

    #[test]
    fn what_cannot_be_known_is_never_dead() {
        for (change, why) in [
            ((|r| r.boot_id = BootId("boot-b".into())) as fn(&mut Record), Unknowable::OtherHost),
            (|r| r.time_namespace = Some(2), Unknowable::OtherHost),
            (|r| r.time_namespace = None, Unknowable::OtherHost),
            (|r| r.pid_namespace = Some(2), Unknowable::OtherPidNamespace),
            (|r| r.pid_namespace = None, Unknowable::OtherPidNamespace),
            (|r| r.holder_id = "nonsense".into(), Unknowable::NoProcess),
        ] {
            assert_eq!(ask(change, None), Liveness::Unknown(why));
        }
    }
}
