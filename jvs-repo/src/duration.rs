//! Durations as people write them: `500ms`, `30s`, `10m`, `1h30m`, `7d`.

use std::fmt;
use std::str::FromStr;

use crate::id::{strict_decimal, text_serde};

/// A length of time, in milliseconds, bounded by [`Period::MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period(u64);

/// Largest first: the only order in which they may be written.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl Period {
    /// The longest that makes sense to anyone: ten years.
    pub const MAX: Period = Period::days(3650);

    /// So many milliseconds. More than [`Period::MAX`] is [`Period::MAX`].
    pub const fn from_ms(ms: u64) -> Self {
        if ms > Period::MAX.0 { Period::MAX } else { Period(ms) }
    }

    /// So many seconds.
    pub const fn seconds(seconds: u32) -> Self {
        Period(seconds as u64 * 1_000)
    }

    /// So many minutes.
    pub const fn minutes(minutes: u32) -> Self {
        Period(minutes as u64 * 60_000)
    }

    /// So many hours.
    pub const fn hours(hours: u16) -> Self {
        Period(hours as u64 * 3_600_000)
    }

    /// So many days.
    pub const fn days(days: u16) -> Self {
        Period(days as u64 * 86_400_000)
    }

    /// In milliseconds.
    pub const fn as_ms(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        let mut text = String::new();
        let mut rest = self.0;
        for (unit, ms) in UNITS {
            if rest >= ms {
                let _ = write!(text, "{}{unit}", rest / ms);
                rest %= ms;
            }
        }
        f.pad(if text.is_empty() { "0s" } else { &text })
    }
}

/// Text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; write a duration like 500ms, 30s, 10m, 1h30m or 7d")]
pub struct NotAPeriod {
    problem: &'static str,
}

impl FromStr for Period {
    type Err = NotAPeriod;

    /// Whole numbers with units, largest unit first, each at most once, nothing
    /// between them: so a slip of the finger is refused instead of guessed at.
    fn from_str(text: &str) -> Result<Self, NotAPeriod> {
        let refuse = |problem| Err(NotAPeriod { problem });
        if text.is_empty() {
            return refuse("nothing was given");
        }
        let (mut rest, mut total, mut units) = (text, 0u64, UNITS.as_slice());
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let letters = rest[digits..].bytes().take_while(u8::is_ascii_lowercase).count();
            let (number, unit) = (&rest[..digits], &rest[digits..digits + letters]);
            let Some(number) = strict_decimal(number) else {
                return refuse("a whole number without leading zeros is expected before each unit");
            };
            if unit.is_empty() {
                return refuse("the unit is missing");
            }
            let Some(place) = units.iter().position(|(name, _)| *name == unit) else {
                return refuse(if UNITS.iter().any(|(name, _)| *name == unit) {
                    "units go from large to small, each at most once"
                } else {
                    "the units are d, h, m, s and ms"
                });
            };
            total = number
                .checked_mul(units[place].1)
                .and_then(|ms| total.checked_add(ms))
                .filter(|ms| *ms <= Period::MAX.0)
                .ok_or(NotAPeriod { problem: "ten years (3650d) is the most" })?;
            units = &units[place + 1..];
            rest = &rest[digits + letters..];
        }
        Ok(Period(total))
    }
}
text_serde!(Period);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_printed_in_their_shortest_form() {
        for (text, ms, printed) in [
            ("0s", 0, "0s"),
            ("0ms", 0, "0s"),
            ("500ms", 500, "500ms"),
            ("30s", 30_000, "30s"),
            ("10m", 600_000, "10m"),
            ("1h30m", 5_400_000, "1h30m"),
            ("90m", 5_400_000, "1h30m"),
            ("1s500ms", 1_500, "1s500ms"),
            ("24h", 86_400_000, "1d"),
            ("1d2h3m4s5ms", 93_784_005, "1d2h3m4s5ms"),
            ("3650d", 315_360_000_000, "3650d"),
        ] {
            let span: Period = text.parse().expect(text);
            assert_eq!(span.as_ms(), ms, "{text}");
            assert_eq!(span.to_string(), printed);
            assert_eq!(printed.parse(), Ok(span));
        }
    }

    #[test]
    fn what_could_be_misread_is_refused() {
        for text in [
            "",
            " ",
            "5",
            "s",
            "-5s",
            "+5s",
            "05s",
            "1.5h",
            "1 h",
            "1h 30m",
            " 1h",
            "1h ",
            "1H",
            "30m1h",
            "1h1h",
            "1m1m",
            "5sec",
            "5min",
            "1w",
            "∞",
            "5µs",
            "3651d",
            "1e3s",
            "18446744073709551616ms",
            "18446744073709551615d",
            "1h30",
            "\u{661}s",
        ] {
            let error = text.parse::<Period>().expect_err(text);
            assert!(error.to_string().contains("1h30m"), "says how to write one: {error}");
        }
    }
}
