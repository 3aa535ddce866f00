"""Every example in the documents does what its reader expects, as it is typed."""

import ast
import asyncio
import inspect
import os
import threading
import types
import unittest
from pathlib import Path
from typing import Any, Dict, List
from unittest import mock

from world import DEADLINE, World

import jvs
import jvs.aio

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("python/README.md", "docs/python.md")


def examples(page: str) -> List[str]:
    """The blocks of Python in a page, in their order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [part.split("```\n", 1)[0] for part in text.split("```python\n")[1:]]


class Documents(World):
    """What an example takes from the program around it is a mock, which says whether it was used."""

    def setUp(self) -> None:
        super().setUp()
        self.around: Dict[str, Any] = {
            "asyncio": asyncio,
            "build": mock.Mock(),
            "jvs": jvs,
            "os": os,
            "subprocess": mock.Mock(),
            "worker": mock.Mock(),
        }

    def typed(self, page: str, line: str) -> None:
        """Runs the one example of a page that has this in it."""
        found = [one for one in examples(page) if line in one]
        self.assertEqual(len(found), 1, line)
        code = compile(found[0], page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if code.co_flags & inspect.CO_COROUTINE:
            asyncio.run(types.FunctionType(code, self.around)())
        else:
            exec(code, self.around)

    def test_a_lock_is_held_and_a_snapshot_taken(self) -> None:
        self.typed("python/README.md", "jvs.hold(")
        os.chdir(self.place)
        self.repo.rename("project")
        self.typed("docs/python.md", "jvs.hold(\"main\", repo=")
        self.assertEqual(self.around["build"].call_count, 2)
        os.chdir("project/main")
        self.assertEqual([one.tags for one in jvs.history("main")], [("v1",), ()])
        self.assertEqual(self.status()["state"], "free")

    def test_a_loss_is_told_to_the_worker(self) -> None:
        worker = self.around["worker"]
        told = threading.Event()
        worker.cancel.side_effect = told.set

        def run() -> None:
            self.take_away()
            self.assertTrue(told.wait(DEADLINE))

        worker.run.side_effect = run
        with self.assertRaises(jvs.LockLost):
            self.typed("docs/python.md", "on_loss=stop")
        worker.cancel.assert_called_once_with()

    def test_a_command_gets_the_environment_of_the_hold(self) -> None:
        run = self.around["subprocess"].run
        with jvs.hold("main") as hold:
            self.around["hold"] = hold
            self.typed("docs/python.md", "hold.env")
        (words,), options = run.call_args
        self.assertEqual((words, options["check"]), (["make"], True))
        self.assertEqual(options["env"]["JVS_SESSION_ID"], hold.session)

    def test_tasks_hold_it_too(self) -> None:
        self.typed("docs/python.md", "jvs.aio.hold(")
        self.assertEqual([one.note for one in jvs.history("main")], ["nightly"])
        self.assertEqual(self.status()["state"], "free")

    def test_no_example_is_forgotten(self) -> None:
        self.assertEqual([len(examples(page)) for page in PAGES], [1, 4])


if __name__ == "__main__":
    unittest.main()
