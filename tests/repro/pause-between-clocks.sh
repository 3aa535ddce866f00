#!/usr/bin/env bash
# A pause between the readings of two clocks never lets a holder believe in a lease
# that another host, with the same wall clock, may take. Tried after each reading.
# usage: JVS=… SCRATCH=… pause-between-clocks.sh   (root: a second host is a mount namespace)
. "$(dirname "$(realpath "$0")")/lib.sh"
need gcc; need unshare; need python3
[ "$(id -u)" = 0 ] || { echo "skipped: needs root"; exit 77; }
gcc -shared -fPIC -o "$WORK/pause.so" "$HERE/pause-between-clocks.c" -ldl || exit 77
cat /proc/sys/kernel/random/uuid > "$WORK/bootid"
other_host() {
    HOME="$WORK/other" XDG_RUNTIME_DIR= XDG_STATE_HOME= JVS_SESSION_ID=rival BOOTID="$WORK/bootid" \
        unshare -m -u bash -c 'hostname hostb; mount --make-rprivate /
            mount --bind "$BOOTID" /proc/sys/kernel/random/boot_id; exec "$@"' _ "$@"
}
mkdir "$WORK/other"; cd "$WORK" || exit 1
for at in 1 2 3 4 5 6; do
    "$JVS" init "r$at" >/dev/null && cd "r$at/main" || exit 1
    JVS_SESSION_ID=holder PAUSE_AT=$at PAUSE_S=5 LD_PRELOAD="$WORK/pause.so" \
        "$JVS" lock acquire --no-keeper --lease 6s >/dev/null 2>&1
    # Just before the holder's belief would end if it were five seconds too long.
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        mine=$(JVS_SESSION_ID=holder "$JVS" --json lock status)
        theirs=$(other_host "$JVS" --json lock status)
        believes=$(field .data.state <<<"$mine"); sees=$(field .data.state <<<"$theirs")
        [ "$believes" = held ] && [ "$(field .data.mine <<<"$mine")" = True ] && [ "$sees" = stealable ] &&
            shows "after reading $at: the holder believes while another host may take"
        [ "$believes" = held ] || break
        sleep 1
    done
    cd "$WORK" || exit 1
done
