#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What those use who look after a cluster: check with its formats and exit codes,
# wait that outlasts a psd that is not there, top in terminals of two sizes.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
unset TMUX COLUMNS
long=100s

# ---- check ----
cli_start
node=$(hostname)
expect 0 check
out_has '^health +ok +healthy, 1 nodes, 0 tables$'
out_has '^lag +ok +there is no table$'
out_has '^clocks +ok +no job runs$'
expect 0 table create w --rows 100 --type i64
expect 0 check -o json
python3 -m json.tool <"$work/out" >"$work/parsed" || fail "check -o json does not parse"
out_has '"status":"ok","checks":\[\{"check":"health"'
expect 0 check --format nagios
out_has '^PSD OK - health: healthy, 1 nodes, 1 tables \| health=0;1;1;0 lag=0s;1;10;0 clocks=0s;60;300;0$'
expect 0 check --format prometheus
promtool check metrics <"$work/out" >"$work/promtool" 2>&1 || {
    fail "promtool does not take it"
    cat "$work/promtool"
}
expect 1 check backup
out_has '^backup +critical +there is no whole checkpoint$'
expect 0 checkpoint create first
expect 0 check backup
expect 1 check backup --warn 1ms --crit 1h
out_has '^backup +warning +the newest checkpoint, first, is '
expect 2 check --format prometheus-text
expect 1 check backup --warn 1ms --crit 1h --format nagios
out_has '^PSD WARNING - backup: '
expect 2 check backup --warn 1ms --crit 1ms --format nagios
out_has '^PSD CRITICAL - backup: '
expect 2 check lag --warn 3s --crit 2s
err_has 'warn 3 s must not be above --crit 2 s'
expect 2 check --warn 3s
err_has 'need the name of one check'
expect 2 check health --warn 3s
err_has 'has no threshold'
expect 2 check heath
err_has 'unknown check "heath"; allowed: health, lag, clocks, backup'
kill -STOP "$psd_pid"
expect 3 check --format nagios --timeout 300ms
out_has '^PSD UNKNOWN - health: .*no answer'
expect 3 check --timeout 300ms
kill -CONT "$psd_pid"

# ---- doctor ----
expect 0 doctor
out_has '^settings +ok +'
out_has '^key +ok +PSD_KEY_FILE is not set'
out_has '^endpoint +ok +tcp://127.0.0.1:[0-9]+ answers, in '
out_has '^version +ok +psd has version '
out_has '^cluster +ok +healthy, 1 nodes, 1 tables'
out_has '^shards +ok +row 0 of table "w" came in [0-9.]+ ms from (lane|ipc|tcp)://'
out_has '^locked +ok +a process may lock '
(
    ulimit -l 16
    expect 1 doctor
    out_has '^locked +finding +a process may lock 16 KiB of memory +carriers .*LimitMEMLOCK=64M'
    [ "$n_failed" -eq 0 ]
) || fail "a small limit of locked memory"
PSD_KEY_FILE=$work/none expect 1 doctor
out_has "^key +finding +PSD_KEY_FILE names .*/none: No such file or directory +pscli auth keygen me --file "
: >"$work/open.key"
chmod 644 "$work/open.key"
PSD_KEY_FILE=$work/open.key run doctor -o json
python3 - "$out_file" <<'END' || fail "doctor -o json"
import json, sys
said = json.load(open(sys.argv[1]))
found = {c["check"]: c for c in said["checks"] if c["state"] == "finding"}
assert said["findings"] >= 1 and found["key"]["cure"].startswith("chmod 600 "), said
END
PSCLI_ENDPOINT=tcp://127.0.0.1:1 expect 1 doctor --data-dir "$work"
out_has '^endpoint +finding +.*Connection refused'
out_has '^disk +ok +[0-9]+ MiB are free in '
expect 1 doctor --data-dir "$work/none"
out_has '^disk +finding +.*No such file'

# ---- trace ----
expect 0 push w 1=2 --trace
out_has 'pushed 1 row to "w"'
err_has '^KIND +PARTITION +WHOLE +CLIENT +QUEUE +GATE +WORK +COPIES +FLUSH +ANSWER *$'
err_has '^push +[0-9]+ +[0-9.]+ '
expect 0 pull w 1 --trace --trace-file "$work/chrome.json" --trace-otlp "$work/otlp" -o json
python3 - "$work" <<'END' || fail "traces of a pull"
import json, sys
work = sys.argv[1]
trace = json.load(open(f"{work}/err"))["trace"]
assert len(trace) == 1 and trace[0]["kind"] == "pull" and trace[0]["told"], trace
phases = ["client", "queue", "gate", "work", "copies", "flush", "answer"]
whole = trace[0]["whole_s"]
assert abs(sum(trace[0][f"{p}_s"] for p in phases) - whole) <= whole / 10, trace
events = json.load(open(f"{work}/chrome.json"))["traceEvents"]
assert events[0]["name"].startswith("pull w, partition "), events
assert abs(events[0]["dur"] - whole * 1e6) < 2, (events, whole)
assert {e["name"] for e in events[1:]} <= set(phases), events
assert all(events[0]["ts"] <= e["ts"] and
           e["ts"] + e["dur"] <= events[0]["ts"] + events[0]["dur"] for e in events), events
