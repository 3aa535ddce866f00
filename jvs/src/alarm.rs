//! Sleeping until something happens or a moment comes, on the clock that goes
//! on while the machine is asleep: a process that wakes up too late knows it at once.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use jvs_repo::clock::BootMs;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// A timer on the boot-time clock.
pub(crate) struct Alarm {
    timer: OwnedFd,
}

impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Alarm { timer: timerfd_create(TimerfdClockId::Boottime, flags)? })
    }

    /// Waits until one of `fds` can be read or has hung up, or until `at`.
    /// Answers for each whether it is ready.
    pub(crate) fn wait<const N: usize>(
        &self,
        fds: [Option<BorrowedFd<'_>>; N],
        at: Option<BootMs>,
    ) -> io::Result<[bool; N]> {
        self.wait_or_write(fds, None, at).map(|(ready, _)| ready)
    }

    /// The same, or until there is room to write to `to`.
    pub(crate) fn wait_or_write<const N: usize>(
        &self,
        fds: [Option<BorrowedFd<'_>>; N],
        to: Option<BorrowedFd<'_>>,
        at: Option<BootMs>,
    ) -> io::Result<([bool; N], bool)> {
        let (ready, room) = self.wait_for(&fds, to, at)?;
        let mut answers = ready.into_iter();
        Ok((fds.map(|_| answers.next().unwrap_or(false)), room))
    }

    /// The same for as many as there are.
    pub(crate) fn wait_for(
        &self,
        fds: &[Option<BorrowedFd<'_>>],
        to: Option<BorrowedFd<'_>>,
        at: Option<BootMs>,
    ) -> io::Result<(Vec<bool>, bool)> {
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        // A time of zero would disarm it.
        let at = at.map(|at| at.0.max(1)).unwrap_or(0);
        let value = Timespec {
            tv_sec: i64::try_from(at / 1_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(at % 1_000).unwrap_or(0) * 1_000_000,
        };
        let spec = Itimerspec { it_interval: zero, it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &spec)?;
        let mut polled = vec![PollFd::new(&self.timer, PollFlags::IN)];
        polled.extend(fds.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)));
        polled.extend(to.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)));
        match rustix::event::poll(&mut polled, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut answers = polled[1..].iter().map(|fd| !fd.revents().is_empty());
        let ready = fds.iter().map(|fd| fd.is_some() && answers.next().unwrap_or(false));
        Ok((ready.collect(), to.is_some() && answers.next().unwrap_or(false)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jvs_repo::clock::{Clock, SystemClock};
    use std::os::fd::AsFd;

    #[test]
    fn it_wakes_for_the_moment_and_for_what_can_be_read() {
        let alarm = Alarm::new().expect("a timer");
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        let soon = SystemClock.now().boot.plus(10);
        assert_eq!(alarm.wait([Some(read.as_fd()), None], Some(soon)).expect("woke"), [false; 2]);
        assert!(SystemClock.now().boot >= soon);
        rustix::io::write(&write, b"x").expect("written");
        let never = SystemClock.now().boot.plus(3_600_000);
        let woke = alarm.wait([None, Some(read.as_fd())], Some(never)).expect("woke");
        assert_eq!(woke, [false, true]);
    }
}
