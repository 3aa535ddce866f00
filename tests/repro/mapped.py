"""Maps FILE, stores A's, waits to be told, stores B's, waits to be told, ends.

usage: mapped.py FILE CONTROL_DIR (makes wroteA, wroteB; ends when `go`, then `stop` is there)
"""
import mmap
import os
import sys
import time

path, control = sys.argv[1:]
descriptor = os.open(path, os.O_RDWR)
mapped = mmap.mmap(descriptor, 8192)


def wait_for(name):
    deadline = time.time() + 60
    while not os.path.exists(f"{control}/{name}"):
        if time.time() > deadline:
            sys.exit("nobody said " + name)
        time.sleep(0.01)


mapped[0:8192] = b"A" * 8192
open(f"{control}/wroteA", "w").close()
wait_for("go")
mapped[0:8192] = b"B" * 8192
open(f"{control}/wroteB", "w").close()
wait_for("stop")
