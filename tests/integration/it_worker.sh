#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program of docs/api.md finds the weights that its samples were made with,
# alone and as three workers, and says what went wrong without a psd.
# PSD_WORKER_PROGRAM comes from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"

# What was printed: the right ones are 3, -2 and 0.5.
are_near() {
    sed 's/^\[0\] //' "$work/out" |
        awk '{ exit !($1 > 2.95 && $1 < 3.05 && $2 < -1.95 && $2 > -2.05 &&
                      $3 > 0.45 && $3 < 0.55) }'
}

cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT
for n in 1 3; do
    expect 0 run -n "$n" -- "$PSD_WORKER_PROGRAM"
    [ "$(wc -l <"$work/out")" -eq 1 ] || fail "not one worker has printed"
    are_near || fail "$n workers have $(cat "$work/out")"
    expect 0 table drop weights --yes
done

rc=0
PSD_ENDPOINT=tcp://127.0.0.1:1 "$PSD_WORKER_PROGRAM" >"$work/out" \
    2>"$work/err" || rc=$?
[ $rc -eq 3 ] || fail "without a psd: exit code $rc, not 3"
err_has '^psd-worker: E3001 .*tcp://127.0.0.1:1: Connection refused'

cli_finish
