//! What is told of snapshots.

use std::collections::BTreeMap;

use jvs_lock::history::Dropped;
use jvs_repo::config::Consistency;
use jvs_repo::digest::Digest;
use jvs_repo::id::{Epoch, FencingToken, Generation, SnapshotId};
use jvs_repo::name::{TagName, WorktreeName};
use jvs_repo::record::descriptor::LineStanding;
use jvs_repo::record::ignore_rules::IgnoreSource;
use jvs_repo::record::probe::Verdict;
use jvs_snapshot::Descriptor;
use jvs_snapshot::gc::{Keep, Uncalled};
use jvs_snapshot::imprint::Change;
use serde::Serialize;

use super::tree::Differences;
use super::{Base64, Time, Unreadable, shown_paths};

/// A snapshot.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Snapshot {
    /// Shape of its descriptor on disk.
    version: u64,
    /// Its id.
    snapshot_id: SnapshotId,
    /// The worktree whose head it became.
    worktree_id: WorktreeName,
    /// What it was taken on top of.
    parent: Option<SnapshotId>,
    /// When it was begun.
    created_at: Time,
    /// A word to people.
    note: Option<String>,
    /// The tags that it has now.
    tags: Vec<TagName>,
    /// What was promised about writers.
    consistency: Consistency,
    /// What to beware of, if anything.
    risk: Option<String>,
    /// What the promise about writers rests on.
    quiescence: Quiescence,
    /// In which boot the change times of its files were seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    boot_id: Option<String>,
    /// How ids of users and groups were spelled where it was taken, if not as the host
    /// spells them.
    #[serde(skip_serializing_if = "Option::is_none")]
    id_map: Option<String>,
    /// By which rules files were left out, if there were any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ignore_rules: Vec<IgnoreSource>,
    /// What copied the files.
    engine: String,
    /// What it could not preserve.
    degraded: Vec<Loss>,
    /// Regular files.
    files: u64,
    /// Bytes in them.
    bytes: u64,
    /// Equal for equal trees.
    payload_root_hash: Digest,
    /// Over the bytes of the manifest.
    manifest_hash: Digest,
    /// `host:user:pid:start_time` of the process that took it.
    holder_id: String,
    /// The session that took it.
    session_id: String,
    /// Life of the register that it was committed in.
    epoch: Epoch,
    /// The fencing token that it was committed under.
    fencing_token: FencingToken,
    /// Which commit of its lineage it is, counted from 1.
    commit_seq: Generation,
    /// Where it stands in the line, if not simply after its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<LineStanding>,
    /// Can it be used?
    ready: bool,
}

/// What speaks for nobody having written while the files were captured.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Quiescence {
    /// Was every file the same before and after?
    proven: bool,
    /// Over what the kernel said of every file before.
    digest: Digest,
    /// How many files were looked at twice.
    compared: u64,
    /// How often the capture was begun.
    attempts: u32,
    /// The first few files that changed.
    changed: Vec<String>,
    /// Their bytes, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_bytes: Option<Vec<Option<Base64>>>,
}

/// Something about the files that a snapshot does not have.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Loss {
    /// What was lost, in a word: `owner`, `xattr`, `fifo`.
    what: String,
    /// Of how many files.
    count: u64,
    /// The first few of them.
    examples: Vec<String>,
    /// Their bytes, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    examples_bytes: Option<Vec<Option<Base64>>>,
}

impl Snapshot {
    /// All that programs are told of a snapshot with these tags.
    pub(crate) fn of(descriptor: &Descriptor, tags: &[&TagName], ready: bool) -> Self {
        let content = &descriptor.content;
        let degraded = content.degraded.iter().map(|loss| {
            let (examples, examples_bytes) = shown_paths(&loss.examples);
            Loss { what: loss.what.clone(), count: loss.count, examples, examples_bytes }
        });
        let (changed, changed_bytes) = shown_paths(&content.quiescence.changed);
        Snapshot {
            version: descriptor.version(),
            snapshot_id: descriptor.snapshot_id,
            worktree_id: descriptor.worktree_id.clone(),
            parent: descriptor.parent,
            created_at: descriptor.created_at.into(),
            note: descriptor.note.clone(),
            tags: tags.iter().map(|tag| (*tag).clone()).collect(),
            consistency: content.consistency,
            risk: content.risk.clone(),
            quiescence: Quiescence {
                proven: content.quiescence.proven,
                digest: content.quiescence.digest,
                compared: content.quiescence.compared,
                attempts: content.quiescence.attempts,
                changed,
                changed_bytes,
            },
            boot_id: content.boot_id.as_ref().map(ToString::to_string),
            id_map: content.id_map.clone(),
            ignore_rules: content.ignore_rules.clone(),
            engine: content.engine.clone(),
            degraded: degraded.collect(),
            files: content.files,
            bytes: content.bytes,
            payload_root_hash: content.payload_root_hash,
            manifest_hash: content.manifest_hash,
            holder_id: descriptor.holder_id.clone(),
            session_id: descriptor.session_id.clone(),
            epoch: descriptor.epoch,
            fencing_token: descriptor.fencing_token,
            commit_seq: descriptor.commit_seq,
            line: descriptor.line,
            ready,
        }
    }
}

