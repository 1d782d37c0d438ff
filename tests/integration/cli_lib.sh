# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the tests of pscli share: a psd of their own, and counting failures.
# PSD_PROGRAM and PSCLI_PROGRAM come from meson. After cli_start, PSCLI_ENDPOINT
# names the psd and $work is a directory that goes away at the end.
set -u
export LC_ALL=C
unset PSCLI_CONTEXT PSCLI_OUTPUT PSCLI_TIMEOUT NO_COLOR PSD_ENDPOINT PSD_JOB
export PSD_WORKERS_LOST_AFTER_MS=60000 # a busy machine loses none
# What a short command leaks hurts nobody, and looking for it takes as long as the command:
# it_cli does it for all of them, and tests in C for libpsd and psd.
if [ -z "${LOOK_FOR_LEAKS-}" ]; then
    export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
fi

work=$(mktemp -d)
out_file=$work/out # of the last run
err_file=$work/err
n_failed=0
n_checked=0
psd_pid=
export HOME=$work XDG_CONFIG_HOME=$work/config XDG_STATE_HOME=$work/state

# A psd that a test has stopped goes on first: a SIGCONT after the SIGTERM takes
# LeakSanitizer's own stop of the process away, and that waits for ever.
cli_end() {
    if [ -n "$psd_pid" ]; then
        kill -CONT "$psd_pid" 2>/dev/null
        kill "$psd_pid" 2>/dev/null
        wait "$psd_pid" 2>/dev/null
    fi
    rm -rf "$work"
}
trap cli_end EXIT

# Waits until a condition (a command) holds; 100 s are enough everywhere. It looks ever
# less often: a command that runs all the time slows down what it waits for.
wait_for() {
    local end=$((SECONDS + 100)) pauses=(0.02 0.03 0.05 0.07 0.1 0.1 0.15) n=0
    until "$@"; do
        if [ $SECONDS -ge $end ]; then
            echo "gave up waiting for: $*"
            return 1
        fi
        read -rt "${pauses[n++]:-0.25}" <> <(:) || :
    done
}

cli_start() {
    "$PSD_PROGRAM" --data-dir "$work/data" --listen tcp://127.0.0.1:0 \
        >"$work/psd.log" 2>&1 &
    psd_pid=$!
    if ! wait_for test -s "$work/data/endpoints.json"; then
        cat "$work/psd.log"
        exit 1
    fi
    PSCLI_ENDPOINT=$(sed 's/.*"control":"\([^"]*\)".*/\1/' \
        "$work/data/endpoints.json")
    export PSCLI_ENDPOINT
}

fail() {
    n_failed=$((n_failed + 1))
    echo "FAIL $*"
}

# run_into OUT ERR ARGS...: pscli; stdout and stderr to these files, the exit code
# to $rc. The checks below look at the last run.
run_into() {
    out_file=$1
    err_file=$2
    shift 2
    rc=0
    "$PSCLI_PROGRAM" "$@" >"$out_file" 2>"$err_file" </dev/null || rc=$?
    n_checked=$((n_checked + 1))
}

# run ARGS...: pscli; stdout and stderr to $work/out and $work/err.
run() {
    run_into "$work/out" "$work/err" "$@"
}

show() {
    sed 's/^/  out: /' "$out_file" | head -20
    sed 's/^/  err: /' "$err_file" | head -20
}

# wants CODE ARGS...: the exit code of the last run, which was of ARGS.
wants() {
    local want=$1
    shift
    if [ "$rc" -ne "$want" ]; then
        fail "pscli $*: exit code $rc, not $want"
        show
    fi
}

# expect CODE ARGS...: run, and the exit code.
expect() {
    local want=$1
    shift
    run "$@"
    wants "$want" "$@"
}

# expect_told CODE MS PATTERN ARGS...: a command that runs out of its time, MS, and says
# why, by PATTERN on stderr. psd tells it why at once; a machine that stands still for as
# long as that gives it more time, $told_s seconds in the end.
expect_told() {
    local want=$1 ms=$2 pattern=$3
    shift 3
    run "$@" --timeout "${ms}ms"
    while ! grep -Eq -- "$pattern" "$err_file" && [ "$ms" -lt 20000 ]; do
        ms=$((ms * 4))
        run "$@" --timeout "${ms}ms"
    done
    # shellcheck disable=SC2034 # for who calls it
    told_s=$((ms / 1000)).$((ms % 1000 / 100))
    wants "$want" "$@"
    err_has "$pattern"
}

# out_is TEXT / err_has PATTERN: of the last run.
out_is() {
    if [ "$(cat "$out_file")" != "$1" ]; then
        fail "stdout is not: $1"
        show
    fi
}
out_has() {
    if ! grep -Eq -- "$1" "$out_file"; then
        fail "stdout has no: $1"
        show
    fi
}
err_has() {
    if ! grep -Eq -- "$1" "$err_file"; then
        fail "stderr has no: $1"
        show
    fi
}

# One line, besides those that tell of a machine so slow that psd did not answer
# within seconds.
err_is_one_line() {
    [ "$(grep -Evc ': (no answer for [0-9.]* s|[0-9]* s passed).*; waiting ' \
        "$err_file")" -eq 1 ]
}

cli_finish() {
    echo "$n_checked commands run, $n_failed checks failed"
    [ "$n_failed" -eq 0 ]
}
