#!/usr/bin/env bash
# What a new user of sessions ran into, one scene an argument (all without one).
# usage: JVS=… SCRATCH=… sessions.sh [SCENE…]
. "$(dirname "$(realpath "$0")")/lib.sh"
need python3; need setsid
repository() { rm -rf "${WORK:?}/$1"; "$JVS" init "$WORK/$1" >/dev/null && cd "$WORK/$1/main" || exit 1; }
state() { as onlooker "$JVS" --json lock status | field .data.state; }

# Two runs of one session: the first to end does not free the lock under the other.
two_runs() {
    repository two
    (as one "$JVS" run -- sleep 2) & sleep 0.5
    (as one "$JVS" run --join -- sleep 8) & sleep 3.5
    [ "$(state)" = held ] || shows "the lock is $(state) while a run goes on"
    wait
}
# A holder that was taken over does not publish untold.
taken_over() {
    repository taken; as a "$JVS" config set reclaim.same_user true >/dev/null
    as a "$JVS" lock acquire >/dev/null
    as b "$JVS" lock reclaim --reason x >/dev/null || shows "it cannot be reclaimed"
    echo b > f; as b "$JVS" snapshot b >/dev/null; as b "$JVS" lock release >/dev/null
    echo a > f; as a "$JVS" snapshot a >/dev/null 2>&1 && shows "the robbed holder published"
    return 0
}
# The keeper holds no descriptor of the script that took the lock.
descriptors() {
    repository descriptors
    (exec 9>"$WORK/flock"; flock 9; as k "$JVS" lock acquire >/dev/null)
    timeout 2 flock "$WORK/flock" true || shows "a script's own flock stays locked"
    as k "$JVS" lock release >/dev/null
}
# Without a name and a terminal nothing is promised that ends with the command.
nameless() {
    repository nameless
    setsid -w env -u JVS_SESSION_ID bash -c '"$JVS" lock acquire' </dev/null >"$WORK/said" 2>&1 || return 0
    sleep 0.5; [ "$(state)" = free ] && shows "told kept, and free at once: $(head -2 "$WORK/said")"
    return 0
}
# Another user is told about permissions, and nothing is called damaged.
other_user() {
    [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || { echo "other_user skipped"; return 0; }
    chmod 755 "$WORK"; repository shared; echo 1 > a; as ua "$JVS" snapshot a >/dev/null
    mkdir "$WORK/ub"; chown 4711 "$WORK/ub"
    for words in "lock acquire --no-keeper" "doctor --strict"; do
        said=$(HOME=$WORK/ub XDG_RUNTIME_DIR=$WORK/ub XDG_STATE_HOME=$WORK/ub as ub \
            setpriv --reuid 4711 --regid 4711 --clear-groups "$JVS" $words 2>&1)
        grep -qE "CORRUPT|not what was written|backup" <<<"$said" && shows "$words: $said"
    done
    return 0
}
for scene in "${@:-two_runs taken_over descriptors nameless other_user}"; do
    for one in $scene; do "$one"; done
done
