#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/fm against a real daemon, on samples whose label is a product of two
# features, which no linear model tells: it learns them, with one worker and with
# three; BSP gives the same bits again; only features that come often have
# embeddings; it stops early with the best model; a saved model predicts the
# same; each bad flag, file and table is one clear error. PSD_FM_PROGRAM
# comes from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"

# Features 1 .. 4 and 5 .. 8 are of one sign or the other; the label is whether
# the signs agree. 100000 and up are seen once each.
python3 - "$work" <<'END'
import random
import sys
random.seed(4)
for name, n in (("train", 400), ("test", 200)):
    with open(f"{sys.argv[1]}/{name}", "w", encoding="ascii") as file:
        for i in range(n):
            a, b = random.randrange(4), random.randrange(4)
            label = 1 if (a < 2) == (b < 2) else 0
            file.write(f"{label} {1 + a}:1 {5 + b}:1 {100000 + i}:1\n")
END

# refused CODE PATTERN ARGS...: one line on stderr that has the pattern.
refused() {
    local want=$1
    local pattern=$2
    shift 2
    rc=0
    "$PSD_FM_PROGRAM" "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
    n_checked=$((n_checked + 1))
    if [ "$rc" -ne "$want" ] || ! err_is_one_line ||
        ! grep -q -- "^psd-fm: E[0-9]* .*$pattern" "$work/err"; then
        fail "psd-fm $*: exit code $rc, not $want; or not: $pattern"
        show
    fi
}

# Settings that make it sure to learn this: few samples, large steps.
settings=(--dim 4 --embed-after 20 --init 0.5 --factor-alpha 0.5 --factor-l2 0
    --l1 0.001 --minibatch 25 --epochs 20 --timeout 300)

# learn WORKERS TABLE OPTIONS...: the model goes to $work/TABLE.model.
learn() {
    local workers=$1
    local table=$2
    shift 2
    expect 0 run -n "$workers" -- "$PSD_FM_PROGRAM" --train "$work/train" \
        --test "$work/test" --table "$table" --save "$work/$table.model" \
        "${settings[@]}" "$@"
}

# loss_is COMPARISON: of the last run's test logloss.
loss_is() {
    local loss
    loss=$(sed -n 's/.*test .*logloss \([0-9.]*\).*/\1/p' "$work/out")
    if ! awk "BEGIN { exit !(\"$loss\" != \"\" && ${loss:-0} $1) }"; then
        fail "test logloss ${loss:-not told}, not $1"
        show
    fi
}

# Flags and files: none of this needs a psd.
refused 2 '--train FILE is missing'
refused 2 'unknown option "--dims"' --train f --dims 2
refused 2 '--dim is "0"; allowed: 1' --train f --dim 0
refused 2 '--dim is "1025"; allowed:' --train f --dim 1025
refused 2 '--embed-after is "-1"; allowed:' --train f --embed-after -1
refused 2 '--init is "0"; allowed:' --train f --init 0
refused 2 '--factor-l2 is "nan"; allowed:' --train f --factor-l2 nan
refused 2 '--valid needs --train' --predict m --test f --valid f
refused 2 '--scores needs --test' --train f --scores s
refused 2 '--predict needs --test' --predict m
refused 2 'longer than 55 characters' --train f \
    --table "$(printf '%056d' 0)"
refused 1 '/no/such.*No such file' --train /no/such
refused 1 '--save /no/such/m: No such file' --train f --save /no/such/m
refused 1 '--scores /tmp: Is a dir' --train f --test f --scores /tmp
printf '2 1:1\n' >"$work/bad"
refused 2 "$work/bad: .*label 2 is not one of" --train "$work/bad"
refused 2 "$work/bad: .*label 2 is not one of" --train "$work/train" \
    --valid "$work/bad"
printf 'psd-fm 2 2 1\n1 0.5 1\n' >"$work/bad"
refused 2 "$work/bad:2: is not \"key weight\"" --predict "$work/bad" \
    --test "$work/test"
"$PSD_FM_PROGRAM" --help >"$work/out" 2>"$work/err"
out_has '--embed-after N'

cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT
# Guessing is 0.693.
learn 1 one
loss_is '< 0.3'
learn 3 three
loss_is '< 0.3'
learn 3 again
n_checked=$((n_checked + 1))
if ! cmp -s "$work/three.model" "$work/again.model"; then
    fail 'three workers under BSP: other bits'
fi
# Without embeddings it is linear.
learn 1 none --embed-after 1000000
loss_is '> 0.6'
out_has ' embeddings 0 '
# Those that were seen once have none, though their weights may be there.
n_checked=$((n_checked + 1))
if ! awk 'NR > 1 && (NF == 6) != ($1 < 100) { bad = 1 }
    END { exit bad || NR < 9 }' "$work/one.model"; then
    fail 'embeddings are not those of the features that come often'
fi
expect 0 -o json table inspect one.factors
out_has '"rows_present": *8\b'

# A saved model says what the tables said.
learn 1 saved --scores "$work/scores"
"$PSD_FM_PROGRAM" --predict "$work/saved.model" --test "$work/test" \
    --scores "$work/scores2" >"$work/out" 2>"$work/err"
loss_is '< 0.3'
n_checked=$((n_checked + 1))
if ! cmp -s "$work/scores" "$work/scores2"; then
    fail 'a saved model predicts something else'
fi

# Early end: what is measured is the opposite, so the first epoch is the best.
sed 's/^1/2/; s/^0/1/; s/^2/0/' "$work/test" >"$work/opposite"
learn 2 early --valid "$work/opposite" --patience 3
n_checked=$((n_checked + 1))
if [ "$(grep -c 'valid epoch' "$work/out")" -ge 20 ] ||
    [ "$(grep -c '  best$' "$work/out")" -lt 1 ]; then
    fail 'it did not stop early'
    show
fi

# A worker that ends with an error leaves the job with it.
rc=0
"$PSCLI_PROGRAM" run --job broken -- "$PSD_FM_PROGRAM" \
    --train "$work/train" --test "$work/test" --table broken \
    --scores /dev/full "${settings[@]}" --epochs 1 \
    >"$work/out" 2>"$work/err" || rc=$?
n_checked=$((n_checked + 1))
[ "$rc" -ne 0 ] || fail 'scores that cannot be written were written'
err_has 'write /dev/full: No space'
expect 0 cluster events
out_has 'worker 0 of job broken failed: "write /dev/full'

# It goes on with tables that are there, and only with the same settings.
learn 1 one --epochs 1
loss_is '< 0.3'
rc=0
"$PSD_FM_PROGRAM" --train "$work/train" --table one "${settings[@]}" \
    --dim 5 >"$work/out" 2>"$work/err" || rc=$?
n_checked=$((n_checked + 1))
if [ "$rc" -eq 0 ]; then
    fail 'a table of other embeddings was taken'
fi
err_has '^psd-fm: E[0-9]+ .*one.factors'
cli_finish
