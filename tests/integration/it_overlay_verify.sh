#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# PSD_OVERLAY_VERIFY: each bundle has a check for each worker in it, sums stay exact, no
# relay is accused, and nothing of it is in the log that psd reads when it starts again.
# CLOCK_ADDER comes from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
export PSD_WORKERS_HEARTBEAT_MS=100

cli_start
expect 0 table create w --type i64 --rows 65536 --partitions 2 --combine clock-sum --ack disk
PSD_OVERLAY_VERIFY=on PSD_OVERLAY_TRACE=$work/trace-%r.json expect 0 run -n 4 --job checked \
    --overlay tree -- "$CLOCK_ADDER" w 30
# A bundle: 40 bytes and a check for each worker; 48 and its values for each sum.
python3 - "$work" >"$work/looks" 2>&1 <<'END' || fail "$(cat "$work/looks")"
import json, sys
n = {"to nodes": 0, "to worker": 0}
for rank in range(4):
    for e in json.load(open(f"{sys.argv[1]}/trace-{rank}.json")):
        if e.get("cat") == "bundle" and e["ph"] == "b":
            rest = e["args"]["bytes"] - 48 * e["args"]["workers"]
            assert rest % (48 + 262144) == 0, e
            n[e["name"].rstrip("0123456789 ")] += 1
assert n["to nodes"] and n["to worker"], n
END
grep -q overlay_wrong_sum "$work/psd.log" "$work/out" "$work/err" && fail "a relay is accused"
expect 0 job inspect checked -o json
out_has '"state": *"finished"'
# As a sum of four workers after 30 clocks it is 120 everywhere, also after a restart.
kill -KILL "$psd_pid"
wait "$psd_pid" 2>/dev/null
rm "$work/data/endpoints.json"
cli_start
expect 0 table export w --to "$work/w.csv"
[ "$(grep -c ',120$' "$work/w.csv")" -eq 65536 ] || { head -3 "$work/w.csv"; fail "not 120 everywhere"; }

PSD_OVERLAY_VERIFY=perhaps run run -n 1 --job wrong --overlay tree -- "$CLOCK_ADDER" w 1
[ "$rc" -ne 0 ] || fail "a worker has joined"
cat "$work/out" "$work/err" | grep -q 'PSD_OVERLAY_VERIFY.*perhaps.*off.*on' ||
    { fail "the setting is not named"; show; }
cli_finish
