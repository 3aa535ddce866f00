"""Holding a lock for as long as a block runs.

A keeper, which is a process of its own, renews the lock while this process lives; so a
pause of the interpreter loses nothing, and its end releases the lock. A thread looks now and
then whether the lock is still held, and tells if it is not. The filesystem decides in the
end: a snapshot under a lock that was lost is refused.
"""

import atexit
import os
import secrets
import subprocess
import threading
import time
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, Type, Union

from ._call import HANDED_DOWN, Path_, call
from ._snapshot import Snapshot
from .errors import FencingMismatch, JvsError, LockConflict, LockLost, Usage

#: How often a hold looks whether it is still held, in seconds.
HEARTBEAT = 5.0
#: How long one look may take before it counts as no answer, in seconds.
LOOK_TIMEOUT = 30.0

#: A duration as jvs takes it (``"5m"``), or seconds.
Duration = Union[str, int, float]
OnLoss = Callable[["Hold", JvsError], None]


def _spelled(duration: Duration) -> str:
    if isinstance(duration, str):
        return duration
    return f"{round(duration * 1000)}ms"


def _now() -> float:
    # Counts suspend, unlike the monotonic clock: a lease runs on while a laptop sleeps.
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Hold:
    """A lock that this process holds. Made by `hold` and `acquire`."""

    def __init__(
        self,
        data: Dict[str, Any],
        repo: Optional[Path_],
        session: str,
        own_session: bool,
        on_loss: Optional[OnLoss],
        heartbeat: float,
        claim: Optional["_Claim"],
    ) -> None:
        self._repo = repo
        self._own_session = own_session
        self._on_loss = on_loss
        self._claim = claim
        self._pid = os.getpid()
        self._lost: Optional[JvsError] = None
        self._entered = False
        self._over = threading.Event()
        self._guard = threading.Lock()
        #: The worktree.
        self.worktree: str = data["worktree"]
        #: The session that holds it.
        self.session = session
        #: The fencing token: whoever shows a lower one is refused.
        self.fencing_token: int = data["fencing_token"]
        #: Did the session hold it before? Then it is not released here.
        self.joined: bool = data["how"] in ("refreshed", "resumed")
        #: The environment of commands that are to run under this very hold.
        self.env: Dict[str, str] = {
            "JVS_SESSION_ID": session,
            "JVS_WORKTREE": self.worktree,
            "JVS_FENCING_TOKEN": str(self.fencing_token),
        }
        record = data["record"]
        if record is not None:
            self.env["JVS_FENCING_EPOCH"] = record["epoch"]
        self._held_until = _now() + data["remaining_ms"] / 1000
        _open.add(self)
        if heartbeat > 0:
            watch = threading.Thread(
                target=self._watch,
                args=(heartbeat,),
                name=f"jvs-heartbeat-{self.worktree}",
                daemon=True,
            )
            watch.start()

    def __enter__(self) -> "Hold":
        with self._guard:
            again, self._entered = self._entered, True
        if again:
            # The end of the first block releases it: the other would go on without the lock.
            raise Usage(
                f"this hold of worktree '{self.worktree}' has had its block: a hold is for one",
                hint="take it again with jvs.hold, or use the hold without another block",
            )
        if self._over.is_set():
            raise _no_longer(self, "it was released here")
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            self.release()
        except JvsError:
            # What went wrong first is what is told.
            if error is None:
                raise
            return
        if error is None and self._lost is not None and os.getpid() == self._pid:
            raise self._lost

    def __repr__(self) -> str:
        state = "over" if self._over.is_set() else "lost" if self._lost else "held"
        return f"<jvs.Hold {self.worktree} token {self.fencing_token} {state}>"

    @property
    def lost(self) -> Optional[JvsError]:
        """Why the lock is not held any more, as far as that was noticed."""
        return self._lost

    def check(self) -> None:
        """Asks now whether the lock is held; raises if it is not.

        The answer may be out of date when it arrives. What must not happen without the lock
        happens through `snapshot`.
        """
        self._look(LOOK_TIMEOUT)
        if self._lost is not None:
            raise self._lost
        if self._over.is_set():
            raise _no_longer(self, "it was released here")

    def snapshot(
        self, note: Optional[str] = None, *, tags: Sequence[str] = (), full: bool = False
    ) -> Snapshot:
        """Keeps the files of the worktree as they are, under this very hold.

        Raises `FencingMismatch` if it is not this process's any more: then nothing was
        published.
        """
        words: List[str] = ["snapshot"]
        for tag in tags:
            words += ["--tag", tag]
        if full:
            words.append("--full")
        if note is not None:
            words += ["--", note]
        return Snapshot.of(self._call(words))

    def call(self, *words: str) -> Any:
        """What any other command answers under this very hold: ``hold.call("status")``."""
        return self._call(words)

    def release(self) -> None:
        """Gives the lock back. Does nothing the second time, or in a process that was forked
        off: the lock is the parent's."""
        if os.getpid() != self._pid:
            return
        with self._guard:
            if self._over.is_set():
                return
            self._over.set()
        _open.discard(self)
        try:
            if not self.joined:
                self._release()
        finally:
            if self._claim is not None:
                self._claim.give_up()

    def _release(self) -> None:
        try:
            self._call(["lock", "release"])
        except LockLost as lost:
            # Somebody else's lock is not released: it was lost, and that is told.
            self._lose(lost)
        finally:
            if self._own_session:
                self._forget()

    def _forget(self) -> None:
        """Removes the private files of a session that nobody will use again."""
        try:
            call("session", "forget", self.session, "--force", timeout=LOOK_TIMEOUT)
        except (JvsError, subprocess.TimeoutExpired):
            pass

    def _call(self, words: Sequence[str]) -> Any:
        here = {"repo": self._repo, "worktree": self.worktree, "session": self.session}
        env: Dict[str, Optional[str]] = {**dict.fromkeys(HANDED_DOWN), **self.env}
        return call(*words, env=env, **here).data  # type: ignore[arg-type]

    def _look(self, timeout: float) -> None:
        """Looks at the lock once."""
        asked = _now()
        try:
            seen = call(
                "lock",
                "status",
                repo=self._repo,
                worktree=self.worktree,
                session=self.session,
                env=dict.fromkeys(HANDED_DOWN),
                timeout=timeout,
            ).data
        except (JvsError, OSError, subprocess.TimeoutExpired) as error:
            # No answer is no loss, until the lease that was seen last is over.
            if _now() > self._held_until:
                self._lose(_no_longer(self, f"its lease may be over: {error}"))
            return
        if self._over.is_set():
            return
        if not seen["mine"] or seen["fencing_token"] != self.fencing_token:
            self._lose(_no_longer(self, _by_whom(seen)))
        elif seen["state"] != "held":
            self._lose(_no_longer(self, "its lease is over"))
        else:
            self._held_until = asked + (seen["remaining_ms"] or 0) / 1000

    def _watch(self, heartbeat: float) -> None:
        """Looks again and again, until it is over or lost."""
        while self._lost is None and not self._over.wait(heartbeat):
            self._look(LOOK_TIMEOUT)

    def _lose(self, why: JvsError) -> None:
        with self._guard:
            if self._lost is not None:
                return
            self._lost = why
        if self._on_loss is not None:
            self._on_loss(self, why)


