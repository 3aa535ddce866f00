//! What can be wrong: every check as data, and a thing that a check found.

use std::fmt;

use jvs_repo::name::WorktreeName;
use jvs_repo::store::RepoPath;
use serde::Serialize;

use crate::remedy::Remedy;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Notice,
    /// Drift: something is not as it should be, and nothing is lost by it.
    Warning,
    /// Something cannot be used, or cannot be trusted, until it is mended.
    Error,
}

impl Severity {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Notice => "notice",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// How thorough an examination is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// What can be told in milliseconds.
    Quick,
    /// Everything but the content of snapshots' files.
    Full,
}

use Depth::{Full, Quick};
use Severity::{Error, Notice, Warning};

macro_rules! checks {
    ($($variant:ident $code:literal $severity:ident $depth:ident $meaning:literal;)*) => {
        /// One thing that is looked for. Its code is stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Check { $(#[doc = $meaning] $variant,)* }

        impl Check {
            /// All checks, in the order of `spec/doctor.md`.
            pub const ALL: &'static [Check] = &[$(Check::$variant,)*];

            /// The code as users see it, `D_…`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Check::$variant => $code,)* }
            }

            /// How much it matters.
            pub const fn severity(self) -> Severity {
                match self { $(Check::$variant => $severity,)* }
            }

            /// Is it part of the quick look?
            pub const fn depth(self) -> Depth {
                match self { $(Check::$variant => $depth,)* }
            }

            /// One sentence for the reference.
            pub const fn meaning(self) -> &'static str {
                match self { $(Check::$variant => $meaning,)* }
            }
        }
    };
}

