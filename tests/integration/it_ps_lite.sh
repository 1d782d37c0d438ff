#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program written for ps-lite as scheduler, servers and workers, in any order: all end
# with 0, and the sums are right. PS_LITE_PROGRAM comes from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
if [ -z "${PS_LITE_PROGRAM:-}" ]; then
    echo "no C++ compiler: skipped"
    exit 77
fi
unset PSCLI_ENDPOINT
export TMPDIR=$work/tmp PSD_TIMEOUT_MS=60000
mkdir "$TMPDIR"

pids=()
end_all() {
    kill "${pids[@]}" 2>/dev/null
    wait "${pids[@]}" 2>/dev/null
    pids=()
}
trap 'end_all; cli_end' EXIT

# A port that nothing listens on, outside of the range from which the kernel gives some
# to other tests.
free_port() {
    local port
    while port=$((20000 + RANDOM % 12000)) && (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
    echo $port
}

# start ROLE NAME: in the background; its pid goes to pids.
start() {
    DMLC_ROLE=$1 timeout 100 "$PS_LITE_PROGRAM" >"$work/$2.out" 2>"$work/$2.err" &
    pids+=($!)
    names+=("$2")
}

# run_job SERVERS WORKERS: all of them. false: somebody else has got the port.
run_job() {
    local i
    export DMLC_NUM_SERVER=$1 DMLC_NUM_WORKER=$2
    pids=()
    names=()
    ends=()
    DMLC_PS_ROOT_PORT=$(free_port)
    start worker worker-0
    start scheduler scheduler
    for ((i = 0; i < $1; i++)); do start server server-$i; done
    for ((i = 1; i < $2; i++)); do start worker worker-$i; done
    if ! wait_for begun || grep -q 'ddress already in use' "$work/scheduler.err"; then
        end_all
        return 1
    fi
    for i in "${!pids[@]}"; do
        wait "${pids[$i]}"
        ends+=($?)
    done
    pids=()
}
# A worker gets through only when the scheduler listens; it may have failed.
begun() {
    ! kill -0 "${pids[1]}" 2>/dev/null || [ -s "$work/worker-0.out" ]
}
# job SERVERS WORKERS: all end with 0, and each worker says that it is right.
job() {
    run_job "$@" || run_job "$@" || run_job "$@" || fail "no port for the scheduler"
    for i in "${!ends[@]}"; do
        [ "${ends[$i]}" -eq 0 ] || {
            fail "$1 x $2: ${names[$i]} ended with ${ends[$i]}"
            cat "$work/${names[$i]}.err"
        }
        n_checked=$((n_checked + 1))
    done
    for ((i = 0; i < $2; i++)); do
        grep -q "worker . of $2 is right" "$work/worker-$i.out" || fail "$1 x $2: worker $i"
    done
}

export DMLC_PS_ROOT_URI=127.0.0.1 DMLC_PS_ROOT_PORT
job 1 1
job 3 2
[ -z "$(ls "$TMPDIR")" ] || fail "left in TMPDIR: $(ls "$TMPDIR")"
cli_finish
