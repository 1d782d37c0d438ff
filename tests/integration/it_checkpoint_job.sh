#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job of three workers with a work queue, under BSP and SSP: each slice adds 1
# to its row in each epoch. A checkpoint of it has exactly the slices that it
# says are done, on clusters of 1, 2 and 5 nodes; and the job goes on from there,
# where it ran and on 5, until every slice was counted once in each epoch.
# shellcheck source-path=SCRIPTDIR source=nodes_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"
export PSD_WORKERS_LOST_AFTER_MS=10000 # a job that is killed ends, in time
slices=12
epochs=60

# start JOB: its workers, in the background; they do not end before $work/gate
# is there.
start() {
    "$PSCLI_PROGRAM" run -n 3 --job "$1" --max-delay "${1##*-}" -- \
        "$SLICE_WORKER" "$1" $slices $epochs "$work/gate" >run.out 2>run.err &
    job=$!
}

# at_least ROWS N: the rows of a table have come so far.
at_least() {
    "$PSCLI_PROGRAM" pull "$1" 0 -o csv >row 2>/dev/null &&
        [ "$(sed -n 's/^0,//p' row)" -ge "$2" ]
}

# promised NAME: the rows that the manifest stands for, as pull prints them.
promised() {
    python3 - "$PSD_CHECKPOINT_DIR/$1/manifest.json" <<'END'
import json, sys
manifest = json.loads(open(sys.argv[1]).readline())
job = manifest["jobs"][0]
queue = job["queues"][0]
done = set()
for first, n in zip(queue["done"][::2], queue["done"][1::2]):
    done.update(range(first, first + n))
assert manifest["consistent"] == "clock", manifest["consistent"]
assert all(f["clock"] == job["clock"] and f["exact"] for f in manifest["files"])
print("row,0")
for row in range(queue["slices"]):
    print("%d,%d" % (row, queue["epoch"] - 1 + (row in done)))
END
}

all_done() {
    echo "row,0"
    for ((row = 0; row < slices; row++)); do
        echo "$row,$epochs"
    done
}

# is_promised JOB CHECKPOINT: its table is what the checkpoint says.
is_promised() {
    promised "$2" >want || fail "the manifest of $2"
    expect 0 pull "$1" "0-$((slices - 1))" -o csv
    cmp -s want out || {
        fail "$2: rows are not the slices that are done"
        diff want out | head -5
    }
}

# goes_on JOB: to its end, with each slice counted once an epoch.
goes_on() {
    touch "$work/gate"
    start "$1"
    wait "$job" || fail "the job does not go on: $(cat run.err)"
    job=
    rm "$work/gate"
    expect 0 pull "$1" "0-$((slices - 1))" -o csv
    all_done >want
    cmp -s want out || {
        fail "$1: not all slices were counted once in each epoch"
        diff want out | head -5
    }
}

has_ended() {
    "$PSCLI_PROGRAM" job list -o csv | grep -q "^$1,\(lost\|stopped\|finished\)"
}

nodes 2 a
cd "$work" || exit 1
for delay in 0 2; do
    name=lr-$delay
    expect 0 table create "$name" --rows $slices --type i64 --partitions 4 \
        --replicas 2 --ack replica
    start "$name"
    for i in 1 2; do
        wait_for at_least "$name" $((i * 2)) || fail "the job does not begin"
        expect 0 checkpoint create "$name.$i" --job "$name"
    done
    expect 2 checkpoint create no --job "$name" --table "$name"
    expect 1 checkpoint restore "$name.1" --job "$name"
    err_has 'is running'
    kill "$job"
    wait "$job" 2>/dev/null
    job=
    wait_for has_ended "$name" || fail "the job does not end"
    run checkpoint create no --job "$name"
    [ "$rc" -ne 0 ] || fail "a job that has ended has a boundary"
    # Here again, where it ran.
    expect 0 table drop "$name" --yes
    expect 0 checkpoint restore "$name.1"
    is_promised "$name" "$name.1"
    goes_on "$name"
done
for n in 1 2 5; do
    nodes $n "b$n"
    for delay in 0 2; do
        name=lr-$delay
        for i in 1 2; do
            expect 0 checkpoint restore "$name.$i" --table "$name" \
                --as "$name.$i" --partitions $((n + i)) --replicas 1 \
                --ack memory
            is_promised "$name.$i" "$name.$i"
        done
        [ $n -eq 5 ] || continue
        expect 0 checkpoint restore "$name.2" --table "$name" --replicas 1 \
            --ack memory
        expect 0 checkpoint restore "$name.2" --job "$name"
        goes_on "$name"
    done
done
cli_finish