checks! {
    FormatMissing "D_FORMAT_MISSING" Error Quick "The file that names the repository's format is missing.";
    FormatInvalid "D_FORMAT_INVALID" Error Quick "The file that names the repository's format cannot be read.";
    FormatUnsupported "D_FORMAT_UNSUPPORTED" Error Quick "The repository was made by another version of JVS; nothing else is examined.";
    ConfigInvalid "D_CONFIG_INVALID" Error Quick "The configuration has an error; defaults are used for the examination.";
    DirectoryMissing "D_DIRECTORY_MISSING" Error Quick "A control directory is missing.";
    NotADirectory "D_NOT_A_DIRECTORY" Error Quick "Something else stands where a control directory should be.";
    Symlink "D_SYMLINK" Error Quick "A symlink lies in the control plane; none is ever followed.";
    Mode "D_MODE" Warning Full "The permissions of a control file let others write it, or its owner not use it.";
    Owner "D_OWNER" Warning Full "A control directory belongs to another user than the repository.";
    Unreadable "D_UNREADABLE" Error Quick "The filesystem refused to show a part of the control plane.";
    ForeignFile "D_FOREIGN_FILE" Notice Full "A file in the control plane that JVS did not put there.";
    RegisterMissing "D_REGISTER_MISSING" Error Quick "A worktree has no fence register.";
    RegisterEmpty "D_REGISTER_EMPTY" Error Quick "A fence register has no entry.";
    RegisterTwo "D_REGISTER_TWO_ENTRIES" Error Quick "A fence register has more than one entry.";
    RegisterUnparsable "D_REGISTER_UNPARSABLE" Error Quick "The entry of a fence register is not a state.";
    RegisterNewer "D_REGISTER_NEWER" Error Quick "The entry of a fence register is of a later format.";
    RegisterChain "D_REGISTER_CHAIN" Error Quick "A register's state does not follow from the history that it commits to.";
    RegisterRegressed "D_REGISTER_REGRESSED" Error Full "A register is older than what was committed through it: it was restored from a backup.";
    RecordMissing "D_RECORD_MISSING" Warning Quick "A lock is held and has no record.";
    RecordTorn "D_RECORD_TORN" Warning Quick "A lock record cannot be read.";
    RecordStale "D_RECORD_STALE" Warning Quick "A lock record is about a hold that is over.";
    RecordForeign "D_RECORD_FOREIGN" Warning Quick "A lock record is about another worktree, or about none that there is.";
    RecordLegacy "D_RECORD_LEGACY" Warning Quick "A lock of another tool lies among ours.";
    LockExpired "D_LOCK_EXPIRED" Notice Quick "A lease is over, but not for long enough to take it.";
    LockAbandoned "D_LOCK_ABANDONED" Warning Quick "A lease is over for long enough that whoever comes may take it.";
    FreezeStale "D_FREEZE_STALE" Warning Quick "A freeze is over and was not lifted.";
    KeeperDead "D_KEEPER_DEAD" Notice Quick "The process that renewed a lease has ended.";
    TicketStale "D_TICKET_STALE" Warning Quick "A ticket of a waiter whose process has ended.";
    TmpDead "D_TMP_DEAD" Warning Full "A temporary file that nobody can still need.";
    TmpUnproven "D_TMP_UNPROVEN" Notice Full "A temporary file that somebody may still be writing.";
    StagedDead "D_STAGED_DEAD" Warning Full "A snapshot that was begun and can never be committed.";
    StagedInFlight "D_STAGED_IN_FLIGHT" Notice Full "A snapshot that is being taken, or whose session has not been fenced yet.";
    StagedUnknown "D_STAGED_UNKNOWN" Notice Full "Work in progress whose name says nothing; never removed by itself.";
    RestoreDead "D_RESTORE_DEAD" Warning Full "What an interrupted restore left.";
    GcUnfinished "D_GC_UNFINISHED" Warning Full "What an interrupted garbage collection left.";
    RemovedFiles "D_REMOVED_FILES" Notice Full "Files of a removed worktree that are not deleted yet.";
    ReadyPending "D_READY_PENDING" Warning Quick "A committed snapshot that is not visible yet.";
    ReadyLost "D_READY_LOST" Error Full "A committed snapshot whose READY was removed.";
    ReadyMismatch "D_READY_MISMATCH" Error Full "READY is not that of its descriptor.";
    ReadyOutside "D_READY_OUTSIDE" Error Full "A visible snapshot that no worktree descends from.";
    LineageBroken "D_LINEAGE_BROKEN" Error Full "An ancestor of a head is missing or cannot be read.";
    LineageCycle "D_LINEAGE_CYCLE" Error Full "A snapshot counts as later than its own child.";
    DescriptorCorrupt "D_DESCRIPTOR_CORRUPT" Error Full "A snapshot's descriptor does not match its checksum.";
    ManifestCorrupt "D_MANIFEST_CORRUPT" Error Full "A snapshot's manifest does not match its descriptor.";
    PayloadMissing "D_PAYLOAD_MISSING" Error Full "A visible snapshot has no files directory.";
    SnapshotUnknown "D_SNAPSHOT_UNKNOWN" Notice Full "A directory among the snapshots that tells nothing; never removed by itself.";
    HeadMissing "D_HEAD_MISSING" Error Quick "The head of a worktree is not there.";
    TagDangling "D_TAG_DANGLING" Warning Full "A tag stands for a snapshot that is not there.";
    TagInvalid "D_TAG_INVALID" Error Full "A tag cannot be read.";
    WorktreeNoRecord "D_WORKTREE_NO_RECORD" Error Quick "A worktree has a register and files, but no metadata.";
    WorktreeRecordInvalid "D_WORKTREE_RECORD_INVALID" Error Quick "A worktree's metadata cannot be read.";
    WorktreeNoFiles "D_WORKTREE_NO_FILES" Error Quick "A worktree has metadata, but no directory for its files.";
    WorktreeHalfMade "D_WORKTREE_HALF_MADE" Notice Quick "A worktree is being made, or its making was interrupted.";
    WorktreeHalfRemoved "D_WORKTREE_HALF_REMOVED" Warning Quick "The removal or renaming of a worktree was interrupted.";
    PayloadUnknown "D_PAYLOAD_UNKNOWN" Notice Quick "A directory among the worktrees that is none.";
    ControlInPayload "D_CONTROL_IN_PAYLOAD" Warning Full "A control directory lies inside the files of a worktree.";
    AuditTorn "D_AUDIT_TORN" Notice Full "A line of an audit log was cut short by a crash, or renewals were not written down.";
    AuditGap "D_AUDIT_GAP" Error Full "The audit logs do not tell how a register came to its state.";
    AuditForged "D_AUDIT_FORGED" Error Full "A line of an audit log was changed, removed, moved or made up.";
    ClockUnsynchronised "D_CLOCK_UNSYNCHRONISED" Notice Quick "The kernel says that nothing steers this host's clock.";
    ClockInexact "D_CLOCK_INEXACT" Warning Quick "This host's clock may be off by more than half of what locks allow.";
    ClockSkew "D_CLOCK_SKEW" Warning Quick "Records of other hosts prove that clocks differ by more than half of what locks allow.";
    FsUntried "D_FS_UNTRIED" Notice Quick "Locking was never tried at length on this kind of filesystem.";
    FsOptionsUnknown "D_FS_OPTIONS_UNKNOWN" Notice Quick "The options of a JuiceFS mount cannot be read by this user.";
    FsReaddirCache "D_FS_READDIR_CACHE" Error Quick "A JuiceFS mount keeps directory listings.";
    FsWriteback "D_FS_WRITEBACK" Warning Quick "A JuiceFS mount acknowledges writes before they are uploaded.";
    FsCache "D_FS_CACHE" Warning Quick "A JuiceFS mount keeps names or attributes for long.";
    FsVersion "D_FS_VERSION" Warning Quick "A JuiceFS client older than the one that locking was tried on.";
    FsTrash "D_FS_TRASH" Notice Full "Snapshots that were collected still take up space in the trash of the JuiceFS volume.";
    FsReadOnly "D_FS_READ_ONLY" Error Quick "The filesystem is mounted read-only.";
    FsFull "D_FS_FULL" Warning Quick "The filesystem is nearly full.";
    FsPromise "D_FS_PROMISE" Error Quick "The last probe found that the filesystem breaks a promise that locking needs.";
    SessionStale "D_SESSION_STALE" Notice Full "A session of this user on this host left something that it did not come back for.";
    TagMissing "D_TAG_MISSING" Error Full "A tag was made and not deleted, and is not there.";
    Altered "D_ALTERED" Warning Full "A control file does not match its checksum.";
    AuditLinked "D_AUDIT_LINKED" Notice Full "An audit log has another name too; nothing more is added to it.";
    FsVolatile "D_FS_VOLATILE" Notice Quick "The filesystem keeps nothing over a reboot.";
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What became of a finding's remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Applied, and the next look did not find it any more.
    Repaired,
    /// Somebody else mended it meanwhile, or it could not be applied: why.
    Refused(String),
}

