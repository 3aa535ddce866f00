//! What the name of a directory in `staging/` says: whose work it is, so that
//! anybody can tell work from garbage without opening it.
//!
//! Invariants: a name is parsed and printed by this module only; every name has
//! one spelling; the worktree comes last, because it alone may contain dots.

use std::fmt;
use std::str::FromStr;

use crate::id::{FencingToken, Generation, NotAnId, OpNonce, SnapshotId, strict_decimal};
use crate::name::WorktreeName;
use crate::store::RepoPath;
use crate::term::Term;

/// What a snapshot is bound to from its first byte on: it can only ever be
/// committed on top of this very parent, under this very token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotBound {
    /// Whose head it is to become.
    pub worktree: WorktreeName,
    /// The term it was begun under.
    pub term: Term,
    /// The head when it was begun.
    pub parent: Option<SnapshotId>,
    /// How many commits there were then.
    pub generation: Generation,
    /// Never used before, never used again: not even for the same files on top
    /// of another parent.
    pub id: SnapshotId,
}

/// A directory in `staging/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StagingName {
    /// A snapshot being built.
    Snapshot(SnapshotBound),
    /// A tree being restored.
    Restore {
        /// Into which worktree.
        worktree: WorktreeName,
        /// The term it was begun under.
        term: Term,
        /// Which snapshot.
        source: SnapshotId,
        /// Tells two of them apart.
        op: OpNonce,
    },
    /// A tree that was, is or is about to be swapped with a worktree's files: it
    /// may hold either, so its name says which snapshots have them too.
    Swap {
        /// Of which worktree.
        worktree: WorktreeName,
        /// The term it was begun under.
        term: Term,
        /// The snapshot that is restored.
        source: SnapshotId,
        /// The snapshot of the files that are replaced, if there is one.
        kept: Option<SnapshotId>,
        /// Tells two of them apart.
        op: OpNonce,
    },
    /// A restore in place that is committed and not known to be finished: some of what is
    /// in it has taken its place in the worktree, and what was there is here instead.
    Patch {
        /// Of which worktree.
        worktree: WorktreeName,
        /// The term it was begun under.
        term: Term,
        /// The snapshot that is restored.
        source: SnapshotId,
        /// The snapshot of the files that are replaced, if there is one.
        kept: Option<SnapshotId>,
        /// Tells two of them apart.
        op: OpNonce,
    },
    /// A visible snapshot that is to be collected: whole, and put back if
    /// somebody needs it after all.
    Condemned {
        /// The snapshot's id.
        id: SnapshotId,
        /// Tells two collectors apart.
        op: OpNonce,
    },
    /// What is being deleted: no longer whole, never put back.
    Doomed {
        /// Tells two of them apart.
        op: OpNonce,
    },
}

impl StagingName {
    /// Where it is.
    pub fn path(&self) -> RepoPath {
        super::staged(&self.to_string()).expect("the longest name is shorter than 255 bytes")
    }
}

struct OrNone(Option<SnapshotId>);

impl fmt::Display for OrNone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(id) => id.fmt(f),
            None => f.write_str("none"),
        }
    }
}

impl fmt::Display for StagingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StagingName::Snapshot(SnapshotBound { worktree, term, parent, generation, id }) => {
                let parent = OrNone(*parent);
                write!(f, "snapshot.{term}.{generation}.{parent}.{id}.{worktree}")
            }
            StagingName::Restore { worktree, term, source, op } => {
                write!(f, "restore.{term}.{source}.{op}.{worktree}")
            }
            StagingName::Swap { worktree, term, source, kept, op } => {
                let kept = OrNone(*kept);
                write!(f, "swap.{term}.{source}.{kept}.{op}.{worktree}")
            }
            StagingName::Patch { worktree, term, source, kept, op } => {
                let kept = OrNone(*kept);
                write!(f, "patch.{term}.{source}.{kept}.{op}.{worktree}")
            }
            StagingName::Condemned { id, op } => write!(f, "condemned.{id}.{op}"),
            StagingName::Doomed { op } => write!(f, "doomed.{op}"),
        }
    }
}

impl FromStr for StagingName {
    type Err = NotAnId;

    fn from_str(name: &str) -> Result<Self, NotAnId> {
        parse(name).ok_or(NotAnId::expected("the name of a directory in staging"))
    }
}

fn or_none(id: &str) -> Option<Option<SnapshotId>> {
    if id == "none" { Some(None) } else { id.parse().ok().map(Some) }
}

