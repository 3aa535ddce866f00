#!/usr/bin/env bash
# A quiesced snapshot on JuiceFS has what `cat` shows, also if a writer has not
# flushed it; or it is refused, or says what it risks.
# usage: JVS=… SCRATCH=… MNT=juicefs-mount unflushed.sh write|mmap IDLE_SECONDS
. "$(dirname "$(realpath "$0")")/lib.sh"
need python3
[ -n "${MNT:-}" ] || { echo "skipped: no JuiceFS mount"; exit 77; }
export JVS_SESSION_ID=S
repo=$MNT/unflushed-$1-$2
"$JVS" init "$repo" >/dev/null && cd "$repo" || exit 1
python3 -c "open('main/data','wb').write(b'O'*4096)"
"$JVS" snapshot base >/dev/null || exit 1
sleep 2
python3 "$HERE/unflushed-writer.py" "$1" "$repo/main/data" "$WORK" & writer=$!
for _ in $(seq 3000); do [ -e "$WORK/wrote" ] && break; sleep 0.01; done
sleep "$2"
answer=$("$JVS" --json snapshot after); status=$?
id=$(field .data.snapshot_id <<<"$answer"); risk=$(field .data.risk <<<"$answer")
shown=$(head -c1 main/data)
captured=$(head -c1 ".jvs/snapshots/$id/payload/data" 2>/dev/null)
touch "$WORK/stop"; wait $writer
[ $status -eq 0 ] || { echo "refused, which is honest: $(field .error.code <<<"$answer")"; exit 0; }
[ "$captured" = "$shown" ] || [ "$risk" != None ] || shows "quiesced, without a risk, and without what cat shows"
