"""Two agents on one worktree, through the client of the Python SDK: one works, the other
waits for it, works, loses the lock, is refused, and has a person agree to a restore.

    python talk.py REVISION JVS-MCP JVS
"""

import asyncio
import json
import os
import re
import subprocess
import sys

from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult

REVISION, SERVER, JVS = sys.argv[1:]
ASKED = []


def rival(*words):
    env = {**os.environ, "JVS_SESSION_ID": "rival"}
    subprocess.run([JVS, *words], env=env, check=True, stdout=subprocess.DEVNULL)


async def person(_context, params):
    ASKED.append(params.message)
    return ElicitResult(action="accept", content={"confirm": True})


def agent():
    server = StdioServerParameters(command=SERVER, env=dict(os.environ), cwd=os.getcwd())
    mode = "legacy" if REVISION == "2025-11-25" else REVISION
    return Client(server, mode=mode, elicitation_callback=person)


async def call(client, name, arguments, **options):
    result = await client.call_tool(name, arguments, **options)
    said = json.loads(result.content[0].text)
    print(f"{name}: {said['error']['code'] if result.is_error else 'done'}", flush=True)
    return said if result.is_error else result.structured_content


async def main():
    async with agent() as first, agent() as second:
        for client in (first, second):
            # What the answers promise is checked by the client against what the list has.
            assert len((await client.list_tools()).tools) > 8
        handle = (await call(first, "acquire", {"note": "the first one"}))["handle"]
        conflict = await call(second, "acquire", {})
        assert conflict["error"]["code"] == "E_LOCK_CONFLICT", conflict
        told = asyncio.Queue()

        async def progress(_done, _total, message):
            await told.put(message)

        waits = call(second, "acquire", {"wait": "5m"}, progress_callback=progress)
        waits = asyncio.create_task(waits)
        message = await asyncio.wait_for(told.get(), 60)
        assert re.match(r"main is locked by .*mcp:", message), message
        kept = await call(first, "snapshot", {"handle": handle, "note": "of the first one"})
        await call(first, "release", {"handle": handle})
        granted = (await waits)["handle"]
        await call(second, "snapshot", {"handle": granted, "note": "of the second one"})
        rival("lock", "reclaim", "--reason", "the test takes it away")
        for name in ("snapshot", "release"):
            lost = await call(second, name, {"handle": granted})
            assert lost["error"]["code"] == "E_FENCING_MISMATCH", lost
        rival("lock", "release")
        again = (await call(second, "acquire", {}))["handle"]
        wish = {"handle": again, "snapshot": kept["snapshot_id"], "reason": "it was better"}
        restored = await call(second, "restore", wish)
        assert restored["snapshot_id"] == kept["snapshot_id"], restored
        assert len(ASKED) == 1, ASKED
        read = await first.read_resource("jvs://worktrees/main/history")
        assert len(json.loads(read.contents[0].text)["snapshots"]) == 2, read
    print("finished", flush=True)


asyncio.run(main())
