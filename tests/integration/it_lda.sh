#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/lda on documents of two kinds that are made here: counts are exact
# with one worker and with three, with slices and without, and after a job was
# killed and started again; topics part the kinds; a saved model is read back;
# mistakes are one clear error. PSD_LDA_PROGRAM comes from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
docs=$work/docs
n_tokens=4800 # of 4 documents in 5, 40 in each
# Words 1 .. 30 stand together, and 31 .. 60.
awk 'BEGIN {
    state = 1
    for (d = 0; d < 150; d++) {
        printf "1"
        for (i = 1; i <= 10; i++) {
            state = (state * 48271) % 2147483647
            printf " %d:4", d % 2 * 30 + 3 * (i - 1) + 1 + int(state / 1000) % 3
        }
        printf "\n"
    }
}' >"$docs"

# lda ARGS...: as run of cli_lib.
lda() {
    rc=0
    "$PSD_LDA_PROGRAM" "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
    n_checked=$((n_checked + 1))
}

# refused CODE PATTERN ARGS...: one line on stderr that has the pattern.
refused() {
    local want=$1
    local pattern=$2
    shift 2
    lda "$@"
    if [ "$rc" -ne "$want" ] || ! err_is_one_line ||
        ! grep -q "^psd-lda: E[0-9]* .*$pattern" "$work/err"; then
        fail "psd-lda $*: exit code $rc, not $want; or not: $pattern"
        show
    fi
}

# bad_docs TEXT PATTERN: documents that are refused.
bad_docs() {
    printf '%b' "$1" >"$work/bad"
    refused 2 "$2" --train "$work/bad" --format libsvm
}

# bad_model TEXT PATTERN
bad_model() {
    printf '%b' "$1" >"$work/bad"
    refused 2 "$work/bad:$2: not what psd-lda writes" --infer "$work/bad" --top 3
}

# Flags and files. No psd runs yet: none of this needs one.
refused 2 'one of --train FILE and --infer FILE is needed'
refused 2 'one of --train FILE and --infer FILE is needed' --train f --infer m
refused 2 'need --infer FILE' --train f --top 3
refused 2 '--infer needs --test FILE or --top N' --infer m
refused 2 '--names needs --top N' --infer m --test f --names n
refused 2 '--document-topics needs --test FILE' --infer m --top 3 \
    --document-topics o
refused 2 '--test-every 1 leaves no' --train f --test-every 1
refused 2 '--topics is "1"; allowed:' --train f --topics 1
refused 2 '--alpha is "0"; allowed:' --train f --alpha 0
refused 1 '/no/such' --train /no/such
refused 1 '/no/such' --infer /no/such --top 3
refused 1 '/no/such' --train "$docs" --warm /no/such
bad_docs '1 3:1.5\n' 'document 1: word 3: 1.5 is not a whole number'
bad_docs '1 3:1\n1 4:-1\n' 'document 2: word 4: -1 is not a whole number'
bad_docs '1 3:20000000\n' 'word 3: 2e+07 is not a whole number'
bad_docs '1 99999999999:1\n' 'document 1: word 99999999999 is beyond 134217728'
bad_docs '1\n' 'no token to train'
bad_model '' 1
bad_model 'psd-lda 2 2 1 0 0.1 0.01\n0 0:1\n' 1
bad_model 'psd-lda 1 2 9999999999 0 0.1 0.01\n' 1
bad_model 'psd-lda 1 2 100000000 0 0.1 0.01\n0 0:1\n' 1
bad_model 'psd-lda 1 2 1 0 0.1 0.01\n\n' 2
bad_model 'psd-lda 1 2 1 0 0.1 0.01\n0 2:1\n' 2
bad_model 'psd-lda 1 2 1 0 0.1 0.01\n0 1:1 0:1\n' 2
bad_model 'psd-lda 1 2 1 0 0.1 0.01\n0 0:1 1:1 1:1\n' 2
bad_model 'psd-lda 1 2 1 0 0.1 0.01\n0 0:0\n' 2
bad_model 'psd-lda 1 2 1 0 0.1 0.01\n1 0:1\n' 2
bad_model 'psd-lda 1 2 1 0 0.1 0.01\n0 0:1\n1 0:1\n' 3
printf 'psd-lda 1 3 1 0 0.1 0.01\n0 0:1\n' >"$work/three"
refused 2 'has 3 topics, --topics is 2' --train "$docs" --topics 2 \
    --warm "$work/three"
