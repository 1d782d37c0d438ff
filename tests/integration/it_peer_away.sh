#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A node whose peer is away keeps little for it. All rows of a table of 4.5 MB
# are pushed again and again, while the other node is stopped for PEER_AWAY_S
# seconds: resident memory grows by 32 MiB at most, node list shows what is kept,
# and memory goes back within PEER_BACK_S (60; 10 on a quiet machine) of the peer's
# return, and after a drop of the table. Of a build with a sanitizer only the tail
# is looked at: that keeps what was freed.
# shellcheck source-path=SCRIPTDIR source=nodes_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"
export PSD_SHARDS=2 PSD_CLUSTER_SUSPECT_AFTER=5000
away_s=${PEER_AWAY_S:-8}
back_s=${PEER_BACK_S:-60}
more_kib=$((32 << 10))  # while the peer is away …
stays_kib=$((16 << 10)) # … and afterwards, with pushes under way
# 8 partitions with 1 MiB, and the push that goes beyond it.
tail_most=$((8 * ((1 << 20) + 4500000 / 8 + 4096)))

# tail_bytes: of n0; and how many primaries and whole replicas it has, as "8 8".
tail_bytes() {
    "$PSCLI_PROGRAM" node inspect n0 -o json |
        sed 's/.*"bytes":[0-9]*,"tail_bytes":\([0-9]*\),"shard_list".*/\1/'
}
copies() {
    local primaries
    primaries=$("$PSCLI_PROGRAM" node inspect n0 -o json |
        sed 's/.*"primary":\([0-9]*\).*/\1/')
    echo "$primaries $("$PSCLI_PROGRAM" table inspect t -o json |
        grep -o '"state":"in_sync"' | wc -l)"
}
are_whole() { [ "$(copies)" = "8 8" ]; }
# One node, and nothing of it is in sync: it counts for nobody.
is_dropped() { [ "$(copies)" = "8 0" ]; }

rss_kib() {
    sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/${pids[n0]}/status"
}
now_ms() { echo $(($(date +%s%N) / 1000000)); }

# pushes: how many have been applied, those of each partition by themselves.
pushes() {
    "$PSCLI_PROGRAM" table inspect t -o json | sed 's/.*"stats":{"pushes":\([0-9]*\).*/\1/'
}

# watch SECONDS [PUSHES]: $rss, the highest resident memory meanwhile, and $tail, the
# most that is kept for copies; at least until there were so many pushes.
watch() {
    local end=$(($(now_ms) + $1 * 1000)) now
    rss=0 tail=0
    while [ "$(now_ms)" -lt $end ] || { [ $# -gt 1 ] && [ "$(pushes)" -lt "$2" ]; }; do
        now=$(rss_kib)
        [ "$now" -le "$rss" ] || rss=$now
        now=$(tail_bytes)
        [ "$now" -le "$tail" ] || tail=$now
        read -rt 0.1 <> <(:) || :
    done
}
is_sanitized() {
    grep -Eq 'lib(asan|tsan|ubsan)|__asan_|__tsan_' "$PSD_PROGRAM"
}

# goes_back WHAT KIB: within so many seconds resident memory is at most that.
goes_back() {
    local end=$(($(now_ms) + back_s * 1000)) begin
    begin=$(now_ms)
    is_sanitized && return
    while [ "$(rss_kib)" -gt "$2" ]; do
        if [ "$(now_ms)" -ge $end ]; then
            fail "$1: $(rss_kib) KiB behind $back_s s; allowed: $2"
            return
        fi
        read -rt 0.1 <> <(:) || :
    done
    echo "$1: $(rss_kib) KiB behind $(($(now_ms) - begin)) ms"
}

PSD_NODE_WEIGHT=1024 node n0 a # has all primaries
PSD_NODE_WEIGHT=1 node n1 a
expect 0 table create t --rows 1125000 --partitions 8 --replicas 2
wait_for are_whole || exit 1
PSD_ENDPOINT=$PSCLI_ENDPOINT "$STEADY_PUSHER" t >"$work/pushes" 2>&1 &
job=$!
# A slow machine has hardly begun to push by then, and psd has taken little of its memory.
watch 4 $((8 * 60))
before=$rss
[ "$tail" -le $tail_most ] || fail "a tail of $tail bytes; allowed: $tail_most"
echo "with the peer: $before KiB, a tail of $tail bytes at most"

kill -STOP "${pids[n1]}"
watch "$away_s"
[ "$tail" -gt 0 ] || fail "node list shows no tail"
[ "$tail" -le $tail_most ] || fail "a tail of $tail bytes; allowed: $tail_most"
is_sanitized || [ "$rss" -le $((before + more_kib)) ] ||
    fail "$rss KiB while the peer is away; allowed: $before + $more_kib"
echo "away for $away_s s: $rss KiB ($((rss - before)) more), a tail of $tail bytes"
wait_for is_dropped || exit 1
kill -CONT "${pids[n1]}"
goes_back "back" $((before + stays_kib))
wait_for are_whole || exit 1

kill -TERM "$job"
wait "$job" || fail "steady_pusher: $(cat "$work/pushes")"
job=
cat "$work/pushes"
goes_back "quiet" "$before"
before=$(rss_kib)
expect 0 table drop t --yes
goes_back "dropped" $((before - 4000))
cli_finish
