#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lr_local is examples/lr without psd: both train to the same F, to the last
# digit that is told, or lr_cost measures two different things. Nothing is timed.
# lr_local.sh PROGRAM DATA; PSD_LR_PROGRAM comes from meson.
# shellcheck source-path=SCRIPTDIR source=../integration/cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../integration/cli_lib.sh"
usage='usage: lr_local.sh PROGRAM DATA'
lr_local=${1:?$usage}
data=${2:?$usage}
train=$work/train.libsvm
test=$work/test.libsvm
gzip -dc "$data/agaricus.train.libsvm.gz" >"$train"
gzip -dc "$data/agaricus.test.libsvm.gz" >"$test"

# end_of TABLE PROGRAM OPTIONS...: the F that a training ends with goes to $f.
end_of() {
    local table=$1
    local program=$2
    shift 2
    n_checked=$((n_checked + 1))
    if ! "$program" --train "$train" --test "$test" --table "$table" \
        --objective l2:1 --alpha 0.5 --minibatch 50 --epochs 3 \
        "$@" >"$work/out" 2>"$work/err" </dev/null; then
        fail "$program $*"
        show
    fi
    f=$(sed -n 's/^train .* F \([0-9.]*\)  [0-9.]* s$/\1/p' "$work/out")
}

# same TABLE OPTIONS...: both programs, with the same options.
same() {
    local of_lr
    end_of "$1" "$PSD_LR_PROGRAM" "${@:2}"
    of_lr=$f
    end_of "$1" "$lr_local" "${@:2}"
    if [ -z "$f" ] || [ "$f" != "$of_lr" ]; then
        fail "$1: F of lr is \"$of_lr\", of lr_local \"$f\""
    fi
}

cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT
same bsp --updater adagrad --max-delay 0
same asp --updater sgd --max-delay -1
cli_finish
