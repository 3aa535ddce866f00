//! How long a lock is kept or lasts when nobody says: a table by where it is
//! held and what for.

use crate::duration::Period;
use crate::metadata::{Environment, Purpose};

/// One duration for each environment and purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TtlTable([[Period; 3]; 4]);

impl TtlTable {
    /// The duration for a lock held there, for that.
    pub fn get(&self, environment: Environment, purpose: Purpose) -> Period {
        self.0[environment as usize][purpose as usize]
    }

    /// The place of that duration in the table.
    pub fn slot(&mut self, environment: Environment, purpose: Purpose) -> &mut Period {
        &mut self.0[environment as usize][purpose as usize]
    }
}

impl Default for TtlTable {
    fn default() -> Self {
        // An emergency is short wherever it happens: spec/decisions/emergency-ttl.md.
        let emergency = Period::minutes(5);
        TtlTable([
            [Period::hours(1), Period::minutes(30), emergency],
            [Period::hours(1), Period::hours(24), emergency],
            [Period::hours(2), Period::hours(4), emergency],
            [Period::minutes(30), Period::hours(1), emergency],
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
