#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/lr in BSP on three nodes, with three copies of its tables: a node that
# is primary of some partitions is killed in the middle, and the model has the
# same bytes as without that. PSD_LR_PROGRAM comes from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
# A table with a copy on each node needs all of them, also one that waits for a processor.
export PSD_CLUSTER_SUSPECT_AFTER=3000
data=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../data/agaricus" && pwd)
train=$work/train.libsvm
gzip -dc "$data/agaricus.train.libsvm.gz" >"$train"
epochs=30
others=()
job_pid=

end_all() {
    local pid
    for pid in $job_pid "${others[@]}"; do
        kill -KILL "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    cli_end
}
trap end_all EXIT

# join NAME: one more node.
join() {
    PSD_NODE_NAME=$1 "$PSD_PROGRAM" --data-dir "$work/$1" \
        --listen tcp://127.0.0.1:0 --join "$PSCLI_ENDPOINT" \
        >"$work/$1.log" 2>&1 &
    others+=($!)
    if ! wait_for test -s "$work/$1/endpoints.json"; then
        cat "$work/$1.log"
        exit 1
    fi
}

# begin TABLE: four workers in the background, a line for each epoch.
begin() {
    "$PSCLI_PROGRAM" run -n 4 --job "$1" --max-delay 0 -- "$PSD_LR_PROGRAM" \
        --train "$train" --table "$1" --replicas 3 --epochs "$epochs" \
        --report 0 --save "$work/$1.model" >"$work/$1.out" 2>"$work/$1.err" &
    job_pid=$!
}

# end TABLE: waits for them.
end() {
    rc=0
    wait "$job_pid" || rc=$?
    job_pid=
    n_checked=$((n_checked + 1))
    if [ "$rc" -ne 0 ]; then
        fail "training $1 ended with exit code $rc"
        tail -n 4 "$work/$1.out" "$work/$1.err" "$work"/*.log
    fi
}

cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT
join n1
join n2

# Until three nodes vote, the loss of one may be that of the registry.
three_vote() {
    [ "$("$PSCLI_PROGRAM" cluster registry list 2>/dev/null |
        grep -Ec -- '(leader|voter) +up')" -eq 3 ]
}

begin quiet
end quiet
expect 0 table inspect quiet -o json
out_has '"replicas": *3'
out_has '"ack": *"replica"'

# The same with more partitions, so that every node is primary of some.
expect 0 table create loud --rows 127 --partitions 6 --replicas 3 \
    --ack replica --updater ftrl:alpha=0.1,beta=1,l1=1,l2=1
expect 0 table inspect loud -o json
out_has '"primary": *"n1/'
wait_for three_vote || fail "three nodes do not vote"
begin loud
wait_for grep -qs "epoch 3/$epochs " "$work/loud.out" || fail "it does not train"
kill -KILL "${others[0]}"
wait "${others[0]}" 2>/dev/null
if grep -q "epoch $epochs/$epochs " "$work/loud.out"; then
    fail "it had ended before the node was killed"
fi
end loud
expect 0 table inspect loud -o json
if grep -Eq '"primary": *"n1/' "$work/out"; then
    fail "the node that was killed is still primary"
fi
cmp "$work/quiet.model" "$work/loud.model" ||
    fail "the model is another one when a node is lost"

cli_finish
