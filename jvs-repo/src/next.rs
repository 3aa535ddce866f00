//! What a person can do next, as data. A library knows what would help and to what;
//! how that is typed is the command's to say, in one place (`jvs/src/hint.rs`), so
//! that a verb or an option can be renamed there alone.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::id::SnapshotId;
use crate::name::{TagName, WorktreeName};
use crate::store::RepoPath;

/// What to do about an error or a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// As these words say. They may name a tool of the system (`ls`, `df`), never a
    /// command or an option of `jvs`.
    Words(Cow<'static, str>),
    /// The first, or else the second.
    Either(Box<Next>, Box<Next>),

    // Whatever failed.
    /// Make room on the volume; at this path, if no repository is there yet.
    FreeSpace(Option<PathBuf>),
    /// See who asks and whose it is.
    SeeWhose,
    /// See that the mount is there and lets this user in, then try again.
    CheckMount,
    /// Read what the command line allows.
    ReadHelp,
    /// Read what it allows of locks.
    ReadHelpOfLocks,
    /// Report a bug, with the audit log.
    ReportBug,

    // The repository.
    /// Make a repository at this path.
    Init(PathBuf),
    /// Make a repository somewhere, or name the one that is meant.
    InitOrName,
    /// Name this repository, once or for good: another user may have put it there.
    NameRepository(PathBuf),
    /// Make it in another place; this is called so: `directory`.
    InitElsewhere(&'static str),
    /// Make what is in this directory a repository's first worktree.
    Adopt(PathBuf),
    /// The same where git's own directory would go along.
    AdoptWithGit(PathBuf),
    /// Go on with a repository that was half made in this directory.
    FinishInit(PathBuf),
    /// Let another process finish making this repository.
    AwaitInit(PathBuf),
    /// See what is in this repository.
    SeeRepository(PathBuf),
    /// Make a worktree of this repository instead.
    CreateWorktreeOf(PathBuf),
    /// Use a version that reads this format.
    UseVersionFor(u64),
    /// Choose a name of the alphabet, of at most this many bytes.
    ChooseValidName(usize),
    /// Remove the key on this line of the configuration, or put it right: this one is
    /// spelled much like it.
    FixKey(usize, Option<&'static str>),
    /// See which keys there are; this one is spelled much like what was asked for.
    ListKeys(Option<&'static str>),
    /// Set this key to its default.
    RestoreDefault(String, &'static str),
    /// Set this key to another value.
    ChooseValue(&'static str),
    /// Keep a copy of the audit log, then verify it.
    VerifyAudit,
    /// See all that verifying the audit log finds.
    VerifyAuditInFull,

    // Doctor.
    /// See what is wrong.
    AskDoctor,
    /// See what is missing and what would repair it.
    AskDoctorWhatIsMissing,
    /// See what this control file should be.
    AskDoctorAbout(RepoPath),
    /// See more than a quick look shows.
    AskDoctorForMore,
    /// Put a real file or directory in place of a symlink at or above this one, then see
    /// what else is wrong.
    ReplaceSymlink(RepoPath),
    /// Remove the symlink that is in place of a control directory, then see what is
    /// missing.
    RemoveSymlink,
    /// Let anyone who may read it look, or be let in.
    HaveOwnerAskDoctor,
    /// See to the mount and the permissions, then look again.
    CheckMountAndAskDoctor,
    /// See whether the filesystem keeps its promises.
    ProbeFilesystem,
    /// Have no writer in the worktree, then repair its register.
    StopWritersAndRepair,
    /// Repair the register before anything else.
    RepairRegisterFirst,
    /// Move it away, then repair.
    MoveAwayAndRepair,
    /// Let a repair end what was interrupted.
    RepairInterrupted,
    /// Repair once the mount answers.
    RepairOnceMounted,
    /// Say which of these is the head; `None` begins again.
    ChooseHead(Vec<Option<SnapshotId>>),
    /// Restore the head of this worktree from a backup, or choose another.
    RestoreOrChooseHead(WorktreeName),

    // Worktrees.
    /// See which there are.
    ListWorktrees,
    /// See which there are; this one is not.
    FindWorktree(WorktreeName),
    /// Choose a name that none has.
    ChooseUnusedName,
    /// Make another one.
    CreateWorktree,
    /// Make this one again, once what is half made is out of the way.
    CreateWorktreeAgain(WorktreeName),
    /// See who has it now, and whether it is still to go.
    SeeWhetherToRemove,
    /// Remove this one with its files.
    RemoveWithFiles(WorktreeName),
    /// Finish renaming the first to the second.
    FinishRename(WorktreeName, WorktreeName),
    /// Make this directory, the files of that worktree, and restore that snapshot to it.
    RestoreLostFiles(RepoPath, WorktreeName, SnapshotId),

    // Locks.
    /// Take it.
    Acquire(WorktreeName),
    /// Take it once its lease is over.
    AcquireLater(WorktreeName),
    /// Stop writing, then take it again if it is free.
    AcquireAgain(WorktreeName),
    /// Have its lock back, which the operation ended.
    AcquireBack(WorktreeName),
    /// See what others changed, then take it.
    LookAndAcquire(WorktreeName),
    /// Go on as the session that holds it, or let it end.
    GoOnAsHolder,
    /// Stand in line for it.
    StandInLine(WorktreeName),
    /// Stand in line for it, or see who holds it and why.
    WaitOrWhy(WorktreeName),
    /// Wait longer for it, or see who holds it and why.
    WaitLongerOrWhy(WorktreeName),
    /// Try again in so many milliseconds, when it can be taken over, or see why.
    TryLaterOrWhy(u64, WorktreeName),
    /// Watch it, here or by trying again in so many milliseconds.
    Watch(u64),
    /// Have this session wait for it first.
    HaveSessionWait(String, WorktreeName),
    /// See who has it and why.
    Why(WorktreeName),
    /// Stop writing to it, and see who has it.
    StopWriting(WorktreeName),
    /// See its state.
    Status(WorktreeName),
    /// See to disk and mount, then see its state.
    CheckDiskThenStatus(WorktreeName),
    /// See its state once the mount answers.
    StatusOnceMounted(WorktreeName),
    /// Let the freeze end, or see why it is there.
    AwaitThawOrWhy(WorktreeName),
    /// Have a service steer the clock, or lift the freeze.
    SteerClockOrUnfreeze(WorktreeName),
    /// Set the clocks right, or prove without them that the holder is idle.
    SetClocksOrObserve(WorktreeName),
    /// Let the lock of another tool end, or remove its file if the tool is gone for good.
    AwaitOtherTool(WorktreeName, String),
    /// Give the first back and take both at once.
    TakeBoth(WorktreeName, WorktreeName),
    /// Let the command end that holds the first, and run with both at once.
    RunWithBoth(WorktreeName, WorktreeName),
    /// Give it back where this session has it, or from here, or go on here as that session.
    ReleaseElsewhere(WorktreeName, String),
    /// End the commands that need it, and release it.
    ReleaseByForce(WorktreeName),
    /// Turn a rule on by which a live lock can be reclaimed.
    AllowReclaim,
    /// See who may force a lock.
    AskAdmin,
    /// Run within the run that has it.
    Join,
    /// Run beside the run that has it, or after it.
    JoinOrWait,

    // Snapshots.
    /// See which there are.
    ListSnapshots,
    /// Take the first one.
    TakeFirstSnapshot,
    /// See which files it has.
    ListFilesOf(SnapshotId),
    /// See whether it is there once the mount answers.
    SeeSnapshotOnceMounted(SnapshotId),
    /// See what differs in which.
    VerifyAll,
    /// See which tags there are.
    ListTags,
    /// Delete the tag to use its name again.
    DeleteTag(TagName),
    /// Give this snapshot its tag again.
    TagAgain(SnapshotId, TagName),
    /// Take a newer snapshot, so that this one is not the head any more.
    TakeNewerSnapshot,
    /// Forget this snapshot with its tags.
    ForgetTagged(SnapshotId),
    /// Collect although the clock is doubted, if it is right.
    TrustClock,
    /// Take what is there, quiet or not.
    TakeUnquiet,
    /// Have nobody write there, or take what may be torn.
    StopWritersOrTakeTorn,
    /// Close what writes there, or take what is there.
    CloseWritersOrTakeUnquiet,
    /// Let the engine be chosen.
    ChooseEngine,
    /// Install the program that clones, or copy.
    InstallClonerOrCopy,
    /// Compare what is there with the old files at this path.
    CompareWithOldFiles(RepoPath),
}

impl From<&'static str> for Next {
    fn from(words: &'static str) -> Self {
        Next::Words(words.into())
    }
}

impl From<String> for Next {
    fn from(words: String) -> Self {
        Next::Words(words.into())
    }
}

impl Next {
    /// This, or else `other`.
    pub fn or(self, other: Next) -> Self {
        Next::Either(Box::new(self), Box::new(other))
    }

    /// What helps against a filesystem that failed or refused.
    pub fn after_io(error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        if let Some(no_turn) = crate::audit::NoTurn::of(error) {
            return no_turn.next();
        }
        if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
            return "put the real file or directory back where the symlink is; none is followed here"
                .into();
        }
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Next::FreeSpace(None),
            ErrorKind::PermissionDenied => Next::SeeWhose,
            ErrorKind::CrossesDevices => {
                "a repository is on one filesystem: see with `findmnt` what is mounted in it, and \
                 unmount that"
                    .into()
            }
            _ => Next::CheckMount,
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn a_refusal_a_full_volume_and_a_bad_mount_have_a_hint_each() {
        let after = |errno: Errno| Next::after_io(&errno.into());
        for errno in [Errno::ACCESS, Errno::PERM] {
            assert_eq!(after(errno), Next::SeeWhose, "{errno}");
        }
        for errno in [Errno::NOSPC, Errno::DQUOT] {
            assert_eq!(after(errno), Next::FreeSpace(None), "{errno}");
        }
        for errno in [Errno::IO, Errno::ROFS] {
            assert_eq!(after(errno), Next::CheckMount, "{errno}");
        }
        for (errno, helps) in [(Errno::LOOP, "symlink"), (Errno::XDEV, "findmnt")] {
            let Next::Words(words) = after(errno) else { panic!("{errno}") };
            assert!(words.contains(helps), "{words}");
        }
    }
}