/// A snapshot that was just taken.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TakenTold {
    #[serde(flatten)]
    pub(crate) snapshot: Snapshot,
    /// How many files were taken over from the parent without being read.
    pub(crate) reused: u64,
    /// Why nothing was taken over from the parent, if there is a reason.
    pub(crate) parent_ignored: Option<String>,
    /// How long each phase took.
    pub(crate) phases_ms: BTreeMap<String, u64>,
}

/// The snapshots of a worktree.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct History {
    /// The worktree.
    pub(crate) worktree: WorktreeName,
    /// The newest first.
    pub(crate) snapshots: Vec<Snapshot>,
}

/// The snapshots in which a path changed.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PathHistory {
    /// The worktree.
    pub(crate) worktree: WorktreeName,
    /// The newest first.
    pub(crate) snapshots: Vec<ChangedIn>,
    /// The path, below the worktree.
    pub(crate) path: String,
    /// Its bytes, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
}

/// A snapshot in which a path changed.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ChangedIn {
    #[serde(flatten)]
    pub(crate) snapshot: Snapshot,
    /// How it changed.
    pub(crate) change: Change,
    /// Bytes of the files there; `null` if there is nothing any more.
    pub(crate) bytes_there: Option<u64>,
}

/// All that is known about a snapshot.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Info {
    #[serde(flatten)]
    pub(crate) snapshot: Snapshot,
    /// Where its files are.
    pub(crate) path: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
    /// What the last probe said of the filesystem, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) probe: Option<Verdict>,
    /// Over the bytes of the descriptor.
    pub(crate) descriptor_checksum: String,
}

/// All that is known about a snapshot, and what changed in it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Shown {
    #[serde(flatten)]
    pub(crate) info: Info,
    /// What changed; `null` if what it was made of was collected.
    pub(crate) changes: Option<ChangesSince>,
}

/// What changed since the parent.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ChangesSince {
    #[serde(flatten)]
    pub(crate) differences: Differences,
    /// The parent; `null` if it has none, so that everything is new.
    pub(crate) from: Option<SnapshotId>,
}

/// A tag that was made.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TagTold {
    /// Its name.
    pub(crate) tag: TagName,
    /// The snapshot that it names.
    pub(crate) snapshot_id: SnapshotId,
    /// When it was made.
    pub(crate) created_at: Time,
}

/// A tag that was deleted.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TagDeleted {
    /// Its name.
    pub(crate) deleted: TagName,
    /// The snapshot that it named.
    pub(crate) snapshot_id: SnapshotId,
}

/// All tags.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TagList {
    /// In the order of their names.
    pub(crate) tags: Vec<ListedTag>,
}

/// A tag in a list.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum ListedTag {
    /// It can be read.
    Tag(TagTold),
    /// It cannot.
    Broken(BrokenTag),
}

/// A tag that cannot be read.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct BrokenTag {
    /// Its name.
    pub(crate) tag: TagName,
    /// Why it cannot be read.
    pub(crate) error: Unreadable,
}

/// A snapshot that was forgotten, or would be.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ForgottenSnapshot {
    /// Its id.
    pub(crate) snapshot_id: SnapshotId,
    /// The worktree that it was taken of.
    pub(crate) worktree_id: WorktreeName,
    /// What its maker said of it.
    pub(crate) note: Option<String>,
    /// The tags that went with it.
    pub(crate) deleted_tags: Vec<TagName>,
    /// How much room that makes.
    pub(crate) freed_bytes: u64,
    /// Is that exact, or at most so much?
    pub(crate) freed_exact: bool,
    /// Was nothing done?
    pub(crate) dry_run: bool,
}

/// What a collection did, or would do.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Collection {
    /// What decided.
    pub(crate) rules: Rules,
    /// The snapshots that nobody needs.
    pub(crate) collect: Vec<CollectedTold>,
    /// Those that are kept.
    pub(crate) keep: Vec<KeptTold>,
    /// What interrupted restores left, and has files that no snapshot has.
    pub(crate) to_set_aside: Vec<String>,
    /// How many things were never committed and never will be.
    pub(crate) leftovers: usize,
    /// What was left alone, because it is not known or somebody may be at work on it.
    pub(crate) left_alone: Vec<String>,
    /// Was nothing done?
    pub(crate) dry_run: bool,
    #[serde(flatten)]
    pub(crate) outcome: CollectionOutcome,
}

