#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What all examples do alike: a file that cannot be read is one error of each
# worker, before anybody has joined. The programs come from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
printf '1 1:1\n0 2:1\n' >"$work/samples"

# Worker 1 once joined, and waited, where only worker 0 would read the file. No
# psd is there that it could join.
export PSD_ENDPOINT=tcp://127.0.0.1:1
while read -r name program given missing; do
    given=${given//,/ }
    rc=0
    n_checked=$((n_checked + 1))
    # shellcheck disable=SC2086 # options are words
    PSD_WORKER=1 PSD_WORKERS=2 "$program" ${given//DATA/"$work/samples"} \
        "$missing" /no/such --timeout 1 >"$work/out" 2>"$work/err" || rc=$?
    if [ "$rc" -ne 1 ] || ! err_is_one_line || ! grep -q \
        "^$name: E[0-9]* $missing /no/such: No such file" "$work/err"; then
        fail "$name $given $missing: exit code $rc"
        show
    fi
done <<END
psd-bcd $PSD_BCD_PROGRAM --train,DATA --test
psd-fm $PSD_FM_PROGRAM --train,DATA --valid
psd-fm $PSD_FM_PROGRAM --train,DATA --test
psd-lda $PSD_LDA_PROGRAM --topics,2 --train
psd-lr $PSD_LR_PROGRAM --train,DATA --test
psd-mf $PSD_MF_PROGRAM --factors,2 --train
psd-mnist $PSD_MNIST_PROGRAM --train,DATA --test
psd-sketch $PSD_SKETCH_PROGRAM --insert,DATA --query
psd-sketch $PSD_SKETCH_PROGRAM --insert,DATA --check
psd-word2vec $PSD_WORD2VEC_PROGRAM --train,DATA --pairs
psd-word2vec $PSD_WORD2VEC_PROGRAM --train,DATA --questions
END

# So the exit code of a run is that of the error, and no table is left.
cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT
expect 1 run -n 3 -- "$PSD_LR_PROGRAM" --train "$work/samples" --test /no/such
for worker in 0 1 2; do
    err_has "^\[$worker\] psd-lr: .* --test /no/such: No such file"
done
expect 0 table list -o name
out_is ''

cli_finish
