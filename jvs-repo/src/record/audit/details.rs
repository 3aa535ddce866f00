//! What an event says beyond its own fields: one shape per operation that has more to say.
//!
//! These are for anyone who reads a log; some of them are read back ([`Collected`],
//! [`Restored`], [`tag::LoggedTag`], [`Undoing`], [`Continued`] and [`Anchored`]). A version that says more of an operation is read anyway, so an
//! [`super::Event`] keeps what it does not know.

use serde::{Deserialize, Serialize};

use crate::audit::LogName;
use crate::clock::WallMs;
use crate::id::{HolderNonce, OpNonce, SnapshotId};
use crate::record::audit::Sum;
use crate::record::tag;
use crate::record::worktree::Isolation;

macro_rules! details {
    ($($(#[doc = $doc:literal])* $name:ident($shape:ty);)*) => {
        /// What is written with an event.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        pub enum Details { $($(#[doc = $doc])* $name($shape),)* }

        $(impl From<$shape> for Details {
            fn from(shape: $shape) -> Self {
                Details::$name(shape)
            }
        })*
    };
}

details! {
    /// Snapshots that a collection removes.
    Collected(Collected);
    /// An interrupted swap that is about to be set aside.
    SettingAside(SettingAside);
    /// What came of it.
    SetAside(SetAside);
    /// Files of a snapshot that take the place of a worktree's.
    Restored(Box<Restored>);
    /// A lock that its holder hands over.
    Transferred(Transferred);
    /// A lock that is taken from a live holder, or a freeze that another lifts.
    Reclaimed(Box<Reclaimed>);
    /// A lock of another tool that becomes one of ours.
    Migrated(Migrated);
    /// What doctor does something about.
    Repaired(Repaired);
    /// A tag that is made or deleted.
    Tag(tag::LoggedTag);
    /// The log that this one goes on after.
    Continued(Continued);
    /// What an anchor says.
    Anchored(Anchored);
    /// An operation that is taken back.
    Undoing(Undoing);
}

impl From<Details> for serde_json::Value {
    fn from(details: Details) -> Self {
        serde_json::to_value(details).expect("every key is a field's name")
    }
}

/// Snapshots that a collection removes, unless they are put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collected {
    /// Their ids.
    pub snapshots: Vec<SnapshotId>,
}

/// The log that this one goes on after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continued {
    /// Which one.
    pub after: LogName,
    /// The sum of its last line.
    pub last: Sum,
}

/// What a line of an anchor says, if it is not an event that was carried over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Anchored {
    /// How many lines the anchor has: the first of them.
    Lines(u64),
    /// An anchor whose place it takes.
    Replaces(OpNonce),
    /// A log that was dropped, and that one which is there goes on after.
    Dropped(Continued),
}

/// An interrupted swap that is about to be set aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingAside {
    /// Its name in staging.
    pub sets_aside: String,
}

/// What came of an interrupted swap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetAside {
    /// Where its files are; `None` if a snapshot had them all and they were deleted.
    pub set_aside: Option<String>,
}

/// Files of a snapshot that take the place of a worktree's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Which snapshot's.
    pub snapshot_id: SnapshotId,
    /// The snapshot that has what was there before, if one was taken.
    pub kept: Option<SnapshotId>,
    /// The paths that were asked for, or the first of them; empty if it is all of them.
    pub paths: Vec<String>,
    /// How far it came, if it failed.
    #[serde(flatten, skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub half: Option<HalfRestored>,
    /// Where files are that were there before and that no snapshot has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
}

/// How far a restore came that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HalfRestored {
    /// The paths that were swapped, or the first of them.
    pub swapped: Vec<String>,
    /// Of how many.
    pub steps: usize,
    /// False if one more may be swapped, or may yet become.
    pub certain: bool,
    /// Where the old files are, and what was not swapped.
    pub old_files: String,
    /// The code of what went wrong.
    pub cause: String,
}

/// A lock that its holder hands over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Transferred {
    /// Who had it, as `host:user:pid:start_time`.
    pub old_holder: String,
    /// Who gets it.
    pub new_holder_nonce: HolderNonce,
}

/// A lock that is taken from a live holder, or a freeze that another lifts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reclaimed {
    /// The word of the rule that allows it.
    pub reason: String,
    /// How good a reason that is: `high`, `medium` or `low`.
    pub priority: String,
    /// Who had it, as `host:user:pid:start_time`; `None` if no record tells.
    pub old_holder: Option<String>,
    /// Its user to the kernel of its host, if its record has that.
    pub old_uid: Option<u32>,
    /// Its session.
    pub old_session: Option<String>,
    /// As the register names it.
    pub old_holder_nonce: Option<HolderNonce>,
    /// The lock of another tool that is overruled, if there is one.
    pub other_tool: Option<OtherTool>,
    /// Who takes it.
    pub new_holder: String,
    /// Its user to the kernel of its host, if known.
    pub new_uid: Option<u32>,
    /// Its session.
    pub new_session: String,
}

