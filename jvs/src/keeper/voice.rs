//! The keeper's side of the wire to its starter, who may be stopped and not read
//! for hours. Whoever renews a lease and ends a command in time must not wait for a
//! reader: what does not fit into the pipe is kept, and of renewals only the last.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::wire::Said;

/// A line that is no longer than this is written whole or not at all.
const LINE_MAX: usize = 4_000;

pub(crate) struct Voice<T> {
    to: T,
    unsaid: VecDeque<Said>,
}

impl<T: AsFd> Voice<T> {
    /// Speaks to `to`, and from now on never waits for whoever reads there.
    pub(crate) fn new(to: T) -> Self {
        let flags = rustix::fs::fcntl_getfl(&to).unwrap_or(OFlags::empty());
        // Without it the first word that does not fit would wait, as it always did.
        let _ = rustix::fs::fcntl_setfl(&to, flags | OFlags::NONBLOCK);
        Voice { to, unsaid: VecDeque::new() }
    }

    /// Says it now, or when there is room for it.
    pub(crate) fn say(&mut self, said: Said) {
        if matches!(said, Said::Renewed(_)) {
            // Only the last renewal says until when the lease is believed in.
            self.unsaid.retain(|word| !matches!(word, Said::Renewed(_)));
        }
        self.unsaid.push_back(said);
        self.go_on();
    }

    /// Says what could not be said before, as far as there is room.
    pub(crate) fn go_on(&mut self) {
        while let Some(word) = self.unsaid.front() {
            let mut line = word.to_string();
            while line.len() > LINE_MAX {
                line.pop();
            }
            line.push('\n');
            match rustix::io::write(&self.to, line.as_bytes()) {
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                // Said; or nobody is there to hear it, nor will be.
                Ok(_) | Err(_) => drop(self.unsaid.pop_front()),
            }
        }
    }

    /// Where there must be room before more can be said; `None` if all is said.
    pub(crate) fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        (!self.unsaid.is_empty()).then(|| self.to.as_fd())
    }

    /// Gives a reader who is slow this long to hear the rest.
    pub(crate) fn finish(&mut self, patience_ms: u32) {
        if let Some(to) = self.waits_for() {
            let nanoseconds = i64::from(patience_ms % 1_000) * 1_000_000;
            let patience =
                Timespec { tv_sec: i64::from(patience_ms / 1_000), tv_nsec: nanoseconds };
            let mut room = [PollFd::from_borrowed_fd(to, PollFlags::OUT)];
            let _ = rustix::event::poll(&mut room, Some(&patience));
            self.go_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use jvs_repo::clock::BootMs;
    use rustix::pipe::{PipeFlags, pipe_with};

    use super::super::wire::Lines;
    use super::*;

    fn heard(read: &impl AsFd, lines: &mut Lines) -> Vec<Said> {
        lines.drain(read).0.iter().filter_map(|line| line.parse().ok()).collect()
    }

    #[test]
    fn a_reader_that_does_not_read_is_not_waited_for_and_hears_the_last_renewal_later() {
        // The writing end waits, as the one that a keeper is given does.
        let (read, write) = pipe_with(PipeFlags::empty()).expect("a pipe");
        let mut voice = Voice::new(&write);
        for until in 0..100_000 {
            voice.say(Said::Renewed(BootMs(until)));
        }
        voice.say(Said::Lost("taken".into()));
        assert!(voice.waits_for().is_some(), "more than a pipe holds");
        rustix::io::ioctl_fionbio(&read, true).expect("the reader does not wait either");
        let mut lines = Lines::default();
        let first = heard(&read, &mut lines);
        assert_eq!(first[0], Said::Renewed(BootMs(0)));
        voice.go_on();
        let last = heard(&read, &mut lines);
        assert_eq!(last, [Said::Renewed(BootMs(99_999)), Said::Lost("taken".into())]);
        assert!(voice.waits_for().is_none());
    }

    #[test]
    fn nobody_listening_is_fine_and_what_is_too_long_is_cut() {
        let (read, write) = pipe_with(PipeFlags::NONBLOCK).expect("a pipe");
        let mut voice = Voice::new(&write);
        voice.say(Said::Failed("ä".repeat(LINE_MAX)));
        voice.say(Said::Released);
        let said = heard(&read, &mut Lines::default());
        assert!(matches!(&said[..], [Said::Failed(why), Said::Released] if why.len() <= LINE_MAX));
        drop(read);
        voice.say(Said::Released);
        assert!(voice.waits_for().is_none());
    }
}
