#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Data directories of an earlier psd open and go on, with every row of level disk.
# CI opens those in it_upgrade.tar.xz, which psd of format 1 (2026-11-24) wrote before kill -9.
# With PSD_BEFORE=BUILD the programs of that build directory make them first, and
# PSD_UPGRADE_KEEP=FILE keeps them as such an archive. tests/bench/upgrade tries more, with two builds.
# shellcheck source-path=SCRIPTDIR source=nodes_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"
unset PSD_REGISTRY_VOTERS PSD_CHECKPOINT_DIR
export PSD_SHARDS=2 PSD_HTTP_LISTEN=off
export PSD_SECURITY_LEVEL=plain PSD_SECURITY_ALLOW_PLAINTEXT=true
new_psd=$PSD_PROGRAM
new_pscli=$PSCLI_PROGRAM
old=$work/old # the directories, and what their tables had

# ---- making them ----

# fill ROUND: deltas of their own for each table.
fill() {
    local i
    for ((i = 0; i < 40; i++)); do
        echo "$i 0:$((i + $1)).25 1:-$1.5"
    done >"$work/wide"
    for ((i = 0; i < 40; i++)); do
        echo "$((i * 7919 + $1)) 0:$((i * $1))"
    done >"$work/narrow"
    expect 0 push grads --from "$work/wide"
    expect 0 push counts --from "$work/narrow"
}
exports() {
    expect 0 table export grads --to "$1/grads.txt" --timeout 100s
    expect 0 table export counts --to "$1/counts.txt" --timeout 100s
}
make_tables() { # COPIES
    expect 0 table create grads --rows 40 --cols 2 --updater adagrad --ack disk --replicas "$1" \
        --partitions 4
    expect 0 table create counts --keys hash --type i64 --ack disk --replicas "$1" \
        --partitions 4
}

has_snapshot() {
    [ -n "$(find "$1"/log-* -name 'snap-4-*.rows')" ]
}

make_single() {
    mkdir -p "$old"
    # a log that is cut after a few records, so that snapshots come
    PSD_DISK_SNAPSHOT_AFTER_BYTES=1MiB PSD_DISK_SEGMENT_BYTES=1MiB nodes 1 old/single-
    make_tables 1
    expect 0 table create short --rows 8 --ack memory
    fill 1
    expect 0 checkpoint create whole
    fill 2
    expect 0 checkpoint create more --since whole
    expect 0 table export counts --to "$old/single-n0/second.txt"
    expect 0 table create big --rows 40000 --cols 8 --ack disk --partitions 2
    awk 'BEGIN { for (i = 0; i < 40000; i++) print i " 0:1 7:2" }' >"$work/big"
    for _ in 1 2 3; do
        expect 0 push big --from "$work/big"
    done
    wait_for has_snapshot "$old/single-n0"
    fill 3
    exports "$old/single-n0"
    end_nodes
}

# Three nodes. A drain has begun: primaries are between two nodes, copies half made.
make_three() {
    nodes 3 old/three-
    make_tables 2
    fill 1
    fill 2
    mkdir -p "$old/three"
    exports "$old/three"
    kill -STOP "${pids[n1]}" # what moves there comes to no end
    run node drain n2
    end_nodes
    rm -f "$old"/*/*.ipc "$old"/*/*.lane
}

# ---- opening them ----

# same DIR: all that the tables had is there.
same() {
    local table
    exports "$work"
    for table in grads counts; do
        cmp "$work/$table.txt" "$1/$table.txt" || fail "$table of $1 has other rows"
    done
}
# Adds are exact; adagrad's state is that of before: the same push moves the rows by less.
goes_on() {
    expect 0 push counts 7=1000
    expect 0 pull counts 7 -o json
    out_has "100[0-9]"
    fill 4
}

open_single() {
    nodes 1 old/single-
    expect 1 cluster status
    out_has 'table "short" lost rows'
    expect 0 table ack short
    wait_for status_is_healthy
    same "$old/single-n0"
    expect 0 checkpoint list
    out_has '^whole '
    out_has '^more '
    expect 0 checkpoint verify more
    expect 0 checkpoint restore more --table counts --as counts2
    expect 0 table export counts2 --to "$work/counts2.txt"
    cmp "$work/counts2.txt" "$old/single-n0/second.txt" || fail "the checkpoint has other rows"
    goes_on
    exports "$old/single-n0"
    kill_node n0
    node n0 old/single-
    same "$old/single-n0"
    end_nodes
}

open_three() {
    nodes 3 old/three-
    wait_for status_is_healthy
    expect 0 node list
    out_has '^n2 .*draining'
    same "$old/three"
    expect 0 node drain n2 --stay
    goes_on
    exports "$old/three"
    kill_node n1
    same "$old/three"
    node n1 old/three-
    wait_for status_is_healthy
    end_nodes
}
status_is_healthy() {
    "$PSCLI_PROGRAM" cluster status >/dev/null 2>&1
}

mkdir -p "$old"
if [ -n "${PSD_BEFORE-}" ]; then
    PSD_PROGRAM=$PSD_BEFORE/daemon/psd PSCLI_PROGRAM=$PSD_BEFORE/cli/pscli
    make_single
    make_three
    PSD_PROGRAM=$new_psd PSCLI_PROGRAM=$new_pscli
    [ -z "${PSD_UPGRADE_KEEP-}" ] || tar -C "$work" -cJf "$PSD_UPGRADE_KEEP" old
else
    tar -C "$work" -xJf "$(dirname "${BASH_SOURCE[0]}")/it_upgrade.tar.xz"
fi
open_single
open_three
cli_finish
