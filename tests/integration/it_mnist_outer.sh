#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# psd-mnist --outer-every: pushes are as many fewer, four workers learn, the table
# is the model, the same bits again; fragments and overlap; mistakes are one clear
# error; a worker that is killed does not stop the others.
# PSD_MNIST_PROGRAM comes from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
# shellcheck source-path=SCRIPTDIR source=mnist_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/mnist_lib.sh"

# refused PATTERN ARGS...: one line on stderr that has the pattern.
refused() {
    local pattern=$1
    shift
    rc=0
    "$PSD_MNIST_PROGRAM" --train "$train" --table x "$@" >"$work/out" 2>"$work/err" \
        </dev/null || rc=$?
    n_checked=$((n_checked + 1))
    if [ "$rc" -ne 2 ] || ! err_is_one_line || ! grep -q -- "$pattern" "$work/err"; then
        fail "psd-mnist $*: exit code $rc, not 2; or not: $pattern"
        show
    fi
}

# learn TABLE OPTIONS...: four workers; 14 minibatches an epoch, 56 in all.
learn() {
    local table=$1
    shift
    expect 0 run -n 4 --job "$table" -- "$PSD_MNIST_PROGRAM" --train "$train" \
        --test "$test" --table "$table" --minibatch 50 --epochs 4 \
        --save "$work/$table.model" "$@"
}

# pushed TABLE ROWS: as many rows of pushes came to the table.
pushed() {
    expect 0 table inspect "$1" -o json
    out_has "\"rows_pushed\": *$2,[^}]*},\"warnings\""
}

refused 'outer-every is "0"; allowed:' --outer-every 0
refused 'outer-overlap need --outer-every' --outer-overlap 1
refused 'outer-fragments and .* need --outer-every' --outer-fragments 2
refused 'outer-overlap is 5; less than --outer-every 5' --outer-every 5 --outer-overlap 5

cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT
refused 'outer-every needs --max-delay 0' --outer-every 5 --max-delay 1

# 1,010 parameters: 8 pushes of each worker and two of first values, where each
# minibatch has one otherwise, besides the first values of worker 0.
learn bsp
accuracy_is BSP 0.95
pushed bsp $(((56 * 4 + 1) * 1010))
PSD_COMBINE=clock-sum learn sum
expect 0 table inspect sum -o json
out_has '"combine": *"clock-sum"'
refused 'outer-fragments is 5000; at most 1010' --outer-every 7 --outer-fragments 5000
learn outer --outer-every 7
accuracy_is outer 0.95
pushed outer $(((2 + 8) * 4 * 1010))

# A hidden layer has first values, in two pushes of each worker. After the 8
# pushes of a half in turn follows one of the half that has had steps since.
deep=(--model mlp --hidden 20 --momentum 0.8 --step 0.05)
learn deep "${deep[@]}" --outer-every 7 --outer-fragments 2 --outer-overlap 3
accuracy_is 'hidden layer' 0.95
pushed deep $(((2 * 2 + 8 + 1) * 4 * 2230 / 2))
learn again "${deep[@]}" --outer-every 7 --outer-fragments 2 --outer-overlap 3
cmp -s "$work/deep.model" "$work/again.model" || fail 'the same job gave other bits'

# The saved model is the table.
expect 0 pull deep 0-2229 -o csv
n_checked=$((n_checked + 1))
if ! awk -F, 'NR == FNR { if (FNR > 1) want[FNR - 2] = $1; next }
    $1 ~ /^[0-9]+$/ { n++; d = want[$1] - $2; if (d > 1e-5 || d < -1e-5) bad = 1 }
    END { exit bad || n != 2230 }' "$work/deep.model" "$work/out"; then
    fail 'the saved model is not the table'
fi

# Worker 2 is killed in the middle: the others come to their end without it.
expect 0 cluster set workers.lost_after_ms 10000
start() {
    PSD_JOB=killed PSD_WORKER=$1 PSD_WORKERS=3 "$PSD_MNIST_PROGRAM" --train "$train" \
        --test "$test" --table lost --minibatch 50 --epochs "$2" --outer-every 7 \
        >"$work/lost.$1" 2>&1 &
}
start 0 300
zero=$!
start 1 300
one=$!
start 2 1000000
two=$!
wait_for grep -q 'epoch 2/' "$work/lost.2" || fail 'worker 2 does not train'
kill -KILL "$two"
wait "$two" 2>/dev/null
kill -0 "$zero" || fail 'the others had ended before worker 2 was lost'
for pid in "$zero" "$one"; do
    rc=0
    wait "$pid" || rc=$?
    n_checked=$((n_checked + 1))
    [ "$rc" -eq 0 ] || fail "a worker ended with $rc: $(grep -h psd-mnist "$work"/lost.?)"
done
cp "$work/lost.0" "$work/out"
accuracy_is 'with a worker lost' 0.95
cli_finish
