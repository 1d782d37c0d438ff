#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The property combine of a table, by pscli, $PSD_COMBINE and the overlay: made,
# shown, refused, changed while idle, not while a worker runs; and a training over
# it, whose model is the same at each run. PSD_LR_PROGRAM,
# PSD_BCD_PROGRAM and PSD_WORKER_PROGRAM come from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
data=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../data/agaricus" && pwd)
train=$work/train.libsvm
gzip -dc "$data/agaricus.train.libsvm.gz" | head -1500 >"$train"
cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT

# combines TABLE HOW: as the table says.
combines() {
    expect 0 table inspect "$1" -o json
    out_has "\"combine\": *\"$2\""
}

expect 0 table create a --rows 10
combines a each
expect 0 table create b --rows 10 --combine clock-sum
combines b clock-sum
PSD_COMBINE=clock-mean expect 0 table create c --rows 10 --updater sgd
combines c clock-mean
# What the environment says is for updaters that add deltas up.
PSD_COMBINE=clock-mean expect 0 table create d --rows 10 --updater max
combines d each
PSD_COMBINE=clock-mean expect 0 table create e --rows 10 --combine each
combines e each
expect 0 table create f --rows 10 --updater assign --combine clock-mean
combines f clock-mean
expect 2 table create g --rows 10 --combine sums
PSD_COMBINE=sums expect 2 table create g --rows 10
err_has 'PSD_COMBINE: combine "sums" is not known; allowed is each, clock-sum or clock-mean'
expect 2 table create g --rows 10 --updater dcasgd --combine clock-sum
err_has 'combine clock-sum is not allowed with updater dcasgd'

expect 0 table set a --combine clock-mean
out_is 'table "a" combines clock-mean'
combines a clock-mean
expect 0 table set a --combine clock-mean
expect 2 table set a
expect 5 table set none --combine each
expect 0 table create h --rows 10 --updater dcasgd
expect 2 table set h --combine clock-sum
err_has 'updater dcasgd'
combines h each

# Two workers push 1 in each of 3 clocks: 3 by the sum, 1.5 by the mean.
expect 0 run --workers 2 --job sum -- "$CLI_WORKER" b 3
expect 0 pull b 0-1 -o csv
out_has '^0,3$'
out_has '^1,3$'
expect 0 run --workers 2 --job mean -- "$CLI_WORKER" a 3
expect 0 pull a 0-1 -o csv
out_has '^0,1.5$'

# A clock is one step of nesterov: its mean is 0.5 each time, s 0.5, 0.75, 0.875.
expect 0 table create n --rows 10 --updater nesterov:alpha=0.5,momentum=0.5 --combine clock-mean
expect 0 table inspect n
out_has 'nesterov:alpha=0.5,momentum=0.5'
expect 0 run --workers 2 --job nesterov -- "$CLI_WORKER" n 3
expect 0 pull n 0-1 -o csv
out_has '^0,-1.28125$'

# While a worker runs, nothing changes; after it, from the next clock on.
PSD_JOB=held PSD_WORKER=0 PSD_WORKERS=2 "$CLI_WORKER" b 1 hold >"$work/held" 2>&1 &
held=$!
wait_for grep -q ready "$work/held"
expect 1 table set b --combine each
err_has 'table b is open in job held, of which worker 0 is running'
combines b clock-sum
expect 0 job stop held --yes
wait "$held"
expect 0 table set b --combine clock-mean
expect 0 run --workers 2 --job later -- "$CLI_WORKER" b 2
expect 0 pull b 0 -o csv
out_has '^0,5$' # 3, 1 of the stopped worker, 2 of this one by half

# A training: the same bits at each run, and other ones than without.
for name in first second; do
    PSD_COMBINE=clock-mean expect 0 run -n 3 --job "$name" -- "$PSD_LR_PROGRAM" \
        --train "$train" --table "$name" --epochs 2 --minibatch 100 --save "$work/$name"
    combines "$name" clock-mean
done
cmp "$work/first" "$work/second" || fail "a training is not the same to the bit"
expect 0 run -n 3 --job each -- "$PSD_LR_PROGRAM" --train "$train" --table each \
    --epochs 2 --minibatch 100 --save "$work/each"
combines each each
if cmp -s "$work/first" "$work/each"; then
    fail "a mean of each clock is the same as each push by itself"
fi

# A job with the overlay makes tables whose deltas can go through relays, and has the
# bits that $PSD_COMBINE gives without it.
PSD_COMBINE=clock-sum expect 0 run -n 3 --job sums -- "$PSD_LR_PROGRAM" \
    --train "$train" --table sums --epochs 2 --minibatch 100 --save "$work/sums"
expect 0 run -n 3 --job tree --overlay tree -- "$PSD_LR_PROGRAM" --train "$train" \
    --table tree --epochs 2 --minibatch 100 --save "$work/tree"
combines tree clock-sum
cmp "$work/sums" "$work/tree" || fail "the overlay's own combine has other bits"

# weights HOW ARGS...: the table that psd-worker makes, with these of pscli run.
weights() {
    local how=$1
    shift
    expect 0 run -n 2 "$@" -- "$PSD_WORKER_PROGRAM"
    combines weights "$how"
    expect 0 table drop weights --yes
}
for policy in pairs queue auto; do
    weights clock-sum --overlay "$policy"
done
weights each --overlay off
# Who names one gets it.
PSD_COMBINE=each weights each --overlay tree
PSD_COMBINE=clock-mean weights clock-mean --overlay tree
# No delta goes from worker to worker.
PSD_OVERLAY_LINKS=star weights each --overlay tree
PSD_OVERLAY_UP=off weights each --overlay tree
# An updater that does not add up: psd-bcd assigns its weights.
expect 0 run -n 2 --job bcd --overlay tree -- "$PSD_BCD_PROGRAM" --train "$train" \
    --table bcd --passes 3
combines bcd each
# A table that is there, made without the overlay by another, counts as it is; so does
# one that was made with it.
expect 0 run -n 2 --job without -- "$PSD_WORKER_PROGRAM"
expect 0 run -n 2 --job with --overlay tree -- "$PSD_WORKER_PROGRAM"
combines weights each
expect 0 table drop weights --yes
expect 0 run -n 2 --job with2 --overlay tree -- "$PSD_WORKER_PROGRAM"
expect 0 run -n 2 --job without2 -- "$PSD_WORKER_PROGRAM"
combines weights clock-sum
cli_finish
