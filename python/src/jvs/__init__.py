"""A workspace lock that cannot lie, from Python.

One writer at a time per worktree of a directory on a shared filesystem::

    with jvs.hold("main", wait="5m", note="nightly build") as hold:
        build()
        hold.snapshot("nightly")

Every call runs the program ``jvs`` and reads its ``--json``. What goes wrong is an
exception named as its code: ``E_LOCK_CONFLICT`` is `LockConflict`.
"""

from .errors import *  # noqa: F401,F403
from .errors import __all__ as _errors
from ._call import Answer, call, program
from ._hold import Hold, acquire, hold
from ._snapshot import Snapshot, history

__all__ = [
    "Answer",
    "Hold",
    "Snapshot",
    "acquire",
    "call",
    "history",
    "hold",
    "program",
    *_errors,
]