/// One thing that is wrong or worth knowing.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What was looked for.
    pub check: Check,
    /// How much it matters.
    pub severity: Severity,
    /// Where, relative to the repository's root.
    pub path: String,
    /// Whose, if it is one worktree's.
    pub worktree: Option<WorktreeName>,
    /// What was seen, in one sentence.
    pub message: String,
    /// What a person can do.
    pub advice: Option<String>,
    /// What doctor can do.
    pub remedy: Option<Remedy>,
    /// What came of it.
    pub outcome: Option<Outcome>,
}

impl Finding {
    /// What to do about it, in one sentence.
    pub fn remedy_text(&self) -> String {
        match (&self.remedy, &self.advice) {
            (Some(remedy), _) if remedy.is_cleanup() => {
                format!("`jvs doctor --strict` {remedy}")
            }
            (Some(remedy), _) => format!("`jvs doctor --strict --repair` {remedy}"),
            (None, Some(advice)) => advice.clone(),
            (None, None) => "nothing needs to be done".to_owned(),
        }
    }

    /// Was it mended?
    pub fn is_repaired(&self) -> bool {
        self.outcome == Some(Outcome::Repaired)
    }

    /// Does it make the repository unhealthy?
    pub fn counts(&self) -> bool {
        self.severity > Severity::Notice && !self.is_repaired()
    }
}

/// Collects what the checks find.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) findings: Vec<Finding>,
}

impl Report {
    /// Adds a finding; the answer may be told more.
    pub(crate) fn add(
        &mut self,
        check: Check,
        path: impl fmt::Display,
        message: impl Into<String>,
    ) -> Found<'_> {
        self.findings.push(Finding {
            check,
            severity: check.severity(),
            path: path.to_string(),
            worktree: None,
            message: message.into(),
            advice: None,
            remedy: None,
            outcome: None,
        });
        let at = self.findings.len() - 1;
        Found { finding: &mut self.findings[at] }
    }

    /// A part of the control plane that the filesystem did not show.
    pub(crate) fn unreadable(&mut self, path: &RepoPath, error: &dyn fmt::Display) {
        let message = format!("it cannot be looked at: {error}");
        // Whose it is and who asks is told by the store.
        let advice = match message.contains("permission denied") {
            true => "have its owner or root run `jvs doctor --strict`, or let you in",
            false => "check the mount and the permissions, then run `jvs doctor --strict` again",
        };
        self.add(Check::Unreadable, path, message).advice(advice);
    }
}

/// A finding that is being written down.
pub(crate) struct Found<'f> {
    finding: &'f mut Finding,
}

impl Found<'_> {
    pub(crate) fn of(self, worktree: &WorktreeName) -> Self {
        self.finding.worktree = Some(worktree.clone());
        self
    }

    pub(crate) fn advice(self, advice: impl Into<String>) -> Self {
        self.finding.advice = Some(advice.into());
        self
    }

    pub(crate) fn remedy(self, remedy: Remedy) -> Self {
        self.finding.remedy = Some(remedy);
        self
    }

    pub(crate) fn maybe(self, remedy: Option<Remedy>) -> Self {
        self.finding.remedy = remedy;
        self
    }

    pub(crate) fn severity(self, severity: Severity) -> Self {
        self.finding.severity = severity;
        self
    }
}