PSD_ENDPOINT=tcp://127.0.0.1:1 refused 3 'tcp://127.0.0.1:1' \
    --train "$docs" --timeout 1

cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT
settings=(--train "$docs" --topics 2 --eval-every 5 --seed 3
    --timeout 300)

# exact WHAT TABLE: the last run said so each time it measured, and what is in
# the tables, added up here, says it too.
exact() {
    if [ "$rc" -ne 0 ] || ! grep -q 'counts exact$' "$work/out"; then
        fail "$1: exit code $rc, or no exact counts"
        show
    fi
    has_all "$2.words" 0-59
    has_all "$2.topics" 0
}

# has_all TABLE ROWS: they have all tokens.
has_all() {
    expect 0 pull "$1" "$2" -o csv
    if ! awk -F, 'NR == 1 { first = $NF == "value" ? NF : 2; next }
        { for (i = first; i <= NF; i++) n += $i }
        END { exit n != '"$n_tokens"' }' "$work/out"; then
        fail "$1 has not $n_tokens tokens"
        show
    fi
}

# parted WHAT MODEL: of each word's tokens nearly all have the topic of its kind.
parted() {
    if ! awk 'NR > 1 {
        for (i = 2; i <= NF; i++) {
            split($i, pair, ":")
            n[$1 > 30, pair[1]] += pair[2]
            all += pair[2]
        }
    } END {
        right = n[0, 0] + n[1, 1]
        if (right < all / 2) right = all - right
        exit !(all == '"$n_tokens"' && right > 0.9 * all)
    }' "$2"; then
        fail "$1: topics are not the kinds"
        head -3 "$2"
    fi
}

lda "${settings[@]}" --sweeps 10 --table one --save "$work/one"
exact 'one worker' one
parted 'one worker' "$work/one"
lda "${settings[@]}" --sweeps 10 --table again --save "$work/again"
cmp "$work/one" "$work/again" || fail 'alone it is not the same to the bit'
# In slices of a tenth of the model. Tokens come in another order, and so get other
# random numbers: how many each word has is the same, not of which topics. But
# where no token moves, because all sweeps are done, cells are the same.
lda "${settings[@]}" --sweeps 10 --table slices --slice-bytes 384 \
    --state "$work/sliced" --save "$work/slices"
grep -Eq ' [1-9][0-9] slices' "$work/out" ||
    { fail 'there are no ten slices'; show; }
exact 'slices' slices
parted 'slices' "$work/slices"
word_sums() {
    awk 'NR > 1 { n = 0; for (i = 2; i <= NF; i++) { split($i, pair, ":"); n += pair[2] }
        print $1, n }' "$1"
}
cmp <(word_sums "$work/one") <(word_sums "$work/slices") ||
    fail 'words have other sums in slices'
lda "${settings[@]}" --sweeps 10 --table whole --state "$work/sliced" \
    --save "$work/whole"
grep -q ' 1 slices' "$work/out" || { fail 'there are slices'; show; }
cmp "$work/slices" "$work/whole" || fail 'cells are others in slices'
# Only with delay 0 are the bits the same at every run; what is learnt without
# meetings hangs on who comes when, and may take more sweeps.
for delay in 0 -1; do
    expect 0 run -n 3 --job "many$delay" -- "$PSD_LDA_PROGRAM" \
        "${settings[@]}" --max-delay "$delay" --sweeps 8 --blocks 4 \
        --slice-bytes 3000 --table many --save "$work/many$delay"
    exact "three workers, max_delay $delay" many
done
parted 'three workers' "$work/many0"

# Killed somewhere in the middle, and started again: it goes on from the blocks,
# and the counts are exact from the first. Each clock is a meeting, so that where
# one block has 2 sweeps, all others have 1 at least.
sweeps_of() { od -An -t u8 -j 72 -N 8 "$work/state/block-$1-of-5"; }
has_sweeps() {
    [ -s "$work/state/block-4-of-5" ] && [ "$(sweeps_of 4)" -ge 2 ]
}
"$PSCLI_PROGRAM" run -n 3 --job killed -- "$PSD_LDA_PROGRAM" \
    "${settings[@]}" --sweeps 1000000 --blocks 5 --slice-bytes 2000 \
    --state "$work/state" --table killed >"$work/out" 2>"$work/err" &
