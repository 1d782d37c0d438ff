#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two jobs of an example that train one table at the same time: the one that
# ends first once took the other one's tables of sums with it, and that one ended
# without a model. And a job that is run again drops what it left.
# The programs come from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
data=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../data/agaricus" && pwd)
train=$work/train.libsvm
gzip -dc "$data/agaricus.train.libsvm.gz" | head -n 1000 >"$train"
first=
less=${TRAIN_LESS:+4} # sanitizers are that much slower, so the first job lasts
less=${less:-1}

end_first() {
    if [ -n "$first" ]; then
        kill -KILL "$first" 2>/dev/null
        wait "$first" 2>/dev/null
    fi
    cli_end
}
trap end_first EXIT

cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT

# left_over PATTERN: such tables must not be there.
left_over() {
    expect 0 table list -o name
    if grep -E "$1" "$work/out" >"$work/more"; then
        fail "tables are left behind: $(tr '\n' ' ' <"$work/more")"
    fi
}

# together TABLE LINE PROGRAM OPTIONS...: job long trains the table, and stands
# still behind that line while job short does so from beginning to end.
together() {
    local table=$1 line=$2
    shift 2
    set -- "$@" --train "$train" --table "$table"
    PSD_JOB=long "$@" --save "$work/$table.long" \
        >"$work/long.out" 2>"$work/long.err" &
    first=$!
    wait_for grep -qs "$line" "$work/long.out" || fail "$table does not train"
    kill -STOP "$first"
    n_checked=$((n_checked + 2))
    rc=0
    PSD_JOB=short "$@" --save "$work/$table.short" \
        >"$work/out" 2>"$work/err" || rc=$?
    if [ "$rc" -ne 0 ] || [ ! -s "$work/$table.short" ]; then
        fail "$table: the job that ends first has exit code $rc"
        show
    fi
    [ ! -e "$work/$table.long" ] || fail "$table: the first job was too short"
    kill -CONT "$first"
    rc=0
    wait "$first" || rc=$?
    first=
    if [ "$rc" -ne 0 ] || [ ! -s "$work/$table.long" ]; then
        fail "$table: the other job has exit code $rc"
        sed 's/^/  err: /' "$work/long.err" | head -5
    fi
    left_over "^$table\..*(long|short)"
}

together lr 'epoch 2/' "$PSD_LR_PROGRAM" --objective l2:1 --epochs $((600 / less)) \
    --updater adagrad --tolerance 0 --report 0
together admm 'round 2/' "$PSD_LR_PROGRAM" --objective l2:1 --variant admm \
    --epochs $((1500 / less)) --tolerance 0 --report 0
together fm ' epoch 2' "$PSD_FM_PROGRAM" --epochs $((300 / less)) --report 0
together bcd 'pass 3 ' "$PSD_BCD_PROGRAM" --passes $((1500 / less)) --epsilon 0

# What a run that was killed left is of another form than what this one wants.
for what in counts models models2 steps sums shape; do
    expect 0 table create "again.nightly-$what" --rows 3
done
expect 0 run --job nightly -- "$PSD_LR_PROGRAM" --train "$train" \
    --table again --objective l2:1 --variant admm --epochs 2
left_over '^again\.'

# Names that are as long as names may be, and that have dots.
long=$(printf '%063d' 7)
expect 0 run --job "$long" -- "$PSD_LR_PROGRAM" --train "$train" \
    --table "$long" --epochs 1
expect 0 run --job v1.2 -- "$PSD_LR_PROGRAM" --train "$train" --table ads.v1 \
    --epochs 1
left_over '^(ads\.v1.|0+[-.])'

cli_finish
