#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Series of checkpoints: the newest of them stay, one that fails is said and ends
# nothing, Ctrl-C and the end of the job do, and resume takes the newest. And
# workers that a checkpoint lets wait for their slices finish no more clocks than
# somebody needs.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
gunzip -c "$root/data/agaricus/agaricus.train.libsvm.gz" >"$work/samples"
export PSD_CHECKPOINT_DIR=$work/checkpoints
export PSD_WORKERS_LOST_AFTER_MS=10000 # a job that is killed ends, in time
slices=8
epochs=60
job='' series=''

stop() {
    local pid
    for pid in $job $series; do
        kill "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    job='' series=''
}
trap 'stop; cli_end' EXIT

# start NAME: its workers, in the background; they do not end before $work/gate
# is there.
start() {
    "$PSCLI_PROGRAM" run -n 2 --job "$1" -- "$SLICE_WORKER" "$1" $slices \
        $epochs "$work/gate" >"$work/run.out" 2>"$work/run.err" &
    job=$!
    wait_for "$PSCLI_PROGRAM" job inspect "$1" >"$work/job" 2>&1 ||
        fail "the job does not begin"
}

# series NAME OPTIONS...: in the background.
series() {
    "$PSCLI_PROGRAM" checkpoint create "$@" >"$work/made" 2>"$work/said" &
    series=$!
}

# has_made N: checkpoints, the series so far.
has_made() {
    [ "$(wc -l <"$work/made")" -ge "$1" ]
}

whole() {
    "$PSCLI_PROGRAM" checkpoint list -o csv | sed -n 's/^\([^,]*\),whole,.*/\1/p' |
        sort -V | tr '\n' ' '
}

# ends WHY: the series does, with 0.
ends() {
    local rc=0
    wait "$series" || rc=$?
    [ "$rc" -eq 0 ] || fail "$1: exit code $rc: $(cat "$work/said")"
    series=''
    n_checked=$((n_checked + 1))
}

cli_start
expect 2 checkpoint create s --keep 2
err_has 'keep without --every'
expect 2 checkpoint create s --every 1s --since t
err_has 'one of them'
expect 2 checkpoint create s --every 999ms
expect 5 checkpoint create s --every 1s --job none
err_has 'none'
expect 0 table create j --rows $slices --type i64 --partitions 4
start j

# One fails: its name is taken. It is said; the next one has the next number.
series s --job j --every 1s --keep 2
wait_for has_made 1 || fail "no first one: $(cat "$work/said")"
kill -STOP "$series"
taken=$(($(wc -l <"$work/made") + 2)) # the one before may be under way
cp -r "$PSD_CHECKPOINT_DIR/$(tail -1 "$work/made")" "$work/copy"
mv -T "$work/copy" "$PSD_CHECKPOINT_DIR/s-$taken" || fail "s-$taken is there"
kill -CONT "$series"
wait_for has_made $((taken + 1)) || fail "not enough: $(cat "$work/said")"
kill -INT "$series"
ends "Ctrl-C"
for ((i = 1; i < taken + 3; i++)); do
    [ $i -eq $taken ] || echo "s-$i"
done | head -$((taken + 1)) >"$work/want"
head -$((taken + 1)) "$work/made" | cmp -s - "$work/want" ||
    fail "made were: $(cat "$work/made")"
grep -q "s-$taken was not created: .*exists already" "$work/said" ||
    fail "s-$taken: $(cat "$work/said")"
last=$(tail -2 "$work/made" | tr '\n' ' ')
[ "$(whole)" = "$last" ] || fail "$(whole) are left, made last were $last"

# It goes on behind them. The job is killed: the series ends with it.
series s --job j --every 1s
wait_for has_made 1 || fail "no one behind them: $(cat "$work/said")"
kill -KILL "$job"
wait "$job" 2>/dev/null
job=''
newest=$(whole | awk '{ print $NF }')
expect 0 checkpoint resume s --job j --yes
err_has "the newest is $newest"
ends "the job's end"
grep -q 'job "j" has ended' "$work/said" || fail "its end: $(cat "$work/said")"
touch "$work/gate"
start j
wait "$job" || fail "the job does not go on: $(cat "$work/run.err")"
job=''
expect 0 pull j "0-$((slices - 1))" -o csv
[ "$(sed -n "s/^[0-9]*,$epochs\$/1/p" "$work/out" | wc -l)" -eq $slices ] ||
    fail "not all slices were counted once: $(cat "$work/out")"

# Clocks: one a slice, and few for each checkpoint that lets all of them wait.
# Workers that finished clocks as fast as they could came to hundreds each.
"$PSCLI_PROGRAM" run -n 3 --job q -- "$PSD_QUEUE_PROGRAM" "$work/samples" \
    $slices 6 100 >"$work/run.out" 2>"$work/run.err" &
job=$!
n_made=0
wait_for test -s "$work/run.out" || fail "no slice: $(cat "$work/run.err")"
for i in 1 2 3; do
    run checkpoint create "q-$i" --job q
    [ "$rc" -ne 0 ] || n_made=$((n_made + 1))
done
[ "$n_made" -gt 0 ] || fail "no checkpoint: $(cat "$work/err")"
wait "$job" || fail "the job: $(cat "$work/run.err")"
job=''
clock=$("$PSCLI_PROGRAM" clock inspect q -o json | python3 -c '
import json, sys
def clocks(value):
    if isinstance(value, dict):
        for key, item in value.items():
            if key in ("clock", "closed", "finished") and isinstance(item, int):
                yield item
            yield from clocks(item)
    elif isinstance(value, list):
        for item in value:
            yield from clocks(item)
print(max(clocks(json.load(sys.stdin))))')
echo "clock $clock with $n_made checkpoints"
if [ "$clock" -lt $slices ] || [ "$clock" -gt $((slices * 6 + 3 * 16)) ]; then
    fail "the job of $((slices * 6)) slices came to clock $clock"
fi
cli_finish
