//! What is told of failures: the shapes that [`Coded::details`](jvs_repo::code::Coded) has.
//! For the schemas alone: libraries make the details of their errors themselves, and the
//! tests compare each that they see with these.

use jvs_lock::StatusWord;
use jvs_lock::holder::HolderKnown;
use jvs_lock::judge::Evidence;
use jvs_lock::legacy::Legacy;
use jvs_repo::code::Code;
use jvs_repo::id::{FencingToken, SnapshotId};
use jvs_repo::name::WorktreeName;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::{Base64, Time, audit, session, snapshot};
use crate::tree::Member;

/// Why a command failed.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Error")]
pub(crate) struct Failed {
    /// The code: a later version may know more of them.
    code: CodeWord,
    /// What went wrong, in a sentence.
    message: String,
    /// What to do next: the commands in it work as they are.
    hint: Option<String>,
    /// What there is to know beyond that, which depends on the code.
    details: Details,
}

/// Every code.
#[derive(Serialize)]
struct CodeWord;

impl JsonSchema for CodeWord {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Code".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        json_schema!({
            "description": "An error code; spec/codes.md says what each means.",
            "type": "string",
            "enum": codes,
        })
    }
}

/// One of several shapes; none of them is made here.
#[derive(Serialize)]
struct Details;

impl JsonSchema for Details {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Details".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let shapes = [
            generator.subschema_for::<Nothing>(),
            generator.subschema_for::<LockRefused>(),
            generator.subschema_for::<LegacyRefused>(),
            generator.subschema_for::<NotAdmin>(),
            generator.subschema_for::<Deadlock>(),
            generator.subschema_for::<Fenced>(),
            generator.subschema_for::<Expired>(),
            generator.subschema_for::<ReliedOn>(),
            generator.subschema_for::<TakenSince>(),
            generator.subschema_for::<AboutSnapshot>(),
            generator.subschema_for::<Ambiguous>(),
            generator.subschema_for::<Unfinished>(),
            generator.subschema_for::<HalfRestored>(),
            generator.subschema_for::<BadSetting>(),
            generator.subschema_for::<Format>(),
            generator.subschema_for::<snapshot::VerificationTold>(),
            generator.subschema_for::<audit::AuditVerification>(),
            generator.subschema_for::<Unhealthy>(),
            generator.subschema_for::<LockLost>(),
            generator.subschema_for::<session::HoldTold>(),
            generator.subschema_for::<Filesystem>(),
        ];
        json_schema!({
            "description": "What there is to know about a failure, which depends on the code.",
            "anyOf": shapes,
        })
    }
}

/// Nothing more is known, but perhaps what refused.
#[derive(JsonSchema, Serialize)]
struct Nothing {
    /// What the system refused to this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    permission: Option<Permission>,
}

/// What the system refused to this user.
#[derive(JsonSchema, Serialize)]
struct Permission {
    /// What stands in the way.
    path: String,
    /// Its owner; unknown if even that is refused.
    owner: Option<u32>,
    /// Its group.
    group: Option<u32>,
    /// Its permissions.
    mode: Option<u32>,
    /// Who asked.
    you: u32,
    /// The bytes of the path, where the text is not the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<Base64>,
}

/// A lock that somebody else has, or that this session has not.
#[derive(JsonSchema, Serialize)]
struct LockRefused {
    #[serde(flatten)]
    lock: LockSeen,
    /// Until anybody may take it, if nothing changes.
    stealable_in_ms: Option<u64>,
    /// The largest difference of clocks that is proven.
    observed_skew_ms: Option<u64>,
    #[serde(flatten)]
    holder: HolderKnown,
    /// Until when it is kept at the latest, as its holder said.
    kept_until: Option<String>,
    #[serde(flatten)]
    why: RefusedBecause,
}

/// A lock that another tool has.
#[derive(JsonSchema, Serialize)]
struct LegacyRefused {
    #[serde(flatten)]
    lock: LockSeen,
    /// The lock of the other tool.
    legacy: Legacy,
    #[serde(flatten)]
    why: RefusedBecause,
}

/// How a lock stands that cannot be had.
#[derive(JsonSchema, Serialize)]
struct LockSeen {
    /// The worktree.
    worktree: WorktreeName,
    /// How the lock stands.
    state: StatusWord,
    /// `host:user:pid:start_time` of the holder.
    holder_id: Option<String>,
    /// The holder's session.
    session_id: Option<String>,
    /// Since when it holds.
    since: Option<String>,
    /// When its lease ends, if nobody renews it.
    lease_expires_at: Option<Time>,
    /// Until then.
    remaining_ms: Option<u64>,
    /// The fencing token.
    fencing_token: Option<FencingToken>,
    /// Why it cannot be had: `LOCK_HELD`, `LOCK_FROZEN` or `LOCK_EXPIRED`.
    reason: Option<String>,
}

/// What else there is to know, which depends on what was asked for.
#[derive(JsonSchema, Serialize)]
struct RefusedBecause {
    /// How good a reason to overrule the holder was.
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<String>,
    /// Why it was not good enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
    /// How many were in front in the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<usize>,
    /// For how long it was waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_ms: Option<u64>,
    /// For how much longer it must be watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    watch_ms: Option<Option<u64>>,
    /// How far clocks may disagree.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_clock_skew_ms: Option<u64>,
    /// What proves that they disagree.
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<Vec<Evidence>>,
    /// The token under which this session held it before.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_token: Option<FencingToken>,
}

