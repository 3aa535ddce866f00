//! `probe.json`: what the last probe of the mount came to.

use serde::{Deserialize, Serialize};

use super::version;
use crate::json::{self, Limits};

/// What a verdict may have at most: its messages are sentences.
pub const LIMITS: Limits = Limits { size: 64 * 1024, depth: 8, string: 2048 };

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// Shape of this file.
    #[serde(with = "version")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub version: u64,
    /// When it was probed, on the prober's wall clock.
    pub at: String,
    /// From which host.
    pub host: String,
    /// What kind of filesystem it is.
    pub filesystem: String,
    /// Does it keep the promises that locking needs?
    pub safe: bool,
    /// Those that it breaks.
    pub broken: Vec<Broken>,
    /// What was seen through a second mount, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_mount: Option<SecondMount>,
}

/// A promise that the filesystem breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Broken {
    /// The word of a [`crate::probe::Subject`]; a later version may know more of them.
    pub subject: String,
    /// What was seen.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

/// How late a second mount shows what was done through the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecondMount {
    /// How many renames were tried.
    pub renames: u64,
    /// How many were not seen at once.
    pub stale_listings: u64,
    /// How late replaced content was seen.
    pub content_ms: u64,
    /// It was not seen at all.
    pub content_lost: bool,
}

impl Verdict {
    /// Its bytes on disk.
    pub fn to_bytes(&self) -> Vec<u8> {
        json::canonical(self)
    }

    /// Reads a verdict. The error says what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        json::parse_within(bytes, LIMITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN: [&str; 2] =
        [include_str!("golden/probe.json"), include_str!("golden/probe_plain.json")];

    #[test]
    fn the_bytes_of_a_verdict_are_these() {
        for golden in GOLDEN {
            let verdict = Verdict::parse(golden.as_bytes()).expect("a verdict");
            assert_eq!(String::from_utf8_lossy(&verdict.to_bytes()), golden);
        }
    }

    #[test]
    fn torn_oversized_and_hostile_verdicts_are_refused() {
        let end = GOLDEN[0].rfind('}').expect("an object");
        for length in 0..=end {
            assert!(Verdict::parse(&GOLDEN[0].as_bytes()[..length]).is_err(), "{length} bytes");
        }
        let long = format!("\"host\": \"{}\"", "x".repeat(LIMITS.string + 1));
        for (from, to) in [
            ("\"version\": 1", "\"version\": 2"),
            ("\"renames\": 3", "\"renames\": -3"),
            ("\"safe\": false", "\"safe\": 0"),
            ("\"host\": \"host-a\"", long.as_str()),
        ] {
            let text = GOLDEN[0].replace(from, to);
            assert_ne!(text, GOLDEN[0], "{from}");
            assert!(Verdict::parse(text.as_bytes()).is_err(), "{to}");
        }
    }
}