job=$!
wait_for has_sweeps || { fail 'no block is written'; show; }
read -ra workers <"/proc/$job/task/$job/children"
kill -9 "${workers[@]}"
wait "$job"
least=$(for at in 0 1 2 3 4; do sweeps_of "$at"; done | sort -n | head -1)
n_sweeps=$(sweeps_of 4)
expect 0 run -n 3 --job resumed -- "$PSD_LDA_PROGRAM" "${settings[@]}" \
    --sweeps $((n_sweeps + 5)) --blocks 5 --state "$work/state" --table killed
grep -q "continues after sweep $((least))\$" "$work/out" ||
    { fail 'it does not go on'; show; }
exact 'resumed' killed
expect 0 run -n 3 --job behind -- "$PSD_LDA_PROGRAM" "${settings[@]}" \
    --sweeps 2 --blocks 5 --state "$work/state" --table killed
out_has "continues after sweep $((n_sweeps + 5)); --sweeps needs no more"
# With another number of workers, too, and beside blocks of another division; not
# with other settings, or a bad file.
: >"$work/state/block-1-of-4"
expect 0 run -n 2 --job fewer -- "$PSD_LDA_PROGRAM" "${settings[@]}" \
    --sweeps $((n_sweeps + 6)) --blocks 5 --state "$work/state" --table killed
grep -q "continues after sweep $((n_sweeps + 5))\$" "$work/out" ||
    { fail 'it does not go on'; show; }
exact 'fewer workers' killed
rm "$work/state/block-1-of-4"
refused 2 'in 5 blocks, this one has 4; use --blocks 5' \
    "${settings[@]}" --blocks 4 --state "$work/state"
refused 2 'block-0-of-5: of 5 blocks, 2 topics' --train "$docs" --topics 3 \
    --blocks 5 --state "$work/state"
printf 'x' | dd of="$work/state/block-0-of-5" bs=1 seek=2000 conv=notrunc \
    2>/dev/null
refused 9 'block-0-of-5: ' "${settings[@]}" --blocks 5 --state "$work/state"

# vw's constant is no word.
printf '1 | 3:5 4:2\n1 | 3:1 5:2\n' >"$work/w.vw"
lda --train "$work/w.vw" --format vw --topics 2 --sweeps 1 --test-every 0 \
    --table vw
grep -q '10 tokens, ' "$work/out" || { fail 'other words than vw has'; show; }

# The model is used: new documents of one kind have one topic; held-out ones
# are predicted nearly as well as can be, one word of thirty.
lda --infer "$work/one" --test "$docs" --test-every 5 --infer-sweeps 20
awk '/^held-out/ { found = $3 == 600 && $NF < 40 } END { exit !found }' \
    "$work/out" ||
    { fail 'held-out documents are not predicted'; show; }
printf '0 1:5 2:5 3:5\n0 41:5 42:5\n' >"$work/new"
lda --infer "$work/one" --test "$work/new" --document-topics "$work/shares"
awk -F '[: ]' '{ best = $2 > 0.6 ? $1 : $3; kind[NR] = best }
    END { exit !(NR == 2 && kind[1] != kind[2]) }' "$work/shares" ||
    { fail 'two kinds have one topic'; cat "$work/shares"; }
seq 1 60 | sed 's/^/w/' >"$work/names"
lda --infer "$work/one" --top 5 --names "$work/names"
grep -Eq '^topic 0 \([0-9]* tokens\): w[0-9]+( w[0-9]+){4}$' "$work/out" ||
    { fail 'no top words'; show; }
cp "$work/out" "$work/top"
head -9 "$work/names" >"$work/few"
refused 2 "$work/few has 9 words; the model has 60" \
    --infer "$work/one" --top 5 --names "$work/few"
gzip "$work/names"
lda --infer "$work/one" --top 5 --names "$work/names.gz"
cmp -s "$work/out" "$work/top" || { fail 'packed names'; show; }

# A warm start begins where the model was.
lda "${settings[@]}" --sweeps 1 --table warm --warm "$work/one" \
    --save "$work/warm"
exact 'warm start' warm
parted 'warm start' "$work/warm"

cli_finish