/// What came of a collection.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum CollectionOutcome {
    /// Nothing was done.
    Would(WouldFree),
    /// It was done.
    Did(FreedTold),
}

/// How much room a collection would make.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WouldFree {
    /// So many bytes.
    pub(crate) would_free_bytes: u64,
    /// Is that exact, or at most so much?
    pub(crate) would_free_exact: bool,
}

/// What a collection removed.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FreedTold {
    /// The snapshots that are gone.
    pub(crate) removed: Vec<SnapshotId>,
    /// The old audit logs that went; `null` if they could not be dropped.
    pub(crate) audit_logs_dropped: Option<Dropped>,
    /// How much room that made.
    pub(crate) freed_bytes: u64,
    /// Is that exact, or at most so much?
    pub(crate) freed_exact: bool,
    /// How many other things were removed.
    pub(crate) leftovers_removed: u64,
    /// Snapshots that somebody came to need meanwhile.
    pub(crate) put_back: Vec<SnapshotId>,
    /// Where the files of interrupted restores are now.
    pub(crate) set_aside: Vec<String>,
    /// The bytes of those paths, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) set_aside_bytes: Option<Vec<Option<Base64>>>,
    /// What could not be removed.
    pub(crate) left: Vec<NotRemoved>,
}

/// Something that could not be removed.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct NotRemoved {
    /// Why it is still there.
    pub(crate) why: String,
    /// Where it is.
    pub(crate) path: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
}

/// The rules of a collection, by the names of their settings.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "the settings are documented as such")]
pub(crate) struct Rules {
    pub(crate) keep_last: u64,
    pub(crate) keep_hourly: u64,
    pub(crate) keep_daily: u64,
    pub(crate) keep_weekly: u64,
    pub(crate) keep_monthly: u64,
    pub(crate) keep_yearly: u64,
    /// A duration, such as `24h`.
    pub(crate) keep_within: String,
    pub(crate) keep_tag: Vec<String>,
}

/// A snapshot that is kept.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct KeptTold {
    /// Its id.
    pub(crate) snapshot_id: SnapshotId,
    /// Why it is kept.
    pub(crate) why: Keep,
    /// The same in words.
    pub(crate) because: String,
    /// What its maker said of it.
    pub(crate) note: Option<String>,
}

/// A snapshot that nobody needs.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CollectedTold {
    /// Its id.
    pub(crate) snapshot_id: SnapshotId,
    /// The worktree that it was taken of.
    pub(crate) worktree_id: WorktreeName,
    /// Why it goes.
    pub(crate) why: Uncalled,
    /// What its maker said of it.
    pub(crate) note: Option<String>,
    /// Bytes of its files. What deleting it frees may be less.
    pub(crate) bytes: u64,
    /// Why it goes, in words.
    pub(crate) because: String,
}

/// Whether snapshots are what was published.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct VerificationTold {
    /// Each that was read.
    pub(crate) snapshots: Vec<Verified>,
    /// Tags that are not what was made.
    pub(crate) tags: Vec<MismatchTold>,
    /// Is anything not what it was?
    pub(crate) tamper_detected: bool,
}

/// Whether one snapshot is what was published.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Verified {
    /// Its id.
    pub(crate) snapshot_id: SnapshotId,
    /// Are descriptor and mark what was written?
    pub(crate) descriptor_valid: bool,
    /// Are manifest and files?
    pub(crate) payload_valid: bool,
    /// The first of what is not.
    pub(crate) mismatches: Vec<MismatchTold>,
    /// How many there are.
    pub(crate) mismatch_count: usize,
}

/// Something that is not what it was.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct MismatchTold {
    /// Where, below the repository's root.
    pub(crate) path: String,
    /// In what it differs.
    pub(crate) what: String,
    /// The bytes of the path, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// All keys of an object, and of the objects in it.
    fn keys(value: &Value) -> Vec<&str> {
        let fields = value.as_object().into_iter().flatten();
        fields.flat_map(|(name, value)| [vec![name.as_str()], keys(value)].concat()).collect()
    }

    #[test]
    fn all_that_a_descriptor_says_is_told() {
        let golden = include_bytes!("../../../jvs-repo/src/record/golden/descriptor.json");
        let (descriptor, _) = Descriptor::parse(golden).expect("a descriptor");
        let told = json!(Snapshot::of(&descriptor, &[], true));
        let (said, told) = (json!(descriptor), keys(&told));
        for key in keys(&said) {
            assert!(told.contains(&key), "{key} is missing in the answer");
        }
    }
}

/// Where the files of a snapshot are.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SnapshotPath {
    /// The snapshot.
    pub(crate) snapshot_id: SnapshotId,
    /// Where its files are, or the one that was asked for. Only to be read.
    pub(crate) path: String,
    /// The bytes of that, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_bytes: Option<Base64>,
}
