"""Every code is an exception, and an exception says all that the command said."""

import os
import pickle
import unittest

from codes import ERRORS, class_name, codes, errors
from world import World

import jvs


class Codes(unittest.TestCase):
    def test_the_exceptions_are_those_of_the_specification(self) -> None:
        made = errors()
        if os.environ.get("JVS_BLESS"):
            ERRORS.write_text(made, encoding="utf-8")
        self.assertEqual(
            ERRORS.read_text(encoding="utf-8"), made, "run python3 python/tests/codes.py"
        )

    def test_every_code_has_an_exception_with_its_exit_status(self) -> None:
        self.assertGreater(len(codes()), 25)
        for code, status, meaning in codes():
            kind = getattr(jvs, class_name(code))
            self.assertTrue(issubclass(kind, jvs.JvsError))
            self.assertEqual((kind.code, kind.exit, kind.__doc__), (code, status, meaning))

    def test_what_is_lost_is_caught_by_one_name(self) -> None:
        for kind in (jvs.LockNotHeld, jvs.FencingMismatch, jvs.LockExpired):
            self.assertTrue(issubclass(kind, jvs.LockLost))

    def test_a_code_of_a_later_version_is_an_error_all_the_same(self) -> None:
        from jvs.errors import error_for

        said = {"code": "E_NEW", "message": "m", "hint": None, "details": {"a": 1}}
        error = error_for(said, 77)
        self.assertEqual(type(error), jvs.JvsError)
        self.assertEqual((error.code, error.exit, error.details), ("E_NEW", 77, {"a": 1}))

    def test_an_exception_gets_to_another_process_whole(self) -> None:
        error = jvs.LockConflict("m", hint="h", details={"worktree": "main"})
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual(type(again), jvs.LockConflict)
        self.assertEqual(str(again), "[E_LOCK_CONFLICT] m\nhint: h")
        self.assertEqual(again.details, {"worktree": "main"})


class Calls(World):
    def test_a_failure_says_code_message_hint_and_details(self) -> None:
        with jvs.hold("main", note="mine"):
            with self.assertRaises(jvs.LockConflict) as caught:
                jvs.call("lock", "acquire", session="bob")
        error = caught.exception
        self.assertIn("mine", error.message)
        self.assertIn("lock acquire --wait -w main", error.hint or "")
        self.assertEqual((error.code, error.exit), ("E_LOCK_CONFLICT", 2))
        self.assertEqual(error.details["worktree"], "main")

    def test_a_program_that_is_not_there_is_told(self) -> None:
        os.environ["JVS_PROGRAM"] = str(self.place / "nothing")
        with self.assertRaises(jvs.ProgramNotFound):
            jvs.call("lock", "status")

    def test_a_program_that_is_another_one_is_told(self) -> None:
        for script in ("echo hello", "echo '{}'", "echo '{\"schema\":\"x/9\"}'", "exit 3"):
            program = self.place / "program"
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
            os.environ["JVS_PROGRAM"] = str(program)
            with self.assertRaises(jvs.BadAnswer):
                jvs.call("lock", "status")

    def test_words_of_others_are_words_and_no_options(self) -> None:
        with jvs.hold("main") as hold:
            (self.main / "file").write_text("x")
            for note in ("--help", "-m", "a b\n'c'", ""):
                self.assertEqual(hold.snapshot(note).note, note or None)


if __name__ == "__main__":
    unittest.main()
