#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# PSD_OVERLAY_TRACE: a file for each worker, which is JSON while it runs (but for its end) and
# afterwards, and has all kinds of events; and files that cannot be written. CLOCK_ADDER
# comes from meson.
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

# Each of them is in one of the files, at least.
all_have() {
    local word
    for word in "$@"; do
        grep -hq "$word" "$work"/trace-?.json 2>/dev/null || return 1
    done
}
# psd stands still with a bundle: nobody says anything of it, and it is given back. Now and
# then it has answered all of them.
gives_back() {
    local n
    kill -STOP "$psd_pid"
    for ((n = 0; n < 60; n++)); do
        read -rt 0.1 <> <(:) || :
        all_have '"back to worker [0-3]"' && break
    done
    kill -CONT "$psd_pid"
    [ "$n" -lt 60 ]
}

cli_start
expect 0 table create w --type i64 --rows 65536 --partitions 2 --combine clock-sum
ln -s "$work/target" "$work/link.0"
: >"$work/trace-3.json" # of a run before
PSD_OVERLAY_TRACE=$work/trace-%r.json "$PSCLI_PROGRAM" run -n 4 --job traced --overlay tree -- \
    "$CLOCK_ADDER" w 1000000000 >"$work/run" 2>&1 &
job=$!
wait_for all_have '"lent"' '"to worker [0-3]"' '"to nodes"' '"from worker [0-3]"' '"taken"' '"done"' \
    '"rows wanted of worker [0-3]"' '"rows got"' '"rows for worker [0-3]"' ||
    { fail "a kind of event is missing"; cat "$work/run"; }
wait_for gives_back || { fail "nothing is given back"; cat "$work/run"; }

# looks WAY: the files as they are; WAY: dead or ended.
looks() {
    python3 - "$1" "$work" >"$work/looks" 2>&1 <<'END' || { fail "$1: $(cat "$work/looks")"; }
import json, os, stat, sys
way, work = sys.argv[1:]
names = set()
for rank in range(4):
    path = f"{work}/trace-{rank}.json"
    assert stat.S_IMODE(os.stat(path).st_mode) == (0o600 if rank < 3 else 0o644), path
    text = open(path).read()
    assert text.endswith("\n]\n") == (way == "ended"), path
    events = json.loads(text if way == "ended" else text + "]")
    assert len(events) == text.count("\n{"), "not one a line"
    assert {e["pid"] for e in events} == {rank}
    assert [e["ph"] for e in events[:4]] == ["M", "M", "M", "i"]
    times = [e["ts"] for e in events[3:]]
    assert times == sorted(times)
    begun = {}
    for e in events[4:]:
        kind = e["name"].rstrip("0123456789")
        names.add(kind)
        if e["cat"] == "bundle":
            if e["ph"] == "b":
                assert e["id2"]["local"] not in begun and e["args"]["workers"] in range(1, 5), e
                assert e["args"]["bytes"] > 0 and e["args"]["partition"] in (0, 1), e
                begun[e["id2"]["local"]] = e["name"]
            else:
                assert begun[e["id2"]["local"]] == e["name"], e
                assert (e["ph"], e["args"]["news"]) in (("n", "taken"), ("e", "done"),
                                                        ("e", "returned")), e
        else:
            assert e["ph"] == "i" and e["args"]["table"] > 0, e
            assert kind != "from worker " or e["args"]["bytes"] > 0, e
            assert kind != "rows got" or e["args"]["bytes"] == 262144, e
missing = {"lent", "to worker ", "to nodes", "from worker ", "back to worker ",
           "rows wanted of worker ", "rows got", "rows for worker "} - names
assert not missing, missing
assert not names - {"lent", "to worker ", "to nodes", "from worker ", "back to worker ",
                    "rows wanted of worker ", "rows got", "rows missed", "rows for worker "}, names
END
}
mkdir "$work/copy"
cp -p "$work"/trace-?.json "$work/copy"
work=$work/copy looks dead
expect 0 job stop traced
wait "$job" # with the exit code of a job that was stopped
job=
looks ended

# ---- files that are none ----
# fails FILE PATTERN: no worker joins with it.
fails() {
    PSD_OVERLAY_TRACE=$1 run run -n 1 --job fails --overlay tree -- "$CLOCK_ADDER" w 1
    [ "$rc" -ne 0 ] || fail "a worker has joined with $1"
    [ "$(cat "$work/out" "$work/err" | grep -c PSD_OVERLAY_TRACE)" -eq 1 ] ||
        { fail "not one line names the setting"; show; }
    cat "$work/out" "$work/err" | grep -q "join job \"fails\" as worker 0: PSD_OVERLAY_TRACE: $2" ||
        { fail "nothing says: $2"; show; }
}
fails "$work/none/trace" "$work/none/trace.0 cannot be written: No such file"
fails "$work/link" "$work/link.0 cannot be written: it is a symbolic link"
[ ! -e "$work/target" ] || fail "it has followed a link"
mkfifo "$work/pipe.0"
fails "$work/pipe" "$work/pipe.0 cannot be written: "
# Without a relay there is no trace.
PSD_OVERLAY_TRACE=$work/none/trace expect 0 run -n 1 --job plain --overlay off -- "$PSD_WORKER_PROGRAM"
cli_finish
