//! Where everything is: the only file that spells the control directory's name.

mod lock_tmp;
pub mod staging;

use std::ffi::OsStr;

pub use self::lock_tmp::{
    legacy_lock_aside, lock_tmp, lock_tmp_of, lock_tmp_term, lock_tmp_under, register_birth,
    register_birth_of,
};
use crate::audit::LogName;
use crate::id::{Epoch, HolderNonce, OpNonce, SnapshotId};
use crate::name::{TagName, WorktreeName};
use crate::store::RepoPath;
use crate::term::Term;

/// The control directory, directly below the repository's root.
pub const CONTROL_DIR: &str = ".jvs";
/// Payload of the worktree that every repository is born with.
pub const MAIN_DIR: &str = "main";
/// Payloads of the other worktrees.
pub const WORKTREES_DIR: &str = "worktrees";

fn control(name: &str) -> RepoPath {
    control_dir().plain_child(name)
}

/// The control directory.
pub fn control_dir() -> RepoPath {
    RepoPath::root().plain_child(CONTROL_DIR)
}

/// Is a file of that name in [`control_dir`] one that is being written?
pub fn is_control_tmp(file: &str) -> bool {
    file.contains(".tmp-")
}

/// Format and identity of the repository.
pub fn format() -> RepoPath {
    control("format")
}

/// The format while it is being written.
pub fn format_tmp(op: OpNonce) -> RepoPath {
    control(&format!("format.tmp-{op}"))
}

/// The repository's policy.
pub fn config() -> RepoPath {
    control("config.toml")
}

/// The configuration while it is being rewritten.
pub fn config_tmp(op: OpNonce) -> RepoPath {
    control(&format!("config.toml.tmp-{op}"))
}

/// Directory of worktree records.
pub fn worktree_records() -> RepoPath {
    control("worktrees")
}

/// One worktree's record.
pub fn worktree_record(name: &WorktreeName) -> RepoPath {
    worktree_records().plain_child(&format!("{name}.json"))
}

/// Is it a small file that every command reads and hardly any changes? Nothing that the lock
/// moves is.
pub(crate) fn hardly_changes(path: &RepoPath) -> bool {
    let (dir, name) = path.split();
    *path == format()
        || *path == config()
        || (dir == worktree_records() && worktree_of_record(name).is_some())
}

/// Whose record a file of that name in [`worktree_records`] is.
pub fn worktree_of_record(file: &str) -> Option<WorktreeName> {
    file.strip_suffix(".json")?.parse().ok()
}

/// A worktree's record while it is being written.
pub fn worktree_record_tmp(name: &WorktreeName, op: OpNonce) -> RepoPath {
    worktree_records().plain_child(&format!("{name}.tmp-{op}"))
}

/// Is a file of that name in [`worktree_records`] one that is being written?
pub fn is_worktree_record_tmp(file: &str) -> bool {
    worktree_of_record_tmp(file).is_some()
}

/// Whose record is being written to a file of that name in [`worktree_records`].
pub fn worktree_of_record_tmp(file: &str) -> Option<WorktreeName> {
    note_of(file).map(|(name, _)| name)
}

/// For which worktree, and by which operation, a file of that name in
/// [`worktree_records`] was written.
pub fn note_of(file: &str) -> Option<(WorktreeName, OpNonce)> {
    let (name, op) = file.rsplit_once(".tmp-")?;
    Some((name.parse().ok()?, op.parse().ok()?))
}

/// In a session's private directory, not in the repository: the hold that `holder`
/// has of a worktree of the repository `repo`.
pub fn hold(holder: HolderNonce, repo: &str, worktree: &WorktreeName) -> RepoPath {
    holds_of(holder).plain_child(&format!("{repo}.{worktree}"))
}

/// Of which worktree of the repository `repo` a hold of that name is.
pub fn worktree_of_hold(file: &str, repo: &str) -> Option<WorktreeName> {
    file.strip_prefix(repo)?.strip_prefix('.')?.parse().ok()
}

/// All that `holder` has, in a session's private directory.
pub fn holds_of(holder: HolderNonce) -> RepoPath {
    RepoPath::root().plain_child("holds").plain_child(&holder.to_string())
}

/// The directory of all who were the session `family` on one machine, in its private
/// directory.
pub fn holders(family: &str) -> RepoPath {
    RepoPath::root().plain_child("holders").plain_child(family)
}

/// Which repository and which worktree a hold of that name is of.
pub fn hold_parts(name: &str) -> Option<(&str, WorktreeName)> {
    let (repo, worktree) = name.split_once('.')?;
    Some((repo, worktree.parse().ok()?))
}

