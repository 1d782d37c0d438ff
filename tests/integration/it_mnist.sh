#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/mnist on images that are made here: it learns them, four workers get
# what one gets but for rounding (with momentum, too), the same bits again, a
# saved model predicts the same, and mistakes are one clear error.
# PSD_MNIST_PROGRAM comes from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
# shellcheck source-path=SCRIPTDIR source=mnist_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/mnist_lib.sh"

# Two of floats.
python3 - "$work" <<'END'
import struct, sys
with open(f"{sys.argv[1]}/float-images", "wb") as file:
    file.write(struct.pack(">III4f", 0xd02, 2, 2, 0, 1, 1, 0.5))
with open(f"{sys.argv[1]}/float-labels", "wb") as file:
    file.write(struct.pack(">II", 0x801, 2) + bytes((0, 1)))
END

# refused CODE PATTERN ARGS...: one line on stderr that has the pattern.
refused() {
    local want=$1
    local pattern=$2
    shift 2
    rc=0
    "$PSD_MNIST_PROGRAM" "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
    n_checked=$((n_checked + 1))
    if [ "$rc" -ne "$want" ] || ! err_is_one_line ||
        ! grep -q "^psd-mnist: E[0-9]* .*$pattern" "$work/err"; then
        fail "psd-mnist $*: exit code $rc, not $want; or not: $pattern"
        show
    fi
}

# learn WORKERS TABLE OPTIONS...: the model goes to $work/TABLE.model.
learn() {
    local workers=$1
    local table=$2
    shift 2
    expect 0 run -n "$workers" -- "$PSD_MNIST_PROGRAM" --train "$train" \
        --test "$test" --table "$table" --minibatch 50 --epochs 4 \
        --save "$work/$table.model" "$@"
}

# alike A B: models of the same sizes, numbers within 1e-4.
alike() {
    n_checked=$((n_checked + 1))
    if ! paste -d ' ' "$work/$1.model" "$work/$2.model" | awk '
        NR == 1 { exit_code = $3 != $7 || $4 != $8; next }
        { d = $1 - $2; if (d > 1e-4 || d < -1e-4) exit_code = 1 }
        END { exit exit_code || NR < 1000 }'; then
        fail "the models $1 and $2 differ"
    fi
}

refused 2 '--train FILE is missing'
refused 2 '--predict needs --test' --predict f
refused 2 '--scores needs --predict' --train f --scores s
refused 2 '--momentum is "1"; allowed:' --train f --momentum 1
refused 1 '/no/such.*No such file' --train /no/such
refused 1 '--save /no/such/m: No such file' --train f --save /no/such/m
printf 'psd-mnist 1 100 0\n0.5\nx\n' >"$work/bad.model"
refused 2 'bad.model:3: "x" is not a number' \
    --predict "$work/bad.model" --test "$test"
printf 'model\n' >"$work/bad.model"
refused 2 'bad.model:1: not a model of psd-mnist' \
    --predict "$work/bad.model" --test "$test"

cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT
refused 2 '--momentum needs --max-delay 0' \
    --train "$train" --momentum 0.5 --max-delay 1 --table x

refused 2 'float-images: image 1 has a pixel of 0.5; whole numbers' \
    --train "$work/float-images" --table x

learn 1 s1
accuracy_is softmax 0.95
learn 4 s4
accuracy_is 'softmax of 4' 0.95
alike s1 s4
learn 1 m1 --model mlp --hidden 20 --momentum 0.8 --step 0.05
accuracy_is mlp 0.95
told=$(grep -o 'test .*' "$work/out" | tail -1)
learn 4 m4 --model mlp --hidden 20 --momentum 0.8 --step 0.05
accuracy_is 'mlp of 4' 0.95
alike m1 m4
learn 4 m5 --model mlp --hidden 20 --momentum 0.8 --step 0.05
if ! cmp -s "$work/m4.model" "$work/m5.model"; then
    fail 'the same job gave other bits'
fi

"$PSD_MNIST_PROGRAM" --predict "$work/m1.model" --test "$test" \
    --scores "$work/classes" >"$work/out" 2>"$work/err"
if [ "$(cat "$work/out")" != "$told" ] || [ "$(wc -l <"$work/classes")" != 300 ]; then
    fail "a saved model predicts otherwise than: $told"
    show
fi
# A table that is there is trained further; a new one begins at a loss of 2.3.
learn 1 s1 --epochs 1 --average yes
if ! grep -q 'epoch 1/1 .*loss 1\.[0-4]' "$work/out"; then
    fail 'training did not go on from the table'
    show
fi

# Under a limit of memory it trains, or ends with one line: it hung, some as they
# were loaded. Sanitizers want much memory of their own.
if [ -z "${ASAN_OPTIONS:-}${TSAN_OPTIONS:-}" ]; then
    rc=0
    PSD_ENDPOINT=$PSCLI_ENDPOINT PSD_JOB=limit timeout 100 \
        prlimit --data=$((256 << 20)) "$PSD_MNIST_PROGRAM" --train "$train" \
        --table limit --epochs 1 >"$work/out" 2>"$work/err" || rc=$?
    n_checked=$((n_checked + 1))
    if [ "$rc" -ne 0 ] && { [ "$rc" -gt 64 ] || ! err_is_one_line; }; then
        fail "with 256 MiB of data: exit code $rc"
        show
    fi
fi

cli_finish
