"""Overwrites FILE by write(2) or by a mapping, says so, and stays idle until told.

usage: unflushed-writer.py write|mmap FILE CONTROL_DIR
"""
import mmap
import os
import sys
import time

mode, path, control = sys.argv[1:]
descriptor = os.open(path, os.O_RDWR)
size = os.fstat(descriptor).st_size
if mode == "write":
    os.pwrite(descriptor, b"N" * size, 0)
else:
    mapped = mmap.mmap(descriptor, 0)
    mapped[0:size] = b"N" * size
open(f"{control}/wrote", "w").close()
deadline = time.time() + 120
while not os.path.exists(f"{control}/stop") and time.time() < deadline:
    time.sleep(0.01)
