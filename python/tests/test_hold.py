"""A hold is held, is released whatever happens, and tells when it was lost."""

import os
import signal
import subprocess
import sys
import threading
import unittest
from typing import List

from world import DEADLINE, World

import jvs


class Holding(World):
    def test_a_block_holds_the_lock_and_releases_it(self) -> None:
        with jvs.hold("main", note="a test") as hold:
            seen = self.status()
            self.assertEqual((seen["state"], seen["note"]), ("held", "a test"))
            self.assertEqual(seen["fencing_token"], hold.fencing_token)
            self.assertEqual(seen["record"]["session_id"], hold.session)
            hold.check()
        self.assertEqual(self.status()["state"], "free")
        with self.assertRaises(jvs.LockLost):
            hold.check()
        hold.release()

    def test_a_snapshot_is_taken_under_the_hold(self) -> None:
        (self.main / "file").write_text("content")
        with jvs.hold("main") as hold:
            taken = hold.snapshot("the first", tags=["v1"])
            self.assertEqual(taken.fencing_token, hold.fencing_token)
        self.assertEqual((taken.note, taken.tags, taken.files), ("the first", ("v1",), 1))
        self.assertEqual([it.id for it in jvs.history("main")], [taken.id])
        self.assertEqual(jvs.history("main", number=1)[0], taken)

    def test_an_exception_gets_through_and_the_lock_is_released(self) -> None:
        with self.assertRaises(ZeroDivisionError):
            with jvs.hold("main"):
                raise ZeroDivisionError
        self.assertEqual(self.status()["state"], "free")

    def test_somebody_else_is_refused_or_waits(self) -> None:
        with jvs.hold("main"):
            with self.assertRaises(jvs.LockConflict):
                jvs.hold("main", session="bob")
            with self.assertRaises(jvs.LockConflict):
                jvs.hold("main", session="bob", wait=0.2)
        with jvs.hold("main", session="bob", wait="5m") as hold:
            self.assertEqual(hold.session, "bob")

    def test_a_session_that_holds_it_already_keeps_it(self) -> None:
        jvs.call("lock", "acquire", "--no-keeper", "--lease", "10m", session="agent-1")
        os.environ["JVS_SESSION_ID"] = "agent-1"
        with jvs.hold("main") as hold:
            self.assertTrue(hold.joined)
        self.assertEqual(self.status()["state"], "held")
        jvs.call("lock", "release")

    def test_a_session_of_its_own_leaves_no_files(self) -> None:
        with jvs.hold("main") as hold:
            pass
        sessions = jvs.call("session", "list").data["sessions"]
        self.assertNotIn(hold.session, [one["session_id"] for one in sessions])

    def test_a_command_under_the_hold_is_of_the_same_session(self) -> None:
        with jvs.hold("main") as hold:
            line = [jvs.program(), "lock", "renew", "--json"]
            env = {**os.environ, **hold.env}
            done = subprocess.run(line, env=env, stdout=subprocess.DEVNULL, check=False)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(hold.call("lock", "status")["mine"], True)

    def test_a_hold_is_for_one_block(self) -> None:
        hold = jvs.hold("main")
        with self.assertRaisesRegex(jvs.Usage, "has had its block"):
            with hold:
                with hold:
                    self.fail("entered twice")
        self.assertEqual(self.status()["state"], "free")
        with self.assertRaises(jvs.Usage):
            with hold:
                self.fail("entered without the lock")
        released = jvs.acquire("main")
        released.release()
        with self.assertRaises(jvs.LockLost):
            with released:
                self.fail("entered without the lock")

    def test_bad_input_is_refused_and_holds_nothing(self) -> None:
        with self.assertRaises(jvs.PathEscape):
            jvs.hold("../etc")
        with self.assertRaises(jvs.NameInvalid):
            jvs.hold("a b")
        with self.assertRaises(jvs.NotFound):
            jvs.hold("no-such-worktree")
        with self.assertRaises(jvs.Usage):
            jvs.hold("main", wait="soon")
        with self.assertRaises(jvs.NotARepository):
            jvs.hold("main", repo=self.place)
        self.assertEqual(self.status()["state"], "free")


