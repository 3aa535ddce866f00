//! The hold's name: `<epoch>.<token>.<n>.<open|ending|released|lost>`.

use std::fmt;
use std::str::FromStr;

use jvs_repo::id::{Epoch, FencingToken, NotAnId, Seq, strict_decimal};
use jvs_repo::term::Term;

/// What has become of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HoldState {
    /// A process that puts a stake in it may have it confirmed.
    Open,
    /// Its last stake is gone: it is being released, and never resumed.
    Ending,
    /// Given back, and the register confirmed that.
    Released,
    /// Over without a word of the session: the register showed another term, or the
    /// time that it was asked for is over.
    Lost,
}

impl HoldState {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            HoldState::Open => "open",
            HoldState::Ending => "ending",
            HoldState::Released => "released",
            HoldState::Lost => "lost",
        }
    }
}

/// The whole name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HoldName {
    /// Which hold.
    pub term: Term,
    /// Raised by every rename, so that no name ever comes back.
    pub n: u64,
    /// What has become of it.
    pub state: HoldState,
}

impl HoldName {
    /// Of a session that never held: nothing is remembered.
    pub const NEVER: HoldName = HoldName {
        term: Term { epoch: Epoch { counter: 0, salt: 0 }, token: FencingToken(0) },
        n: 0,
        state: HoldState::Released,
    };

    /// Of a session whose hold's name is gone: whatever it was, it counts as taken.
    pub const UNKNOWN: HoldName = HoldName { n: 1, state: HoldState::Lost, ..Self::NEVER };

    /// The next name, of the same hold in `state`.
    #[must_use]
    pub const fn then(self, state: HoldState) -> Self {
        HoldName { term: self.term, n: self.n + 1, state }
    }

    /// The next name, of a new hold that is open.
    #[must_use]
    pub const fn opened(self, term: Term) -> Self {
        HoldName { term, n: self.n + 1, state: HoldState::Open }
    }

    /// Is this hold open?
    pub fn is_open(&self) -> bool {
        self.state == HoldState::Open
    }
}

impl fmt::Display for HoldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HoldName { term, n, state } = self;
        write!(f, "{term}.{n}.{}", state.as_str())
    }
}

impl FromStr for HoldName {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let parse = || {
            let mut parts = text.split('.');
            let epoch = parts.next()?.parse().ok()?;
            let token = FencingToken(strict_decimal(parts.next()?)?);
            // It is counted on from, so it ends where every counter does.
            let n = Seq::parse_strict(parts.next()?)?.0;
            let word = parts.next()?;
            let states = [HoldState::Open, HoldState::Ending, HoldState::Released, HoldState::Lost];
            let state = states.into_iter().find(|state| state.as_str() == word)?;
            parts.next().is_none().then_some(HoldName { term: Term { epoch, token }, n, state })
        };
        parse().ok_or(NotAnId::expected("a hold such as 1-a3f0.7.3.open"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_s_name_has_one_spelling() {
        let name: HoldName = "1-a3f0.7.3.ending".parse().expect("a name");
        assert_eq!(name.to_string(), "1-a3f0.7.3.ending");
        assert_eq!(name.then(HoldState::Released).to_string(), "1-a3f0.7.4.released");
        let opened = name.opened(name.term);
        assert_eq!(opened.to_string(), "1-a3f0.7.4.open");
        assert!(opened.is_open() && !name.is_open() && !HoldName::NEVER.is_open());
        for bad in ["", "1-a3f0.7.3", "1-a3f0.07.3.open", "1-a3f0.7.3.gone", "1-a3f0.7.3.open.x"] {
            assert!(bad.parse::<HoldName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_that_was_made_up_to_be_the_last_is_none() {
        let last: HoldName = format!("1-a3f0.7.{}.open", Seq::END).parse().expect("a name");
        assert!(last.then(HoldState::Lost).n > last.n);
        for beyond in [Seq::END.0 + 1, u64::MAX] {
            assert!(format!("1-a3f0.7.{beyond}.open").parse::<HoldName>().is_err(), "{beyond}");
        }
    }
}
