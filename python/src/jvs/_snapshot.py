"""What is known of a snapshot."""

from dataclasses import dataclass, field
from typing import Any, List, Mapping, Optional, Tuple

from ._call import Path_, call


@dataclass(frozen=True)
class Snapshot:
    """A snapshot of a worktree."""

    #: Its id.
    id: str
    #: The worktree that it was taken of.
    worktree: str
    #: What it was taken on top of.
    parent: Optional[str]
    #: A word to people.
    note: Optional[str]
    #: Its tags.
    tags: Tuple[str, ...]
    #: When it was begun: RFC 3339, in UTC.
    created_at: str
    #: How many files it has.
    files: int
    #: How many bytes they have.
    bytes: int
    #: The fencing token that it was committed under.
    fencing_token: int
    #: All that is known, as ``jvs schema snapshot`` describes it.
    data: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Snapshot":
        """As a command tells it."""
        return cls(
            id=data["snapshot_id"],
            worktree=data["worktree_id"],
            parent=data["parent"],
            note=data["note"],
            tags=tuple(data["tags"]),
            created_at=data["created_at"],
            files=data["files"],
            bytes=data["bytes"],
            fencing_token=data["fencing_token"],
            data=data,
        )


def history(
    worktree: Optional[str] = None,
    *,
    repo: Optional[Path_] = None,
    number: Optional[int] = None,
) -> List[Snapshot]:
    """The snapshots of a worktree, the newest first."""
    words = ["history"] if number is None else ["history", "-n", str(number)]
    answer = call(*words, repo=repo, worktree=worktree)
    return [Snapshot.of(data) for data in answer.data["snapshots"]]
