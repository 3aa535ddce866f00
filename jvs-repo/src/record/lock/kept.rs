//! Until when a lock is kept, as the record has it. For display alone: nothing is
//! decided by it.

use serde::{Deserialize, Serialize};

use crate::clock::WallMs;

/// What a lock ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum With {
    /// The command that was started under it.
    Command,
    /// The terminal that it was taken at.
    Terminal,
    /// A process that was named.
    Process {
        /// Its process id.
        pid: u32,
    },
}

/// Until when a lock is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kept {
    /// At the latest, on the holder's wall clock; `None` if no time bounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// What it ends with before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<With>,
    /// It ends as well once the session has given no sign of life for this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
}

/// Two tellings of one moment may differ by what it takes to read two clocks.
const SAME_MOMENT_MS: u64 = 2_000;

impl Kept {
    /// For as long as a command runs.
    pub const fn by_command() -> Self {
        Kept { until: None, with: Some(With::Command), idle_ms: None }
    }

    /// When it ends at the latest, on the holder's wall clock.
    pub fn ends(&self) -> Option<WallMs> {
        self.until.as_deref().and_then(WallMs::parse_rfc3339)
    }

    /// The same, in the words in which it was told before if it is the same moment.
    pub fn unless_as_told(self, told: Option<&Kept>) -> Self {
        let apart = match (self.ends(), told.and_then(Kept::ends)) {
            (Some(a), Some(b)) => a.since(b).max(b.since(a)),
            _ => return self,
        };
        let until = told.filter(|_| apart < SAME_MOMENT_MS).and_then(|told| told.until.clone());
        Kept { until: until.or(self.until), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_moment_is_told_in_the_same_words() {
        let at = |ms| Kept { until: Some(WallMs(ms).rfc3339()), ..Kept::default() };
        assert_eq!(at(10_003).unless_as_told(Some(&at(10_000))), at(10_000));
        assert_eq!(at(90_000).unless_as_told(Some(&at(10_000))), at(90_000));
        assert_eq!(at(90_000).unless_as_told(None), at(90_000));
    }
}
