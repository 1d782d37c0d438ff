#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The only copy of a partition is damaged: psd names file and byte and does not
# start, also the next time; it starts when the file is back, and with
# --accept-loss, which costs the damaged partition and no other.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
export PSD_SHARDS=1
log=$work/data/log-0

stop_hard() {
    kill -9 "$psd_pid"
    wait "$psd_pid" 2>/dev/null
    psd_pid=
    rm -f "$work/data/endpoints.json"
}

segment() {
    find "$log" -name '*.seg' | sort | tail -1
}

flip() {
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    # shellcheck disable=SC2059
    printf "\\x$(printf %x $((byte ^ 4)))" |
        dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

does_not_start() {
    rc=0
    "$PSD_PROGRAM" --data-dir "$work/data" --listen tcp://127.0.0.1:0 \
        >"$work/out" 2>"$work/err" </dev/null || rc=$?
    n_checked=$((n_checked + 1))
    [ $rc -eq "$1" ] || fail "psd: exit code $rc, not $1"
}

refused() {
    does_not_start 9
    err_has "^psd: E.*$(basename "$1").*$2.*--accept-loss"
}

unchanged() {
    diff -r "$log" "$1" || fail "a start that was refused has changed $log"
    [ ! -e "$work/data/logs-new" ] || fail "a start that was refused left a note"
}

cli_start
expect 0 table create w --rows 100 --type i64 --partitions 2 --ack disk
expect 0 push w 0=1
before=$(stat -c %s "$(segment)")
expect 0 push w 99=5
expect 0 push w 0=2
stop_hard
file=$(segment)
cp -r "$log" "$work/kept"
flip "$file" $((before + 40))

# ---- refused, and nothing is changed ----
refused "$file" byte
refused "$file" byte
flip "$file" $((before + 40))
unchanged "$work/kept"

# ---- back again ----
cli_start
expect 0 pull w 0,99 -o csv
out_has '^0,3$'
out_has '^99,5$'
stop_hard

# ---- a file that is missing is no new log ----
cp -r "$log" "$work/kept-note"
rm "$log/log-flushed"
refused log-flushed 'is missing'
cp -p "$work/kept-note/log-flushed" "$log"
unchanged "$work/kept-note"
PSD_SHARDS=2 does_not_start 6
err_has "^psd: E.*shards"
unchanged "$work/kept-note"
[ -z "$(ls "$work/data/log-1" 2>/dev/null)" ] || fail "log-1 was made"
cli_start
expect 0 table inspect w -o json
out_has '"rows_lost":false'
expect 0 pull w 0,99 -o csv
out_has '^0,3$'
out_has '^99,5$'
stop_hard

# ---- given up ----
flip "$file" $((before + 40))
"$PSD_PROGRAM" --data-dir "$work/data" --listen tcp://127.0.0.1:0 \
    --accept-loss >"$work/psd.log" 2>&1 &
psd_pid=$!
wait_for test -s "$work/data/endpoints.json" || cat "$work/psd.log"
PSCLI_ENDPOINT=$(sed 's/.*"control":"\([^"]*\)".*/\1/' \
    "$work/data/endpoints.json")
expect 0 pull w 0,99 -o csv
out_has '^0,3$'
out_has '^99,0$'
grep -q 'error partitions_lost shard=0 table=1 first=1 last=1' \
    "$work/psd.log" || fail "it is not said what is lost"
expect 0 cluster events
out_has "found damaged files: .*$(basename "$file").*byte"
out_has 'damaged files cost it 1 partition, of which 1 has no other copy'
expect 0 push w 99=7
stop_hard

# ---- and over ----
cli_start
expect 0 pull w 0,99 -o csv
out_has '^0,3$'
out_has '^99,7$'
cli_finish