/// The file that says where the repository of a hold was, for people.
pub fn hold_repository(hold: &RepoPath) -> RepoPath {
    hold.plain_child("repository")
}

/// The directory whose only entry is the hold's name.
pub fn hold_name(hold: &RepoPath) -> RepoPath {
    hold.plain_child("name")
}

/// That directory while it is being made.
pub fn hold_birth(hold: &RepoPath, op: OpNonce) -> RepoPath {
    hold.plain_child(&format!("birth-{op}"))
}

/// What a hold rests on.
pub fn hold_stakes(hold: &RepoPath) -> RepoPath {
    hold.plain_child("stakes")
}

/// The name of the file among the stakes which says that a hold was taken.
pub fn lost_hold_name(term: Term) -> String {
    format!("lost.{term}")
}

/// Which hold a file of that name says was taken.
pub fn lost_hold(file: &str) -> Option<Term> {
    file.strip_prefix("lost.")?.parse().ok()
}

/// Directory of lock records, registers and queues.
pub fn locks() -> RepoPath {
    control("locks")
}

/// The lock record, for people and other tools.
pub fn lock_record(name: &WorktreeName) -> RepoPath {
    locks().plain_child(&format!("{name}.lock"))
}

/// Where another tool's lock on a worktree of that name may lie.
pub fn legacy_lock(name: &WorktreeName) -> RepoPath {
    locks().plain_child(&format!("{name}.json"))
}

/// May a file of that name in [`locks`] be a lock of another tool?
pub fn is_legacy_lock(file: &str) -> bool {
    file.ends_with(".json")
}

/// The register: a directory with exactly one entry, whose name is the truth.
pub fn register(name: &WorktreeName) -> RepoPath {
    locks().plain_child(&format!("{name}.fence"))
}

/// Where earlier versions kept the register of a removed worktree: its name may be
/// used again, and must then go on above its old token. Today it stays in place.
pub fn buried_register(name: &WorktreeName, epoch: Epoch) -> RepoPath {
    locks().plain_child(&format!("{name}.fence-{epoch}"))
}

/// The epoch of a buried register of `name`, if `file` is one.
pub fn buried_epoch(name: &WorktreeName, file: &str) -> Option<Epoch> {
    file.strip_prefix(name.as_str())?.strip_prefix(".fence-")?.parse().ok()
}

/// Whose lock record a file of that name in [`locks`] is.
pub fn worktree_of_lock(file: &str) -> Option<WorktreeName> {
    file.strip_suffix(".lock")?.parse().ok()
}

/// Where a takeover by the letter of v6.3 puts its record before it renames it.
pub fn takeover(name: &WorktreeName) -> RepoPath {
    locks().plain_child(&format!("{name}.lock.tmp"))
}

/// Whose takeover a file of that name in [`locks`] is.
pub fn worktree_of_takeover(file: &str) -> Option<WorktreeName> {
    file.strip_suffix(".lock.tmp")?.parse().ok()
}

/// Whose queue a directory of that name in [`locks`] is.
pub fn worktree_of_queue(file: &str) -> Option<WorktreeName> {
    file.strip_suffix(".queue")?.parse().ok()
}

/// Whose buried register a directory of that name in [`locks`] is.
pub fn worktree_of_buried(file: &str) -> Option<(WorktreeName, Epoch)> {
    let (name, epoch) = file.rsplit_once(".fence-")?;
    Some((name.parse().ok()?, epoch.parse().ok()?))
}

/// Whose register a directory of that name in [`locks`] is.
pub fn worktree_of_register(file: &str) -> Option<WorktreeName> {
    file.strip_suffix(".fence")?.parse().ok()
}

/// Tickets of those who wait.
pub fn queue(name: &WorktreeName) -> RepoPath {
    locks().plain_child(&format!("{name}.queue"))
}

/// Directory of snapshots.
pub fn snapshots() -> RepoPath {
    control("snapshots")
}

/// One snapshot.
pub fn snapshot(id: SnapshotId) -> RepoPath {
    snapshots().plain_child(&id.to_string())
}

/// Whose snapshot a directory of that name in [`snapshots`] is.
pub fn id_of_snapshot(file: &str) -> Option<SnapshotId> {
    file.parse().ok()
}

/// What is left of a snapshot that was collected: its descriptor, so that its
/// descendants keep their lineage.
pub fn tombstone(id: SnapshotId) -> RepoPath {
    snapshots().plain_child(&format!("{id}.gone"))
}

/// Whose tombstone a file of that name in [`snapshots`] is.
pub fn id_of_tombstone(file: &str) -> Option<SnapshotId> {
    file.strip_suffix(".gone")?.parse().ok()
}

