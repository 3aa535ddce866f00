//! The checks: one row per check, one file per family.
//!
//! A row is all that is declared about a check. Its id is its number in
//! `spec/doctor.md` and stays its own wherever the row is; its depth is held
//! to what a quick look and a full examination of broken repositories find.

mod access;
mod audit;
mod clock;
pub(crate) mod control;
mod filesystem;
mod lock;
mod queue;
mod record;
mod register;
pub(crate) mod seal;
mod snapshot;
mod staging;
mod tag;
pub(crate) mod takeover;
mod tmp;
mod worktree;

use std::fmt;

use serde::Serialize;

use crate::finding::FindingCollector;
use crate::survey::Survey;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Notice,
    /// Drift: something is not as it should be, and nothing is lost by it.
    Warning,
    /// Something cannot be used, or cannot be trusted, until it is repaired.
    Error,
}

impl Severity {
    /// The word that users see.
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
    /// What takes milliseconds.
    Quick,
    /// Everything but the content of snapshots' files.
    Full,
}

/// Looks at what was surveyed and reports what is wrong with it.
type Look = fn(&Survey<'_, '_>, &mut FindingCollector);

macro_rules! families {
    ($($family:ident $title:literal quick [$($quick:path),*] full [$($full:path),*];)*) => {
        /// Checks that look at the same things: one file per family.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Family { $(#[doc = $title] $family,)* }

        impl Family {
            /// All families, in the order in which they are run.
            pub const ALL: &'static [Family] = &[$(Family::$family,)*];

            /// What it looks at, for the reference.
            pub const fn title(self) -> &'static str {
                match self { $(Family::$family => $title,)* }
            }

            /// What it does in every examination.
            pub(crate) fn quick(self) -> &'static [Look] {
                match self { $(Family::$family => &[$($quick),*],)* }
            }

            /// What it does in a full examination as well.
            pub(crate) fn full(self) -> &'static [Look] {
                match self { $(Family::$family => &[$($full),*],)* }
            }
        }
    };
}

families! {
    Control "The control directory" quick [control::quick] full [];
    Access "Permissions and strangers" quick [] full [access::full];
    Register "Fence registers" quick [register::quick] full [register::full];
    Record "Lock records" quick [record::quick] full [];
    Lock "Leases and freezes" quick [lock::quick] full [];
    Queue "The queue" quick [queue::quick] full [queue::full];
    Tmp "Temporary files" quick [] full [tmp::full, takeover::full];
    Staging "Work in progress" quick [] full [staging::full];
    Snapshot "Snapshots" quick [snapshot::quick] full [snapshot::full];
    Tag "Tags" quick [] full [tag::full];
    Worktree "Worktrees" quick [worktree::quick] full [worktree::full];
    // After the registers: one that is rebuilt anyway is not reported twice.
    Audit "The audit log" quick [] full [audit::full];
    Seal "Checksums" quick [] full [seal::full];
    Clock "Clocks" quick [clock::quick] full [];
    Filesystem "The filesystem" quick [filesystem::quick] full [filesystem::full];
    // Their files are outside the repository: the command looks for them.
    Session "Sessions" quick [] full [];
}

macro_rules! checks {
    ($($id:literal $variant:ident $code:literal $severity:ident $depth:ident $family:ident
       $meaning:literal;)*) => {
        /// One thing that is looked for. Its code and its id are stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Check { $(#[doc = $meaning] $variant,)* }

        impl Check {
            /// All checks, by family.
            pub const ALL: &'static [Check] = &[$(Check::$variant,)*];

            /// Its number in `spec/doctor.md`.
            pub const fn id(self) -> u32 {
                match self { $(Check::$variant => $id,)* }
            }

            /// The code that users see, `D_…`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Check::$variant => $code,)* }
            }

            /// How much it matters, unless what was found says otherwise.
            pub const fn severity(self) -> Severity {
                match self { $(Check::$variant => Severity::$severity,)* }
            }

            /// The least thorough examination that can find it.
            pub const fn depth(self) -> Depth {
                match self { $(Check::$variant => Depth::$depth,)* }
            }

            /// Where it belongs.
            pub const fn family(self) -> Family {
                match self { $(Check::$variant => Family::$family,)* }
            }

            /// One sentence for the reference.
            pub const fn meaning(self) -> &'static str {
                match self { $(Check::$variant => $meaning,)* }
            }
        }
    };
}

