"""What goes wrong: one exception for each code of ``spec/codes.md``."""

from typing import Any, Dict, Mapping, Optional, Type


class JvsError(Exception):
    """A command failed. Also what a code means that this version does not know."""

    #: The code.
    code: str = "E_INTERNAL"
    #: The exit status of the command.
    exit: int = 1
    #: What to do next: the commands in it work as they are.
    hint: Optional[str]
    #: What there is to know beyond that, which depends on the code.
    details: Mapping[str, Any]

    def __init__(
        self,
        message: str,
        *,
        hint: Optional[str] = None,
        details: Optional[Mapping[str, Any]] = None,
    ) -> None:
        super().__init__(message)
        #: What went wrong, in a sentence.
        self.message = message
        self.hint = hint
        self.details = dict(details or {})

    def __str__(self) -> str:
        hint = f"\nhint: {self.hint}" if self.hint else ""
        return f"[{self.code}] {self.message}{hint}"

    def __reduce__(self) -> Any:
        # Options have no place in what pickle keeps of an exception.
        return (_again, (type(self), self.message, self.hint, self.details, self.code, self.exit))


class LockLost(JvsError):
    """The lock is not this process's any more."""


class ProgramNotFound(OSError):
    """There is no program ``jvs``."""


class BadAnswer(Exception):
    """The program answered something that is no answer of jvs."""


def _again(
    kind: Type[JvsError],
    message: str,
    hint: Optional[str],
    details: Mapping[str, Any],
    code: str,
    status: int,
) -> JvsError:
    error = kind(message, hint=hint, details=details)
    error.code, error.exit = code, status
    return error


def error_for(said: Mapping[str, Any], status: int) -> JvsError:
    """The exception of what a command said when it failed."""
    code = said["code"]
    kind = BY_CODE.get(code, JvsError)
    return _again(kind, said["message"], said["hint"], said["details"], code, status)


# --- from here on made of spec/codes.md, by python/tests/codes.py


class Io(JvsError):
    """The filesystem or the operating system refused or failed."""

    code = "E_IO"
    exit = 1


class Internal(JvsError):
    """A fact that JVS relies on was false; please report it."""

    code = "E_INTERNAL"
    exit = 1


class OutcomeUnknown(JvsError):
    """A change was neither confirmed nor refused, or may not survive a power cut; everything was left in place."""

    code = "E_OUTCOME_UNKNOWN"
    exit = 1


class Exists(JvsError):
    """Something is already there and was not touched."""

    code = "E_EXISTS"
    exit = 1


class SnapshotNeeded(JvsError):
    """Something needs the snapshot, so it was not forgotten."""

    code = "E_SNAPSHOT_NEEDED"
    exit = 1


class UndoRefused(JvsError):
    """The operation cannot be taken back, or not by this session; the reason is told."""

    code = "E_UNDO_REFUSED"
    exit = 1


class ConfigInvalid(JvsError):
    """The configuration has an unknown key or a bad value; the line is named."""

    code = "E_CONFIG_INVALID"
    exit = 1


class RecordInvalid(JvsError):
    """A control file is torn, oversized or not what it should be."""

    code = "E_RECORD_INVALID"
    exit = 1


class AgentFileInvalid(JvsError):
    """A file of a coding agent is not what it should be, and was not changed."""

    code = "E_AGENT_FILE_INVALID"
    exit = 1


class SessionInvalid(JvsError):
    """The session id or its local secret cannot be used."""

    code = "E_SESSION_INVALID"
    exit = 1


class Permission(JvsError):
    """This user may not use a part of the repository; the message names its owner and what would help."""

    code = "E_PERMISSION"
    exit = 1


class LockConflict(JvsError):
    """Another session holds the lock and its lease is live."""

    code = "E_LOCK_CONFLICT"
    exit = 2


class LockFrozen(JvsError):
    """An operator has frozen the worktree."""

    code = "E_LOCK_FROZEN"
    exit = 2


class Deadlock(JvsError):
    """Sessions wait for each other in a cycle, and this wait is the newest."""

    code = "E_DEADLOCK"
    exit = 2


class NotFound(JvsError):
    """No such worktree, snapshot, tag or key."""

    code = "E_NOT_FOUND"
    exit = 3


class NotARepository(JvsError):
    """No repository here or in any directory above."""

    code = "E_NOT_A_REPOSITORY"
    exit = 3


class LockNotHeld(LockLost):
    """This session does not hold the lock."""

    code = "E_LOCK_NOT_HELD"
    exit = 4


class FencingMismatch(LockLost):
    """The lock was taken over: the fencing token is stale."""

    code = "E_FENCING_MISMATCH"
    exit = 5


class LockExpired(LockLost):
    """The lease ran out before it was renewed."""

    code = "E_LOCK_EXPIRED"
    exit = 6


class ClockSkewExceeded(JvsError):
    """Clocks disagree by more than max_clock_skew_ms."""

    code = "E_CLOCK_SKEW_EXCEEDED"
    exit = 7


class ConsistencyUnavailable(JvsError):
    """Files changed while they were being captured."""

    code = "E_CONSISTENCY_UNAVAILABLE"
    exit = 8


