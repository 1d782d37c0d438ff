#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checkpoints of one node: rows come back as they were, under other names and cut
# otherwise, also while clients push and while a job's clocks go on; damage is
# named; what was interrupted is no checkpoint.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
cli_start
cd "$work" || exit 1
files=$work/data/checkpoints
helper=
less=${CHECKPOINT_LESS:+4} # of clocks and rows
less=${less:-1}
end_helper() {
    touch "$work/stop"
    if [ -n "$helper" ]; then
        wait "$helper"
    fi
    helper=
    rm -f "$work/stop"
}
trap 'end_helper; cli_end' EXIT

# All rows of two tables, or of hash tables those that are named, are the same.
same() {
    expect 0 pull "$1" "$3" -o csv
    cp out first
    expect 0 pull "$2" "$3" -o csv
    cmp -s first out || fail "$2 is not what $1 was"
}

# One byte of a file, the other way round, and back with a second call.
flip() {
    local at=$(($(stat -c %s "$1") / 2)) byte
    byte=$(od -An -tu1 -j $at -N 1 "$1")
    # shellcheck disable=SC2059
    printf "\\x$(printf %x $((byte ^ 1)))" |
        dd of="$1" bs=1 seek=$at conv=notrunc status=none
}

expect 0 table create still --rows 500 --cols 3 --init normal:0,1 --partitions 3
expect 0 table create states --keys hash --cols 4 --partitions 2 \
    --updater adagrad:alpha=0.5
expect 0 table create counts --rows 1000 --type i64 --partitions 4
expect 0 table create pushed --rows 100 --type i64 --partitions 2
expect 0 push still 0=1,2,3 250=4,5,6 499:1=7
expect 0 push states 7=1,2,3,4 9000000000=-1,0,1,2 12=4,4,4,4
expect 0 push counts 0=9223372036854775807 999=-5 500=12

# ---- while somebody pushes 1 to both ends ----
push_on() {
    local n=0
    while [ ! -e "$work/stop" ]; do
        "$PSCLI_PROGRAM" push pushed 0=1 99=1 >"$work/pushed" 2>&1 || return 1
        n=$((n + 1))
        echo $n >"$work/n.new"
        mv "$work/n.new" "$work/n"
    done
}
push_on &
helper=$!
wait_for test -s "$work/n" || fail "nobody pushes"
before=$(cat n)
expect 0 checkpoint create one
after=$(($(cat n) + 1))
end_helper
expect 0 checkpoint list -o csv
out_has '^one,whole,partition,4,'
expect 0 checkpoint inspect one -o csv
[ "$(wc -l <out)" -eq 12 ] || fail "not one line for each of 11 files"
expect 0 checkpoint verify one
expect 6 checkpoint create one
err_has 'one'
expect 5 checkpoint verify none
expect 5 checkpoint create two --table still,none
expect 0 checkpoint restore one --table still --as still2 --partitions 5 -o csv
out_has '^still2,'
expect 0 checkpoint restore one --table states --as states2 --partitions 7
expect 0 checkpoint restore one --table counts --as counts2 --partitions 1
expect 0 checkpoint restore one --table pushed --as pushed2
expect 6 checkpoint restore one --table still
expect 0 table drop states --yes
expect 6 checkpoint restore one # all of it, or nothing
err_has 'nothing was restored'
expect 5 table inspect states
expect 0 checkpoint restore one --table states -o json
out_has '^\{"schema_version":1,"name":"one","tables":\[\{"table":"states","from":"states",'
same still still2 0-499
same states states2 7,12,9000000000
same counts counts2 0-999
expect 0 pull pushed2 0,99 -o csv
while IFS=, read -r row sum; do
    if [ "$sum" -lt "$before" ] || [ "$sum" -gt "$after" ]; then
        fail "row $row of pushed2 is $sum; pushed were $before to $after"
    fi
done < <(sed 1d out)
# The updater's states came along: the next gradient does the same to both.
expect 0 push states 7=1,1,1,1
expect 0 push states2 7=1,1,1,1
same states states2 7,12,9000000000

# ---- damage ----
file=$(echo "$files"/one/snap-1-0-*.rows)
flip "$file"
expect 9 checkpoint verify one
err_has "$(basename "$file")"
expect 9 checkpoint restore one --table still --as still3
err_has "$(basename "$file")"
expect 5 table inspect still3
flip "$file"
expect 0 checkpoint verify one
flip "$files/one/manifest.json"
expect 9 checkpoint verify one
err_has 'manifest.json'
expect 9 checkpoint restore one --table still --as still4
err_has 'manifest.json'
expect 0 checkpoint list -o csv
out_has '^one,damaged'
flip "$files/one/manifest.json"
expect 0 checkpoint drop one --yes
expect 0 checkpoint list -o csv
if grep -q '^one' out; then
    fail "it was dropped, and is in the list"
