//! One decision of the explorer, short enough to be pasted into a test.

use std::fmt;
use std::str::FromStr;

use rustix::io::Errno;

use super::call::{errno_name, errno_named};

/// How a process's step goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// As it should.
    Plain,
    /// A path is resolved by a cache that is out of date.
    Stale,
    /// Not applied, and answered with this error.
    Fails(Errno),
    /// Applied, but answered with this error.
    AppliedBut(Errno),
    /// Answered with EIO, and applied at some later moment or never.
    Late,
    /// A listing takes two batches, others come in between; at its second one:
    /// what changed meanwhile is shown as it was and as it is.
    Torn,
    /// The process dies before it is applied.
    DiesFirst,
    /// Applied, and then the process dies without hearing of it.
    ThenDies,
    /// The scenario's own choice.
    Picks(usize),
}

/// One decision of the explorer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Choice {
    /// A process makes its next step.
    Step(usize, Way),
    /// A process dies where it stands.
    Crash(usize),
    /// Time passes until the first sleeper wakes.
    Wake,
    /// Time jumps by this one of the scenario's values.
    Jump(usize),
    /// A host's wall clock is set: which of the scenario's settings.
    SetWall(usize),
    /// A rename that was answered with EIO is applied after all.
    Land(usize),
    /// The power goes; this one of the possible images remains.
    PowerCut(usize),
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Step(p, Way::Plain) => write!(f, "{p}"),
            Choice::Step(p, Way::Stale) => write!(f, "{p}~"),
            Choice::Step(p, Way::Fails(errno)) => write!(f, "{p}-{}", errno_name(*errno)),
            Choice::Step(p, Way::AppliedBut(errno)) => write!(f, "{p}+{}", errno_name(*errno)),
            Choice::Step(p, Way::Late) => write!(f, "{p}?"),
            Choice::Step(p, Way::Torn) => write!(f, "{p}%"),
            Choice::Step(p, Way::DiesFirst) => write!(f, "{p}x"),
            Choice::Step(p, Way::ThenDies) => write!(f, "{p}!"),
            Choice::Step(p, Way::Picks(n)) => write!(f, "{p}#{n}"),
            Choice::Crash(p) => write!(f, "x{p}"),
            Choice::Wake => f.write_str("w"),
            Choice::Jump(n) => write!(f, "t{n}"),
            Choice::SetWall(n) => write!(f, "s{n}"),
            Choice::Land(n) => write!(f, "l{n}"),
            Choice::PowerCut(n) => write!(f, "c{n}"),
        }
    }
}

/// Not what a [`Choice`] prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAChoice(String);

impl fmt::Display for NotAChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a choice", self.0)
    }
}

impl std::error::Error for NotAChoice {}

impl FromStr for Choice {
    type Err = NotAChoice;

    fn from_str(text: &str) -> Result<Self, NotAChoice> {
        parse(text).ok_or_else(|| NotAChoice(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Choice> {
    if text == "w" {
        return Some(Choice::Wake);
    }
    let (letter, number) = text.split_at_checked(1)?;
    let numbered = |make: fn(usize) -> Choice| number.parse().ok().map(make);
    match letter {
        "x" => return numbered(Choice::Crash),
        "t" => return numbered(Choice::Jump),
        "s" => return numbered(Choice::SetWall),
        "l" => return numbered(Choice::Land),
        "c" => return numbered(Choice::PowerCut),
        _ => {}
    }
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (process, way) = text.split_at(digits);
    let way = match way.split_at_checked(1) {
        None => Way::Plain,
        Some(("~", "")) => Way::Stale,
        Some(("?", "")) => Way::Late,
        Some(("%", "")) => Way::Torn,
        Some(("x", "")) => Way::DiesFirst,
        Some(("!", "")) => Way::ThenDies,
        Some(("-", name)) => Way::Fails(errno_named(name)?),
        Some(("+", name)) => Way::AppliedBut(errno_named(name)?),
        Some(("#", n)) => Way::Picks(n.parse().ok()?),
        Some(_) => return None,
    };
    Some(Choice::Step(process.parse().ok()?, way))
}

/// A list of choices as one line of text.
pub fn print_choices(choices: &[Choice]) -> String {
    choices.iter().map(Choice::to_string).collect::<Vec<_>>().join(" ")
}

/// Reads what [`print_choices`] wrote.
pub fn parse_choices(text: &str) -> Result<Vec<Choice>, NotAChoice> {
    text.split_whitespace().map(str::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_as_they_are_printed() {
        let text = "0 12 1~ 0-EACCES 1+ENOENT 1+errno99 0? 3% 2x 2! 0#3 x1 w t0 s1 l2 c17";
        assert_eq!(print_choices(&parse_choices(text).expect("all valid")), text);
        for wrong in ["", "p", "0=", "0-", "0-EFUNNY", "x", "t-1", "0#", "0~~", "-1"] {
            assert!(wrong.parse::<Choice>().is_err(), "{wrong:?}");
        }
    }
}
