#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Hosts that share a home directory: a client sees the socket files of a psd that
# runs on another one, and nobody of its own host listens there. Such a client
# once took ipc for what was near, waited for its whole deadline, and blamed the
# tcp address. Here the other host is a mount namespace with socket files that
# nobody listens at over the data directory; the network is the same.
# The programs come from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"

most_ms=8000 # who waits for ipc waits for 10 s at least
case ${ASAN_OPTIONS:-}${TSAN_OPTIONS:-} in
?*) most_ms=15000 ;; # sanitized code is slower
esac

if unshare -m true 2>/dev/null; then
    other_host=(unshare -m)
elif unshare -rm true 2>/dev/null; then
    other_host=(unshare -rm)
else
    echo "SKIP there are no mount namespaces here"
    exit 77
fi

cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT
unset PSD_TRANSPORT

# Socket files of the same names, of which nobody listens at any.
cat >"$work/there.py" <<'END'
import os
import socket
import sys

directory = sys.argv[1]
kinds = {".lane": socket.SOCK_SEQPACKET, ".ipc": socket.SOCK_STREAM}
for name in sys.argv[2].split():
    kind = kinds[os.path.splitext(name)[1]]
    one = socket.socket(socket.AF_UNIX, kind)
    one.bind(os.path.join(directory, name))
    one.close()
END
names=$(cd "$work/data" && find . -type s -printf '%f ')
case $names in
*.ipc*.lane* | *.lane*.ipc*) ;;
*) fail "the data directory has no sockets for ipc and lanes: $names" ;;
esac

# there COMMAND...: runs it on the other host; its exit code is $rc, and it took
# $took_ms; stdout and stderr as run has them.
there() {
    local began
    rc=0
    # shellcheck disable=SC2016 # these are the inner shell's
    "${other_host[@]}" sh -c '
        mount -t tmpfs none "$1" && python3 "$2/there.py" "$1" "$3" || exit 99
        dir=$2
        shift 3
        date +%s%N >"$dir/began"
        "$@" >"$dir/out" 2>"$dir/err" </dev/null
        rc=$?
        date +%s%N >"$dir/ended"
        exit $rc' \
        sh "$work/data" "$work" "$names" "$@" || rc=$?
    began=$(cat "$work/began")
    took_ms=$((($(cat "$work/ended") - began) / 1000000))
    n_checked=$((n_checked + 1))
    echo "$(basename "$1") ${2:-}: $took_ms ms"
}

# ends_well COMMAND...: a machine that is busy has five tries to be in time; who
# waits for ipc has none.
ends_well() {
    local try
    for try in 1 2 3 4 5; do
        there "$@"
        if [ "$rc" -ne 0 ]; then
            fail "on the other host: $*: exit code $rc"
            show
        fi
        if [ "$rc" -ne 0 ] || [ "$took_ms" -le $most_ms ]; then
            return
        fi
    done
    fail "on the other host: $* took $took_ms ms, try $try; allowed: $most_ms"
}

expect 0 table create t --rows 4
expect 0 push t 1=2.5

ends_well "$PSCLI_PROGRAM" pull t 1
out_has '2\.5'
ends_well env PSD_JOB=far "$CLI_WORKER" t 3
ends_well "$PSD_HELLO_PROGRAM"
out_is '0.5 1.5 2.5'

# Who asks for ipc gets ipc, and the error names what was tried. A machine that stands still
# for that time does not come so far: it has more.
for ms in 700 3000 12000; do
    there env PSD_TRANSPORT=ipc "$PSCLI_PROGRAM" pull t 1 --timeout ${ms}ms
    ! grep -q 'no welcome' "$work/err" || break
done
if [ "$rc" -ne 7 ]; then
    fail "pscli does not keep to PSD_TRANSPORT=ipc: exit code $rc"
    show
fi
err_has 'no welcome from its shard [0-9]* at ipc://.*/shard-[0-9]*\.ipc for'
there env PSD_TRANSPORT=lane "$PSCLI_PROGRAM" pull t 1
err_has 'connect "lane://.*\.lane": Connection refused'
rc=0
PSD_TRANSPORT=rdma "$PSCLI_PROGRAM" pull t 1 2>"$work/err" || rc=$?
if [ "$rc" -ne 2 ]; then
    fail "pscli with PSD_TRANSPORT=rdma: exit code $rc"
fi
err_has 'PSD_TRANSPORT is "rdma"; allowed: auto, lane, ipc, tcp'
cli_finish
