#!/usr/bin/env bash
# The holder's host dies before its record was uploaded: others see the lock, and take
# it once its lease is over, without anybody removing a file by hand.
# usage: JVS=… SCRATCH=… JUICEFS=program dead-writeback.sh   (root)
. "$(dirname "$(realpath "$0")")/lib.sh"
need "${JUICEFS:-juicefs}"; need python3
[ "$(id -u)" = 0 ] && [ -e /dev/fuse ] || { echo "skipped: needs root and FUSE"; exit 77; }
J=${JUICEFS:-juicefs}; meta=sqlite3://$WORK/meta.db
"$J" format --storage file --bucket "$WORK/objects/" --trash-days 0 "$meta" volume >/dev/null 2>&1 || exit 77
mount_at() {
    local at=$1; shift; mkdir -p "$at"
    "$J" mount --no-usage-report --no-syslog --backup-meta 0 --metrics 127.0.0.1:0 \
        --cache-dir "$at.cache" "$@" "$meta" "$at" >/dev/null 2>&1 &
    pid=$!
    for _ in $(seq 300); do mountpoint -q "$at" && return; sleep 0.1; done; exit 77
}
mount_at "$WORK/there"; there=$pid
mount_at "$WORK/here" --writeback --upload-delay 1h; here=$pid
trap 'kill -9 $there $here 2>/dev/null; umount -l "$WORK/here" "$WORK/there" 2>/dev/null; true' EXIT
"$JVS" init "$WORK/there/r" >/dev/null || exit 1
JVS_SESSION_ID=dead "$JVS" --repo "$WORK/here/r" lock acquire --no-keeper --lease 2s >/dev/null 2>&1 || exit 1
pkill -9 -P $here 2>/dev/null; kill -9 $here; sleep 6
export JVS_SESSION_ID=rival; cd "$WORK/there/r/main" || exit 1
timeout 30 "$JVS" lock status >/dev/null || shows "the lock cannot be looked at"
timeout 60 "$JVS" lock acquire --no-keeper --wait=50s >/dev/null || shows "the lock cannot be taken"
