"""`jvs shell` loses its lease: what ran in it is gone when it says that it was stopped.

usage: JVS=… SCRATCH=… shell-survives.py
"""
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

JVS = os.path.realpath(shutil.which(os.environ.get("JVS", "jvs")) or sys.exit(77))
WORK = tempfile.mkdtemp(prefix="shell.", dir=os.environ["SCRATCH"])
os.environ.update(HOME=WORK, XDG_RUNTIME_DIR=WORK, XDG_STATE_HOME=WORK, SHELL="/bin/bash", PS1="$ ", JVS_SESSION_ID="maker")
for name in ("JVS_FENCING_TOKEN", "JVS_WORKTREE"):
    os.environ.pop(name, None)
subprocess.run([JVS, "init", WORK + "/r"], check=True, stdout=subprocess.DEVNULL)
log = f"{WORK}/log"
child, terminal = pty.fork()
if child == 0:
    os.environ["JVS_SESSION_ID"] = "S"
    os.execv(JVS, ["jvs", "--repo", WORK + "/r", "shell", "--lease", "6s"])


def listen(seconds):
    said, end = b"", time.time() + seconds
    while time.time() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                piece = os.read(terminal, 4096)
            except OSError:
                break
            if not piece:
                break
            said += piece
    time.sleep(max(0, end - time.time()))
    return said


listen(2)
os.write(terminal, f"while :; do echo x >> {log}; sleep 0.2; done\n".encode())
listen(2)
subprocess.run(
    [JVS, "--repo", WORK + "/r", "lock", "freeze", "--force", "--for", "1m", "--reason", "x"],
    env={**os.environ, "JVS_SESSION_ID": "op"},
    check=True,
    stdout=subprocess.DEVNULL,
)
said = listen(12)
size = os.path.getsize(log) if os.path.exists(log) else 0
time.sleep(1)
grew = os.path.exists(log) and os.path.getsize(log) > size
try:
    os.kill(child, signal.SIGKILL)
except ProcessLookupError:
    pass
if not size:
    print("the job never wrote:", said[-200:])
    sys.exit(77)
if grew:
    print("DEFECT: the job still writes after:", said[-200:].decode(errors="replace"))
    sys.exit(1)
