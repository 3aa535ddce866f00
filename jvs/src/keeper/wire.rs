//! What a keeper and its starter say to each other: one word and its value a
//! line, over the keeper's standard streams.

use std::fmt;
use std::os::fd::AsFd;
use std::str::FromStr;

use jvs_repo::clock::BootMs;
use jvs_repo::code::Code;
use jvs_repo::id::strict_decimal;
use rustix::io::Errno;

use crate::fail::on_one_line;
use crate::tree::Tree;

/// What a keeper says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// It keeps the lease, which is believed in until then.
    Ready(BootMs),
    /// It renewed the lease.
    Renewed(BootMs),
    /// The lease is gone; why.
    Lost(String),
    /// It gave the lock back, or another keeper goes on with it.
    Released,
    /// Others of the session need the lock, and it goes on keeping it for them.
    GoesOn,
    /// It could not give the lock back; why.
    Failed(String),
    /// It could not begin to keep the lease; as which error, and why.
    NotBegun(Code, String),
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Said::Ready(until) => write!(f, "ready {}", until.0),
            Said::Renewed(until) => write!(f, "renewed {}", until.0),
            Said::Lost(why) => write!(f, "lost {}", on_one_line(why)),
            Said::Released => write!(f, "released -"),
            Said::GoesOn => write!(f, "goes-on -"),
            Said::Failed(why) => write!(f, "failed {}", on_one_line(why)),
            Said::NotBegun(code, why) => write!(f, "not-begun {code} {}", on_one_line(why)),
        }
    }
}

impl FromStr for Said {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let (word, value) = line.split_once(' ').ok_or(())?;
        let until = || strict_decimal(value).map(BootMs).ok_or(());
        Ok(match word {
            "ready" => Said::Ready(until()?),
            "renewed" => Said::Renewed(until()?),
            "lost" => Said::Lost(value.to_owned()),
            "released" => Said::Released,
            "goes-on" => Said::GoesOn,
            "failed" => Said::Failed(value.to_owned()),
            "not-begun" => {
                let (name, why) = value.split_once(' ').ok_or(())?;
                let code = Code::ALL.iter().find(|code| code.as_str() == name).ok_or(())?;
                Said::NotBegun(*code, why.to_owned())
            }
            _ => return Err(()),
        })
    }
}

/// What a keeper is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tell {
    /// What the lease protects.
    Tree(Tree),
    /// Whoever sits at the terminal knows that the lease is lost.
    Told,
    /// Give the lock back and end.
    Release,
    /// End and leave the lock as it is.
    StandDown,
}

impl fmt::Display for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tell::Tree(tree) => write!(f, "tree {tree}"),
            Tell::Told => write!(f, "told"),
            Tell::Release => write!(f, "release"),
            Tell::StandDown => write!(f, "stand-down"),
        }
    }
}

impl FromStr for Tell {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        Ok(match line.split_once(' ') {
            Some(("tree", tree)) => Tell::Tree(tree.parse()?),
            None if line == "told" => Tell::Told,
            None if line == "release" => Tell::Release,
            None if line == "stand-down" => Tell::StandDown,
            _ => return Err(()),
        })
    }
}

/// Lines from a pipe, as they come.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Reads what is there, at most once. The lines that are whole by now, and
    /// whether the other end is gone.
    pub(crate) fn read(&mut self, from: impl AsFd) -> (Vec<String>, bool) {
        let gone = self.fill(from) == Filled::Gone;
        (self.whole(), gone)
    }

    /// The same of a pipe that does not make its reader wait: all that is there.
    pub(crate) fn drain(&mut self, from: impl AsFd) -> (Vec<String>, bool) {
        loop {
            match self.fill(from.as_fd()) {
                Filled::More => {}
                Filled::Nothing => return (self.whole(), false),
                Filled::Gone => return (self.whole(), true),
            }
        }
    }

    fn fill(&mut self, from: impl AsFd) -> Filled {
        let mut buffer = [0; 4096];
        match rustix::io::read(from, &mut buffer) {
            Ok(0) => Filled::Gone,
            Ok(count) => {
                self.rest.extend_from_slice(&buffer[..count]);
                Filled::More
            }
            Err(Errno::INTR) => Filled::More,
            Err(Errno::AGAIN) => Filled::Nothing,
            Err(_) => Filled::Gone,
        }
    }

    fn whole(&mut self) -> Vec<String> {
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            return Vec::new();
        };
        let whole: Vec<u8> = self.rest.drain(..=end).collect();
        String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect()
    }
}

/// What came of a look into a pipe.
#[derive(Debug, PartialEq, Eq)]
enum Filled {
    More,
    Nothing,
    Gone,
}

/// Says one line; nobody listening is fine.
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
            Said::Ready(BootMs(7)),
            Said::Renewed(BootMs(u64::MAX)),
            Said::Lost("a b".into()),
            Said::Released,
            Said::GoesOn,
            Said::Failed(String::new()),
            Said::NotBegun(Code::FencingMismatch, "token 68, now 69".into()),
        ] {
            assert_eq!(said.to_string().parse(), Ok(said));
        }
        assert_eq!(Said::Lost("a\nready 9".into()).to_string().lines().count(), 1);
        let tree: Tree = "7:9 8:9 00ff00ff00ff00ff reap -".parse().expect("a tree");
        for tell in [Tell::Tree(tree), Tell::Told, Tell::Release, Tell::StandDown] {
            assert_eq!(tell.to_string().parse(), Ok(tell));
        }
        for nonsense in ["", "ready", "ready x", "tree", "tree x", "release now"] {
            assert!(nonsense.parse::<Said>().is_err() && nonsense.parse::<Tell>().is_err());
        }
    }

    #[test]
    fn lines_come_whole_however_they_were_written() {
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        let mut lines = Lines::default();
        rustix::io::write(&write, b"one\ntw").expect("written");
        assert_eq!(lines.read(&read), (vec!["one".to_owned()], false));
        rustix::io::write(&write, b"o\n").expect("written");
        assert_eq!(lines.read(&read), (vec!["two".to_owned()], false));
        drop(write);
        assert_eq!(lines.read(&read), (vec![], true));
    }
}
