# Sourced by every script here. `JVS` is the command, `SCRATCH` a directory to work
# in. A script exits with 0 if the defect does not show, with 1 if it does, and with
# 77 if this machine lacks what it needs.
set -u
JVS=$(realpath "$(command -v "${JVS:-jvs}")") || { echo "set JVS to the command"; exit 77; }
SCRATCH=$(realpath "${SCRATCH:?set SCRATCH to a directory to work in}")
HERE=$(dirname "$(realpath "$0")")
WORK=$(mktemp -d "$SCRATCH/repro.XXXXXX")
export JVS HOME="$WORK/home" XDG_RUNTIME_DIR="$WORK/run" XDG_STATE_HOME="$WORK/home"
mkdir -p "$HOME" && mkdir -m 700 "$XDG_RUNTIME_DIR"
unset JVS_FENCING_TOKEN JVS_WORKTREE
export JVS_SESSION_ID=maker

need() { command -v "$1" >/dev/null || { echo "skipped: no $1 here"; exit 77; }; }
shows() { echo "DEFECT: $*"; exit 1; }
# The field of a JSON answer: field .data.state
field() { python3 -c 'import json,sys
d=json.load(sys.stdin)
for k in sys.argv[1].strip(".").split("."): d=d[int(k)] if isinstance(d,list) else (d or {}).get(k)
print(d)' "$1"; }
# as SESSION COMMAND…: in a session of its own, with that name.
as() { local id=$1; shift; setsid -w env JVS_SESSION_ID="$id" "$@" </dev/null; }
