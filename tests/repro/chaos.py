"""Six sessions snapshot, lock, freeze and collect one repository while processes are
killed and stopped at random; then everything that was told is compared with what is
there.

usage: JVS=… SCRATCH=… chaos.py [DIR[,DIR…]] [SECONDS] [SEED]
  DIRs: one directory, or several mounts of one volume; sessions are spread over them.
Exits with 1 if anything that was told is not so.
"""
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

mounts = (sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(dir=os.environ["SCRATCH"])).split(",")
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
random.seed(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
JVS = shutil.which(os.environ.get("JVS", "jvs")) or sys.exit(77)
REPOSITORY = "chaos"
HOME = tempfile.mkdtemp(dir=os.environ["SCRATCH"])
ENVIRONMENT = {**os.environ, "HOME": HOME, "XDG_RUNTIME_DIR": HOME, "XDG_STATE_HOME": HOME}
ENVIRONMENT.pop("JVS_FENCING_TOKEN", None)


def environment(session):
    return {**ENVIRONMENT, "JVS_SESSION_ID": session}


subprocess.run(
    [JVS, "init", f"{mounts[0]}/{REPOSITORY}"], env=environment("maker"), check=True, stdout=subprocess.DEVNULL
)
stop = time.time() + seconds
published, failed, unknown = [], [], []
tokens = collections.defaultdict(set)
guard = threading.Lock()
running = {}


def work(n):
    chance = random.Random(n)
    root = f"{mounts[n % len(mounts)]}/{REPOSITORY}"
    i = 0
    while time.time() < stop:
        i += 1
        what = chance.random()
        if what < 0.75:
            words = ["snapshot", f"s{n}-{i}", "--consistency", "best_effort"]
        elif what < 0.765:
            words = ["lock", "acquire", "--no-keeper", "--lease", "1s"]
        elif what < 0.767:
            words = ["lock", "freeze", "--force", "--for", "1s", "--reason", "x"]
        elif what < 0.80:
            words = ["gc", "--keep-last", "5", "--keep-within", "0s"]
        else:
            time.sleep(chance.random() * 0.1)
            continue
        process = subprocess.Popen(
            [JVS, "--json", "--repo", root, *words],
            env=environment(f"s{n}"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running[n] = process
        out, _ = process.communicate()
        status = process.returncode
        try:
            answer = json.loads(out)
        except ValueError:
            answer = None
        with guard:
            if words[0] == "snapshot":
                code = ((answer or {}).get("error") or {}).get("code")
                if status == 0:
                    published.append((words[1], answer["data"]["snapshot_id"]))
                elif status < 0 or code in (None, "E_OUTCOME_UNKNOWN"):
                    unknown.append(words[1])
                else:
                    failed.append((words[1], code))
            elif words[:2] == ["lock", "acquire"] and status == 0:
                tokens[answer["data"]["fencing_token"]].add(f"s{n}")
        if status:
            time.sleep(chance.random() * 0.15)


def vandalise():
    while time.time() < stop - 1:
        time.sleep(random.random() * 0.12)
        process = running.get(random.choice(list(running) or [0]))
        if not process or process.poll() is not None:
            continue
        chance = random.random()
        try:
            if chance < 0.25:
                process.kill()
            elif chance < 0.7:
                os.kill(process.pid, signal.SIGSTOP)
                resume = lambda p=process: p.poll() is None and os.kill(p.pid, signal.SIGCONT)
                threading.Timer(random.choice([0.05, 0.3, 4.2]), resume).start()
        except ProcessLookupError:
            pass


def write():
    k = 0
    while time.time() < stop:
        k += 1
        with open(f"{mounts[0]}/{REPOSITORY}/main/f{k % 7}", "w") as file:
            file.write(str(k))
        time.sleep(0.05)


threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
threads += [threading.Thread(target=vandalise), threading.Thread(target=write)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
time.sleep(5)


def checker(*words):
    root = f"{mounts[0]}/{REPOSITORY}"
    return subprocess.run([JVS, "--repo", root, *words], env=environment("checker"), capture_output=True, text=True)


doctor = checker("doctor", "--strict", "--repair")
described, visible = {}, set()
base = f"{mounts[0]}/{REPOSITORY}/.jvs/snapshots"
for entry in os.listdir(base):
    gone = entry.endswith(".gone")
    try:
        descriptor = json.load(open(f"{base}/{entry}" if gone else f"{base}/{entry}/descriptor.json"))
    except (OSError, ValueError):
        continue
    described[descriptor["snapshot_id"]] = descriptor
    if gone or os.path.exists(f"{base}/{entry}/READY"):
        visible.add(descriptor["snapshot_id"])
register = os.listdir(f"{mounts[0]}/{REPOSITORY}/.jvs/locks/main.fence")
lineage, at = [], register[0].split(".")[9]
wrong = []
while at and at != "none":
    lineage.append(at)
    if at not in described:
        wrong.append(f"the lineage is broken at {at}")
        break
    at = described[at].get("parent")
notes = {described[id].get("note") for id in lineage if id in described}
order = [described[id]["fencing_token"] for id in reversed(lineage) if id in described]
wrong += [f"told published, not in the lineage: {one}" for one in published if one[1] not in lineage]
wrong += [f"told failed, but published: {one}" for one in failed if one[0] in notes]
wrong += [f"visible outside the lineage: {id}" for id in visible if id not in lineage]
wrong += [f"token {token} granted to {who}" for token, who in tokens.items() if len(who) > 1]
if len(register) != 1:
    wrong.append(f"the register has {len(register)} entries")
if order != sorted(order):
    wrong.append("tokens fall along the lineage")
if doctor.returncode:
    wrong.append(f"doctor: {doctor.stdout[-400:]}")
audit = checker("audit", "--verify")
if audit.returncode:
    wrong.append(f"audit: {(audit.stdout + audit.stderr)[-400:]}")
print(f"{len(published)} published, {len(failed)} refused, {len(unknown)} unknown or killed; lineage {len(lineage)}")
for one in wrong:
    print("DEFECT:", one)
sys.exit(1 if wrong else 0)