checks! {
    1 FormatMissing "D_FORMAT_MISSING" Error Quick Control "The file that names the repository's format is missing.";
    2 FormatInvalid "D_FORMAT_INVALID" Error Quick Control "The file that names the repository's format cannot be read.";
    3 FormatUnsupported "D_FORMAT_UNSUPPORTED" Error Quick Control "The repository was made by another version of JVS; nothing else is examined.";
    4 ConfigInvalid "D_CONFIG_INVALID" Error Quick Control "The configuration has an error; defaults are used for the examination.";
    5 DirectoryMissing "D_DIRECTORY_MISSING" Error Quick Control "A control directory is missing.";
    6 NotADirectory "D_NOT_A_DIRECTORY" Error Quick Control "Something else is where a control directory should be.";
    7 Symlink "D_SYMLINK" Error Quick Control "A symlink inside the control directory; JVS never follows one.";
    10 Unreadable "D_UNREADABLE" Error Quick Control "The filesystem refused to show a part of the control plane.";

    8 Mode "D_MODE" Warning Full Access "Everybody can write a control file, or its owner cannot use it.";
    9 Owner "D_OWNER" Warning Full Access "A control directory belongs to another user than the repository.";
    11 ForeignFile "D_FOREIGN_FILE" Notice Full Access "A file in the control directory that JVS did not put there.";

    12 RegisterMissing "D_REGISTER_MISSING" Error Quick Register "A worktree has no fence register.";
    13 RegisterEmpty "D_REGISTER_EMPTY" Error Quick Register "A fence register has no entry.";
    14 RegisterTwo "D_REGISTER_TWO_ENTRIES" Error Quick Register "A fence register has more than one entry.";
    15 RegisterUnparsable "D_REGISTER_UNPARSABLE" Error Quick Register "The entry of a fence register is not a state.";
    16 RegisterNewer "D_REGISTER_NEWER" Error Quick Register "The entry of a fence register was written by a later version of JVS.";
    17 RegisterChain "D_REGISTER_CHAIN" Error Quick Register "A register's state does not follow from the history that it commits to.";
    18 RegisterRegressed "D_REGISTER_REGRESSED" Error Full Register "A register is older than what was committed through it: it was restored from a backup.";

    19 RecordMissing "D_RECORD_MISSING" Warning Quick Record "A lock is held and has no record.";
    20 RecordTorn "D_RECORD_TORN" Warning Quick Record "A lock record cannot be read.";
    21 RecordStale "D_RECORD_STALE" Warning Quick Record "A lock record describes a hold that is over.";
    22 RecordForeign "D_RECORD_FOREIGN" Warning Quick Record "A lock record describes another worktree, or one that does not exist.";
    23 RecordLegacy "D_RECORD_LEGACY" Warning Quick Record "A lock that another tool wrote.";

    24 LockExpired "D_LOCK_EXPIRED" Notice Quick Lock "A lease has ended, but not long enough ago for another session to take the lock.";
    25 LockAbandoned "D_LOCK_ABANDONED" Warning Quick Lock "A lease ended so long ago that any session may take the lock.";
    26 FreezeStale "D_FREEZE_STALE" Warning Quick Lock "A freeze has ended and was not lifted.";
    27 KeeperDead "D_KEEPER_DEAD" Notice Quick Lock "The process that renewed a lease has ended.";

    28 TicketStale "D_TICKET_STALE" Warning Quick Queue "A place in the queue whose process has ended.";

    29 TmpDead "D_TMP_DEAD" Warning Full Tmp "A temporary file that nobody can still need.";
    30 TmpUnproven "D_TMP_UNPROVEN" Notice Full Tmp "A temporary file that somebody may still be writing.";

    31 StagedDead "D_STAGED_DEAD" Warning Full Staging "A snapshot that was begun and can never be committed.";
    32 StagedInFlight "D_STAGED_IN_FLIGHT" Notice Full Staging "A snapshot that is being taken, or whose session has not been fenced yet.";
    33 StagedUnknown "D_STAGED_UNKNOWN" Notice Full Staging "Work in progress under a name that JVS does not use; doctor never removes it.";
    34 RestoreDead "D_RESTORE_DEAD" Warning Full Staging "Files that an interrupted restore left behind.";
    78 RestoreUnfinished "D_RESTORE_UNFINISHED" Warning Full Staging "A restore in place that was interrupted after it had begun to replace files.";
    35 GcUnfinished "D_GC_UNFINISHED" Warning Full Staging "Files that an interrupted garbage collection left behind.";
    36 RemovedFiles "D_REMOVED_FILES" Notice Full Staging "Files of a removed worktree that are not deleted yet.";

    37 ReadyPending "D_READY_PENDING" Warning Quick Snapshot "A committed snapshot that is not visible yet.";
    38 ReadyLost "D_READY_LOST" Error Quick Snapshot "A committed snapshot whose READY was removed.";
    39 ReadyMismatch "D_READY_MISMATCH" Error Full Snapshot "READY does not match the snapshot's descriptor.";
    40 ReadyOutside "D_READY_OUTSIDE" Error Full Snapshot "A visible snapshot that is not an ancestor of any worktree's head.";
    41 LineageBroken "D_LINEAGE_BROKEN" Error Full Snapshot "An ancestor of a head is missing or cannot be read.";
    42 LineageCycle "D_LINEAGE_CYCLE" Error Full Snapshot "A snapshot counts as later than its own child.";
    43 DescriptorCorrupt "D_DESCRIPTOR_CORRUPT" Error Full Snapshot "A snapshot's descriptor does not match its checksum.";
    79 LedgerCorrupt "D_LEDGER_CORRUPT" Error Full Snapshot "A file with what is left of collected snapshots does not match its digest.";
    44 ManifestCorrupt "D_MANIFEST_CORRUPT" Error Full Snapshot "A snapshot's manifest does not match its descriptor.";
    45 PayloadMissing "D_PAYLOAD_MISSING" Error Full Snapshot "A visible snapshot has no files directory.";
    46 SnapshotUnknown "D_SNAPSHOT_UNKNOWN" Notice Full Snapshot "A directory below snapshots/ without a usable descriptor; doctor never removes it.";
    47 HeadMissing "D_HEAD_MISSING" Error Quick Snapshot "The snapshot that is the head of a worktree is missing.";

    48 TagDangling "D_TAG_DANGLING" Warning Full Tag "A tag points to a snapshot that does not exist.";
    49 TagInvalid "D_TAG_INVALID" Error Full Tag "A tag cannot be read.";
    74 TagMissing "D_TAG_MISSING" Error Full Tag "A tag was created and never deleted, and is missing.";

    50 WorktreeNoRecord "D_WORKTREE_NO_RECORD" Error Quick Worktree "A worktree has a register and files, but no metadata.";
    51 WorktreeRecordInvalid "D_WORKTREE_RECORD_INVALID" Error Quick Worktree "A worktree's metadata cannot be read.";
    52 WorktreeNoFiles "D_WORKTREE_NO_FILES" Error Quick Worktree "A worktree has metadata, but no directory for its files.";
    53 WorktreeHalfMade "D_WORKTREE_HALF_MADE" Notice Quick Worktree "A worktree is being created, or its creation was interrupted.";
    54 WorktreeHalfRemoved "D_WORKTREE_HALF_REMOVED" Warning Quick Worktree "The removal or renaming of a worktree was interrupted.";
    55 PayloadUnknown "D_PAYLOAD_UNKNOWN" Notice Quick Worktree "A directory below worktrees/ that is not a worktree.";
    56 ControlInPayload "D_CONTROL_IN_PAYLOAD" Warning Full Worktree "A control directory inside the files of a worktree.";

    57 AuditTorn "D_AUDIT_TORN" Notice Full Audit "A line of an audit log was cut short by a crash, or renewals were not logged.";
    58 AuditGap "D_AUDIT_GAP" Error Full Audit "The audit logs do not show how a register reached its state.";
    59 AuditForged "D_AUDIT_FORGED" Error Full Audit "A line of an audit log was changed, removed, moved or invented.";
    76 AuditLinked "D_AUDIT_LINKED" Notice Full Audit "An audit log has a second name, so nothing is appended to it any more.";

    75 Altered "D_ALTERED" Warning Full Seal "A control file does not match its checksum.";

    60 ClockUnsynchronised "D_CLOCK_UNSYNCHRONISED" Notice Quick Clock "According to the kernel nothing synchronises this host's clock.";
    61 ClockInexact "D_CLOCK_INEXACT" Warning Quick Clock "This host's clock may be wrong by more than half of the skew that locks tolerate.";
    62 ClockSkew "D_CLOCK_SKEW" Warning Quick Clock "Records of other hosts prove that clocks differ by more than half of the skew that locks tolerate.";

    63 FsUntried "D_FS_UNTRIED" Notice Quick Filesystem "Locking has not been tested at length on this kind of filesystem.";
    77 FsVolatile "D_FS_VOLATILE" Notice Quick Filesystem "The filesystem loses its files at a reboot.";
    64 FsOptionsUnknown "D_FS_OPTIONS_UNKNOWN" Notice Quick Filesystem "The options of a JuiceFS mount cannot be read by this user.";
    65 FsReaddirCache "D_FS_READDIR_CACHE" Error Quick Filesystem "A JuiceFS mount caches directory listings.";
    66 FsWriteback "D_FS_WRITEBACK" Warning Quick Filesystem "A JuiceFS mount acknowledges writes before they are uploaded.";
    67 FsCache "D_FS_CACHE" Warning Quick Filesystem "A JuiceFS mount caches names or attributes for a long time.";
    68 FsVersion "D_FS_VERSION" Warning Quick Filesystem "A JuiceFS client older than the one that locking was tested with.";
    69 FsTrash "D_FS_TRASH" Notice Full Filesystem "Snapshots that were collected still take up space in the trash of the JuiceFS volume.";
    70 FsReadOnly "D_FS_READ_ONLY" Error Quick Filesystem "The filesystem is mounted read-only.";
    71 FsFull "D_FS_FULL" Warning Quick Filesystem "The filesystem is nearly full.";
    72 FsPromise "D_FS_PROMISE" Error Quick Filesystem "The last probe found that the filesystem breaks a promise that locking needs.";

    73 SessionStale "D_SESSION_STALE" Notice Full Session "A session of this user on this host left a file behind that it did not come back for.";
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_checks_share_an_id_or_a_code() {
        let ids: BTreeSet<_> = Check::ALL.iter().map(|check| check.id()).collect();
        let codes: BTreeSet<_> = Check::ALL.iter().map(|check| check.as_str()).collect();
        assert_eq!((ids.len(), codes.len()), (Check::ALL.len(), Check::ALL.len()));
    }

    #[test]
    fn the_rows_of_a_family_stand_together() {
        assert!(Check::ALL.is_sorted_by_key(|check| check.family()));
    }
}
