#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A stand-by of the registry that lacks its part gets it again, long before a silent member
# is given up: one whose files are gone; and one whose leader dies while it waits for them.
# What the cluster has set counts at the next leader.
# shellcheck source-path=SCRIPTDIR source=nodes_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"
export PSD_SHARDS=1 PSD_REGISTRY_VOTERS=3 PSD_CLUSTER_REPAIR_AFTER=600000
all=ipc://$work/n0.ipc,ipc://$work/n1.ipc,ipc://$work/n2.ipc
export PSCLI_ENDPOINT=$all

# begin NAME: starts it, at the same address as before.
begin() {
    local join=(--join "$all")
    [ "$1" = n0 ] && [ ! -d "$work/n0" ] && join=()
    rm -f "$work/$1/endpoints.json"
    "$PSD_PROGRAM" --data-dir "$work/$1" --name "$1" --listen "ipc://$work/$1.ipc" \
        "${join[@]}" >>"$work/$1.log" 2>&1 &
    pids[$1]=$!
}
node_up() {
    begin "$1"
    if ! wait_for test -s "$work/$1/endpoints.json"; then
        cat "$work/$1.log"
        exit 1
    fi
}
# members PATTERN N: so many lines of the list of members have that.
members() {
    [ "$("$PSCLI_PROGRAM" cluster registry list 2>/dev/null | grep -Ec -- "$1")" -eq "$2" ]
}
must_be() {
    n_checked=$((n_checked + 1))
    wait_for members "$@" && return
    fail "not $2 members are $1"
    "$PSCLI_PROGRAM" cluster registry list
    tail -20 "$work"/*.log
    exit 1
}
forget_registry() { rm -rf "$work/$1"/registry.db* "$work/$1/registry.commits" "$work/$1/registry-log"; }
who_leads() {
    "$PSCLI_PROGRAM" cluster registry list -o json | sed 's/.*"leader":"\([^"]*\)".*/\1/'
}
has_joined() { [ "$(grep -c registry_joined "$work/n3.log")" -gt "$1" ]; }

for name in n0 n1 n2 n3; do node_up $name; done
must_be '(leader|voter) +up' 3
must_be '^n3 +.*stand-by +up' 1

expect 0 cluster set cluster.repair_after 500000
kill_node n3
forget_registry n3
n=$(grep -c registry_joined "$work/n3.log")
node_up n3
must_be '^n3 +.*stand-by +up' 1
has_joined "$n" || fail "n3 was a member without its files"

kill_node n3
forget_registry n3
n=$(grep -c registry_joined "$work/n3.log")
begin n3
wait_for has_joined "$n" || fail "n3 was not invited"
leader=$(who_leads)
kill_node "$leader"
must_be '^n3 +.*stand-by +up' 1
must_be '(leader|voter) +up' 2
expect 0 cluster get cluster.repair_after
out_has '^500000$'
grep -q 'setting_overridden key=cluster.repair_after ' "$work/$(who_leads).log" ||
    fail "the next leader does not say that it overrides its file"
node_up "$leader"
must_be '(leader|voter) +up' 3
expect 0 table create all --rows 10 --replicas 3
cli_finish
