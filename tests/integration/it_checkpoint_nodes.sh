#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A checkpoint of three nodes comes back on one, two and five, cut otherwise, with
# the same rows; and nodes are killed while one is made and while one is restored:
# that is done, or refused by name, and nothing half is there afterwards.
# shellcheck source-path=SCRIPTDIR source=nodes_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"
rounds=${CHECKPOINT_ROUNDS:-3}
first=0 # node that is killed
rows=400000
if [ -n "${CHECKPOINT_LESS:-}" ]; then
    rounds=${CHECKPOINT_ROUNDS:-1}
    first=$((RANDOM % 3))
    rows=100000
fi
# content TABLE FILE: all of its rows.
content() {
    expect 0 pull "$1" 0-2999 -o csv
    cp "$work/out" "$work/$2"
}

# made NAME OPTIONS...: a checkpoint. Where a partition moves meanwhile, since a node waits for
# a processor, psd refuses it and says: retry.
made() {
    local end=$((SECONDS + 100))
    run checkpoint create "$@"
    while [ "$rc" -eq 1 ] && grep -q 'E3008.*; retry' "$err_file" && [ $SECONDS -lt $end ]; do
        run checkpoint create "$@"
    done
    wants 0 checkpoint create "$@"
}

nodes 3 a
cd "$work" || exit 1
expect 0 table create w --rows 3000 --cols 16 --init normal:0,1 --partitions 6 \
    --replicas 2 --ack replica --updater adagrad:alpha=0.5 --versions
awk 'BEGIN { for (r = 0; r < 3000; r += 7) print r, "2:" r, "9:1" }' >deltas
expect 0 push w --from deltas
made full
awk 'BEGIN { for (r = 0; r < 3000; r += 100) print r, "3:" r }' >deltas
expect 0 push w --from deltas
made more --since full
if grep -q 'with all rows' err; then fail "not since full: $(cat err)"; fi
content w rows.w
expect 0 checkpoint verify more
expect 0 checkpoint inspect more -o csv
[ "$(sed 1d out | cut -d, -f3 | sort -u | wc -l)" -ge 2 ] ||
    fail "not several nodes have written: $(cat out)"

# A failover, a restart: versions mean the same on the next primary.
kill_node n1
expect 0 push w 5=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1
made behind --since more
if grep -q 'with all rows' err; then fail "not since more: $(cat err)"; fi
content w rows.behind
node n1 a
for n in 1 2 5; do
    nodes $n "b$n"
    expect 0 checkpoint restore more --table w --partitions $((n + 2)) \
        --replicas $((n > 1 ? 2 : 1)) --ack "$([ $n -gt 1 ] && echo replica || echo memory)"
    content w rows.n
    cmp rows.w rows.n || fail "restored on $n nodes, it is not the same"
    expect 0 checkpoint restore behind --table w --as w2 --partitions 3 \
        --replicas 1 --ack memory
    content w2 rows.n
    cmp rows.behind rows.n || fail "restored on $n nodes, w2 is not the same"
done

# ---- kills ----
nodes 3 c
port=${PSCLI_ENDPOINT##*:}
expect 0 table create big --rows $rows --cols 32 --init normal:0,1 \
    --partitions 6 --replicas 2 --ack replica --versions
expect 0 push big 7:3=1 $((rows - 1)):1=5
made whole
expect 0 table export big --to big.npy

# back NAME: the node that was killed is there again, and copies are whole.
back() {
    node "$1" c "$([ "$1" = n0 ] && echo "$port")"
    is_healthy() {
        "$PSCLI_PROGRAM" cluster status -o json >healthy 2>/dev/null &&
            "$PSCLI_PROGRAM" table inspect big -o json >tables 2>/dev/null &&
            ! grep -q '"catching_up": *\["' tables && ! grep -q '"state": *"\(lost\|catching_up\)"' tables
    }
    wait_for is_healthy || fail "not whole again: $(cat healthy)"
}

# in_the_middle VICTIM COMMAND...: kills it a little later; the command's code.
in_the_middle() {
    local victim=$1 ms=$((RANDOM % 400))
    shift
    "$PSCLI_PROGRAM" "$@" --timeout 5s >work.out 2>work.err &
    job=$!
    read -rt "$(printf '0.%03d' $ms)" <> <(:) || :
    kill_node "$victim"
    rc=0
    wait "$job" || rc=$?
    job=
    n_checked=$((n_checked + 1))
    if [ "$rc" -ne 0 ] && [ ! -s work.err ]; then
        fail "$*: exit code $rc without a word"
    fi
    back "$victim"
}

for ((i = 0; i < rounds; i++)); do
    victim=n$(((first + i) % 3))
    in_the_middle $victim checkpoint create "made$i" --table big
    ended=$rc
    expect 0 checkpoint list -o csv
    listed=$(grep -c "^made$i,whole," out)
    if [ "$listed" -eq 0 ] && [ "$victim" != n0 ] && grep "^made$i," out; then
        fail "round $i: it failed, and something of it stayed"
    fi
    if [ "$ended" -eq 0 ] && [ "$listed" -eq 0 ]; then
        fail "round $i: it was made, and is not in the list"
    fi
    if [ "$listed" -ne 0 ]; then
        expect 0 checkpoint verify "made$i"
        expect 0 checkpoint restore "made$i" --table big --as again
        expect 0 table export again --to again.npy
        cmp big.npy again.npy || fail "made$i is not what big was"
        expect 0 table drop again --yes
        expect 0 checkpoint drop "made$i" --yes
    fi
    echo "round $i: $victim killed, create: $ended $(tail -n 1 work.err)"
    in_the_middle $victim checkpoint restore whole --table big --as half
    ended=$rc
    echo "round $i: $victim killed, restore: $ended $(tail -n 1 work.err)"
    run table inspect half
    there=$rc
    if [ "$ended" -eq 0 ]; then
        expect 0 table export half --to again.npy
        cmp big.npy again.npy || fail "round $i: half is not what big was"
    elif [ "$there" -eq 0 ] && [ "$victim" != n0 ]; then
        fail "round $i: the restore failed, and its table is there"
    elif [ "$there" -eq 0 ]; then # it was done when its registry was killed
        expect 0 table export half --to again.npy
        cmp big.npy again.npy || fail "round $i: half is not what big was"
    fi
    run table drop half --yes
done
cli_finish
