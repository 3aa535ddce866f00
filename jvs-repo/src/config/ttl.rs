//! How long a lock is kept or lasts when nobody says: a table by where it is
//! held and what for.

use crate::duration::Span;
use crate::metadata::{Environment, Purpose};

/// One duration for each environment and purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TtlTable([[Span; 3]; 4]);

impl TtlTable {
    /// The duration for a lock held there, for that.
    pub fn get(&self, environment: Environment, purpose: Purpose) -> Span {
        self.0[environment as usize][purpose as usize]
    }

    /// The place of that duration in the table.
    pub fn slot(&mut self, environment: Environment, purpose: Purpose) -> &mut Span {
        &mut self.0[environment as usize][purpose as usize]
    }
}

impl Default for TtlTable {
    fn default() -> Self {
        // An emergency is short wherever it happens: spec/decisions/emergency-ttl.md.
        let emergency = Span::minutes(5);
        TtlTable([
            [Span::hours(1), Span::minutes(30), emergency],
            [Span::hours(1), Span::hours(24), emergency],
            [Span::hours(2), Span::hours(4), emergency],
            [Span::minutes(30), Span::hours(1), emergency],
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_are_where_their_names_say() {
        use Environment::*;
        use Purpose::*;
        let table = TtlTable::default();
        for (environment, purpose, text) in [
            (Local, Interactive, "1h"),
            (Local, Automated, "30m"),
            (Local, Emergency, "5m"),
            (Ci, Interactive, "1h"),
            (Ci, Automated, "1d"),
            (Cloud, Interactive, "2h"),
            (Cloud, Automated, "4h"),
            (Container, Interactive, "30m"),
            (Container, Automated, "1h"),
            (Container, Emergency, "5m"),
        ] {
            assert_eq!(table.get(environment, purpose).to_string(), text);
        }
    }
}
