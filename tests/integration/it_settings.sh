#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Settings of the cluster: set, shown with their origin, kept over a restart, unset; what a
# file could not have is refused by name; a file that says something else is said once. And a
# node that cannot note what it heard of the registry says so, and tries again.
# shellcheck source-path=SCRIPTDIR source=nodes_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"
export PSD_SHARDS=1 PSD_CLUSTER_REPAIR_AFTER=20000
n_told() { grep -c "setting_overridden key=$1 " "$work/n0.log"; }
# is KEY VALUE ORIGIN
is() {
    expect 0 cluster get "$1"
    out_has "^$2\$"
    expect 0 cluster settings
    out_has "^$1 +$2 .* $3\$"
}

# Nodes go by what the cluster sets, at once: rows go to a new copy at a byte a second, then at
# full speed.
shows() { "$PSCLI_PROGRAM" table inspect t -o json | grep -q "\"state\": *\"$1\""; }
PSD_NODE_WEIGHT=1024 node n0 r # has the primary
PSD_NODE_WEIGHT=1 node n1 r
expect 0 table create t --rows 20000 --cols 16 --partitions 1 --replicas 2
wait_for shows in_sync || fail "a new table has no second copy"
expect 0 table create values --rows 20000 --cols 16 --init uniform:-1,1 # zeros are not sent
expect 0 table export values --to "$work/rows.npy"
expect 0 table import t --from "$work/rows.npy"
expect 0 cluster set copies.bytes_per_s 1
expect 0 cluster set copies.busy_bytes_per_s 1
kill_node n1
PSD_NODE_WEIGHT=1 node n1 r
wait_for shows catching_up || fail "the copy that has no rows does not catch up"
for _ in {1..20}; do
    shows in_sync && fail "1.3 MB have come at a byte a second"
    read -rt 0.1 <> <(:) || :
done
expect 0 cluster unset copies.bytes_per_s
expect 0 cluster unset copies.busy_bytes_per_s
wait_for shows in_sync || fail "rows wait for a limit that is gone"
end_nodes

nodes 1 ''
is cluster.repair_after 20000 PSD_CLUSTER_REPAIR_AFTER
is copies.even_out true default
expect 0 cluster set cluster.repair_after 120000
is cluster.repair_after 120000 cluster
[ "$(n_told cluster.repair_after)" -eq 1 ] || fail "it is not said that a file is overridden"
expect 0 cluster set cluster.repair_after 120000
[ "$(n_told cluster.repair_after)" -eq 1 ] || fail "it is said twice"
expect 0 cluster set copies.even_out false
expect 0 cluster set workers.lost_after_ms 7000
expect 0 cluster set copies.moves_max 7
[ "$(n_told copies.moves_max)" -eq 0 ] || fail "a default is no file that is overridden"
expect 0 cluster events
out_has 'setting cluster.repair_after is 120000'

expect 2 cluster set cluster.repair_after soon
err_has 'cluster.repair_after'
expect 2 cluster set cluster.repair_after 1
err_has 'cluster.repair_after is .* allowed: '
expect 2 cluster set workers.lost_after_ms 10
err_has 'workers.lost_after_ms.*allowed'
expect 2 cluster set cluster.suspect_after 119999999
err_has 'allowed'
expect 2 cluster set limits.tables 5
err_has 'limits.tables is set in the file of each node'
expect 2 cluster set no.such 5
err_has 'there is no setting "no.such"; allowed: cluster.suspect_after, '
expect 2 cluster get no.such
is cluster.repair_after 120000 cluster

expect 0 table create t --rows 10
kill_node n0
# What the node hears of the registry cannot be noted at first.
mkdir "$work/n0/heard.json.new"
node n0 ''
wait_for grep -q 'warn.* heard_not_stored ' "$work/n0.log" || fail "it is not said"
rmdir "$work/n0/heard.json.new"
wait_for grep -q ' heard_stored ' "$work/n0.log" || fail "it is not tried again"
[ "$(grep -c heard_not_stored "$work/n0.log")" -eq 1 ] || fail "it is said more than once"
is cluster.repair_after 120000 cluster
is copies.even_out false cluster
is workers.lost_after_ms 7000 cluster
[ "$(n_told cluster.repair_after)" -eq 2 ] || fail "it is not said at a start"
expect 0 cluster unset cluster.repair_after
is cluster.repair_after 20000 PSD_CLUSTER_REPAIR_AFTER
expect 0 cluster unset cluster.repair_after
expect 0 cluster unset workers.lost_after_ms
expect 0 cluster settings -o json
out_has '"key": *"copies.even_out"'
out_has '"own": *"true"'
cli_finish
