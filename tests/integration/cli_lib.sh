# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the tests of pscli share: a psd of their own, and counting failures.
# PSD_PROGRAM and PSCLI_PROGRAM come from meson. After cli_start, PSCLI_ENDPOINT
# names the psd and $work is a directory that goes away at the end.
set -u
export LC_ALL=C
unset PSCLI_CONTEXT PSCLI_OUTPUT PSCLI_TIMEOUT NO_COLOR PSD_ENDPOINT PSD_JOB
export PSD_WORKERS_LOST_AFTER_MS=60000 # a busy machine loses none

work=$(mktemp -d)
out_file=$work/out # of the last run
err_file=$work/err
n_failed=0
n_checked=0
psd_pid=
export HOME=$work XDG_CONFIG_HOME=$work/config

# A psd that a test has stopped goes on first: a SIGCONT behind the SIGTERM takes
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

# Waits until a condition (a command) holds; 100 s are enough everywhere.
wait_for() {
    local end=$((SECONDS + 100))
    until "$@"; do
        if [ $SECONDS -ge $end ]; then
            echo "gave up waiting for: $*"
            return 1
        fi
        read -rt 0.02 <> <(:) || :
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
    sed 's/^/  out: /' "$out_file" | head -5
    sed 's/^/  err: /' "$err_file" | head -5
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
