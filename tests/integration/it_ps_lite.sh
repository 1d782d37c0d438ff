#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program written for ps-lite as scheduler, servers and workers, in any order: all end
# with 0, and the sums are right; so they are with StartAsync. Servers that leave a job that
# goes on: what they have answered counts, and who waits for the rest hears of it.
# PS_LITE_PROGRAM comes from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
if [ -z "${PS_LITE_PROGRAM:-}" ]; then
    echo "no C++ compiler: skipped"
    exit 77
fi
# shellcheck source-path=SCRIPTDIR source=roles_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/roles_lib.sh"

# job "ROLE..." CASE: all end with 0, and each worker says that it is right.
job() {
    local name
    roles_run "$1" "$PS_LITE_PROGRAM" "$2"
    for name in "${names[@]}"; do
        roles_ended "$name" 0
        [ "${name%-*}" != worker ] ||
            grep -q "worker . of $DMLC_NUM_WORKER is right" "$work/$name.out" ||
            fail "$1, $2: $name is not right"
    done
}

job "worker scheduler server" all
job "worker scheduler server server server worker" all
job "worker scheduler server server server worker" async

roles_run "worker scheduler server server" "$PS_LITE_PROGRAM" leave
roles_ended worker-0 134
roles_ended scheduler-0 0
roles_ended server-0 0
roles_ended server-1 0
cp "$work/worker-0.out" "$work/out"
out_is 'both are answered'
cp "$work/worker-0.err" "$work/err"
err_has 'request 2 of app 3 is not answered, for the receiver is gone: node 8: request with head 3'
[ -z "$(ls "$TMPDIR")" ] || fail "left in TMPDIR: $(ls "$TMPDIR")"
cli_finish
