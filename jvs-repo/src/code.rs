//! Every error code, its exit status and its meaning: the one table that the
//! command, `spec/codes.md` and the tidy tests are checked against.

use std::fmt;

use crate::next::Next;

macro_rules! codes {
    ($($variant:ident $name:literal $exit:literal $meaning:literal;)*) => {
        /// A stable error code: part of the public interface.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code { $(#[doc = $meaning] $variant,)* }

        impl Code {
            /// All codes, in the order of `spec/codes.md`.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The code as users see it, `E_…`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// The exit status of a command that fails with this code.
            pub const fn exit(self) -> u8 {
                match self { $(Code::$variant => $exit,)* }
            }

            /// One sentence for the reference table.
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$variant => $meaning,)* }
            }
        }
    };
}

codes! {
    Io "E_IO" 1 "The filesystem or the operating system refused or failed.";
    Internal "E_INTERNAL" 1 "A fact that JVS relies on was false; please report it.";
    OutcomeUnknown "E_OUTCOME_UNKNOWN" 1 "A change was neither confirmed nor refused, or may not survive a power cut; everything was left in place.";
    Exists "E_EXISTS" 1 "Something is already there and was not touched.";
    SnapshotNeeded "E_SNAPSHOT_NEEDED" 1 "Something needs the snapshot, so it was not forgotten.";
    UndoRefused "E_UNDO_REFUSED" 1 "The operation cannot be taken back, or not by this session; the reason is told.";
    ConfigInvalid "E_CONFIG_INVALID" 1 "The configuration has an unknown key or a bad value; the line is named.";
    RecordInvalid "E_RECORD_INVALID" 1 "A control file is torn, oversized or not what it should be.";
    AgentFileInvalid "E_AGENT_FILE_INVALID" 1 "A file of a coding agent is not what it should be, and was not changed.";
    SessionInvalid "E_SESSION_INVALID" 1 "The session id or its local secret cannot be used.";
    Permission "E_PERMISSION" 1 "This user may not use a part of the repository; the message names its owner and what would help.";
    LockConflict "E_LOCK_CONFLICT" 2 "Another session holds the lock and its lease is live.";
    LockFrozen "E_LOCK_FROZEN" 2 "An operator has frozen the worktree.";
    Deadlock "E_DEADLOCK" 2 "Sessions wait for each other in a cycle, and this wait is the newest.";
    NotFound "E_NOT_FOUND" 3 "No such worktree, snapshot, tag or key.";
    NotARepository "E_NOT_A_REPOSITORY" 3 "No repository here or in any directory above.";
    LockNotHeld "E_LOCK_NOT_HELD" 4 "This session does not hold the lock.";
    FencingMismatch "E_FENCING_MISMATCH" 5 "The lock was taken over: the fencing token is stale.";
    LockExpired "E_LOCK_EXPIRED" 6 "The lease ran out before it was renewed.";
    ClockSkewExceeded "E_CLOCK_SKEW_EXCEEDED" 7 "Clocks disagree by more than max_clock_skew_ms.";
    ConsistencyUnavailable "E_CONSISTENCY_UNAVAILABLE" 8 "Files changed while they were being captured.";
    PartialSnapshot "E_PARTIAL_SNAPSHOT" 9 "The snapshot is incomplete and was not published.";
    UnsafeFilesystem "E_UNSAFE_FILESYSTEM" 10 "The filesystem does not keep a promise that locking needs.";
    FenceCorrupt "E_FENCE_CORRUPT" 10 "The fence register does not have exactly one valid entry.";
    FormatUnsupported "E_FORMAT_UNSUPPORTED" 10 "The repository was made by another version of JVS.";
    DescriptorCorrupt "E_DESCRIPTOR_CORRUPT" 11 "A snapshot descriptor does not match its checksum.";
    PayloadHashMismatch "E_PAYLOAD_HASH_MISMATCH" 11 "Snapshot content differs from its manifest.";
    LineageBroken "E_LINEAGE_BROKEN" 11 "A snapshot's parent is missing or the lineage has a cycle.";
    AuditChainBroken "E_AUDIT_CHAIN_BROKEN" 11 "The audit log has a gap, a forgery or a torn line.";
    DriftRemains "E_DRIFT_REMAINS" 12 "Doctor found problems that remain.";
    NameInvalid "E_NAME_INVALID" 13 "A name has characters or a length that JVS does not allow.";
    PathEscape "E_PATH_ESCAPE" 13 "A path leaves the repository or goes through a symlink.";
    Usage "E_USAGE" 64 "The command line is wrong.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error that knows its stable code and what the user can do next.
pub trait Coded: std::error::Error {
    /// The stable code.
    fn code(&self) -> Code;

    /// What to do next; the command spells it.
    fn next(&self) -> Option<Next> {
        None
    }

    /// Machine-readable details for `--json` (an object), if any.
    fn details(&self) -> Option<serde_json::Value> {
        None
    }
}

/// What an error of several layers says: something of its own, or no more than the
/// error of a layer below.
#[derive(Debug)]
pub enum Layer<'e> {
    /// This code.
    Own(Code),
    /// All that this one says.
    Below(&'e dyn Coded),
}

/// An error that passes on, in some of its cases, what another says: which, is said
/// once, and [`Coded`] follows from it.
pub trait Layered: std::error::Error {
    /// Who speaks.
    fn layer(&self) -> Layer<'_>;

    /// What to do next where it speaks for itself.
    fn own_next(&self) -> Option<Next> {
        None
    }

    /// The details of where it speaks for itself.
    fn own_details(&self) -> Option<serde_json::Value> {
        None
    }
}

impl<E: Layered> Coded for E {
    fn code(&self) -> Code {
        match self.layer() {
            Layer::Own(code) => code,
            Layer::Below(error) => error.code(),
        }
    }

    fn next(&self) -> Option<Next> {
        match self.layer() {
            Layer::Own(_) => self.own_next(),
            Layer::Below(error) => error.next(),
        }
    }

    fn details(&self) -> Option<serde_json::Value> {
        match self.layer() {
            Layer::Own(_) => self.own_details(),
            Layer::Below(error) => error.details(),
        }
    }
}

/// The code of a bare `io::Error`: a symlink in the control plane is an escape, a
/// refusal is about who asks and never about what is there, a rename that the
/// filesystem does not know makes it unsafe, what the audit log refuses is told as
/// what it is. Everything else is plain `E_IO`.
pub fn code_of_io(error: &std::io::Error) -> Code {
    use rustix::io::Errno;
    if let Some(no_turn) = crate::audit::NoTurn::of(error) {
        return no_turn.code();
    }
    if let Some(inner) = error.get_ref() {
        if inner.is::<crate::audit::Spoilt>() {
            return Code::AuditChainBroken;
        }
        if inner.is::<crate::audit::EventTooLong>() {
            return Code::Usage;
        }
        if inner.is::<crate::store::NoFlaggedRename>() {
            return Code::UnsafeFilesystem;
        }
        if inner.is::<crate::store::InDoubt>() {
            return Code::OutcomeUnknown;
        }
    }
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::LOOP) => Code::PathEscape,
        _ if error.kind() == std::io::ErrorKind::PermissionDenied => Code::Permission,
        _ => Code::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_well_formed() {
        let mut names: Vec<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert!(
            names
                .iter()
                .all(|n| n.starts_with("E_")
                    && n.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'))
        );
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len(), "a code appears twice");
    }

    #[test]
    fn a_refusal_is_about_who_asks_and_never_plain_io() {
        use rustix::io::Errno;
        for errno in [Errno::ACCESS, Errno::PERM] {
            assert_eq!(code_of_io(&errno.into()), Code::Permission);
        }
        // A rename between two filesystems leaves nothing.
        for errno in [Errno::IO, Errno::ROFS, Errno::STALE, Errno::XDEV] {
            assert_eq!(code_of_io(&errno.into()), Code::Io);
        }
    }

    #[test]
    fn no_failure_exits_with_zero() {
        assert!(Code::ALL.iter().all(|c| c.exit() != 0));
    }
}
