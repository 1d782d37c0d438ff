#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The worker of docs/quickstart.md that shares its input through a work queue:
# four of them with random delays, under BSP, SSP and ASP at once. They end, and
# each slice of each epoch is counted once. Without clocks that go on while a
# worker waits for a slice, those of BSP and SSP waited in a circle.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
gunzip -c "$root/data/agaricus/agaricus.train.libsvm.gz" >"$work/samples"
slices=7
epochs=4

cli_start
pids=()
for delay in 0 2 -1; do
    timeout 100 "$PSCLI_PROGRAM" run -n 4 --job "queue$delay" \
        --max-delay "$delay" -- "$PSD_QUEUE_PROGRAM" "$work/samples" \
        $slices $epochs 100 >"$work/run$delay" 2>&1 &
    pids+=($!)
done
for i in 0 1 2; do
    rc=0
    wait "${pids[i]}" || rc=$?
    [ "$rc" -eq 0 ] || fail "run $i: exit code $rc"
done
for delay in 0 2 -1; do
    n_checked=$((n_checked + 1))
    want=$(for e in $(seq $epochs); do
        for s in $(seq 0 $((slices - 1))); do
            echo "slice $s of epoch $e"
        done
    done | sort)
    got=$(sed -n 's/^\[[0-9]\] \(slice .*\)/\1/p' "$work/run$delay" | sort)
    if [ "$got" != "$want" ] || grep -q 'waited\|E[0-9]\{4\}' \
        "$work/run$delay"; then
        fail "max delay $delay: slices are not counted once each"
        cat "$work/run$delay"
    fi
    expect 0 job inspect "queue$delay" -o json
    out_has '"done": ?'$slices
    out_has '"over": ?true'
done
cli_finish