/// A tombstone while it is being written.
pub fn tombstone_tmp(id: SnapshotId, op: OpNonce) -> RepoPath {
    snapshots().plain_child(&format!("{id}.gone-tmp-{op}"))
}

/// Is a file of that name in [`snapshots`] a tombstone that is being written?
pub fn is_tombstone_tmp(file: &str) -> bool {
    id_of_tombstone_tmp(file).is_some()
}

/// Whose tombstone is being written to a file of that name in [`snapshots`].
pub fn id_of_tombstone_tmp(file: &str) -> Option<SnapshotId> {
    let (id, op) = file.split_once(".gone-tmp-")?;
    op.parse::<OpNonce>().ok().and_then(|_| id.parse().ok())
}

/// What is left of many snapshots that were collected. Under a name that never comes
/// back, because its maker's nonce is in it.
pub fn ledger(op: OpNonce) -> RepoPath {
    snapshots().plain_child(&format!("{LEDGER}{op}"))
}

/// Whose ledger a file of that name in [`snapshots`] is.
pub fn op_of_ledger(file: &str) -> Option<OpNonce> {
    file.strip_prefix(LEDGER)?.parse().ok()
}

/// A ledger while it is being written.
pub fn ledger_tmp(op: OpNonce) -> RepoPath {
    snapshots().plain_child(&format!("{LEDGER_TMP}{op}"))
}

/// Whose ledger is being written to a file of that name in [`snapshots`].
pub fn op_of_ledger_tmp(file: &str) -> Option<OpNonce> {
    file.strip_prefix(LEDGER_TMP)?.parse().ok()
}

const LEDGER: &str = "ledger-";
const LEDGER_TMP: &str = "ledger-tmp-";

/// The directory of a snapshot that has its files.
pub const PAYLOAD: &str = "payload";
/// The file of a snapshot that says what is in its payload.
pub const MANIFEST: &str = "manifest";
/// Two files that an engine makes where a snapshot is built, to see whether one shares
/// the blocks of the other. Neither outlives the attempt.
pub const REFLINK_PROBE: [&str; 2] = ["probe-reflink-from", "probe-reflink-to"];

/// The full tree of the snapshot in `dir`.
pub fn snapshot_payload(dir: &RepoPath) -> RepoPath {
    dir.plain_child(PAYLOAD)
}

/// What the snapshot in `dir` consists of.
pub fn manifest(dir: &RepoPath) -> RepoPath {
    dir.plain_child(MANIFEST)
}

/// What the restore in `dir` does, path by path.
pub fn journal(dir: &RepoPath) -> RepoPath {
    dir.plain_child(JOURNAL)
}

const JOURNAL: &str = "journal";

/// Where a process that finishes the restore in `dir` keeps what is not in its place yet.
pub fn claimed_payload(dir: &RepoPath, op: OpNonce) -> RepoPath {
    dir.plain_child(&format!("{CLAIMED}{op}"))
}

/// Is that a tree of files of a restore, be it the one that it began with or one of
/// somebody who finishes it?
pub fn is_restored_payload(file: &str) -> bool {
    file == PAYLOAD || file.strip_prefix(CLAIMED).is_some_and(|op| op.parse::<OpNonce>().is_ok())
}

const CLAIMED: &str = "payload-";

/// Says, beside the state of a worktree, that a restore of its files is under way, or is
/// not known to have ended: hidden, so that the register does not take it for an entry.
pub fn restore_mark(worktree: &WorktreeName, op: OpNonce) -> RepoPath {
    register(worktree).plain_child(&format!("{RESTORE_MARK}{op}"))
}

/// Whose mark a file in a register's directory is, if it is one.
pub fn restore_mark_of(file: &str) -> Option<OpNonce> {
    file.strip_prefix(RESTORE_MARK)?.parse().ok()
}

const RESTORE_MARK: &str = ".restore-";

/// What is known about the snapshot in `dir`.
pub fn descriptor(dir: &RepoPath) -> RepoPath {
    dir.plain_child("descriptor.json")
}

/// There, and the snapshot in `dir` is visible.
pub fn ready(dir: &RepoPath) -> RepoPath {
    dir.plain_child("READY")
}

/// What becomes [`ready`] once the snapshot in `dir` is committed.
pub fn ready_staged(dir: &RepoPath) -> RepoPath {
    dir.plain_child("READY.staged")
}

/// A file of a snapshot in `dir` while it is being written.
pub fn snapshot_tmp(dir: &RepoPath, op: OpNonce) -> RepoPath {
    dir.plain_child(&format!("tmp-{op}"))
}

