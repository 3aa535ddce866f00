#!/usr/bin/env bash
# A store into a mapped file, made while or after a snapshot is taken, is in the next
# snapshot, and a restore in place deletes no only copy of it.
# usage: JVS=… SCRATCH=… mapped-write.sh [DIR]   DIR: on the filesystem under test
. "$(dirname "$(realpath "$0")")/lib.sh"
need python3
export JVS_SESSION_ID=S
T=$(mktemp -d "$(realpath "${1:-$SCRATCH}")/mapped.XXXXXX")
trap 'rm -rf "$T"' EXIT
waits_for() { for _ in $(seq 3000); do [ -e "$1" ] && return; sleep 0.02; done; shows "no $1"; }

cd "$T" && "$JVS" init r >/dev/null && cd r || exit 1
head -c 8192 /dev/zero | tr '\0' '0' > main/array; echo keep > main/other
"$JVS" snapshot s0 >/dev/null || exit 1
python3 "$HERE/mapped.py" "$T/r/main/array" "$WORK" & writer=$!
waits_for "$WORK/wroteA"; sleep 0.2
if [ -n "${DURING:-}" ]; then
    # The store falls between the capture and its sync.
    need strace
    strace -f -o /dev/null -e trace=syncfs -e inject=syncfs:delay_enter=1500000 "$JVS" snapshot s1 >/dev/null 2>&1 & taking=$!
    sleep 0.9; touch "$WORK/go"; wait $taking
else
    "$JVS" snapshot s1 >/dev/null 2>&1; sleep 1; touch "$WORK/go"
fi
waits_for "$WORK/wroteB"; touch "$WORK/stop"; wait $writer; sync -f main
"$JVS" snapshot s2 >/dev/null || shows "a quiet worktree cannot be captured"
newest=$("$JVS" --json history -n 1 | field .data.snapshots.0.snapshot_id)
[ "$(head -c4 ".jvs/snapshots/$newest/payload/array")" = BBBB ] || shows "the newest snapshot lacks the store"
oldest=$("$JVS" --json history | field .data.snapshots.-1.snapshot_id)
"$JVS" restore "$oldest" --in-place --reason test >/dev/null || exit 1
grep -rqs BBBB .jvs main || shows "restore deleted the only copy"
