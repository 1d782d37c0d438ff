#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/word2vec against a real daemon: words that stand together come
# together in every model, with one worker and with several; all words are
# counted; files of vectors are read back; each bad flag and file is one clear
# error. PSD_WORD2VEC_PROGRAM comes from meson.
# So few words stand in every block many times: blocks are small, and steps,
# where several learn at once, so that the result does not hang on which of them
# comes first.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
text=$work/text
# Lines of words of one of two kinds, a0 .. a15 and b0 .. b15, in no order.
awk 'BEGIN {
    state = 1
    for (line = 0; line < 2000; line++) {
        kind = line % 2 == 0 ? "a" : "b"
        for (i = 0; i < 10; i++) {
            state = (state * 48271) % 2147483647
            printf "%s%d%s", kind, int(state / 1000) % 16, i < 9 ? " " : "\n"
        }
    }
}' >"$text"

# wv ARGS...: as run of cli_lib.
wv() {
    rc=0
    "$PSD_WORD2VEC_PROGRAM" "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
    n_checked=$((n_checked + 1))
}

# refused CODE PATTERN ARGS...: nothing on stdout, one line on stderr that has
# the pattern, that exit code.
refused() {
    local want=$1
    local pattern=$2
    shift 2
    wv "$@"
    if [ "$rc" -ne "$want" ] || ! err_is_one_line ||
        ! grep -q "^psd-word2vec: E[0-9]* .*$pattern" "$work/err"; then
        fail "psd-word2vec $*: exit code $rc, not $want; or not: $pattern"
        show
    fi
}

# Flags and files. No psd runs yet: none of this needs one.
refused 2 'none is given; allowed: one of --train'
refused 2 'both are given' --train f --vectors v
refused 2 '--negative 0 without --hs' --train f --negative 0
refused 2 '--size is "0"; allowed:' --train f --size 0
refused 2 '--senses 2 with --model cbow' --train f --senses 2 --model cbow
refused 2 '--model is "lsa"; allowed: skip-gram, cbow' --train f --model lsa
refused 1 '--train /no/such: No such file' --train /no/such
refused 1 '--vectors /no/such: No such file' --vectors /no/such
gzip -c "$text" >"$work/packed"
refused 2 "$work/packed: byte 0: it is compressed" --train "$work/packed"
printf 'one two\n' >"$work/rare"
refused 2 'no word occurs 5 times' --train "$work/rare"
printf '2 2\na 1 2\nb 1\n' >"$work/short"
refused 2 "$work/short: word 2: " --vectors "$work/short"
PSD_ENDPOINT=tcp://127.0.0.1:1 refused 3 'tcp://127.0.0.1:1' \
    --train "$text" --timeout 1

cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT
settings=(--train "$text" --size 20 --window 3 --block 500 --sample 0
    --alpha 0.05 --epochs 5 --seed 7)

# kinds_part WHAT: the nine words nearest to a3, of the last run, are of its
# kind.
kinds_part() {
    local n
    n=$(grep '^[ab][0-9]* ' "$work/out" | head -9 | grep -c '^a')
    if [ "$rc" -ne 0 ] || [ "$n" -ne 9 ]; then
        fail "$1: $n of the nine nearest words are of its kind, exit code $rc"
        show
    fi
}

# learn WHAT ARGS...: one worker.
learn() {
    local what=$1
    shift
    wv "${settings[@]}" --near a3 "$@"
    kinds_part "$what"
}

# learn_or_run WHAT ARGS...: as learn; with TRAIN_LESS it runs for one epoch,
# after which words are not together yet.
learn_or_run() {
    if [ -z "${TRAIN_LESS:-}" ]; then
        learn "$@"
        return
    fi
    local what=$1
    shift
    wv "${settings[@]}" --near a3 "$@" --epochs 1
    if [ "$rc" -ne 0 ] || [ "$(grep -c '^[ab][0-9]* ' "$work/out")" -lt 9 ]; then
        fail "$what: exit code $rc"
        show
    fi
}

