#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One program as scheduler, two servers and two workers, started in any order and without
# ranks, as ps-lite's local.sh does it: all end with 0, the sums are right, nothing is left.
# ROLE_PROGRAM comes from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
unset PSCLI_ENDPOINT
export TMPDIR=$work/tmp PSD_TIMEOUT_MS=60000
mkdir "$TMPDIR"

# A port that nothing has at this moment.
free_port() {
    "$PSD_PROGRAM" --data-dir "$work/port" --listen tcp://127.0.0.1:0 2>"$work/psd.log" &
    psd_pid=$!
    wait_for test -s "$work/port/endpoints.json" || exit 1
    sed 's/.*"control":"[^"]*:\([0-9]*\)".*/\1/' "$work/port/endpoints.json" >"$work/number"
    kill "$psd_pid"
    wait "$psd_pid"
    psd_pid=
    rm -rf "$work/port"
}

# start ROLE NAME: in the background; its pid goes to pids.
start() {
    DMLC_ROLE=$1 timeout 100 "$ROLE_PROGRAM" >"$work/$2.out" 2>"$work/$2.err" &
    pids+=($!)
    names+=("$2")
}

# All of them, at a port of their own. false: somebody else has got that.
run_all() {
    local i
    pids=()
    names=()
    ends=()
    free_port
    DMLC_PS_ROOT_PORT=$(cat "$work/number")
    start worker worker-a
    start server server-a
    start scheduler scheduler
    start worker worker-b
    start server server-b
    wait_for begun || return 1
    if taken; then
        kill "${pids[@]}" 2>/dev/null
        wait "${pids[@]}"
        return 1
    fi
    for i in "${!pids[@]}"; do
        wait "${pids[$i]}"
        ends+=($?)
    done
}
# The scheduler listens, or has ended: a worker gets through only to one that does.
begun() {
    ! kill -0 "${pids[2]}" 2>/dev/null || [ -s "$work/worker-a.out" ] || [ -s "$work/worker-b.out" ]
}
taken() {
    grep -q 'ddress already in use' "$work/scheduler.err"
}

export DMLC_PS_ROOT_URI=127.0.0.1 DMLC_PS_ROOT_PORT DMLC_NUM_SERVER=2 DMLC_NUM_WORKER=2
run_all || run_all || run_all || fail "no port for the scheduler"
for i in "${!ends[@]}"; do
    [ "${ends[$i]}" -eq 0 ] || {
        fail "${names[$i]} ended with ${ends[$i]}"
        cat "$work/${names[$i]}.err"
    }
    n_checked=$((n_checked + 1))
done
sort "$work/worker-a.out" "$work/worker-b.out" >"$work/out"
out_is "$(printf 'worker 0 sum 2\nworker 1 sum 2')"
[ -z "$(ls "$TMPDIR")" ] || fail "left in TMPDIR: $(ls "$TMPDIR")"
# Words that are wrong.
DMLC_ROLE=master "$ROLE_PROGRAM" 2>"$work/err" && fail "a role that is none"
err_has 'DMLC_ROLE is "master"; allowed: worker, server, scheduler'
env -u DMLC_PS_ROOT_PORT DMLC_ROLE=server "$ROLE_PROGRAM" 2>"$work/err" && fail "half an address"
err_has 'DMLC_PS_ROOT_URI is set, and DMLC_PS_ROOT_PORT is not'
PSD_ALIASES=dmtk ps_role=default "$ROLE_PROGRAM" 2>"$work/err" && fail "both at once"
err_has 'ps_role is "both": .* only alone'
PSD_ALIASES=dmtk ps_role=none "$ROLE_PROGRAM" || fail "none"
cli_finish
