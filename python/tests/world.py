"""A repository and a home of their own for each test."""

import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import jvs  # noqa: E402

#: Nothing here takes that long, on any machine.
DEADLINE = 60.0

#: What is set outside must not decide anything in here.
FOREIGN = [name for name in os.environ if name.startswith(("JVS_", "XDG_"))]


class World(unittest.TestCase):
    """A repository, and this process in its worktree."""

    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory(prefix="jvs-python-")
        self.addCleanup(place.cleanup)
        self.place = Path(place.name).resolve()
        before = dict(os.environ)
        self.addCleanup(self._set_environment, before)
        program = os.environ.get("JVS_PROGRAM")
        for name in FOREIGN:
            os.environ.pop(name, None)
        for name in ("HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
            directory = self.place / name.lower()
            directory.mkdir(mode=0o700)
            os.environ[name] = str(directory)
        os.environ["JVS_USER"] = "ann"
        if program is not None:
            os.environ["JVS_PROGRAM"] = program
        self.repo = self.place / "repo"
        jvs.call("init", str(self.repo))
        self.main = self.repo / "main"
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.main)

    def _set_environment(self, before: Dict[str, str]) -> None:
        os.environ.clear()
        os.environ.update(before)

    def status(self) -> Dict[str, Any]:
        """How the lock stands."""
        answer: Dict[str, Any] = jvs.call("lock", "status").data
        return answer

    def take_away(self) -> None:
        """Somebody with the right to takes the lock."""
        jvs.call("config", "set", "reclaim.same_user", "true")
        jvs.call("lock", "reclaim", "--reason", "a test", "--no-keeper", session="thief")
        self.addCleanup(self._give_back)

    def _give_back(self) -> None:
        try:
            jvs.call("lock", "release", session="thief")
        except jvs.JvsError:
            pass

    def eventually(self, what: str, done: Callable[[], bool]) -> None:
        """Waits until it is so."""
        end = time.monotonic() + DEADLINE
        while not done():
            self.assertLess(time.monotonic(), end, f"still not: {what}")
            time.sleep(0.02)

    def python(self, script: str, env: Optional[Dict[str, str]] = None) -> subprocess.CompletedProcess[str]:
        """Runs another Python with the package."""
        words: List[str] = [sys.executable, "-c", script]
        src = str(Path(__file__).resolve().parents[1] / "src")
        return subprocess.run(
            words,
            env={**os.environ, "PYTHONPATH": src, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