(line,) = open(f"{work}/otlp").readlines()
spans = json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]
assert len(spans) == len(events) and len(spans[0]["traceId"]) == 32, spans
assert all(s["parentSpanId"] == spans[0]["spanId"] for s in spans[1:]), spans
assert len({s["spanId"] for s in spans}) == len(spans), spans
END
expect 0 pull w 1 --trace-otlp "$work/otlp"
[ "$(wc -l <"$work/otlp")" -eq 2 ] || fail "--trace-otlp does not append"
expect 1 pull w 1 --trace-otlp /dev/full
err_has '/dev/full: No space left'

# ---- wait ----
expect 0 wait cluster --for healthy --timeout $long
expect 0 wait cluster --for nodes=1 --timeout $long
expect 0 wait node/"$node" --for up --timeout $long
expect 0 wait table/w --for copies --timeout $long
"$PSCLI_PROGRAM" wait table/late --for there --timeout $long 2>"$work/late" &
late=$!
expect 0 table create late --rows 10
wait $late || {
    fail "wait table/late --for there: $?"
    cat "$work/late"
}
expect 0 table drop late --yes
expect 0 wait table/late --for gone --timeout $long
expect_told 7 200 ': table late is not there' wait table/late --for there
err_has "table/late is not there after $told_s s: "
expect_told 7 200 ': there is no job none' wait job/none --for clock=3
err_has "job/none is not clock=3 after $told_s s: "
expect_told 7 200 ': 1 nodes are up' wait cluster --for nodes=2
expect 2 wait w --for there
err_has 'TARGET is "w"; allowed: cluster, node/NAME, table/NAME, job/NAME'
expect 2 wait table/w --for
expect 2 wait table/w
err_has '--for is required; allowed of a table: there gone copies'
for wrong in clock clock= clock=x over=1 clocks=3 ''; do
    expect 2 wait job/j --for "$wrong"
done
expect 0 table drop w --yes # its rows would be lost, and the cluster not healthy
kill "$psd_pid"
wait "$psd_pid"
psd_pid=
rm -f "$work/data/endpoints.json"
# Over a socket whose name stays: psd chooses other ports.
"$PSCLI_PROGRAM" --endpoint "ipc://$work/data/psd.ipc" wait cluster --for healthy \
    --timeout $long 2>"$work/healthy" &
healthy=$!
cli_start
wait $healthy || {
    fail "wait cluster --for healthy across a start: $?"
    cat "$work/healthy"
}

# ---- slow ----
# A worker waits at the gate until the other one has finished its clock.
expect 0 table create gated --rows 10
expect 0 slow
gated_worker() {
    PSD_ENDPOINT=$PSCLI_ENDPOINT PSD_JOB=slow PSD_WORKERS=2 PSD_WORKER=$1 PSD_MAX_DELAY=0 \
        "$CLI_WORKER" gated 1 "${@:2}"
}
gated_worker 0 hold >"$work/first" 2>&1 &
first=$!
waits_long() {
    "$PSCLI_PROGRAM" clock inspect slow -o json 2>/dev/null |
        grep -q '"waiting_s":\(0\.[3-9]\|[1-9]\)'
}
wait_for waits_long || fail "no worker waits"
gated_worker 1 >"$work/second" 2>&1 || fail "$(cat "$work/second")"
wait $first || fail "$(cat "$work/first")"
expect 0 slow gated -o json
python3 - "$work/out" <<'EOF' || fail "slow: $(cat "$work/out")"
import json, sys
slow = [s for s in json.load(open(sys.argv[1]))["slow"] if s["kind"] == "PULL"]
one = slow[0]
assert one["table"] == "gated" and one["job"] == "slow" and one["worker"] == 0, one
assert one["gate_s"] >= 0.2 and one["held_for"] == "clock", one
parts = sum(one[k + "_s"] for k in ("gate", "queue", "work", "copies", "flush"))
assert abs(parts - one["total_s"]) < 1e-6, one
EOF
expect 0 slow
out_has '^AGO +KIND +TABLE'
expect 5 slow nothing
expect 2 slow --limit 0
expect 0 table drop gated --yes

# ---- top ----
expect 0 table create w --rows 100
expect 0 top --once --every 100ms
out_has "^$node +up +"
out_has '^w +0 '
expect 0 top --every 100ms -o json
python3 -m json.tool <"$work/out" >"$work/parsed" || fail "top -o json does not parse"
out_has '"name":"w","rows_present":'
expect 2 top --once -o csv
err_has 'allowed: table, wide, json, jsonl'

screen() {
    tmux -S "$work/tmux" capture-pane -p
}
screen_has() {
    screen | grep -Eq -- "$1"
}
at_size() {
    local widest
    tmux -S "$work/tmux" -f /dev/null new-session -d -x "$1" -y "$2" \
        "'$PSCLI_PROGRAM' top --every 100ms --endpoint $PSCLI_ENDPOINT 2>'$work/top.err'"
    wait_for screen_has "^$node +up" || {
        fail "top at $1 x $2 does not show the node"
        screen
        cat "$work/top.err"
    }
    screen_has '^TABLE +PUSH/S' || fail "top at $1 x $2 shows no tables"
    [ "$(screen | grep -c NODE)" -eq 1 ] || fail "top at $1 x $2: lines wrap"
    widest=$(screen | wc -L)
    [ "$widest" -le "$1" ] || fail "top at $1 x $2: a line of $widest"
    tmux -S "$work/tmux" send-keys j
    wait_for screen_has '^JOB +STATE' || fail "top shows no jobs after j"
    tmux -S "$work/tmux" send-keys q
    n_checked=$((n_checked + 3))
    wait_for not_there || fail "top does not end at q"
}
not_there() {
    ! tmux -S "$work/tmux" has-session 2>/dev/null
}
at_size 80 24
at_size 200 50
cli_finish
