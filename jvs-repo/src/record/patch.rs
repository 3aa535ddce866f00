//! `staging/patch.…/journal`: what a restore in place does, path by path, for the
//! process that has to finish it.
//!
//! Invariants: on disk, whole, before the restore is committed, and never edited; its
//! bytes are the canonical ones of what they say, with a checksum over them.

use serde::{Deserialize, Serialize};

use super::seal::{Sealable, Sealed};
use super::version;
use crate::json::Limits;

/// What the file may have at most: a step for each of a few million paths.
pub const LIMITS: Limits = Limits { size: 1 << 30, depth: 8, string: 1 << 20 };

/// What the file says. Paths are in hexadecimal, because they may have any bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    #[serde(with = "version")]
    version: u64,
    /// The paths that are replaced, put or removed: none of them below another.
    pub steps: Vec<PatchStep>,
    /// Directories that get the attributes that they have in the snapshot, afterwards.
    pub directories: Vec<String>,
}

/// One path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchStep {
    /// Where in the worktree.
    pub path: String,
    /// The inode of what is to be there; none if nothing is.
    pub inode: Option<u64>,
    /// Was something there when the restore was planned?
    pub replaces: bool,
}

impl Sealable for Patch {
    const LIMITS: Limits = LIMITS;
}

impl Patch {
    /// A journal of these steps.
    pub fn new(steps: Vec<PatchStep>, directories: Vec<String>) -> Self {
        Patch { version: version::ONE, steps, directories }
    }

    /// Its bytes on disk.
    pub fn to_bytes(&self) -> Vec<u8> {
        Sealed::of(self.clone()).into_bytes()
    }

    /// Reads it. The error says what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let (patch, _) = Sealed::<Patch>::parse(bytes)?.into_parts();
        Ok(patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_says_what_it_said_when_it_was_written_and_nothing_else_is_one() {
        let step = |path: &str, inode, replaces| PatchStep { path: path.into(), inode, replaces };
        let steps = vec![
            step("612f62", Some(u64::MAX), true),
            step("63", Some(7), false),
            step("642fff0a", None, true),
        ];
        let patch = Patch::new(steps, vec![String::new(), "61".into()]);
        let bytes = patch.to_bytes();
        assert_eq!(
            String::from_utf8_lossy(&bytes),
            include_str!("golden/patch.json"),
            "the bytes on disk"
        );
        assert_eq!(Patch::parse(&bytes), Ok(patch));
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert!(Patch::parse(&other).is_err(), "byte {at}");
        }
    }
}
