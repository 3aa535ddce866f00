//! Locks of other tools that lie among ours: the two formats that JVS's
//! predecessors wrote (`owner`, `since`, `ttl`) and lokt's. Recognised,
//! respected while they may be live, and migrated.
//!
//! Read by path and judged by wall clocks, because that is all they offer.

use std::io;

use jvs_repo::audit::{EventKind, EventPhase};
use jvs_repo::clock::WallMs;
use jvs_repo::config::LockPolicy;
use jvs_repo::layout;
use jvs_repo::name::WorktreeName;
use jvs_repo::record::audit::{self, OtherTool};
use jvs_repo::sabotage;
use jvs_repo::store::{RepoPath, Store};
use serde::Serialize;
use serde_json::Value;

use crate::advisory::{Advisory, READ_MAX, read_advisory};
use crate::error::{FreezeError, RegisterError, TakeOverError};
use crate::locks::{Locks, Override};
use crate::mutation::Rule;
use crate::seams::Seams;
use crate::span::Span;

/// Longest owner that is believed, as in seed 002.
const OWNER_MAX: usize = 256;

/// Who wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LegacyTool {
    /// `since` in milliseconds.
    OwnerSinceTtl,
    /// `since` in RFC 3339, with metadata.
    OwnerSinceTtlMetadata,
    /// lokt's `acquired_ts`, `ttl_sec`, perhaps `expires_at`.
    Lokt,
}

impl LegacyTool {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            LegacyTool::OwnerSinceTtl => "owner_since_ttl",
            LegacyTool::OwnerSinceTtlMetadata => "owner_since_ttl_metadata",
            LegacyTool::Lokt => "lokt",
        }
    }
}

/// A lock of another tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Legacy {
    /// Who wrote it.
    pub format: LegacyTool,
    /// Where it lies, below the repository's root.
    pub path: String,
    /// Whose it is.
    pub owner: String,
    /// Since when.
    pub since: WallMs,
    /// When it ends; `None` if never.
    pub ends: Option<WallMs>,
}

/// As an event tells it.
impl From<&Legacy> for OtherTool {
    fn from(legacy: &Legacy) -> Self {
        let Legacy { format, path, owner, since, ends } = legacy.clone();
        OtherTool { format: format.as_str().to_owned(), path, owner, since, ends }
    }
}

impl Legacy {
    /// May its holder still be at work?
    pub fn is_live(&self, now: WallMs, policy: &LockPolicy) -> bool {
        let margin = policy.max_clock_skew_ms.saturating_add(policy.steal_grace_ms);
        self.ends.is_none_or(|ends| now <= ends.plus(margin))
    }

    /// By whom, since when, through what, until when.
    pub fn described(&self, now: WallMs) -> String {
        let ends = match self.ends {
            Some(ends) if ends < now => format!("it expired {} ago", Span(now.since(ends))),
            Some(ends) => format!("it expires in {}, at {}", Span(ends.since(now)), ends.shown()),
            None => "it never expires".to_owned(),
        };
        let (since, held) = (self.since.shown(), Span(now.since(self.since)));
        let Legacy { owner, path, .. } = self;
        format!("by {owner} since {since}, for {held}, through another tool ({path}); {ends}")
    }

    /// How the worktree stands because of it, in one sentence.
    pub fn sentence(&self, worktree: &WorktreeName, now: WallMs) -> String {
        let is = if self.ends.is_some_and(|ends| ends < now) { "was" } else { "is" };
        format!("worktree '{worktree}' {is} locked {}", self.described(now))
    }
}

/// Makes sense of a file; `None` if it is no lock of another tool.
pub fn parse(bytes: &[u8], path: &RepoPath) -> Option<Legacy> {
    // Not with the strict reader of our own files: what that refuses (a field twice, a long
    // string) another tool may write, and a lock that is not recognised is not respected.
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let owner = value.get("owner")?.as_str()?;
    if owner.is_empty() || owner.len() > OWNER_MAX || value.get("fencing_token").is_some() {
        return None;
    }
    let time = |value: &Value| WallMs::parse_rfc3339(value.as_str()?);
    let seconds = |value: &Value| value.as_u64().map(|seconds| seconds.saturating_mul(1_000));
    let (format, since, ends) = if let Some(acquired) = value.get("acquired_ts") {
        let since = time(acquired)?;
        let ttl = value.get("ttl_sec").and_then(seconds).filter(|ttl| *ttl > 0);
        // Written down beats added up: it is what that tool's readers go by.
        let ends = value.get("expires_at").and_then(time).or(ttl.map(|ttl| since.plus(ttl)));
        (LegacyTool::Lokt, since, ends)
    } else {
        let ttl = seconds(value.get("ttl")?)?;
        let since = value.get("since")?;
        match since.as_u64() {
            Some(ms) => (LegacyTool::OwnerSinceTtl, WallMs(ms), Some(WallMs(ms).plus(ttl))),
            None => {
                let since = time(since)?;
                (LegacyTool::OwnerSinceTtlMetadata, since, Some(since.plus(ttl)))
            }
        }
    };
    let owner = owner.chars().map(|c| if c.is_control() { '_' } else { c }).collect();
    Some(Legacy { format, path: path.to_string(), owner, since, ends })
}

