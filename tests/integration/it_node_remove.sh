#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A node that is down is removed by force: who asks for it is told what is lost
# with it, and asked; the history has a row for each table.
# shellcheck source-path=SCRIPTDIR source=nodes_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"

is_down() {
    "$PSCLI_PROGRAM" node inspect "$1" -o json | grep -q '"state":"down"'
}
# stays: nothing was removed.
stays() { "$PSCLI_PROGRAM" node list -o name | grep -qx n1; }
# answer TEXT: to the question, on a terminal.
answer() {
    printf '%s\n' "$1" |
        script -qec "$PSCLI_PROGRAM node remove n1 --force" /dev/null \
            >"$work/out" 2>&1
}

nodes 2 a
expect 0 table create lone --rows 100 --partitions 4
expect 0 table create other --rows 100 --partitions 2
expect 0 table create both --rows 100 --partitions 4 --replicas 2
expect 6 node remove n1 --force --yes
err_has 'node n1 has copies of [0-9]+ partitions; drain it first'
kill_node n1
wait_for is_down n1 || exit 1

what='the last copies of 3 partitions of tables "lone", "other"'
expect 0 node inspect n1 -o json
out_has '"last_copies":\[\{"table":"lone","partitions":2,"down":0\},\{"table":"other","partitions":1,"down":0\}\]'
expect 6 node remove n1
err_has 'the last ones of 3 of them \(tables: lone, other\); restart it to recover'
expect 2 node remove n1 --force
err_has "removing node \"n1\", with $what, whose rows would be lost"
err_has 'needs --yes, as there is no terminal'
answer n && fail "a no ends well"
out_has "remove node \"n1\", with $what"
out_has 'not removed'
stays || fail "a no removes"
answer y || fail "a yes fails"
stays && fail "a yes does not remove"

expect 0 cluster events
out_has 'table lone lost the rows of 2 of its 4 partitions; "pscli table ack lone"'
out_has 'table other lost the rows of 1 of its 2 partitions; '
! grep -q 'table both lost' "$work/out" || fail "both has another copy"

# What other nodes have that are down themselves may be lost, too.
nodes 3 b
expect 0 table create both --rows 100 --partitions 6 --replicas 2
kill_node n1
kill_node n2
wait_for is_down n1 || exit 1
wait_for is_down n2 || exit 1
expect 0 node inspect n1 -o json
out_has '"last_copies":\[\{"table":"both","partitions":2,"down":2\}\]'
expect 6 node remove n1
err_has 'of 2 of them \(tables: both\) no node that is up has another; restart it'
err_has 'use --force: 0 start empty, and 2 wait for other nodes that are down'
expect 2 node remove n1 --force
err_has 'what is on its disk; of 2 of them other nodes that are down have copies\)'
stays || fail "it was not removed"
cli_finish
