//! The messages between a keeper and its starter: one word and its value per line, over
//! the keeper's standard streams.

use std::fmt;
use std::os::fd::AsFd;
use std::str::FromStr;

use jvs_repo::clock::BootMs;
use jvs_repo::code::Code;
use jvs_repo::id::strict_decimal;
use rustix::io::Errno;

use crate::fail::on_one_line;
use crate::tree::ProcessTree;

/// From a keeper to its starter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeeperMessage {
    /// It keeps the lease, which lasts until then.
    Ready(BootMs),
    /// It renewed the lease.
    Renewed(BootMs),
    /// The lease is gone; why.
    Lost(String),
    /// It released the lock, or another keeper took over.
    Released,
    /// Other commands of the session need the lock, and it keeps it for them.
    GoesOn,
    /// It could not release the lock; why.
    Failed(String),
    /// It could not begin to keep the lease; the error's code and text.
    NotBegun(Code, String),
}

impl fmt::Display for KeeperMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeeperMessage::Ready(until) => write!(f, "ready {}", until.0),
            KeeperMessage::Renewed(until) => write!(f, "renewed {}", until.0),
            KeeperMessage::Lost(why) => write!(f, "lost {}", on_one_line(why)),
            KeeperMessage::Released => write!(f, "released -"),
            KeeperMessage::GoesOn => write!(f, "goes-on -"),
            KeeperMessage::Failed(why) => write!(f, "failed {}", on_one_line(why)),
            KeeperMessage::NotBegun(code, why) => {
                write!(f, "not-begun {code} {}", on_one_line(why))
            }
        }
    }
}

impl FromStr for KeeperMessage {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let (word, value) = line.split_once(' ').ok_or(())?;
        let until = || strict_decimal(value).map(BootMs).ok_or(());
        Ok(match word {
            "ready" => KeeperMessage::Ready(until()?),
            "renewed" => KeeperMessage::Renewed(until()?),
            "lost" => KeeperMessage::Lost(value.to_owned()),
            "released" if value == "-" => KeeperMessage::Released,
            "goes-on" if value == "-" => KeeperMessage::GoesOn,
            "failed" => KeeperMessage::Failed(value.to_owned()),
            "not-begun" => {
                let (name, why) = value.split_once(' ').ok_or(())?;
                let code = Code::ALL.iter().find(|code| code.as_str() == name).ok_or(())?;
                KeeperMessage::NotBegun(*code, why.to_owned())
            }
            _ => return Err(()),
        })
    }
}

/// From a starter to its keeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StarterMessage {
    /// What the lease protects.
    Tree(ProcessTree),
    /// The user has been told that the lease is lost.
    Told,
    /// Release the lock and end.
    Release,
    /// End and leave the lock as it is.
    StandDown,
}

impl fmt::Display for StarterMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StarterMessage::Tree(tree) => write!(f, "tree {tree}"),
            StarterMessage::Told => write!(f, "told"),
            StarterMessage::Release => write!(f, "release"),
            StarterMessage::StandDown => write!(f, "stand-down"),
        }
    }
}

impl FromStr for StarterMessage {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        Ok(match line.split_once(' ') {
            Some(("tree", tree)) => StarterMessage::Tree(tree.parse()?),
            None if line == "told" => StarterMessage::Told,
            None if line == "release" => StarterMessage::Release,
            None if line == "stand-down" => StarterMessage::StandDown,
            _ => return Err(()),
        })
    }
}

/// Complete lines from a pipe, as they arrive.
#[derive(Debug, Default)]
pub(crate) struct MessageLines {
    rest: Vec<u8>,
    /// What comes is the rest of a line that was too long.
    too_long: bool,
}

/// The longest line that anybody listens to: a tree names few processes, and a notifier
/// cuts what it says.
const LINE_MAX: usize = 64 * 1024;

/// How often in turn a pipe is read that never runs dry: as much as the largest one holds.
const READS_MAX: usize = 256;

impl MessageLines {
    /// Reads once. Returns the complete lines, and whether the other end is gone.
    pub(crate) fn read(&mut self, from: impl AsFd) -> (Vec<String>, bool) {
        let gone = self.fill(from) == Filled::Gone;
        (self.whole(), gone)
    }

