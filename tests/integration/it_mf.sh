#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/mf on ratings that are made here: both methods learn them, with one
# worker and with four; least squares gives four what it gives one; a saved model
# predicts; mistakes are one clear error. PSD_MF_PROGRAM comes from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"

# Biases and two factors; every user has rated two items of five.
python3 - >"$work/ratings.csv" <<'END'
import random
random.seed(3)
user = [(random.gauss(0, 0.4), random.choice((-1, 1))) for _ in range(60)]
item = [(random.gauss(0, 0.4), random.choice((-1, 1))) for _ in range(80)]
print("user,item,rating,time")
for u in range(60):
    for i in range(80):
        if random.random() < 0.4:
            r = 3 + user[u][0] + item[i][0] + user[u][1] * item[i][1]
            print(f"{7 * u + 1},{100000 + 3 * i},{r:.3f},{random.randrange(9)}")
END
ratings=$work/ratings.csv

# refused CODE PATTERN ARGS...: one line on stderr that has the pattern.
refused() {
    local want=$1
    local pattern=$2
    shift 2
    rc=0
    "$PSD_MF_PROGRAM" "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
    n_checked=$((n_checked + 1))
    if [ "$rc" -ne "$want" ] || ! err_is_one_line ||
        ! grep -q "^psd-mf: E[0-9]* .*$pattern" "$work/err"; then
        fail "psd-mf $*: exit code $rc, not $want; or not: $pattern"
        show
    fi
}

# learn WORKERS TABLE BOUND OPTIONS...: the test RMSE is at most BOUND; the model
# goes to $work/TABLE.model. Without what users and items have in common it is 1.
learn() {
    local workers=$1
    local table=$2
    local bound=$3
    local rmse
    shift 3
    expect 0 run -n "$workers" -- "$PSD_MF_PROGRAM" --train "$ratings" \
        --table "$table" --factors 2 --save "$work/$table.model" "$@"
    rmse=$(sed -n 's/.*test RMSE \([0-9.]*\)$/\1/p' "$work/out" | tail -1)
    if ! awk "BEGIN { exit !(${rmse:-9} <= $bound) }"; then
        fail "$table: test RMSE ${rmse:-not told}, not $bound"
        show
    fi
}

refused 2 '--train FILE is missing'
refused 2 '--predict and --test need each other' --predict f
refused 2 'longer than 57 characters' --train f --table "$(printf '%058d' 0)"
refused 2 '--test-every 1 leaves no' --train f --test-every 1
refused 2 '--method is "x"; allowed:' --train f --method x
refused 1 '/no/such.*No such file' --train /no/such
refused 1 '--save /no/such/m: No such file' --train f --save /no/such/m
printf '1,2.5,3\n' >"$work/bad"
refused 2 "$work/bad: rating 1 is not user,item,rating" --train "$work/bad"
printf 'psd-mf 1 2 2 1 3\n1 0 0\n1 0 0\n5 0 0\n' >"$work/bad"
refused 2 "$work/bad:3: not what psd-mf writes" \
    --predict "$work/bad" --test "$ratings"

cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT
learn 1 s1 0.4 --step 0.05 --decay 0 --lambda 0.01 --blocks 2 --epochs 30
learn 4 s4 0.4 --step 0.05 --decay 0 --lambda 0.01 --blocks 2 --epochs 30
learn 1 a1 0.2 --method als --lambda 0.01
learn 4 a4 0.2 --method als --lambda 0.01
n_checked=$((n_checked + 1))
if ! paste -d ' ' "$work/a1.model" "$work/a4.model" | awk '
    NR == 1 { next }
    { for (k = 1; k <= NF / 2; k++) { d = $k - $(k + NF / 2)
      if (d > 1e-3 || d < -1e-3) bad = 1 } }
    END { exit bad || NR != 141 }'; then
    fail 'four workers solved other rows than one'
fi
# Once more: what is there goes on, and that is said.
expect 0 run -n 2 -- "$PSD_MF_PROGRAM" --train "$ratings" --table s1 --factors 2 \
    --epochs 1
err_has 'psd-mf: table "s1.users" exists already and is used as it is'
# All ratings, those that were learnt too.
"$PSD_MF_PROGRAM" --predict "$work/a4.model" --test "$ratings" \
    --scores "$work/scores" >"$work/out" 2>"$work/err"
n_checked=$((n_checked + 1))
if ! grep -q 'RMSE 0\.[01]' "$work/out" ||
    [ "$(wc -l <"$work/scores")" != $(($(wc -l <"$ratings") - 1)) ]; then
    fail 'a saved model does not predict'
    show
fi
# A user and an item that nobody knows get the mean.
printf '999,1,0\n' >"$work/new"
"$PSD_MF_PROGRAM" --predict "$work/a4.model" --test "$work/new" \
    --scores "$work/scores" >"$work/out" 2>"$work/err"
if [ "$(cut -c 1-6 "$work/scores")" != \
    "$(awk 'NR == 1 { printf "%.6g", $6 }' "$work/a4.model" | cut -c 1-6)" ]; then
    fail 'a stranger does not get the mean'
fi
cli_finish
