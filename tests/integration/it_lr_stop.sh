#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/lr with an objective ends by itself, near the optimum of a set that
# another solver has solved: in every mode, with 1 and 4 workers; by an updater's
# steps, too. It says when it has not converged, and goes on without a worker
# that is lost. PSD_LR_PROGRAM comes from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
set_file=$work/set

# 600 samples, 500 features with raw counts: feature j comes about as often as
# 1/j says, and the first of them are in nearly all samples. `liblinear-train -s 0
# -c 1 -e 1e-9` of it ends at this F:
optimum=64.4731
awk 'function draw() { x = x * 16807 % 2147483647; return x / 2147483647 }
BEGIN {
    x = 22
    for (i = 0; i < 600; i++) {
        split("", count)
        sum = 0
        for (n = 20 + int(80 * draw()); n > 0; n--) {
            j = int(exp(draw() * log(501)))
            count[j]++
            sum += j % 7 - 3
        }
        line = sum + 8 * (draw() - 0.5) > 0 ? "+1" : "-1"
        for (j = 1; j <= 500; j++) {
            if (j in count) {
                line = line " " j ":" count[j]
            }
        }
        print line
    }
}' >"$set_file"

# near WHAT PARTS: F of the last run is at most so many parts of the optimum above
# it, and not below.
near() {
    local f
    f=$(sed -n 's/.*train .* F \([0-9.]*\)  .*/\1/p' "$work/out")
    if ! awk "BEGIN { exit !(${f:-0} > $optimum * 0.99999 &&
        ${f:-0} < $optimum * (1 + $2)) }"; then
        fail "$1: F is ${f:-not told}"
        show
    fi
}

# epochs_below WHAT MOST: the last run has converged in fewer.
epochs_below() {
    local n
    n=$(sed -n 's/^.*[^t] converged in \([0-9]*\) epochs$/\1/p' "$work/out")
    if [ "${n:-$2}" -ge "$2" ]; then
        fail "$1: converged in ${n:-no} epochs"
        show
    fi
}

# train TABLE WORKERS DELAY OPTIONS...
train() {
    expect 0 run -n "$2" --max-delay="$3" -- "$PSD_LR_PROGRAM" \
        --train "$set_file" --table "$1" --objective l2:1 "${@:4}"
}

lr_refuses() {
    n_checked=$((n_checked + 1))
    if "$PSD_LR_PROGRAM" --train f "${@:2}" >"$work/out" 2>"$work/err" ||
        ! err_is_one_line; then
        fail "psd-lr ${*:2} is not refused in one line"
    fi
    err_has "$1"
}

lr_refuses '--tolerance needs --objective' --tolerance 0.1
lr_refuses '--tolerance is "2"; allowed: 0 to 1' --objective l2:1 --tolerance 2
lr_refuses '--variant lbfgs needs --objective' --variant lbfgs
lr_refuses '--variant lbfgs needs .*other than hinge' \
    --objective l2:1 --variant lbfgs --loss hinge
lr_refuses '--variant lbfgs needs .* no --updater' \
    --objective l2:1 --variant lbfgs --updater sgd

export PSD_WORKERS_LOST_AFTER_MS=10000 # for the worker that is killed
cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT

# Exact sums in every mode: the same epochs, and F.
for n in 1 4; do
    for delay in 0 3 -1; do
        train "lbfgs-$n$delay" "$n" "$delay" --save "$work/model"
        near "$n workers, max-delay $delay" 0.01
        epochs_below "$n workers, max-delay $delay" 100
        expect 0 --yes table drop "lbfgs-$n$delay"
    done
done
expect 0 table list -o name
out_is '' # nor a table that belonged to a run

# By the steps of an updater, which become shorter.
train adagrad 1 0 --updater adagrad --epochs 400 --report 0
near adagrad 0.02
epochs_below adagrad 400
out_has ' epoch 2/400  clock [0-9]*  F [0-9.]*$'
# … from steps that are far too long: as long as that to the end, F is 800000.
train far 2 0 --updater sgd --alpha 1 --epochs 60
near far 20

# The bound comes first.
train short 2 3 --epochs 3 --report 0
out_has '^\[0\] not converged in 3 epochs: F changed by [0-9.e-]* of itself in'
out_has '^\[0\] .* epoch 3/3  clock [0-9]*  F [0-9.]*$'
train one 2 0 --epochs 1
out_has '^\[0\] not converged in 1 epochs$'
# A table that is there is gone on from.
train short 4 0
near 'a table that is there' 0.01
# Without a tolerance it goes on to the end: F is exact.
train exact 2 -1 --tolerance 0 --epochs 2000
near exact 0.00001

# worker RANK OPTIONS...: one of four, in the background; its pid.
worker() {
    PSD_JOB=$job PSD_WORKER=$1 PSD_WORKERS=4 PSD_MAX_DELAY=-1 \
        "$PSD_LR_PROGRAM" --train "$set_file" --table "$job" \
        --objective l2:1 --tolerance 0 --epochs 5000 --report 0 \
        >"$work/$1.out" 2>"$work/$1.err" </dev/null &
}

# The last one is killed while they train: the others come to the optimum of what
# they have. A try in which it had ended before counts for nothing.
lose_one() {
    local pids=()
    local rank
    local ended=0
    for rank in 0 1 2 3; do
        worker "$rank"
        pids+=($!)
    done
    wait_for grep -q ' epoch 2/' "$work/0.out" || fail 'no second epoch'
    kill -KILL "${pids[3]}"
    for rank in 0 1 2; do
        rc=0
        wait "${pids[$rank]}" || rc=$?
        if [ "$rc" -ne 0 ]; then
            fail "worker $rank: exit code $rc: $(cat "$work/$rank.err")"
        fi
    done
    wait "${pids[3]}" || ended=$?
    n_checked=$((n_checked + 1))
    [ "$ended" -gt 128 ]
}
for try in 1 2 3 4 5; do
    job=lost-$try
    if lose_one; then
        break
    fi
done
[ "$try" -lt 5 ] || fail 'nobody could be killed in time'
lost=$(sed -n 's/^train .* F \([0-9.]*\)  .*/\1/p' "$work/0.out")
grep -q '^train  450 examples' "$work/0.out" || fail 'not 450 examples are left'
grep -q '1 of 4 workers failed' "$work/0.err" ||
    fail 'it does not tell of the worker that was lost'
awk 'NR % 4 != 0' "$set_file" >"$work/rest"
set_file=$work/rest
train rest 1 0 --tolerance 0 --epochs 2000
optimum=$(sed -n 's/.*train .* F \([0-9.]*\)  .*/\1/p' "$work/out")
if ! awk "BEGIN { exit !(${lost:-0} > 0.9999 * $optimum &&
    ${lost:-0} < 1.0001 * $optimum) }"; then
    fail "without the lost worker F is ${lost:-not told}, not $optimum"
fi
cli_finish
