#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/sketch counts words: never too low, within what is promised, the same
# on one worker and on four; mistakes are one clear error. PSD_SKETCH_PROGRAM
# comes from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
# 300 lines of 40 words by Zipf's law, and one word that is known.
python3 - >"$work/text" <<'END'
import random
random.seed(8)
for _ in range(300):
    print(" ".join(f"w{int(10 ** random.uniform(0, 3.3))}" for _ in range(40)))
    print("needle  ")
END

# refused CODE PATTERN ARGS...: one line on stderr that has the pattern.
refused() {
    local want=$1
    local pattern=$2
    shift 2
    rc=0
    "$PSD_SKETCH_PROGRAM" "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
    n_checked=$((n_checked + 1))
    if [ "$rc" -ne "$want" ] || ! err_is_one_line ||
        ! grep -q "^psd-sketch: E[0-9]* .*$pattern" "$work/err"; then
        fail "psd-sketch $*: exit code $rc, not $want; or not: $pattern"
        show
    fi
}

refused 2 '--insert, --query or --check FILE is missing'
refused 2 '--bits is "5"; allowed: 6' --insert f --bits 5

cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT
refused 1 '/no/such.*No such file' --insert /no/such --table none
refused 1 'Is a directory' --insert "$work" --table none

printf 'needle\nw1\nnobody\n' >"$work/wanted"
refused 5 'table "none" does not exist' --query "$work/wanted" --table none
refused 5 'table "none" does not exist' --check "$work/text" --table none
expect 5 table inspect none
for workers in 1 4; do
    # Small enough that many words share their cells.
    expect 0 run -n $workers -- "$PSD_SKETCH_PROGRAM" --insert "$work/text" \
        --check "$work/text" --table "small$workers" --bits 8 --batch 777
    out_has 'of 12300: 0 counted too low'
    beyond=$(sed -n 's/.*(\([0-9.]*\) %; 1.83 % allowed).*/\1/p' "$work/out")
    if ! awk "BEGIN { exit !(${beyond:-9} <= 1.83) }"; then
        fail "${beyond:-an unknown share of the words} % are beyond the bound"
    fi
    sed -n 's/.*\(mean error .*\)/\1/p' "$work/out" >"$work/told$workers"
    # With room for all, counts are exact.
    expect 0 run -n $workers -- "$PSD_SKETCH_PROGRAM" --insert "$work/text" \
        --query "$work/wanted" --table "large$workers" --bits 18
    out_has 'needle 300$'
    out_has "w1 $(tr -s ' ' '\n' <"$work/text" | grep -cx w1)\$"
    out_has 'nobody 0$'
done
if ! cmp -s "$work/told1" "$work/told4"; then
    fail 'four workers have other cells than one'
fi
# What can be read once only.
mkfifo "$work/pipe"
timeout 60 cp "$work/text" "$work/pipe" &
expect 0 run -n 1 -- "$PSD_SKETCH_PROGRAM" --insert "$work/pipe" \
    --check "$work/text" --table piped --bits 18
out_has 'of 12300: 0 counted too low'
# Inserted once more: a table that is there is counted further.
expect 0 run -n 2 -- "$PSD_SKETCH_PROGRAM" --insert "$work/text" \
    --query "$work/wanted" --table large1 --bits 18
out_has 'needle 600$'
err_has 'table "large1" exists already'
expect 0 run -- "$PSD_SKETCH_PROGRAM" --check "$work/text" --table large1 --bits 18
out_has 'the table counts 24600 words, the file has 12300'
cli_finish