/// Directory of tags.
pub fn tags() -> RepoPath {
    control("tags")
}

/// One tag.
pub fn tag(name: &TagName) -> RepoPath {
    tags().plain_child(&format!("{name}.json"))
}

/// Which tag a file of that name in [`tags`] is.
pub fn tag_of_record(file: &str) -> Option<TagName> {
    file.strip_suffix(".json")?.parse().ok()
}

/// A tag while it is being written.
pub fn tag_tmp(name: &TagName, op: OpNonce) -> RepoPath {
    tags().plain_child(&format!("{name}.tmp-{op}"))
}

/// Which tag is being written to a file of that name in [`tags`].
pub fn tag_of_tmp(file: &str) -> Option<TagName> {
    let (name, op) = file.rsplit_once(".tmp-")?;
    op.parse::<OpNonce>().ok().and_then(|_| name.parse().ok())
}

/// Room that is given up when the volume is full.
pub fn room() -> RepoPath {
    control("room")
}

/// The room while it is being made.
pub fn room_tmp(op: OpNonce) -> RepoPath {
    control(&format!("room.tmp-{op}"))
}

/// Directory of audit logs: of each writer the one that it adds to and those that it
/// closed, and what stands for logs that were dropped.
pub fn audit() -> RepoPath {
    control("audit")
}

/// One audit log.
pub fn audit_log(log: impl Into<LogName>) -> RepoPath {
    audit().plain_child(&format!("{}.jsonl", log.into()))
}

/// Which log a file of that name in [`audit`] is.
pub fn log_of(file: &str) -> Option<LogName> {
    file.strip_suffix(".jsonl")?.parse().ok()
}

/// What stands for logs that are dropped, while it is being written.
pub fn anchor_tmp(op: OpNonce) -> RepoPath {
    control(&format!("anchor.tmp-{op}"))
}

/// Work in progress; each name says whose it is.
pub fn staging() -> RepoPath {
    control("staging")
}

/// One piece of work in progress. Which names there are, and what they say, is
/// the business of those who stage.
pub fn staged(name: &str) -> std::io::Result<RepoPath> {
    staging().child(name)
}

/// Files of a removed worktree, out of the way until they are deleted. The name
/// carries the register's last state, so that doctor knows whose they were.
pub fn removed_payload(name: &WorktreeName, last: Term, op: OpNonce) -> RepoPath {
    let Term { epoch, token } = last;
    staging().plain_child(&format!("removed-{name}-{epoch}-{token}-{op}"))
}

/// The same while it is not decided whether they were the removed worktree's: nobody
/// collects this name.
pub fn removing_payload(name: &WorktreeName, last: Term, op: OpNonce) -> RepoPath {
    let Term { epoch, token } = last;
    staging().plain_child(&format!("{REMOVING}{name}-{epoch}-{token}-{op}"))
}

/// Is a directory of that name in [`staging()`] one of [`removing_payload`]?
pub fn is_removing(file: &str) -> bool {
    file.starts_with(REMOVING)
}

const REMOVING: &str = "removing-";

/// Whose files a directory of that name in [`staging()`] is, and by which operation
/// they were removed in which epoch of its register.
pub fn removed_of(file: &str) -> Option<(WorktreeName, Epoch, OpNonce)> {
    let mut parts = file.strip_prefix("removed-")?.rsplitn(5, '-');
    let (op, token, salt) = (parts.next()?, parts.next()?, parts.next()?);
    let (counter, name) = (parts.next()?, parts.next()?);
    let Term { epoch, .. } = format!("{counter}-{salt}.{token}").parse().ok()?;
    Some((name.parse().ok()?, epoch, op.parse().ok()?))
}

/// Where repairs put what they take out of the way. Nothing here is ever
/// deleted by JVS.
pub fn quarantine() -> RepoPath {
    control("quarantine")
}

/// What one repair put aside: a directory of its own, so that names are kept.
pub fn quarantined(op: OpNonce) -> RepoPath {
    quarantine().plain_child(&op.to_string())
}

/// Files that were set aside, under a name that nothing swaps any more.
pub fn quarantined_files(dir: &RepoPath) -> RepoPath {
    dir.plain_child("files")
}

/// What the last probe of the mount came to.
pub fn probe_verdict() -> RepoPath {
    control("probe.json")
}

/// The verdict while it is being written.
pub fn probe_verdict_tmp(op: OpNonce) -> RepoPath {
    control(&format!("probe.json.tmp-{op}"))
}

