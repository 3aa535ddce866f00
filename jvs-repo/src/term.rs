//! A term: which epoch of a worktree's register, and which token in it. Every grant of
//! a lock has one to itself, and every operation is bound to the one it began under.
//!
//! Terms are ordered by the counter of their epoch and then by their token. Of two
//! lives with the same counter neither came before the other: `<` and `>` are both
//! false, so a process that asks "is it over?" is told no, and leaves it alone.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::id::{Epoch, FencingToken, NotAnId, strict_decimal};

/// Epoch and token. Printed as `<epoch>.<token>`, as the names on disk have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Hash, Serialize, Deserialize)]
pub struct Term {
    /// Life of the register.
    pub epoch: Epoch,
    /// The token in it.
    pub token: FencingToken,
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.token)
    }
}

impl FromStr for Term {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let parse = || {
            let (epoch, token) = text.split_once('.')?;
            Some(Term { epoch: epoch.parse().ok()?, token: FencingToken(strict_decimal(token)?) })
        };
        parse().ok_or(NotAnId::expected("a term such as 1-a3f0.7"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(text: &str) -> Term {
        text.parse().expect("a term")
    }

    #[test]
    fn a_term_has_one_spelling() {
        assert_eq!(term("1-a3f0.7").to_string(), "1-a3f0.7");
        for bad in ["", "1-a3f0", "1-a3f0.", "1-a3f0.07", "1-a3f0.7.1", "1.7", ".7"] {
            assert!(bad.parse::<Term>().is_err(), "{bad}");
        }
    }

    #[test]
    fn terms_are_ordered_by_the_counter_and_then_by_the_token() {
        assert!(term("1-0000.7") < term("1-0000.8"));
        assert!(term("1-ffff.8") < term("2-0000.7"), "the life decides");
        assert!(term("10-0000.1") > term("9-0000.1"), "as numbers");
        assert!(term("1-a3f0.7") <= term("1-a3f0.7"));
    }

    #[test]
    fn terms_of_two_lives_with_one_counter_are_in_no_order() {
        for (one, other) in [("1-0001.7", "1-0002.7"), ("1-0001.7", "1-0002.9")] {
            for (one, other) in [(term(one), term(other)), (term(other), term(one))] {
                assert_eq!(one.partial_cmp(&other), None);
                assert_eq!(one.epoch.partial_cmp(&other.epoch), None);
                assert_ne!(one, other);
            }
        }
    }
}
