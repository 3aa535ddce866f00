//! The keeper's side of the pipe to its starter, which may be stopped and not read for
//! hours. A process that must renew a lease and end a command in time cannot wait for a
//! reader: what does not fit into the pipe is queued, and only the last of the renewals.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::wire::KeeperMessage;

/// A line up to this long is written whole or not at all.
const LINE_MAX: usize = 4_000;

pub(crate) struct Notifier<T> {
    to: T,
    unsent: VecDeque<KeeperMessage>,
}

impl<T: AsFd> Notifier<T> {
    /// Sends to `to`, and from now on never waits for its reader.
    pub(crate) fn new(to: T) -> Self {
        let flags = rustix::fs::fcntl_getfl(&to).unwrap_or(OFlags::empty());
        // If this fails, a message that does not fit waits for the reader.
        let _ = rustix::fs::fcntl_setfl(&to, flags | OFlags::NONBLOCK);
        Notifier { to, unsent: VecDeque::new() }
    }

    /// Sends it now, or when there is room.
    pub(crate) fn send(&mut self, message: KeeperMessage) {
        if matches!(message, KeeperMessage::Renewed(_)) {
            // Only the last renewal says how long the lease lasts.
            self.unsent.retain(|word| !matches!(word, KeeperMessage::Renewed(_)));
        }
        self.unsent.push_back(message);
        self.flush();
    }

    /// Sends what is queued, as far as there is room.
    pub(crate) fn flush(&mut self) {
        while let Some(word) = self.unsent.front() {
            let mut line = word.to_string();
            while line.len() > LINE_MAX {
                line.pop();
            }
            line.push('\n');
            match rustix::io::write(&self.to, line.as_bytes()) {
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                // Sent, or there is no reader and never will be.
                Ok(_) | Err(_) => drop(self.unsent.pop_front()),
            }
        }
    }

    /// The descriptor that must have room before more is sent; `None` if nothing is queued.
    pub(crate) fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        (!self.unsent.is_empty()).then(|| self.to.as_fd())
    }

    /// Gives a slow reader this long to read the rest.
    pub(crate) fn finish(&mut self, patience_ms: u32) {
        if let Some(to) = self.waits_for() {
            let nanoseconds = i64::from(patience_ms % 1_000) * 1_000_000;
            let patience =
                Timespec { tv_sec: i64::from(patience_ms / 1_000), tv_nsec: nanoseconds };
            let mut room = [PollFd::from_borrowed_fd(to, PollFlags::OUT)];
            let _ = rustix::event::poll(&mut room, Some(&patience));
            self.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use jvs_repo::clock::BootMs;
    use rustix::pipe::{PipeFlags, pipe_with};

    use super::super::wire::MessageLines;
    use super::*;

    fn heard(read: &impl AsFd, lines: &mut MessageLines) -> Vec<KeeperMessage> {
        lines.drain(read).0.iter().filter_map(|line| line.parse().ok()).collect()
    }

    #[test]
    fn a_reader_that_does_not_read_is_not_waited_for_and_hears_the_last_renewal_later() {
        // The writing end waits, as the one that a keeper is given does.
        let (read, write) = pipe_with(PipeFlags::empty()).expect("a pipe");
        let mut notifier = Notifier::new(&write);
        for until in 0..100_000 {
            notifier.send(KeeperMessage::Renewed(BootMs(until)));
        }
        notifier.send(KeeperMessage::Lost("taken".into()));
        assert!(notifier.waits_for().is_some(), "more than a pipe holds");
        rustix::io::ioctl_fionbio(&read, true).expect("the reader does not wait either");
        let mut lines = MessageLines::default();
        let first = heard(&read, &mut lines);
        assert_eq!(first[0], KeeperMessage::Renewed(BootMs(0)));
        notifier.flush();
        let last = heard(&read, &mut lines);
        assert_eq!(
            last,
            [KeeperMessage::Renewed(BootMs(99_999)), KeeperMessage::Lost("taken".into())]
        );
        assert!(notifier.waits_for().is_none());
    }

    #[test]
    fn nobody_listening_is_fine_and_what_is_too_long_is_cut() {
        let (read, write) = pipe_with(PipeFlags::NONBLOCK).expect("a pipe");
        let mut notifier = Notifier::new(&write);
        notifier.send(KeeperMessage::Failed("ä".repeat(LINE_MAX)));
        notifier.send(KeeperMessage::Released);
        let said = heard(&read, &mut MessageLines::default());
        assert!(
            matches!(&said[..], [KeeperMessage::Failed(why), KeeperMessage::Released] if why.len() <= LINE_MAX)
        );
        drop(read);
        notifier.send(KeeperMessage::Released);
        assert!(notifier.waits_for().is_none());
    }
}