learn "skip-gram, negatives"
learn_or_run "skip-gram, tree" --negative 0 --hs
learn_or_run "cbow, negatives" --model cbow --epochs 8
learn_or_run "cbow, tree" --model cbow --negative 0 --hs --epochs 8
learn_or_run "both" --hs --trainers 3 --block 100 --alpha 0.025 --epochs 8
learn_or_run "adagrad" --adagrad
learn_or_run "no pipeline" --no-pipeline --save "$work/one"
learn_or_run "no pipeline again" --no-pipeline --save "$work/other" --table other
cmp "$work/one" "$work/other" || fail "alone it is not the same to the bit"

# Several workers: every word of every epoch is counted, 6 x (20000 + 2000).
delays=(0 2 -1)
[ -z "${TRAIN_LESS:-}" ] || delays=(2)
for delay in "${delays[@]}"; do
    expect 0 run -n 3 --job "many$delay" -- "$PSD_WORD2VEC_PROGRAM" \
        "${settings[@]}" --max-delay "$delay" --block 100 --alpha 0.025 --epochs 6 \
        --table many --near a3 --save "$work/many"
    sed -i 's/^\[[0-9]*\] *//' "$work/out"
    kinds_part "three workers, max_delay $delay"
    expect 0 pull many.count 0,1,2 -o csv
    awk -F, '{ n += $NF } END { exit n != 132000 }' "$work/out" ||
        { fail "words are not all counted"; show; }
done

# Four workers on blocks in which the nodes of the tree are met thousands of
# times: plain sums of what each has changed grew to thousands, and on to NaN.
expect 0 run -n 4 --job tree -- "$PSD_WORD2VEC_PROGRAM" "${settings[@]}" \
    --negative 0 --hs --block 2000 --max-delay 0 --near a3 \
    --epochs "$([ -n "${TRAIN_LESS:-}" ] && echo 3 || echo 12)"
expect 0 pull word2vec.in 1-32 -o csv
awk -F, 'NR > 1 { for (i = 2; i <= NF; i++) if (!($i * $i < 10000)) wrong = 1 }
    END { exit NR != 33 || wrong }' "$work/out" ||
    { fail "vectors of words are far out"; show; }

# It goes on where it was: an epoch, then the four behind it.
learn "first epoch" --epochs 1
learn "resumed" --resume
grep -q 'has read 88000 words' "$work/out" ||
    { fail "the first epoch is learnt again"; show; }
learn "resumed again" --resume
grep -q 'nothing is left to train: 110000 words are' "$work/out" ||
    { fail "it does not say that it has nothing to do"; show; }
expect 6 run -n 2 -- "$PSD_WORD2VEC_PROGRAM" "${settings[@]}" --resume
grep -q 'word2vec.count' "$work/err" || { fail "other workers go on"; show; }
expect 0 push word2vec.count 0=-5
refused 2 '--resume: 109995 words are done, and no block' "${settings[@]}" \
    --resume --epochs 6

# A word that stands for a0 and for b0 has a vector for each of them.
sed 's/\b[ab]0\b/x/g' "$text" >"$work/mixed"
wv "${settings[@]}" --train "$work/mixed" --senses 2 \
    --sense-share 0.05 --near x --save "$work/senses" --save-senses "$work/said"
one=$(grep '^[ab][0-9]* ' "$work/out" | head -9 | cut -c1 | sort -u)
wv --vectors "$work/senses" --near 'x#2'
other=$(grep '^[ab][0-9]* ' "$work/out" | head -9 | cut -c1 | sort -u)
case $one$other in
ab | ba) ;;
*) fail "near the senses of x: $one, $other" && show ;;
esac
awk -F'\t' '$1 != "x" || $3 < 0.4 || $3 > 0.6 { wrong = 1 }
    END { exit NR != 2 || wrong }' "$work/said" ||
    fail "shares of senses: $(cat "$work/said")"

# Vectors are read back in both forms, and say the same.
wv --vectors "$work/many" --near a3
kinds_part "text"
cp "$work/out" "$work/said"
wv --vectors "$work/many" --save "$work/binary" --binary
wv --vectors "$work/binary" --near a3
kinds_part "binary"
cmp "$work/out" "$work/said" || fail "the binary form says something else"
refused 2 '"c" is not known' --vectors "$work/binary" --near c

cli_finish