/// What other tools left on a worktree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Others {
    /// Their locks, live or over.
    pub locks: Vec<Legacy>,
    /// A file that may be one and cannot be read; where and why. It keeps nobody
    /// out: nobody could ever take that worktree again.
    pub unread: Option<String>,
}

impl Others {
    /// The lock that may still be live and ends last: a process that takes ours respects it.
    pub fn live(&self, now: WallMs, policy: &LockPolicy) -> Option<&Legacy> {
        sabotage!(Rule::OthersAreRespected => None);
        let live = self.locks.iter().filter(|legacy| legacy.is_live(now, policy));
        live.max_by_key(|legacy| legacy.ends.map_or(u64::MAX, |ends| ends.0))
    }
}

/// The locks of other tools on `worktree`.
pub fn find(store: &dyn Store, worktree: &WorktreeName) -> io::Result<Others> {
    beside(store, worktree, &read_advisory(store, &layout::lock_record(worktree))?)
}

/// The same, where `ours` was heard in the place of our own record.
pub(crate) fn beside(
    store: &dyn Store,
    worktree: &WorktreeName,
    ours: &Advisory,
) -> io::Result<Others> {
    let mut others = Others::default();
    if let Advisory::Bytes(bytes) = ours {
        others.locks.extend(parse(bytes, &layout::lock_record(worktree)));
    }
    let path = layout::legacy_lock(worktree);
    match read_advisory(store, &path)? {
        Advisory::Bytes(bytes) => others.locks.extend(parse(&bytes, &path)),
        Advisory::Refused(why) => others.unread = Some(format!("{path}: {why}")),
        Advisory::Nothing | Advisory::Unfit(_) => {}
    }
    Ok(others)
}

/// Does our own record's place have a live lock of another tool in it? Then
/// nothing of ours is put there, and it is not removed.
pub(crate) fn is_in_the_place_of_our_record(
    seams: Seams<'_>,
    policy: &LockPolicy,
    worktree: &WorktreeName,
) -> bool {
    let path = layout::lock_record(worktree);
    let Ok(Advisory::Bytes(bytes)) = read_advisory(seams.store, &path) else { return false };
    let now = seams.clock.now().wall;
    parse(&bytes, &path).is_some_and(|legacy| legacy.is_live(now, policy))
}

/// What became of a lock of another tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Migration {
    /// It was over and is gone.
    Removed {
        /// The lock.
        legacy: Legacy,
    },
    /// It was live: the worktree is frozen until it ends, and the file is gone.
    Frozen {
        /// The lock.
        legacy: Legacy,
    },
    /// It is live and never ends, or somebody holds our lock as well: a person
    /// must decide.
    Kept {
        /// The lock.
        legacy: Legacy,
    },
}

/// Turns the locks of other tools on `worktree` into ours, each with an event.
pub fn migrate(locks: &Locks<'_>, worktree: &WorktreeName) -> Result<Vec<Migration>, FreezeError> {
    let io = |doing| move |source| RegisterError::Io { worktree: worktree.clone(), doing, source };
    let store = locks.seams.store;
    let found = find(store, worktree).map_err(io("cannot look for locks of other tools"))?;
    let mut migrated = Vec::new();
    for legacy in found.locks {
        let now = locks.seams.clock.now().wall;
        let live = legacy.is_live(now, &locks.policy);
        let left = legacy.ends.map(|ends| ends.since(now).max(1));
        if live && left.is_none() {
            migrated.push(Migration::Kept { legacy });
            continue;
        }
        let note = |phase| {
            let mut journal =
                locks.journal.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let reason = Some("a lock of another tool became one of ours");
            let details = audit::Migrated { legacy: OtherTool::from(&legacy), live };
            let op = locks.fresh_op();
            journal.note(
                EventKind::Migrate,
                phase,
                op,
                Some(worktree),
                reason,
                Some(details.into()),
            )
        };
        note(EventPhase::Intent).map_err(io("cannot write the audit log"))?;
        if let (true, Some(left)) = (live, left) {
            let reason = format!("held by {} through another tool", legacy.owner);
            match locks.freeze_over(worktree, left, &reason, Override::Others) {
                Ok(_) => {}
                Err(FreezeError::Take(TakeOverError::Conflict(_) | TakeOverError::Frozen(_))) => {
                    let _ = note(EventPhase::NotApplied);
                    migrated.push(Migration::Kept { legacy });
                    continue;
                }
                Err(error) => return Err(error),
            }
        }
        // Our own record has taken the place of one of the two by now.
        for path in [layout::lock_record(worktree), layout::legacy_lock(worktree)] {
            if path.to_string() != legacy.path {
                continue;
            }
            // One that its tool took again since is not the one that was judged.
            let aside = layout::legacy_lock_aside(worktree, locks.fresh_op());
            let is_meant = |bytes: &[u8]| parse(bytes, &path).as_ref() == Some(&legacy);
            store
                .remove_meant(&path, &aside, READ_MAX, &is_meant)
                .map_err(io("cannot remove the lock of another tool"))?;
        }
        let _ = note(EventPhase::Done);
        migrated.push(if live {
            Migration::Frozen { legacy }
        } else {
            Migration::Removed { legacy }
        });
    }
    Ok(migrated)
}

#[cfg(test)]
mod tests;
