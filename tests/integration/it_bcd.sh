#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/bcd against a real daemon: it comes to the known optimum with one
# worker and with four, with and without delay; the filter changes nothing but
# what is sent; a model that is there, and one that was saved, are used.
# PSD_BCD_PROGRAM comes from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
data=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../data/agaricus" && pwd)
train=$data/agaricus.train.libsvm.gz
test=$data/agaricus.test.libsvm.gz

# within TEXT LIMIT: the F of the last run is that near to the optimum, in $f.
within() {
    f=$(sed -n 's/.*train .* F \([0-9.]*\)  .*/\1/p' "$work/out")
    awk "BEGIN { above = ${f:-0} / 78.8649 - 1
                 exit !(above > -1e-6 && above < $2) }" ||
        fail "$1: F is ${f:-not told}"
}

# learn TABLE WORKERS OPTIONS...
learn() {
    local table=$1
    local workers=$2
    shift 2
    expect 0 run -n "$workers" -- "$PSD_BCD_PROGRAM" --train "$train" \
        --test "$test" --table "$table" --passes 5000 --epsilon 1e-6 "$@"
    within "$table" 1e-4
}

# few_sent: of the last run, one row in five at most was sent in the last pass
# before all were active again.
few_sent() {
    local sent
    local all
    sent=$(sed -n 's/.* sent \([0-9]*\) .*converged: all.*/\1/p' \
        "$work/out" | tail -n 1)
    all=$(sed -n 's/.* pass 1 .* sent \([0-9]*\) .*/\1/p' "$work/out")
    [ $((5 * ${sent:-1})) -lt "${all:-0}" ] || fail "$sent of $all rows sent"
}

cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT
learn one 1 --save "$work/model" --scores "$work/scores"
out_has 'test .* AUC 1.0000'
out_has 'converged: all are active'
out_has 'converged again'
learn four 4 --delay 2
few_sent

# Nothing but the weights is left behind.
expect 0 table list -o name
if grep -q '\.' "$work/out"; then
    fail "tables are left behind: $(tr '\n' ' ' <"$work/out")"
fi

# With the filter, and without, to the last: the same F, and few rows are sent
# in the last pass before all are active again. Sanitizers have seen that code.
if [ -z "${TRAIN_LESS:-}" ]; then
    learn sharp 1 --epsilon 1e-9
    sharp=$f
    few_sent
    learn full 1 --epsilon 1e-9 --kkt no
    awk "BEGIN { d = $sharp / $f - 1; exit !(d < 1e-6 && d > -1e-6) }" ||
        fail "F is $sharp with the filter, $f without"
fi

# It goes on from a table that is there, and a saved model predicts the same.
learn four 2
n_passes=$(sed -n 's/.*train .* \([0-9]*\) passes, converged/\1/p' "$work/out")
[ "${n_passes:-99}" -lt 60 ] || fail "it began anew: $n_passes passes"
n_checked=$((n_checked + 1))
"$PSD_BCD_PROGRAM" --predict "$work/model" --test "$test" \
    --scores "$work/again" >"$work/out"
cmp "$work/scores" "$work/again" || fail "a saved model predicts otherwise"

# Groups that come first.
gzip -dc "$train" | awk '{ line = ($1 > 0 ? 1 : -1) "; 7"; rest = "; 9"
    for (i = 2; i <= NF; i++)
        if (i < 6) line = line " " $i; else rest = rest " " $i
    print line rest ";" }' >"$work/groups.ps"
expect 0 run -n 2 -- "$PSD_BCD_PROGRAM" --train "$work/groups.ps" \
    --table groups --prior 9,5 --passes 2
out_has '88 blocks, 72 of them first'
out_has 'pass 5 .* first groups'
out_has 'train  6513 examples .* 7 passes, not converged'

# Keys that each of two workers sees first in another group.
gzip -dc "$train" | awk '{ line = ($1 > 0 ? 1 : -1) "; 7"; rest = "; 9"
    for (i = 2; i <= NF; i++)
        if ((i < 6) == NR % 2) line = line " " $i; else rest = rest " " $i
    print line rest ";" }' >"$work/both.ps"
expect 0 run -n 2 -- "$PSD_BCD_PROGRAM" --train "$work/both.ps" \
    --table both --prior 9 --passes 5000 --epsilon 1e-6
within both 1e-4

# A worker that is lost ends the job: its slopes would stay in the sums. With a
# psd of its own, which declares it lost within the test's time. What it writes
# is looked at from here, and may be before it has begun to.
: >"$work/out" && : >"$work/err"
PSD_WORKERS_LOST_AFTER_MS=10000 "$PSCLI_PROGRAM" \
    --endpoint "ipc://$work/nobody" run --servers 1 --psd "$PSD_PROGRAM" -n 3 \
    -- "$PSD_BCD_PROGRAM" --train "$train" --timeout 120 --passes 100000 \
    --epsilon 0 >"$work/out" 2>"$work/err" &
job=$!
trap 'kill "$job" 2>/dev/null; cli_end' EXIT
has_passed() { grep -q 'pass 3 ' "$work/out"; }
has_missed() { grep -q 'worker 2 is gone before the end of pass' "$work/err"; }
n_checked=$((n_checked + 1))
if wait_for has_passed; then
    read -ra workers <"/proc/$job/task/$job/children"
    kill -9 "${workers[-1]}"
    wait_for has_missed || kill "$job"
else
    kill "$job"
fi
rc=0
wait "$job" || rc=$?
trap cli_end EXIT
if [ "$rc" -eq 0 ] || ! has_missed; then
    fail "exit code $rc behind a lost worker"
    show
fi

# Flags.
# refused PATTERN ARGS...
refused() {
    local pattern=$1
    shift
    rc=0
    n_checked=$((n_checked + 1))
    "$PSD_BCD_PROGRAM" "$@" >"$work/out" 2>"$work/err" || rc=$?
    if [ "$rc" -ne 2 ] || ! grep -q "^psd-bcd: E[0-9]* .*$pattern" "$work/err"
    then
        fail "psd-bcd $*: exit code $rc; or not: $pattern"
        show
    fi
}
refused '--train FILE is missing'
refused '--prior "1,x": "x" is not a group' --train f --prior 1,x
refused '--delay is "65"; allowed: 0 to 64' --train f --delay 65
refused '--eta is "2"; allowed:' --train f --eta 2
refused '--predict needs --test' --predict m
n_checked=$((n_checked + 1))
"$PSD_BCD_PROGRAM" --help | grep -q -- '--kkt-ratio' || fail "no help"

cli_finish