    /// The same for a non-blocking pipe: reads everything that is there, as long as that
    /// comes to an end.
    pub(crate) fn drain(&mut self, from: impl AsFd) -> (Vec<String>, bool) {
        for _ in 0..READS_MAX {
            match self.fill(from.as_fd()) {
                Filled::More => {}
                Filled::Nothing => break,
                Filled::Gone => return (self.whole(), true),
            }
        }
        (self.whole(), false)
    }

    fn fill(&mut self, from: impl AsFd) -> Filled {
        let mut buffer = [0; 4096];
        match rustix::io::read(from, &mut buffer) {
            Ok(0) => Filled::Gone,
            Ok(count) => {
                self.take(&buffer[..count]);
                Filled::More
            }
            Err(Errno::INTR) => Filled::More,
            Err(Errno::AGAIN) => Filled::Nothing,
            Err(_) => Filled::Gone,
        }
    }

    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        if self.too_long {
            let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return };
            (bytes, self.too_long) = (&bytes[end + 1..], false);
        }
        self.rest.extend_from_slice(bytes);
        // Whoever says so much without an end does not speak to us.
        let begun = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if self.rest.len() - begun > LINE_MAX {
            self.rest.truncate(begun);
            self.too_long = true;
        }
    }

    pub(crate) fn whole(&mut self) -> Vec<String> {
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            return Vec::new();
        };
        let whole: Vec<u8> = self.rest.drain(..=end).collect();
        String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect()
    }
}

/// What a read from a pipe found.
#[derive(Debug, PartialEq, Eq)]
enum Filled {
    More,
    Nothing,
    Gone,
}

/// Writes one line; a missing reader is fine.
pub(crate) fn say(to: impl AsFd, word: &impl fmt::Display) {
    let line = format!("{word}\n");
    let _ = rustix::io::write(to, line.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood_and_nothing_else_is() {
        for said in [
            KeeperMessage::Ready(BootMs(7)),
            KeeperMessage::Renewed(BootMs(u64::MAX)),
            KeeperMessage::Lost("a b".into()),
            KeeperMessage::Released,
            KeeperMessage::GoesOn,
            KeeperMessage::Failed(String::new()),
            KeeperMessage::NotBegun(Code::FencingMismatch, "token 68, now 69".into()),
        ] {
            assert_eq!(said.to_string().parse(), Ok(said));
        }
        assert_eq!(KeeperMessage::Lost("a\nready 9".into()).to_string().lines().count(), 1);
        let tree: ProcessTree = "7:9 8:9 00ff00ff00ff00ff reap -".parse().expect("a tree");
        for tell in [
            StarterMessage::Tree(tree),
            StarterMessage::Told,
            StarterMessage::Release,
            StarterMessage::StandDown,
        ] {
            assert_eq!(tell.to_string().parse(), Ok(tell));
        }
        for nonsense in
            ["", "ready", "ready x", "tree", "tree x", "release now", "released x", "goes-on"]
        {
            assert!(
                nonsense.parse::<KeeperMessage>().is_err()
                    && nonsense.parse::<StarterMessage>().is_err()
            );
        }
    }

    #[test]
    fn a_line_without_an_end_is_not_kept_and_those_after_it_are_heard() {
        let mut lines = MessageLines::default();
        lines.take(b"one\n");
        for _ in 0..1_000 {
            lines.take(&[b'x'; 4_000]);
            assert!(lines.rest.len() <= LINE_MAX + "one\n".len(), "{}", lines.rest.len());
        }
        assert_eq!(lines.whole(), ["one"]);
        lines.take(b"x\ntold\nrel");
        lines.take(b"ease\n");
        assert_eq!(lines.whole(), ["told", "release"]);
    }

    #[test]
    fn lines_come_whole_however_they_were_written() {
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        let mut lines = MessageLines::default();
        rustix::io::write(&write, b"one\ntw").expect("written");
        assert_eq!(lines.read(&read), (vec!["one".to_owned()], false));
        rustix::io::write(&write, b"o\n").expect("written");
        assert_eq!(lines.read(&read), (vec!["two".to_owned()], false));
        drop(write);
        assert_eq!(lines.read(&read), (vec![], true));
    }
}