/// A lock of another tool that becomes one of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Migrated {
    /// The lock.
    pub legacy: OtherTool,
    /// Could its holder still be at work?
    pub live: bool,
}

/// A lock of another tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtherTool {
    /// In which format it is written.
    pub format: String,
    /// Where it is, below the repository's root.
    pub path: String,
    /// Its owner.
    pub owner: String,
    /// Since when.
    pub since: WallMs,
    /// When it ends; `None` if never.
    pub ends: Option<WallMs>,
}

/// What doctor does something about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repaired {
    /// The check that found it.
    pub check: String,
    /// The path concerned.
    pub path: String,
}

/// An operation that is taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undoing {
    /// The operation.
    pub undoes: OpNonce,
    /// Of a worktree that goes with it: how its writers related to each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::WriterId;

    const ID: SnapshotId = SnapshotId { created_ms: 1_763_283_600_123, random: 42 };
    const AT: WallMs = WallMs(1_763_283_600_000);

    fn restored() -> Restored {
        let paths = vec!["a".into()];
        Restored { snapshot_id: ID, kept: None, paths, half: None, left: None }
    }

    fn other_tool() -> OtherTool {
        let (format, path, owner) = ("lokt".into(), "locks/main.json".into(), "box-7".into());
        OtherTool { format, path, owner, since: AT, ends: None }
    }

    fn all() -> Vec<Details> {
        let half = HalfRestored {
            swapped: vec!["a".into()],
            steps: 2,
            certain: true,
            old_files: "old".into(),
            cause: "E_IO".into(),
        };
        let reclaimed = Reclaimed {
            reason: "SAME_USER".into(),
            priority: "medium".into(),
            old_holder: Some("h:u:1:2".into()),
            old_uid: Some(1000),
            old_session: Some("s".into()),
            old_holder_nonce: Some(HolderNonce([7; 16])),
            other_tool: Some(OtherTool { ends: Some(AT), ..other_tool() }),
            new_holder: "h:u:3:4".into(),
            new_uid: None,
            new_session: "t".into(),
        };
        let tag = tag::LoggedTag {
            tag: "v1".parse().expect("a tag"),
            snapshot_id: ID,
            created_at: AT,
            session_id: "s".into(),
        };
        let last = "0a".repeat(16).parse().expect("a sum");
        let after = LogName::Closed(WriterId([7; 12]), [10; 8]);
        let continued = Continued { after, last };
        vec![
            Collected { snapshots: vec![ID] }.into(),
            SettingAside { sets_aside: "swap.x".into() }.into(),
            SetAside { set_aside: None }.into(),
            SetAside { set_aside: Some("quarantine/x".into()) }.into(),
            Box::new(restored()).into(),
            Box::new(Restored { kept: Some(ID), half: Some(half), ..restored() }).into(),
            Box::new(Restored { left: Some("left".into()), ..restored() }).into(),
            Transferred { old_holder: "h:u:1:2".into(), new_holder_nonce: HolderNonce([8; 16]) }
                .into(),
            Box::new(reclaimed).into(),
            Migrated { legacy: other_tool(), live: true }.into(),
            Repaired { check: "D_TMP_DEAD".into(), path: "p".into() }.into(),
            tag.into(),
            continued.clone().into(),
            Anchored::Lines(3).into(),
            Anchored::Replaces(OpNonce([9; 8])).into(),
            Anchored::Dropped(continued).into(),
            Undoing { undoes: OpNonce([9; 8]), isolation: None }.into(),
            Undoing { undoes: OpNonce([9; 8]), isolation: Some(Isolation::Shared) }.into(),
        ]
    }

    #[test]
    fn the_bytes_of_details_are_these() {
        let lines =
            all().into_iter().map(|details| format!("{}\n", serde_json::Value::from(details)));
        assert_eq!(lines.collect::<String>(), include_str!("../golden/audit_details.jsonl"));
    }

    #[test]
    fn what_a_later_version_adds_hides_nothing() {
        let text = format!(r#"{{"why":"old","snapshots":["{ID}"]}}"#);
        let read: Collected = serde_json::from_str(&text).expect("read");
        assert_eq!(read.snapshots, [ID]);
    }
}
