#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pscli bench suite: tiny suites over each transport, with a psd of their own.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"

tiny=(bench suite --psd "$PSD_PROGRAM" --divide 10000 --repeats 1
    --duration 1ms)

# suite_has EXPRESSION: holds for the JSON document on stdout.
suite_has() {
    python3 - "$work/out" "$1" <<'PYTHON' || fail "not so: $1"
import json, sys
doc = json.load(open(sys.argv[1]))
figures = doc["figures"]
sys.exit(not eval("(" + sys.argv[2] + ")"))
PYTHON
}

for transport in ${BENCH_TRANSPORTS:-tcp ipc lane}; do
    expect 0 "${tiny[@]}" --quick --transport "$transport" -o json \
        --svg "$work/$transport.svg"
    suite_has '{f["section"] for f in figures} == {"dense", "sparse", "small"}'
    suite_has 'all(f["transport"] == "'"$transport"'" for f in figures)'
    suite_has 'all(f["requests_s"] > 0 and f["ratio"] >= 0 for f in figures)'
    suite_has 'all(0 < f["p50_s"] <= f["p99_s"] <= f["p999_s"] <= f["max_s"]
                   for f in figures if f["in_flight"] == 1)'
    suite_has '{f["what"] for f in figures} ==
               {"push", "push in place", "pull"}'
    suite_has 'all(f["limit_value"] > 0 for f in figures)'
    suite_has 'all(l["min"] <= l["median"] <= l["max"] for l in doc["limits"])'
    python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' \
        "$work/$transport.svg" || fail "$transport.svg is no XML"
done

# Each section that only full suites have.
expect 0 "${tiny[@]}" --only width,rows,grow,workers,shards --transport tcp -o json
suite_has '{f["floats"] for f in figures if f["section"] == "width"} ==
           {1, 16, 64, 256}'
suite_has '{f["workers"] for f in figures if f["section"] == "workers"} ==
           {1, 2, 4, 8}'
suite_has '{f["shards"] for f in figures if f["section"] == "shards"} ==
           {1, 2, 4}'
suite_has 'len({f["rows"] for f in figures if f["section"] == "rows"}) == 5'

suite_has '[f["row_overhead_bytes"] > 0 and f["what"] == "push"
           for f in figures if f["section"] == "grow"] == [True, True]'

expect 0 "${tiny[@]}" --only small --transport tcp
out_has 'SECTION'
out_has 'limits of the machine'
expect 2 "${tiny[@]}" --only nothing
err_has 'allowed: dense'
expect 2 "${tiny[@]}" --quick --full
expect 1 "${tiny[@]}" --only small --psd "$work/no-psd"
expect 1 "${tiny[@]}" --only small --transport tcp --svg "$work/no/such/file"

# One that a shard refuses leaves no table.
cli_start
rm "$work"/data/shard-*.lane
expect 3 bench latency --requests 10 --transport lane
expect 0 table list -o name
out_is ''
cli_finish
