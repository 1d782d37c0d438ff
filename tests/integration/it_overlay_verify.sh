#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# PSD_OVERLAY_VERIFY: each bundle has a check for each worker in it, sums stay exact, no
# relay is accused, and nothing of it is in the log that psd reads when it starts again. A relay
# that drops or doubles a worker's delta is found by psd and by other relays, which name its
# worker, and sums are exact all the same; where nobody looks they are not. CLOCK_ADDER and
# WRONG_ADDER come from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
export PSD_WORKERS_HEARTBEAT_MS=100

# adds PROGRAM TABLE: a job of four workers, on a table of its own.
adds() {
    expect 0 table create "$2" --type i64 --rows 65536 --partitions 4 --combine clock-sum --ack disk
    run run -n 4 --job "$2" --overlay tree -- "$1" "$2" 30
}
# tries CONDITION PROGRAM TABLE: jobs until the condition holds after one: where a worker waits for
# a processor, a job may be over before it has heard of its plan. $table is the last one's.
tries() {
    for ((n = 1; n <= 10; n++)); do
        table=$3$n
        adds "$2" "$table"
        "$1" && return
    done
    fail "$3: ten jobs, and not once $1"
    show
}
# Four workers have added 1 in each of 30 clocks.
sums_are_exact() {
    expect 0 table export "$table" --to "$work/sums.csv"
    [ "$(grep -c ',120$' "$work/sums.csv")" -eq 65536 ] ||
        { head -3 "$work/sums.csv"; fail "$table is not 120 everywhere"; }
}

# ---- all are right ----

# Bundles have gone both ways. One has 40 bytes and a check for each worker, and 48 and its values
# for each sum.
has_bundles() {
    [ "$rc" -eq 0 ] || { fail "$table: exit code $rc"; show; }
    python3 - "$work" >"$work/looks" 2>&1 <<'END' || { fail "$(cat "$work/looks")"; }
import json, sys
n = {"to nodes": 0, "to worker": 0}
for rank in range(4):
    for e in json.load(open(f"{sys.argv[1]}/trace-{rank}.json")):
        if e.get("cat") == "bundle" and e["ph"] == "b":
            rest = e["args"]["bytes"] - 48 * e["args"]["workers"]
            assert rest % (48 + 131072) == 0, e
            n[e["name"].rstrip("0123456789 ")] += 1
print("both" if n["to nodes"] and n["to worker"] else n)
END
    grep -q both "$work/looks"
}
cli_start
export PSD_OVERLAY_VERIFY=on PSD_OVERLAY_TRACE=$work/trace-%r.json
tries has_bundles "$CLOCK_ADDER" w
unset PSD_OVERLAY_TRACE
grep -q overlay_wrong_sum "$work/psd.log" "$work/out" "$work/err" && fail "a relay is accused"
expect 0 job inspect "$table" -o json
out_has '"state": *"finished"'
kill -KILL "$psd_pid"
wait "$psd_pid" 2>/dev/null
rm "$work/data/endpoints.json"
cli_start
sums_are_exact

# ---- one is wrong ----

http=$(sed 's/.*"http":"http:\/\/\([^"]*\)".*/\1/' "$work/data/endpoints.json")
n_wrong() {
    exec 3<>"/dev/tcp/${http%:*}/${http##*:}"
    printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
    awk '/^psd_wrong_bundles_total/ {n += $2} END {print n + 0}' <&3
    exec 3<&-
}
# By the tree worker 1 sends sums of one partition to psd, and of another one to worker 3.
is_found() {
    [ "$rc" -eq 0 ] || { fail "$table: exit code $rc"; show; }
    cat "$work/out" "$work/err" >>"$work/said"
    sums_are_exact
    grep -q overlay_wrong_sum "$work/psd.log" && grep -q overlay_wrong_sum "$work/said"
}
[ "$(n_wrong)" = 0 ] || fail "psd_wrong_bundles_total is $(n_wrong)"
export WRONG_RELAY=1
tries is_found "$WRONG_ADDER" x
grep -h overlay_wrong_sum "$work/psd.log" "$work/said" | grep -v 'relay_of_worker=1 ' &&
    fail "another relay is named"
# The log holds back some of very many lines.
[ "$(n_wrong)" -ge "$(grep -c overlay_wrong_sum "$work/psd.log")" ] ||
    fail "psd_wrong_bundles_total is $(n_wrong)"

# ---- nobody looks ----

is_harmed() {
    [ "$rc" -ne 0 ] && grep -q 'value [0-9]* is [0-9]* and not' "$work/out" "$work/err"
}
export PSD_OVERLAY_VERIFY=off
tries is_harmed "$WRONG_ADDER" y
unset WRONG_RELAY

PSD_OVERLAY_VERIFY=perhaps run run -n 1 --job wrong --overlay tree -- "$CLOCK_ADDER" x1 1
[ "$rc" -ne 0 ] || fail "a worker has joined"
cat "$work/out" "$work/err" | grep -q 'PSD_OVERLAY_VERIFY.*perhaps.*off.*on' ||
    { fail "the setting is not named"; show; }
cli_finish
