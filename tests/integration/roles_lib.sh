# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
# One program as scheduler, servers and workers of a job, as ps-lite's local.sh starts it.
# Source it after cli_lib.sh. roles_run fills names, and ends: the exit code of each.
unset PSCLI_ENDPOINT
export TMPDIR=$work/tmp PSD_TIMEOUT_MS=60000
export DMLC_PS_ROOT_URI=127.0.0.1 DMLC_PS_ROOT_PORT DMLC_NUM_SERVER DMLC_NUM_WORKER
mkdir "$TMPDIR"

pids=()
roles_end() {
    kill "${pids[@]}" 2>/dev/null
    wait "${pids[@]}" 2>/dev/null
    pids=()
}
trap 'roles_end; cli_end' EXIT

# A port that nothing listens on, outside of the range from which the kernel gives some
# to other tests.
free_port() {
    local port
    while port=$((20000 + RANDOM % 12000)) && (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
    echo $port
}

# A worker gets through only when the scheduler listens; it may have failed.
roles_begun() {
    ! kill -0 "$scheduler_pid" 2>/dev/null || [ -n "$(cat "$work"/worker-*.out)" ]
}

# Starts and waits. false: somebody else has got the port.
roles_once() {
    local role name pid
    local -A n=([scheduler]=0 [server]=0 [worker]=0)
    pids=()
    names=()
    ends=()
    DMLC_PS_ROOT_PORT=$(free_port)
    for role in "${roles[@]}"; do
        name=$role-${n[$role]}
        n[$role]=$((n[$role] + 1))
        DMLC_ROLE=$role timeout 100 "${roles_program[@]}" >"$work/$name.out" 2>"$work/$name.err" &
        pids+=($!)
        names+=("$name")
        [ "$role" != scheduler ] || scheduler_pid=$!
    done
    if ! wait_for roles_begun || grep -q 'ddress already in use' "$work/scheduler-0.err"; then
        roles_end
        return 1
    fi
    for pid in "${pids[@]}"; do
        wait "$pid"
        ends+=($?)
    done
    pids=()
}

# roles_run "ROLE..." PROGRAM ARGS...: starts one for each word, in that order, and waits for
# all; what NAME (ROLE-0, ROLE-1, …) says is in $work/NAME.out and .err.
roles_run() {
    read -ra roles <<<"$1"
    shift
    roles_program=("$@")
    DMLC_NUM_SERVER=$(printf '%s\n' "${roles[@]}" | grep -c server)
    DMLC_NUM_WORKER=$(printf '%s\n' "${roles[@]}" | grep -c worker)
    rm -f "$work"/*-[0-9].out "$work"/*-[0-9].err
    roles_once || roles_once || roles_once || fail "no port for the scheduler"
}

# roles_ended NAME CODE: that one has ended so.
roles_ended() {
    local i
    for i in "${!names[@]}"; do
        [ "${names[$i]}" != "$1" ] || [ "${ends[$i]:-none}" = "$2" ] || {
            fail "$1 ended with ${ends[$i]:-none}, not $2"
            cat "$work/$1.err"
        }
    done
    n_checked=$((n_checked + 1))
}
