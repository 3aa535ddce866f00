"""The same for asyncio: nothing here blocks the event loop.

::

    async with jvs.aio.hold("main", wait="5m") as hold:
        await build()
        await hold.snapshot("nightly")
"""

import asyncio
import functools
import threading
from types import TracebackType
from typing import Any, Callable, Optional, Sequence, Type, TypeVar

from . import _hold
from ._snapshot import Snapshot

__all__ = ["AsyncHold", "hold"]

T = TypeVar("T")


async def _aside(function: Callable[..., T], *args: Any, **named: Any) -> T:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, functools.partial(function, *args, **named))


class AsyncHold:
    """A lock that this process holds, or will within ``async with``."""

    def __init__(self, worktree: Optional[str], options: Any) -> None:
        self._worktree = worktree
        self._options = options
        self._hold: Optional[_hold.Hold] = None

    @property
    def held(self) -> _hold.Hold:
        """The hold itself, whose methods block."""
        if self._hold is None:
            raise RuntimeError("it is held within `async with` only")
        return self._hold

    async def __aenter__(self) -> "AsyncHold":
        taking = _Taking(self._worktree, self._options)
        try:
            self._hold = await _aside(taking.run)
        except asyncio.CancelledError:
            taking.cancel()
            raise
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        # Shielded, so that a task that is cancelled leaves no lock behind.
        await asyncio.shield(_aside(self.held.__exit__, kind, error, trace))

    async def snapshot(
        self, note: Optional[str] = None, *, tags: Sequence[str] = (), full: bool = False
    ) -> Snapshot:
        """As `jvs.Hold.snapshot`."""
        return await _aside(self.held.snapshot, note, tags=tags, full=full)

    async def check(self) -> None:
        """As `jvs.Hold.check`."""
        await _aside(self.held.check)

    async def call(self, *words: str) -> Any:
        """As `jvs.Hold.call`."""
        return await _aside(self.held.call, *words)


class _Taking:
    """A lock that is being taken in a thread, which cannot be stopped: if nobody wants the
    lock any more, it is given back."""

    def __init__(self, worktree: Optional[str], options: Any) -> None:
        self._worktree = worktree
        self._options = options
        self._guard = threading.Lock()
        self._wanted = True
        self._hold: Optional[_hold.Hold] = None

    def run(self) -> _hold.Hold:
        hold = _hold.acquire(self._worktree, **self._options)
        with self._guard:
            self._hold = hold
            wanted = self._wanted
        if not wanted:
            hold.release()
        return hold

    def cancel(self) -> None:
        with self._guard:
            self._wanted = False
            hold = self._hold
        if hold is not None:
            threading.Thread(target=hold.release).start()


def hold(worktree: Optional[str] = None, **options: Any) -> AsyncHold:
    """As `jvs.hold`, with the same options, for ``async with``."""
    return AsyncHold(worktree, options)
