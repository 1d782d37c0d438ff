#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The registry where nobody has set anything: one node has it alone, without a log and
# without a word; two nodes say that it is not replicated; the third makes it so, with what
# there was, and the first one may be killed then. registry.voters: 1 keeps it alone.
# With registry.automatic: false pscli adds the second member, and psd none.
# shellcheck source-path=SCRIPTDIR source=nodes_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"
unset PSD_REGISTRY_VOTERS

control() {
    sed 's/.*"control":"\([^"]*\)".*/\1/' "$work/$1/endpoints.json"
}
out_lacks() {
    if grep -Eq -- "$1" "$work/out"; then
        fail "stdout has: $1"
        show
    fi
}
voters_are() {
    [ "$("$PSCLI_PROGRAM" cluster registry list 2>/dev/null |
        grep -Ec -- '(leader|voter) +up')" -eq "$1" ]
}
# healthy: pscli says so, in time: after a node came, a partition may be under way to it.
healthy() {
    wait_for "$PSCLI_PROGRAM" cluster status >"$work/out" 2>&1 || fail "it does not get healthy"
}
has_log() {
    [ -e "$work/$1/registry-log" ]
}

# ---- one ----
nodes 1 d-
expect 0 cluster status
out_lacks 'replicated'
out_lacks 'registry'
expect 0 cluster registry list
out_has '^registry  1 of 1, not replicated until there are 3 nodes$'
expect 0 table create t --rows 10 --ack disk
expect 0 push t 1=5
has_log d-n0 && fail "one node has a log of the registry"

# ---- two ----
node n1 d-
healthy
out_has 'registry: 1 of 1, on node "n0", not replicated until there are 3 nodes'
expect 0 cluster registry list
out_has '^registry  1 of 1, not replicated until there are 3 nodes$'
has_log d-n0 && fail "the first of two nodes has a log of the registry"

# ---- three ----
node n2 d-
PSCLI_ENDPOINT=$PSCLI_ENDPOINT,$(control d-n1),$(control d-n2)
wait_for voters_are 3 || { fail "three nodes do not vote"; "$PSCLI_PROGRAM" cluster registry list; }
run cluster status # a busy machine may miss a voter just now
out_lacks 'not replicated'
out_has '^registry [0-9] of 3 voters up, '
has_log d-n0 || fail "the first of three nodes has no log of the registry"
kill_node n0
expect 0 --timeout 60s table create u --rows 10 --replicas 2
expect 0 --timeout 60s table list -o name
out_has '^t$'
out_has '^u$'

# ---- by hand: of two nodes, and psd adds none by itself ----
export PSD_REGISTRY_AUTOMATIC=false
nodes 2 g-
expect 2 cluster registry remove n1
expect 0 cluster registry add n1 --dry-run
has_log g-n0 && fail "a dry run begins a log"
expect 5 cluster registry add nobody
expect 0 --timeout 60s cluster registry add n1
PSCLI_ENDPOINT=$PSCLI_ENDPOINT,$(control g-n1)
wait_for voters_are 2 || { fail "two nodes do not vote"; "$PSCLI_PROGRAM" cluster registry list; }
expect 0 --timeout 60s cluster registry remove n1
wait_for voters_are 1 || fail "the removed node votes"
unset PSD_REGISTRY_AUTOMATIC

# ---- five are to vote: so many are waited for ----
export PSD_REGISTRY_VOTERS=5
nodes 3 e-
expect 0 cluster registry list
out_has '^registry  1 of 1, not replicated until there are 5 nodes$'

# ---- one is to ----
export PSD_REGISTRY_VOTERS=1
nodes 3 f-
expect 0 cluster registry list
out_has '^registry  1 of 1, not replicated: registry.voters is 1$'
healthy
out_lacks 'not replicated'
cli_finish