/// Only some may do that.
#[derive(JsonSchema, Serialize)]
struct NotAdmin {
    /// The worktree.
    worktree: WorktreeName,
    /// Those who may.
    admins: String,
    /// Who asked.
    uid: Option<u32>,
}

/// Sessions that wait for each other.
#[derive(JsonSchema, Serialize)]
struct Deadlock {
    /// The worktree that was waited for.
    worktree: WorktreeName,
    /// For how long.
    waited_ms: u64,
    /// Always `DEADLOCK`.
    reason: String,
    /// Who waits for whom, until it is the first again.
    cycle: Vec<DeadlockStep>,
}

/// A session that waits.
#[derive(JsonSchema, Serialize)]
struct DeadlockStep {
    /// Its id, if that is known.
    session_id: Option<String>,
    /// The worktree that it waits for.
    waits_for: WorktreeName,
    /// Whose that is, if that is known.
    held_by: Option<String>,
}

/// A token that was overtaken.
#[derive(JsonSchema, Serialize)]
struct Fenced {
    /// The token.
    fencing_token: FencingToken,
    /// The token of now.
    current_token: FencingToken,
}

/// A lease that ran out.
#[derive(JsonSchema, Serialize)]
struct Expired {
    /// Its token.
    fencing_token: FencingToken,
    /// Since when.
    expired_since_ms: u64,
}

/// A lock that commands of the session need.
#[derive(JsonSchema, Serialize)]
struct ReliedOn {
    /// The worktree.
    worktree: WorktreeName,
    /// Those commands.
    relied_on_by: Vec<Reliance>,
    /// Always `SAME_SESSION`.
    reason: String,
}

/// A command that needs a lock.
#[derive(JsonSchema, Serialize)]
struct Reliance {
    /// What it is: `acquire`, `shell`, `run`, `guard` or `work`.
    kind: String,
    /// Its process.
    pid: u32,
    /// The words of that, if it can be seen.
    command: Option<String>,
}

/// A lock that this session held, and somebody else has held since.
#[derive(JsonSchema, Serialize)]
struct TakenSince {
    /// The worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    worktree: Option<WorktreeName>,
    /// The token under which this session held it.
    held_token: FencingToken,
    /// The token now; `null` if it is not held.
    fencing_token: Option<FencingToken>,
    /// Who has it, if anybody is known to.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<Option<String>>,
}

/// A snapshot that cannot be used so.
#[derive(JsonSchema, Serialize)]
struct AboutSnapshot {
    /// Its id.
    snapshot_id: SnapshotId,
    /// What needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    needed_for: Option<Vec<jvs_snapshot::gc::Keep>>,
}

/// A name that several snapshots have.
#[derive(JsonSchema, Serialize)]
struct Ambiguous {
    /// Their ids.
    candidates: Vec<SnapshotId>,
}

/// A restore that was not finished.
#[derive(JsonSchema, Serialize)]
struct Unfinished {
    /// What was to be restored.
    unfinished: String,
    /// Is that certain?
    certain: bool,
}

/// A restore that came half way.
#[derive(JsonSchema, Serialize)]
struct HalfRestored {
    /// The paths that were swapped, or the first of them.
    swapped: Vec<String>,
    /// Of how many.
    steps: usize,
    /// False if one more may be swapped, or may yet become.
    certain: bool,
    /// Where the old files are, and what was not swapped.
    old_files: String,
    /// The code of what went wrong.
    cause: String,
    /// What the system refused to this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    permission: Option<Permission>,
}

/// A setting that cannot be so.
#[derive(JsonSchema, Serialize)]
struct BadSetting {
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// The line in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<Option<usize>>,
    /// Which setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<Option<String>>,
    /// What it may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<Option<String>>,
}

/// A repository of another version.
#[derive(JsonSchema, Serialize)]
struct Format {
    /// Its version.
    found: u64,
    /// Those that are understood.
    supported: Vec<u64>,
}

/// A repository that is not healthy.
#[derive(JsonSchema, Serialize)]
struct Unhealthy {
    /// How many errors there are.
    errors: usize,
    /// How many warnings.
    warnings: usize,
}

/// A command whose lock was lost.
#[derive(JsonSchema, Serialize)]
struct LockLost {
    /// The worktree.
    worktree: WorktreeName,
    /// Why it was lost.
    lost: String,
    /// The exit status of the command, as a shell has it.
    child_exit: u8,
    /// Its processes that could not be ended.
    not_ended: Vec<Member>,
}

/// A filesystem that cannot be trusted.
#[derive(JsonSchema, Serialize)]
struct Filesystem {
    /// What kind it is.
    filesystem: String,
    /// Where it is mounted.
    mount_point: String,
    /// What is wrong with it.
    findings: Vec<BrokenPromise>,
}

/// Something that is wrong with a filesystem.
#[derive(JsonSchema, Serialize)]
struct BrokenPromise {
    /// What it is about, in a word.
    subject: String,
    /// What was seen.
    message: String,
    /// What to do about it.
    remedy: String,
}