/// Where the filesystem that `dir` is on is tested: hidden, so that a register
/// would not take it for an entry, and named after its maker.
pub fn probe_scratch(dir: &RepoPath, op: OpNonce) -> RepoPath {
    dir.plain_child(&format!("{PROBE_SCRATCH}{op}"))
}

/// Is a file of that name, in any directory, one of those?
pub fn is_probe_scratch(file: &str) -> bool {
    file.starts_with(PROBE_SCRATCH)
}

const PROBE_SCRATCH: &str = ".probe-";

/// Where a repository is built, in its future root.
pub fn init_staging(op: OpNonce) -> RepoPath {
    RepoPath::root().plain_child(&format!("{CONTROL_DIR}-init-{op}"))
}

/// The path of an entry of the root, if it is where a repository is built.
pub fn init_staging_named(name: &OsStr) -> Option<RepoPath> {
    let op = name.to_str()?.strip_prefix(CONTROL_DIR)?.strip_prefix("-init-")?;
    op.parse().ok().map(init_staging)
}

/// A worktree's payload.
pub fn payload(name: &WorktreeName) -> RepoPath {
    if name.is_main() {
        RepoPath::root().plain_child(MAIN_DIR)
    } else {
        worktrees().plain_child(name.as_str())
    }
}

/// Where the payloads of all worktrees but `main` are.
pub fn worktrees() -> RepoPath {
    RepoPath::root().plain_child(WORKTREES_DIR)
}

/// The directories of a new repository below the control directory, in the
/// order in which they are made.
pub fn skeleton() -> [RepoPath; 6] {
    [worktree_records(), locks(), snapshots(), tags(), audit(), staging()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every path that this module makes, for the worktree `feature`, the tag `v1`
    /// and ids that are all alike.
    fn all() -> Vec<RepoPath> {
        let name: WorktreeName = "feature".parse().expect("a name");
        let tag_name: TagName = "v1".parse().expect("a tag");
        let op = OpNonce([7; 8]);
        let holder = HolderNonce([8; 16]);
        let id = SnapshotId { created_ms: 1_763_283_600_123, random: 42 };
        let term: Term = "3-00ff.9".parse().expect("a term");
        let writer: crate::audit::WriterId = "070707070707070707070707".parse().expect("a writer");
        let hold = hold(holder, "repo", &name);
        let dir = snapshot(id);
        let in_the_repository = [
            control_dir(),
            format(),
            format_tmp(op),
            config(),
            config_tmp(op),
            worktree_records(),
            worktree_record(&name),
            worktree_record_tmp(&name, op),
            locks(),
            lock_record(&name),
            legacy_lock(&name),
            register(&name),
            buried_register(&name, term.epoch),
            takeover(&name),
            queue(&name),
            lock_tmp(&name, "mark"),
            lock_tmp_under(&name, term, op),
            register_birth(&name, op),
            legacy_lock_aside(&name, op),
            snapshots(),
            dir.clone(),
            tombstone(id),
            tombstone_tmp(id, op),
            ledger(op),
            ledger_tmp(op),
            snapshot_payload(&dir),
            manifest(&dir),
            journal(&dir),
            claimed_payload(&dir, op),
            restore_mark(&name, op),
            descriptor(&dir),
            ready(&dir),
            ready_staged(&dir),
            snapshot_tmp(&dir, op),
            tags(),
            tag(&tag_name),
            tag_tmp(&tag_name, op),
            room(),
            room_tmp(op),
            audit(),
            audit_log(writer),
            audit_log(LogName::Closed(writer, [6; 8])),
            audit_log(LogName::Anchor(op)),
            anchor_tmp(op),
            staging(),
            staged("name").expect("plain"),
            removed_payload(&name, term, op),
            removing_payload(&name, term, op),
            quarantine(),
            quarantined(op),
            quarantined_files(&quarantined(op)),
            probe_verdict(),
            probe_verdict_tmp(op),
            probe_scratch(&control_dir(), op),
            init_staging(op),
            payload(&WorktreeName::main()),
            payload(&name),
        ];
        let in_a_private_directory = [
            holders("family"),
            holds_of(holder),
            hold.clone(),
            hold_repository(&hold),
            hold_name(&hold),
            hold_birth(&hold, op),
            hold_stakes(&hold),
            hold_stakes(&hold).plain_child(&lost_hold_name(term)),
        ];
        in_the_repository.into_iter().chain(in_a_private_directory).collect()
    }

    #[test]
    fn every_path_is_the_one_that_is_on_disk() {
        let text: String = all().iter().map(|path| format!("{path}\n")).collect();
        assert_eq!(text, include_str!("layout/golden.txt"));
    }
}