class Losing(World):
    def test_a_loss_is_told_refuses_snapshots_and_ends_the_block(self) -> None:
        told: List[jvs.JvsError] = []
        noticed = threading.Event()

        def on_loss(hold: jvs.Hold, why: jvs.JvsError) -> None:
            told.append(why)
            noticed.set()

        with self.assertRaises(jvs.FencingMismatch):
            with jvs.hold("main", on_loss=on_loss, heartbeat=0.05) as hold:
                self.assertIsNone(hold.lost)
                self.take_away()
                self.assertTrue(noticed.wait(DEADLINE), "the heartbeat notices it")
                self.assertIsInstance(hold.lost, jvs.FencingMismatch)
                with self.assertRaises(jvs.LockLost):
                    hold.snapshot("too late")
                with self.assertRaises(jvs.LockLost):
                    hold.check()
        self.assertEqual(len(told), 1, "it is told once")
        self.assertEqual(jvs.history("main"), [])
        self.assertEqual(self.status()["record"]["session_id"], "thief")

    def test_a_loss_that_nobody_looked_for_is_noticed_at_the_end(self) -> None:
        with self.assertRaises(jvs.LockLost):
            with jvs.hold("main", heartbeat=0) as hold:
                self.take_away()
        self.assertEqual(self.status()["record"]["session_id"], "thief")

    def test_no_answer_is_a_loss_when_the_lease_is_over_and_not_before(self) -> None:
        away = self.place / "away"
        with jvs.hold("main", repo=self.repo, lease="10m", heartbeat=0) as hold:
            self.repo.rename(away)
            hold.check()
            self.assertIsNone(hold.lost)
            away.rename(self.repo)
        told = threading.Event()
        with self.assertRaises(jvs.LockLost):
            with jvs.hold(
                "main",
                repo=self.repo,
                lease="3s",
                heartbeat=0.05,
                on_loss=lambda hold, why: told.set(),
            ) as hold:
                self.repo.rename(away)
                self.assertTrue(told.wait(DEADLINE), "the heartbeat notices it")
                self.assertIn("its lease may be over", str(hold.lost))
                away.rename(self.repo)

    def test_what_the_block_raised_is_not_hidden_by_the_loss(self) -> None:
        with self.assertRaises(ZeroDivisionError):
            with jvs.hold("main", heartbeat=0) as hold:
                self.take_away()
                raise ZeroDivisionError

    def test_a_loss_is_not_undone_by_having_the_lock_again(self) -> None:
        with self.assertRaises(jvs.LockLost):
            with jvs.hold("main", session="agent-2", heartbeat=0) as hold:
                self.take_away()
                jvs.call("lock", "release", session="thief")
                jvs.call("lock", "acquire", "--no-keeper", "--lease", "10m", session="agent-2")
                with self.assertRaises(jvs.LockLost):
                    hold.snapshot("under another token")
        self.assertEqual(self.status()["record"]["session_id"], "agent-2")
        jvs.call("lock", "release", session="agent-2")


class Processes(World):
    def test_threads_of_one_session_hold_one_after_the_other(self) -> None:
        os.environ["JVS_SESSION_ID"] = "agent-3"
        inside: List[int] = []
        overlaps: List[int] = []

        def work(number: int) -> None:
            with jvs.hold("main", wait=DEADLINE):
                inside.append(number)
                overlaps.append(len(inside))
                jvs.call("lock", "status")
                inside.remove(number)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)
        self.assertEqual(overlaps, [1, 1, 1, 1])
        self.assertEqual(self.status()["state"], "free")

    def test_threads_with_sessions_of_their_own_wait_in_line(self) -> None:
        tokens: List[int] = []

        def work() -> None:
            with jvs.hold("main", wait=DEADLINE) as hold:
                tokens.append(hold.fencing_token)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)
        self.assertEqual(len(set(tokens)), 3)
        self.assertEqual(tokens, sorted(tokens))

    def test_a_forked_child_does_not_release_its_parent_s_lock(self) -> None:
        with jvs.hold("main") as hold:
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    hold.release()
                    hold.__exit__(None, None, None)
                    status = 0
                finally:
                    os._exit(status)
            _, status = os.waitpid(child, 0)
            self.assertEqual(status, 0)
            hold.check()
        self.assertEqual(self.status()["state"], "free")

    def test_the_end_of_the_process_releases_what_was_not_released(self) -> None:
        done = self.python("import jvs; hold = jvs.acquire('main'); print(hold.fencing_token)")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.status()["state"], "free")

    def test_a_process_that_is_killed_leaves_no_lock_behind(self) -> None:
        script = "import jvs, time; jvs.acquire('main'); print('held', flush=True); time.sleep(600)"
        src = os.path.join(os.path.dirname(__file__), "..", "src")
        victim = subprocess.Popen(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": src},
            stdout=subprocess.PIPE,
        )
        self.addCleanup(victim.wait)
        self.addCleanup(victim.kill)
        assert victim.stdout is not None
        self.addCleanup(victim.stdout.close)
        self.assertEqual(victim.stdout.readline(), b"held\n")
        self.assertEqual(self.status()["state"], "held")
        victim.send_signal(signal.SIGKILL)
        with jvs.hold("main", wait=DEADLINE):
            pass


if __name__ == "__main__":
    unittest.main()
