#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What all examples do alike: they show help, and all but the three shortest their
# version (psd-hello once took --help for nothing and pushed); a wrong or surplus
# argument is an error; a file that cannot be read is one error of each worker,
# before anybody has joined; and worker 0 says at the end that others were lost.
# The programs come from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
printf '1 1:1\n0 2:1\n' >"$work/samples"
export PSD_ENDPOINT=tcp://127.0.0.1:1

# says CODE STREAM PATTERN PROGRAM ARGS...: that exit code; the pattern is on
# that stream, out or err, and nothing on the other one.
says() {
    local want=$1 stream=$2 pattern=$3 other=out
    shift 3
    [ "$stream" = err ] || other=err
    rc=0
    n_checked=$((n_checked + 1))
    "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
    if [ "$rc" -ne "$want" ] || [ -s "$work/$other" ] ||
        ! grep -Eq -- "$pattern" "$work/$stream"; then
        fail "$*: exit code $rc, not $want; or not on $stream: $pattern"
        show
    fi
}

for program in "$PSD_HELLO_PROGRAM" "$PSD_QUEUE_PROGRAM" "$PSD_TRAIN_PROGRAM"; do
    says 0 out "usage: $(basename "$program")" "$program" --help
    says 2 err "usage: $(basename "$program")" "$program" --nonsense
done
for program in "$PSD_BCD_PROGRAM" "$PSD_FM_PROGRAM" "$PSD_LDA_PROGRAM" \
    "$PSD_LR_PROGRAM" "$PSD_MF_PROGRAM" "$PSD_MNIST_PROGRAM" \
    "$PSD_SKETCH_PROGRAM" "$PSD_WORD2VEC_PROGRAM"; do
    name=$(basename "$program")
    says 0 out "$name" "$program" --help
    says 0 out "$name" "$program" -h
    says 0 out "^$name [0-9.]+$" "$program" --version
    says 2 err "$name" "$program" --nonsense
done
says 2 err 'usage: psd-hello' "$PSD_HELLO_PROGRAM" x
says 2 err 'usage: psd-train FILE' "$PSD_TRAIN_PROGRAM" f 3 x
says 2 err 'usage: psd-train FILE' "$PSD_TRAIN_PROGRAM" f x

# Worker 1 once joined, and waited, where only worker 0 would read the file. No
# psd is there that it could join.
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
export PSD_WORKERS_JOIN_WITHIN_MS=200
cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT
expect 1 run -n 3 -- "$PSD_LR_PROGRAM" --train "$work/samples" --test /no/such
err_has "^\[[0-2]\] psd-lr: .* --test /no/such: No such file"
expect 0 table list -o name
out_is ''

# The other worker never comes: what it was to read nobody has read.
rc=0
n_checked=$((n_checked + 1))
PSD_WORKER=0 PSD_WORKERS=2 "$PSD_LR_PROGRAM" --train "$work/samples" \
    >"$work/out" 2>"$work/err" </dev/null || rc=$?
if [ "$rc" -ne 0 ]; then
    fail "psd-lr whose other worker never comes: exit code $rc"
    show
fi
err_has '^psd-lr: 1 of 2 workers failed: only the finished part of their data'
cli_finish
