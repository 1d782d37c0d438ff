#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pscli job inspect --overlay, --matrix, --dot: the plan of a job, what its workers have
# measured and what they have not, as people see it, as JSON, and as a graph; and what does
# not go together. CLOCK_ADDER comes from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
export PSD_WORKERS_HEARTBEAT_MS=100
job=
end_job() {
    if [ -n "$job" ]; then
        kill -KILL "$job" 2>/dev/null
        wait "$job" 2>/dev/null
    fi
    cli_end
}
trap end_job EXIT

# adders JOB TABLE ARGS...: four workers that go on until the job is stopped.
adders() {
    local name=$1 table=$2
    shift 2
    "$PSCLI_PROGRAM" run -n 4 --job "$name" "$@" -- "$CLOCK_ADDER" "$table" 1000000000 \
        >"$work/$name" 2>&1 &
    job=$!
}
stop() {
    expect 0 job stop "$1"
    wait "$job" # with the exit code of a job that was stopped
    job=
}
# Is that in the plan of the job, by a line of python about d?
holds() {
    "$PSCLI_PROGRAM" job inspect "$1" --overlay -o json >"$work/holds" 2>/dev/null &&
        python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(0 if eval(sys.argv[2]) else 1)' "$work/holds" "$2"
}
# json LINES...: python that knows the last output as d.
json() {
    python3 -c "import json, sys
d = json.load(open('$out_file'))
$1" || { fail "not so: $1"; show; }
}

age='[0-9.]+ (us|ms|s|min|h)'

cli_start
# Its partition is large enough to be measured; the other one's is not.
expect 0 table create large --type i64 --rows 65536 --partitions 1 --combine clock-sum
expect 0 table create small --type i64 --rows 8 --partitions 1 --combine clock-sum
four='len(d["workers"]) == 4 and d["clock_s"] > 0'
one='[l for l in d["links"] if "to" in l] and [l for l in d["links"] if not "to" in l]'

# ---- a tree ----
adders tree large --overlay tree
wait_for holds tree "$four and $one and all(w.get(\"bundles\", 0) > 0 for w in d[\"workers\"])" ||
    { fail "no plan of four that have measured"; cat "$work/holds" "$work/tree"; }
expect 0 job inspect tree --overlay
out_has '^JOB +tree$'
out_has '^POLICY +tree$'
out_has '^FROM_CLOCK +[0-9]+$'
out_has "^CLOCK_TIME +$age$"
out_has '^CLOCK_BYTES +512(\.[0-9])? KiB$'
out_has '^GROUP +FROM +TO +RATE +AGE +SENT$'
[ "$(grep -Ec '^[0-3] +[0-3] +([0-3]|nodes) +([0-9.]+ [kMG]?B/s|unknown) ' "$work/out")" -eq 16 ] ||
    { fail "there are no 16 edges"; show; }
[ "$(grep -Ec '^[0-3] +[0-3] +nodes ' "$work/out")" -eq 4 ] ||
    { fail "not one worker of each group sends to the nodes"; show; }
out_has "[kMG]B/s +$age +[0-9.]+ [KMGT]iB$"
out_has '^WORKER +RELAY +LINK +LENT +RETURNED +DIRECT +BUNDLES +REFUSED$'
out_has '^3 +tcp://127\.0\.0\.1:[0-9]+ +plain +[1-9][0-9]* +[0-9]+ +[1-9][0-9]* +[1-9][0-9]* +[0-9]+$'
expect 0 job inspect tree --overlay -o json
json '
assert d["job"] == "tree" and d["policy"] == "tree" and d["clock"] > 0
assert sorted(e["from"] for e in d["edges"]) == [i for i in range(4) for _ in range(4)]
assert sum("to" not in e for e in d["edges"]) == 4
known = [e for e in d["edges"] if e["bytes_s"] is not None]
assert known and all(e["bytes"] >= 262144 and e["age_s"] >= 0 for e in known)
assert all(e["age_s"] is None for e in d["edges"] if e["bytes_s"] is None)'
expect 0 job inspect tree --matrix
out_has '^FROM +TO_0 +TO_1 +TO_2 +TO_3 +TO_NODES$'
out_has '^0 +- +'
out_has 'B/s'
out_has ' unknown '
[ "$(wc -l <"$work/out")" -eq 5 ] || { fail "no five lines"; show; }
expect 0 job inspect tree --overlay --matrix -o json
json '
rows = d["matrix"]
assert [r["from"] for r in rows] == [0, 1, 2, 3]
assert all(sorted(r["to"]) == sorted(str(i) for i in range(4) if i != r["from"]) for r in rows)
assert any(v for r in rows for v in r["to"].values()) and any(r["nodes"] for r in rows)
assert any(v is None for r in rows for v in r["to"].values())'
expect 0 job inspect tree --matrix -o csv
out_has '^from,to\.0,to\.1,to\.2,to\.3,nodes$'
expect 0 job inspect tree --dot
out_has '^digraph "tree" \{$'
[ "$(grep -Ec '^  w[0-3] \[label="worker [0-3]"\];$' "$work/out")" -eq 4 ] ||
    { fail "not every worker is in the graph"; show; }
# Four edges at least, and all of one form; dot itself where there is one.
[ "$(grep -Ec '^  w[0-3] -> (w[0-3]|nodes) \[label="group [0-3](, [0-3])*\\n([0-9.]+ [kMG]?B/s, '"$age"' ago"|unknown", style=dashed)\];$' \
    "$work/out")" -eq "$(grep -c -- '->' "$work/out")" ] || { fail "edges of another form"; show; }
out_has '^  w[0-3] -> nodes '
if command -v dot >/dev/null; then
    dot -Tsvg "$work/out" >"$work/svg" || fail "dot does not understand the graph"
fi

# ---- what does not go together ----
expect 2 job inspect tree --matrix --dot
err_has '--matrix and --dot: give one of them'
expect 2 job inspect tree --dot -o json
out_has '--dot with -o json; allowed with: table'
stop tree
expect 5 job inspect no-such --overlay

# ---- small pushes make no tree ----
PSD_OVERLAY_LISTEN='tcp://127.0.0.1:*' adders star small --overlay auto
wait_for holds star "$four and \"bytes in a clock\" in d.get(\"why\", \"\")" ||
    { fail "nothing says why there is no tree"; cat "$work/holds" "$work/star"; }
expect 0 job inspect star --overlay
out_has '^POLICY +auto$'
out_has '^USES +star$'
out_has '^WHY +a worker pushes [0-9]+ bytes in a clock; a tree needs 262144 or more$'
out_has '^0 +2 +nodes '
[ "$(grep -c 'nodes ' "$work/out")" -eq 4 ] || { fail "it is no star"; show; }
expect 0 job inspect star --dot
[ "$(grep -Ec '^  w[0-3] -> nodes \[label="group 0\\n' "$work/out")" -eq 4 ] ||
    { fail "the star is not drawn"; show; }
stop star

# ---- none at all ----
expect 0 table create other --type i64 --rows 8
expect 0 run -n 4 --job without -- "$CLOCK_ADDER" other 3
for view in --overlay --matrix --dot; do
    expect 2 job inspect without $view
    err_has 'job "without" has no overlay: no worker of it has said where its relay is'
done
cli_finish
