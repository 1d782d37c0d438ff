#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program of docs/training.md, alone and as four workers, without the overlay
# and with it: it learns, reads each sample once, and a file that is not there is one clear error.
# PSD_TRAIN_PROGRAM comes from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
data=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../data/agaricus" && pwd)
train=$work/train.libsvm
gzip -dc "$data/agaricus.train.libsvm.gz" >"$train"

cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT

# right_in FILE: how much of its last epoch each worker predicted right.
right_in() {
    sed -n 's/.*epoch 20: [0-9]* samples, \([0-9.]*\) right/\1/p' "$1"
}

expect 0 run -- "$PSD_TRAIN_PROGRAM" "$train" 20
out_has 'epoch 20: 6513 samples'
awk "BEGIN { exit !($(right_in "$work/out") > 0.97) }" ||
    fail "one worker has $(right_in "$work/out") right"
expect 0 table drop train-weights --yes

for overlay in off tree; do
    expect 0 run -n 4 --overlay $overlay -- "$PSD_TRAIN_PROGRAM" "$train" 20
    [ "$(sed -n 's/.*epoch 20: \([0-9]*\) samples.*/\1/p' "$work/out" |
        awk '{ n += $1 } END { print n }')" -eq 6513 ] ||
        fail "overlay $overlay: four workers did not read each sample once"
    right_in "$work/out" | awk '$1 < 0.93 { exit 1 } END { exit NR != 4 }' ||
        fail "overlay $overlay: four workers have $(right_in "$work/out" | tr '\n' ' ') right"
    expect 0 table inspect train-weights -o json
    out_has "\"combine\": *\"$([ $overlay = off ] && echo each || echo clock-sum)\""
    expect 0 table drop train-weights --yes
done

rc=0
"$PSD_TRAIN_PROGRAM" "$work/none" >"$work/out" 2>"$work/err" || rc=$?
if [ $rc -eq 0 ] ||
    ! grep -q "^psd-train: E[0-9]* .*$work/none" "$work/err"; then
    fail "a file that is not there: exit code $rc"
fi

cli_finish
