#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Errors of calls name a node that is gone as node list does, though what was
# asked is a port of a shard, which stands in no list.
# shellcheck source-path=SCRIPTDIR source=nodes_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"

nodes 2 a
address=$("$PSCLI_PROGRAM" node inspect n1 -o json |
    sed 's/.*"endpoint":"\([^"]*\)".*/\1/')
expect 0 table create w --rows 100 --partitions 4
expect 0 push w 0=1 30=1 60=1 90=1
kill_node n1

said="node \"n1\" \($address\): no (welcome|answer) from its shard [0-9]+ at tcp://"
expect 7 pull w 0,30,60,90 --timeout 12s # most of it is for table_inspect
err_has "pull of table \"w\".*$said"
expect 7 push w 0=1 30=1 60=1 90=1 --timeout 12s
err_has "push to table \"w\".*$said"
cli_finish