class PartialSnapshot(JvsError):
    """The snapshot is incomplete and was not published."""

    code = "E_PARTIAL_SNAPSHOT"
    exit = 9


class UnsafeFilesystem(JvsError):
    """The filesystem does not keep a promise that locking needs."""

    code = "E_UNSAFE_FILESYSTEM"
    exit = 10


class FenceCorrupt(JvsError):
    """The fence register does not have exactly one valid entry."""

    code = "E_FENCE_CORRUPT"
    exit = 10


class FormatUnsupported(JvsError):
    """The repository was made by another version of JVS."""

    code = "E_FORMAT_UNSUPPORTED"
    exit = 10


class DescriptorCorrupt(JvsError):
    """A snapshot descriptor does not match its checksum."""

    code = "E_DESCRIPTOR_CORRUPT"
    exit = 11


class PayloadHashMismatch(JvsError):
    """Snapshot content differs from its manifest."""

    code = "E_PAYLOAD_HASH_MISMATCH"
    exit = 11


class LineageBroken(JvsError):
    """A snapshot's parent is missing or the lineage has a cycle."""

    code = "E_LINEAGE_BROKEN"
    exit = 11


class AuditChainBroken(JvsError):
    """The audit log has a gap, a forgery or a torn line."""

    code = "E_AUDIT_CHAIN_BROKEN"
    exit = 11


class DriftRemains(JvsError):
    """Doctor found problems that remain."""

    code = "E_DRIFT_REMAINS"
    exit = 12


class NameInvalid(JvsError):
    """A name has characters or a length that JVS does not allow."""

    code = "E_NAME_INVALID"
    exit = 13


class PathEscape(JvsError):
    """A path leaves the repository or goes through a symlink."""

    code = "E_PATH_ESCAPE"
    exit = 13


class Usage(JvsError):
    """The command line is wrong."""

    code = "E_USAGE"
    exit = 64


#: The exception of each code.
BY_CODE: Dict[str, Type[JvsError]] = {
    "E_IO": Io,
    "E_INTERNAL": Internal,
    "E_OUTCOME_UNKNOWN": OutcomeUnknown,
    "E_EXISTS": Exists,
    "E_SNAPSHOT_NEEDED": SnapshotNeeded,
    "E_UNDO_REFUSED": UndoRefused,
    "E_CONFIG_INVALID": ConfigInvalid,
    "E_RECORD_INVALID": RecordInvalid,
    "E_AGENT_FILE_INVALID": AgentFileInvalid,
    "E_SESSION_INVALID": SessionInvalid,
    "E_PERMISSION": Permission,
    "E_LOCK_CONFLICT": LockConflict,
    "E_LOCK_FROZEN": LockFrozen,
    "E_DEADLOCK": Deadlock,
    "E_NOT_FOUND": NotFound,
    "E_NOT_A_REPOSITORY": NotARepository,
    "E_LOCK_NOT_HELD": LockNotHeld,
    "E_FENCING_MISMATCH": FencingMismatch,
    "E_LOCK_EXPIRED": LockExpired,
    "E_CLOCK_SKEW_EXCEEDED": ClockSkewExceeded,
    "E_CONSISTENCY_UNAVAILABLE": ConsistencyUnavailable,
    "E_PARTIAL_SNAPSHOT": PartialSnapshot,
    "E_UNSAFE_FILESYSTEM": UnsafeFilesystem,
    "E_FENCE_CORRUPT": FenceCorrupt,
    "E_FORMAT_UNSUPPORTED": FormatUnsupported,
    "E_DESCRIPTOR_CORRUPT": DescriptorCorrupt,
    "E_PAYLOAD_HASH_MISMATCH": PayloadHashMismatch,
    "E_LINEAGE_BROKEN": LineageBroken,
    "E_AUDIT_CHAIN_BROKEN": AuditChainBroken,
    "E_DRIFT_REMAINS": DriftRemains,
    "E_NAME_INVALID": NameInvalid,
    "E_PATH_ESCAPE": PathEscape,
    "E_USAGE": Usage,
}

__all__ = [
    "AgentFileInvalid",
    "AuditChainBroken",
    "BadAnswer",
    "ClockSkewExceeded",
    "ConfigInvalid",
    "ConsistencyUnavailable",
    "Deadlock",
    "DescriptorCorrupt",
    "DriftRemains",
    "Exists",
    "FenceCorrupt",
    "FencingMismatch",
    "FormatUnsupported",
    "Internal",
    "Io",
    "JvsError",
    "LineageBroken",
    "LockConflict",
    "LockExpired",
    "LockFrozen",
    "LockLost",
    "LockNotHeld",
    "NameInvalid",
    "NotARepository",
    "NotFound",
    "OutcomeUnknown",
    "PartialSnapshot",
    "PathEscape",
    "PayloadHashMismatch",
    "Permission",
    "ProgramNotFound",
    "RecordInvalid",
    "SessionInvalid",
    "SnapshotNeeded",
    "UndoRefused",
    "UnsafeFilesystem",
    "Usage",
]
