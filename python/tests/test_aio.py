"""The same under asyncio."""

import asyncio
import unittest
from typing import Any, Coroutine

from world import DEADLINE, World

import jvs
import jvs.aio


def run(what: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(what, DEADLINE))


class Asyncio(World):
    def test_a_block_holds_the_lock_and_releases_it(self) -> None:
        async def work() -> None:
            (self.main / "file").write_text("content")
            async with jvs.aio.hold("main", note="a test") as hold:
                self.assertEqual(self.status()["note"], "a test")
                await hold.check()
                taken = await hold.snapshot("taken")
                self.assertEqual(taken.note, "taken")
                self.assertTrue((await hold.call("lock", "status"))["mine"])

        run(work())
        self.assertEqual(self.status()["state"], "free")

    def test_tasks_wait_for_each_other_and_not_the_loop_for_them(self) -> None:
        turns = []

        async def work(number: int) -> None:
            async with jvs.aio.hold("main", wait=DEADLINE):
                turns.append(number)

        async def all_of_them() -> None:
            await asyncio.gather(*(work(number) for number in range(3)))

        run(all_of_them())
        self.assertEqual(sorted(turns), [0, 1, 2])

    def test_a_task_that_is_cancelled_leaves_no_lock_behind(self) -> None:
        async def work() -> None:
            started = asyncio.Event()

            async def hold_on() -> None:
                async with jvs.aio.hold("main"):
                    started.set()
                    await asyncio.sleep(600)

            held = asyncio.ensure_future(hold_on())
            await started.wait()
            held.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await held
            # And one that was cancelled while the lock was being taken.
            early = asyncio.ensure_future(hold_on())
            await asyncio.sleep(0)
            early.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await early

        run(work())
        self.eventually("the lock is free", lambda: self.status()["state"] == "free")

    def test_a_loss_ends_the_block(self) -> None:
        async def work() -> None:
            async with jvs.aio.hold("main", heartbeat=0) as hold:
                self.take_away()

        with self.assertRaises(jvs.LockLost):
            run(work())


if __name__ == "__main__":
    unittest.main()