def _no_longer(hold: "Hold", why: str) -> FencingMismatch:
    return FencingMismatch(
        f"the lock of worktree '{hold.worktree}' under token {hold.fencing_token} is not held "
        f"any more: {why}",
        hint=f"jvs lock why -w {hold.worktree}",
        details={"worktree": hold.worktree, "held_token": hold.fencing_token},
    )


def _by_whom(seen: Dict[str, Any]) -> str:
    record = seen["record"]
    who = f" by session {record['session_id']}" if record else ""
    return f"it is {seen['state']}{who}, token {seen['fencing_token']}"


# --- one process is one holder -------------------------------------------------------------

#: Holds that are to be released when this process ends.
_open: Set[Hold] = set()

#: Threads of one session would all be told that it holds: here each waits for the others.
_claims: Dict[Tuple[str, Optional[str], str], threading.Lock] = {}
_claims_guard = threading.Lock()


class _Claim:
    """That no other thread of this process holds the same for the same session."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock

    def give_up(self) -> None:
        self._lock.release()


def _claim(key: Tuple[str, Optional[str], str], wait: Optional[float]) -> _Claim:
    with _claims_guard:
        lock = _claims.setdefault(key, threading.Lock())
    got = lock.acquire(blocking=False) if not wait else lock.acquire(timeout=wait)
    if not got:
        raise LockConflict(
            "another thread of this process holds it for the same session",
            hint="give it more time with wait=, or a session of its own",
            details={"worktree": key[1], "session_id": key[2]},
        )
    return _Claim(lock)


def _seconds(wait: Union[None, bool, Duration]) -> Optional[float]:
    """How long threads wait for each other: as long as for the lock."""
    if wait is None or wait is False:
        return None
    if wait is True:
        return 600.0
    if not isinstance(wait, str):
        return float(wait)
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    total, number, unit = 0.0, "", ""
    for c in wait + "0":
        if c.isdigit():
            if unit:
                total += float(number or 0) * units.get(unit, 0.0)
                number, unit = "", ""
            number += c
        else:
            unit += c
    return total


@atexit.register
def _release_all() -> None:
    for hold in list(_open):
        try:
            hold.release()
        except (JvsError, OSError, subprocess.TimeoutExpired):
            # The keeper does it once this process is gone.
            pass


def _after_fork() -> None:
    """A child has none of its parent's threads, and none of its locks."""
    global _claims_guard
    _open.clear()
    _claims.clear()
    _claims_guard = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def acquire(
    worktree: Optional[str] = None,
    *,
    repo: Optional[Path_] = None,
    wait: Union[None, bool, Duration] = None,
    note: Optional[str] = None,
    lease: Optional[Duration] = None,
    at_most: Optional[Duration] = None,
    session: Optional[str] = None,
    on_loss: Optional[OnLoss] = None,
    heartbeat: float = HEARTBEAT,
) -> Hold:
    """Takes the lock of a worktree, and keeps it until `Hold.release` or the end of this
    process.

    - `worktree`, `repo`: found from the current directory if they are not given.
    - `wait`: for how long to wait in line if somebody else has it (``True``: ten minutes).
      Without it `LockConflict` is raised at once.
    - `note`: what it is for, for others who find it locked.
    - `lease`: how long a lease lasts without being renewed.
    - `at_most`: for how long it is kept renewed.
    - `session`: who holds it: ``$JVS_SESSION_ID``, or a session of its own. A session that
      holds it already is told so (`Hold.joined`), and keeps it in the end.
    - `on_loss`: is called, in another thread, once it is noticed that the lock was lost.
    - `heartbeat`: how often that is looked at, in seconds; 0 is never.
    """
    named = session or os.environ.get("JVS_SESSION_ID")
    own_session = not named
    who = named or f"python-{os.getpid()}-{secrets.token_hex(4)}"
    words = ["lock", "acquire", "--while", str(os.getpid())]
    if wait is not None and wait is not False:
        words.append("--wait" if wait is True else f"--wait={_spelled(wait)}")
    for option, value in (("--note", note),):
        if value is not None:
            words += [option, value]
    for option, span in (("--lease", lease), ("--for", at_most)):
        if span is not None:
            words += [option, _spelled(span)]
    where = os.path.realpath(os.fspath(repo) if repo is not None else os.getcwd())
    claim = None if own_session else _claim((where, worktree, who), _seconds(wait))
    try:
        answer = call(
            *words,
            repo=repo,
            worktree=worktree,
            session=who,
            env=dict.fromkeys(HANDED_DOWN),
        )
    except BaseException:
        if claim is not None:
            claim.give_up()
        raise
    return Hold(answer.data, repo, who, own_session, on_loss, heartbeat, claim)


def hold(
    worktree: Optional[str] = None,
    *,
    repo: Optional[Path_] = None,
    wait: Union[None, bool, Duration] = None,
    note: Optional[str] = None,
    lease: Optional[Duration] = None,
    at_most: Optional[Duration] = None,
    session: Optional[str] = None,
    on_loss: Optional[OnLoss] = None,
    heartbeat: float = HEARTBEAT,
) -> Hold:
    """The same, for a block: ``with jvs.hold("main", wait="5m") as hold: …``.

    At the end of the block the lock is released. If it was lost meanwhile, `FencingMismatch`
    is raised there, unless the block itself raised something.
    """
    return acquire(
        worktree,
        repo=repo,
        wait=wait,
        note=note,
        lease=lease,
        at_most=at_most,
        session=session,
        on_loss=on_loss,
        heartbeat=heartbeat,
    )
