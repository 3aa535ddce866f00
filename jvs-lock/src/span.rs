//! Lengths of time as people say them.

use std::fmt;

/// A length of time in milliseconds, printed in at most two units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub u64);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0;
        let (seconds, minutes, hours, days) =
            (ms / 1_000, ms / 60_000, ms / 3_600_000, ms / 86_400_000);
        match ms {
            0..1_000 => write!(f, "{ms} ms"),
            1_000..10_000 => write!(f, "{seconds}.{} s", ms % 1_000 / 100),
            10_000..60_000 => write!(f, "{seconds} s"),
            60_000..3_600_000 => write!(f, "{minutes} min {} s", seconds % 60),
            3_600_000..86_400_000 => write!(f, "{hours} h {} min", minutes % 60),
            _ => write!(f, "{days} d {} h", hours % 24),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_at_most_two_units() {
        for (ms, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_500, "1.5 s"),
            (59_999, "59 s"),
            (61_000, "1 min 1 s"),
            (3_660_000, "1 h 1 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(Span(ms).to_string(), text);
        }
    }
}
