#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Any node's address finds the registry: for pscli, for programs and for nodes
# that join. A node that has joined before waits for its registry.
set -u
# shellcheck source-path=SCRIPTDIR source=nodes_lib.sh
. "$(dirname "$0")/nodes_lib.sh"
dead=tcp://127.0.0.1:1

control() {
    sed 's/.*"control":"\([^"]*\)".*/\1/' "$work/x$1/endpoints.json"
}
# start NAME ADDRESS...: a node with these addresses to join, not waited for.
start() {
    local name=$1 join=() address
    shift
    for address; do join+=(--join "$address"); done
    rm -f "$work/x$name/endpoints.json"
    PSD_NODE_NAME=$name "$PSD_PROGRAM" --data-dir "$work/x$name" \
        --listen tcp://127.0.0.1:0 "${join[@]}" >>"$work/x$name.log" 2>&1 &
    pids[$name]=$!
}
says() { # NAME TEXT
    grep -q -- "$2" "$work/x$1.log"
}
is_ready() {
    test -s "$work/x$1/endpoints.json"
}

# It gives up after 30 s: its end is looked at last.
"$PSD_PROGRAM" --data-dir "$work/free" --listen tcp://127.0.0.1:0 --join "$dead" \
    >"$work/free.log" 2>&1 &
free=$!

nodes 3 x
a=$PSCLI_ENDPOINT b=$(control n1) c=$(control n2)

# Every command, with the address of any node.
expect 0 --endpoint "$b" table create t --rows 10 --ack disk
expect 0 --endpoint "$c" table list -o name
out_is t
expect 0 --endpoint "$b" push t 1=5
PSD_ENDPOINT=$dead,$b PSCLI_ENDPOINT='' expect 0 pull t 1 -o csv
out_has '5'
expect 0 --endpoint "$dead,$c" node list -o name
out_has n2
expect 0 --endpoint "$c" run -n 2 -- true

# Bad lists.
bad() {
    expect "$1" --endpoint "$2" table list
    err_has "$3"
    err_is_one_line || fail "more than one line for $2"
}
bad 2 "$a,,$b" 'address 2 of the list is empty'
bad 2 "$a,$b," 'address 3 of the list is empty'
bad 2 "$a,nonsense" 'address 2 of the list is "nonsense"; allowed: tcp://HOST:PORT, ipc://PATH'
bad 3 "$dead,tcp://127.0.0.1:2" "$dead cannot be reached: Connection refused, tcp://127.0.0.1:2 cannot be reached: Connection refused"

# A node joins through another, and keeps what that one named.
start n3 "$dead" "$c"
wait_for is_ready n3 || cat "$work/xn3.log"
expect 0 node list -o name
out_has n3
grep -q "\"members\":\[{\"node\":\"n0\",\"endpoint\":\"$a\"}\]" "$work/xn3/member.json" ||
    fail "n3 keeps no members: $(cat "$work/xn3/member.json")"

# The first of three is frozen.
kill -STOP "${pids[n1]}"
expect 0 --endpoint "$b,$c,$a" table inspect t -o json
kill -CONT "${pids[n1]}"

# Nobody has the registry: each address and what it said; a node that restarts
# waits for it.
kill_node n0
wait_for says n1 registry_gone
expect_told 3 1500 "E3017 .*waits for the registry: $b \(node n1\) says there is no leader, $dead .*$a \(node n0\) cannot be reached: Connection refused" \
    --endpoint "$b,$dead" table list
expect_told 3 300 "waits for the registry: $b \(node n1\) says there is no leader, $a" \
    --endpoint "$b" why
kill_node n3
start n3 "$dead"
wait_for says n3 'registry_silent .*this node serves nothing until the registry answers'
is_ready n3 && fail "n3 is ready without a registry"
kill -TERM "${pids[n3]}"
wait "${pids[n3]}"
rc=$?
[ $rc -eq 0 ] || fail "n3 ended with $rc"
unset 'pids[n3]'
says n3 'stopping signal=TERM' || fail "n3 did not log its end"
start n3 "$dead"
node n0 x "${a##*:}"
wait_for is_ready n3 || cat "$work/xn3.log"
expect 0 --endpoint "$b" pull t 1 -o csv
out_has '5'
expect 0 node list -o name
out_has n3

# A first join ends with the reason of each address.
wait "$free"
rc=$?
[ $rc -eq 3 ] || fail "a first join ended with $rc"
grep -q "cannot join the cluster: waited 30 s for the registry: $dead is silent" \
    "$work/free.log" || fail "a first join says: $(cat "$work/free.log")"
cli_finish
