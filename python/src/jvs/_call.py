"""Runs ``jvs … --json`` and gives back what it answered."""

import json
import os
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from .errors import BadAnswer, ProgramNotFound, error_for

Path_ = Union[str, "os.PathLike[str]"]

#: What a hold hands down to commands, and no other command of this module may inherit: a
#: token in the environment binds a command to the hold that it is of.
HANDED_DOWN = ("JVS_FENCING_TOKEN", "JVS_FENCING_EPOCH", "JVS_FENCING_TOKENS", "JVS_WORKTREE")


@dataclass(frozen=True)
class Answer:
    """What a command answered."""

    #: The answer itself, as ``jvs schema COMMAND`` describes it.
    data: Any
    #: What did not go as it should, and did not stop the command.
    warnings: Sequence[str] = field(default_factory=tuple)


def program() -> str:
    """The program that is run: ``$JVS_PROGRAM``, the one that was installed with this
    package, or the first ``jvs`` in ``$PATH``."""
    named = os.environ.get("JVS_PROGRAM")
    if named:
        return named
    installed = Path(sysconfig.get_path("scripts")) / "jvs"
    if os.access(installed, os.X_OK):
        return str(installed)
    found = shutil.which("jvs")
    if found is None:
        raise ProgramNotFound("there is no program `jvs` in $PATH; $JVS_PROGRAM can name it")
    return found


def words_of(
    words: Sequence[str],
    repo: Optional[Path_],
    worktree: Optional[str],
    session: Optional[str],
) -> List[str]:
    """The command line of a call."""
    line = [program(), "--json"]
    for option, value in (("--repo", repo), ("--worktree", worktree), ("--session", session)):
        if value is not None:
            line += [option, os.fspath(value)]
    return line + list(words)


def call(
    *words: str,
    repo: Optional[Path_] = None,
    worktree: Optional[str] = None,
    session: Optional[str] = None,
    env: Optional[Mapping[str, Optional[str]]] = None,
    timeout: Optional[float] = None,
) -> Answer:
    """Runs one command, such as ``call("lock", "status", worktree="main")``.

    Raises the exception of its code if it failed, and `subprocess.TimeoutExpired` if it did
    not answer within `timeout` seconds. A command that was ended so may have been done.
    `env` is set beside the environment of this process; what is `None` in it is unset.
    """
    line = words_of(words, repo, worktree, session)
    try:
        done = subprocess.run(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(env or {}),
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as error:
        raise ProgramNotFound(f"{line[0]} is not there") from error
    return read(done.stdout, done.stderr, done.returncode)


def _environment(changes: Mapping[str, Optional[str]]) -> Dict[str, str]:
    all_of_it: Dict[str, Optional[str]] = {**os.environ, **changes}
    return {name: value for name, value in all_of_it.items() if value is not None}


def read(stdout: bytes, stderr: bytes, status: int) -> Answer:
    """What a command printed, as an answer or as the exception of its code."""
    try:
        said: Dict[str, Any] = json.loads(stdout)
        if said["schema"] != "jvs/1":
            raise ValueError(said["schema"])
        warnings = tuple(said.get("warnings", ()))
        if said["ok"]:
            return Answer(said["data"], warnings)
        raise error_for(said["error"], status)
    except (ValueError, KeyError, TypeError) as error:
        text = (stdout + stderr).decode(errors="replace").strip()
        raise BadAnswer(f"jvs ended with status {status} and answered no JSON: {text}") from error