fn parse(name: &str) -> Option<StagingName> {
    let (kind, rest) = name.split_once('.')?;
    let parts = |count| {
        let parts: Vec<&str> = rest.splitn(count, '.').collect();
        (parts.len() == count).then_some(parts)
    };
    let term = |parts: &[&str]| {
        let token = FencingToken(strict_decimal(parts[1])?);
        Some(Term { epoch: parts[0].parse().ok()?, token })
    };
    Some(match kind {
        "snapshot" => {
            let parts = parts(6)?;
            StagingName::Snapshot(SnapshotBound {
                term: term(&parts)?,
                generation: Generation(strict_decimal(parts[2])?),
                parent: or_none(parts[3])?,
                id: parts[4].parse().ok()?,
                worktree: parts[5].parse().ok()?,
            })
        }
        "restore" => {
            let parts = parts(5)?;
            StagingName::Restore {
                term: term(&parts)?,
                source: parts[2].parse().ok()?,
                op: parts[3].parse().ok()?,
                worktree: parts[4].parse().ok()?,
            }
        }
        "swap" => {
            let parts = parts(6)?;
            StagingName::Swap {
                term: term(&parts)?,
                source: parts[2].parse().ok()?,
                kept: or_none(parts[3])?,
                op: parts[4].parse().ok()?,
                worktree: parts[5].parse().ok()?,
            }
        }
        "patch" => {
            let parts = parts(6)?;
            StagingName::Patch {
                term: term(&parts)?,
                source: parts[2].parse().ok()?,
                kept: or_none(parts[3])?,
                op: parts[4].parse().ok()?,
                worktree: parts[5].parse().ok()?,
            }
        }
        "condemned" => {
            let parts = parts(2)?;
            StagingName::Condemned { id: parts[0].parse().ok()?, op: parts[1].parse().ok()? }
        }
        "doomed" => StagingName::Doomed { op: rest.parse().ok()? },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Epoch;

    fn id(n: u64) -> SnapshotId {
        SnapshotId { created_ms: n, random: n as u32 }
    }

    fn longest() -> SnapshotBound {
        SnapshotBound {
            worktree: "x.".repeat(32).parse().expect("64 bytes"),
            term: Term {
                epoch: Epoch { counter: u32::MAX, salt: u16::MAX },
                token: FencingToken(u64::MAX),
            },
            parent: Some(id(u64::MAX)),
            generation: Generation(u64::MAX),
            id: id(u64::MAX),
        }
    }

    fn all() -> Vec<StagingName> {
        let op = OpNonce([7; 8]);
        let SnapshotBound { worktree, term, .. } = longest();
        let swap = |worktree: &WorktreeName, kept| {
            let (worktree, source) = (worktree.clone(), id(u64::MAX));
            StagingName::Swap { worktree, term, source, kept, op }
        };
        vec![
            StagingName::Snapshot(longest()),
            StagingName::Snapshot(SnapshotBound { parent: None, ..longest() }),
            StagingName::Restore { worktree: worktree.clone(), term, source: id(5), op },
            swap(&worktree, None),
            swap(&worktree, Some(id(u64::MAX))),
            StagingName::Patch {
                worktree: worktree.clone(),
                term,
                source: id(u64::MAX),
                kept: Some(id(u64::MAX)),
                op,
            },
            StagingName::Condemned { id: id(6), op },
            StagingName::Doomed { op },
        ]
    }

    #[test]
    fn staging_names_round_trip_and_fit() {
        for name in all() {
            let text = name.to_string();
            assert!(text.len() <= 255, "{text}");
            assert_eq!(text.parse(), Ok(name), "{text}");
        }
    }

    #[test]
    fn whatever_parses_as_a_staging_name_prints_back_to_the_same_bytes() {
        for name in all() {
            let text = name.to_string();
            for at in 0..text.len() {
                for c in ['.', '-', '0', 'F', 'x', '/', ' '] {
                    let edit = format!("{}{c}{}", &text[..at], &text[at + 1..]);
                    if let Ok(parsed) = edit.parse::<StagingName>() {
                        assert_eq!(parsed.to_string(), edit);
                    }
                }
                assert!(
                    text[..at].parse::<StagingName>().map_or(true, |p| p.to_string() == text[..at])
                );
            }
        }
        for name in ["", "snapshot", "snapshot.", "removed-a-b", "restore.1-0000.1", "doomed.xyz"] {
            assert!(name.parse::<StagingName>().is_err(), "{name:?}");
        }
    }
}