fi
expect 5 checkpoint drop one --yes

# ---- a job with clocks: each worker adds 1 to its row in each clock ----
# One that ends before its checkpoint does, on a busy machine, says nothing: the
# next one takes longer.
on_clock() {
    local name=$1 n_clocks=$2
    until try_on_clock "$name" "$n_clocks"; do
        [ "$n_clocks" -lt 1000000 ] || fail "the jobs end too soon"
        [ "$n_clocks" -lt 1000000 ] || return
        name=${name}x
        n_clocks=$((n_clocks * 5))
    done
}

try_on_clock() {
    local name=$1 n_clocks=$2 clock
    expect 0 table create "$name" --rows 4 --partitions 4
    "$PSCLI_PROGRAM" run -n 4 --job "$name" --max-delay 0 -- \
        "$CLI_WORKER" "$name" "$n_clocks" >"$work/run.out" 2>"$work/run.err" &
    helper=$!
    moves() {
        "$PSCLI_PROGRAM" pull "$name" 0 -o csv | grep -q '^0,[1-9]'
    }
    wait_for moves || fail "the job does not begin"
    expect 0 checkpoint create "$name" --table "$name"
    "$PSCLI_PROGRAM" job list -o csv >"$work/jobs"
    wait "$helper" || fail "the job failed: $(cat run.err)"
    helper=
    grep -q "^$name,running" "$work/jobs" || return 1
    expect 0 checkpoint list -o csv
    out_has "^$name,whole,clock,1,"
    expect 0 checkpoint inspect "$name" -o csv
    [ "$(wc -l <out)" -eq 5 ] || fail "not one line for each of 4 files"
    clock=$(sed 1d out | cut -d, -f6 | sort -u)
    expect 0 checkpoint restore "$name" --table "$name" --as "$name-then"
    expect 0 pull "$name-then" 0-3 -o csv
    out_is "row,0
0,$clock
1,$clock
2,$clock
3,$clock"
    expect 0 pull "$name" 0-3 -o csv
    out_is "row,0
0,$n_clocks
1,$n_clocks
2,$n_clocks
3,$n_clocks"
}
on_clock bsp $((8000 / less))

# ---- an end right behind a restore into a table that its disk keeps ----
n=$((400000 / less))
expect 0 table create kept --rows $n --cols 16 --init normal:0,1 \
    --partitions 2
expect 0 table export kept --to kept.npy
expect 0 table import kept --from kept.npy # first values are in no checkpoint
rm kept.npy
expect 0 pull kept 0-99,$((n - 100))-$((n - 1)) -o csv
cp out kept.rows
expect 0 checkpoint create kept --table kept
expect 0 checkpoint restore kept --table kept --as kept2 --ack disk
kill -9 "$psd_pid"
wait "$psd_pid" 2>/dev/null
rm -f "$work/data/endpoints.json"
cli_start
expect 0 pull kept2 0-99,$((n - 100))-$((n - 1)) -o csv
cmp -s out kept.rows || fail "rows that were restored are gone"
expect 0 table drop kept2 --yes

# ---- an end in the middle ----
expect 0 table create big --rows $(((1 << 22) / less)) --cols 8 --init normal:0,1
# Once more when it was faster than the kill.
for cut in cut{1..20}; do
    "$PSCLI_PROGRAM" checkpoint create "$cut" --table big >cut.out 2>&1 &
    helper=$!
    wait_for test -d "$files/$cut"
    kill -9 "$psd_pid" $helper
    wait "$psd_pid" $helper 2>/dev/null
    helper=
    rm -f "$work/data/endpoints.json"
    cli_start
    [ -e "$files/$cut/manifest.json" ] || break
done
expect 0 checkpoint list -o csv
out_has "^$cut,unfinished,"
expect 5 checkpoint verify "$cut"
expect 0 checkpoint drop "$cut" --yes
expect 0 checkpoint list -o csv
if grep -q "^$cut" out; then
    fail "what was interrupted was dropped, and is in the list"
fi
expect 0 table create again --rows 10
expect 0 checkpoint create "$cut" --table again
expect 0 checkpoint verify "$cut"
cli_finish
