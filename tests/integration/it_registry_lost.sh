#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The registry is lost, in three ways, and no row is: it is restored from a backup of before
# a table was made; two of three members are lost, and the third is forced; all are lost,
# and it is rebuilt from the nodes.
# shellcheck source-path=SCRIPTDIR source=nodes_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"
export PSD_SHARDS=2
at=$work

# begin NAME ARGS...: starts a node, at the same address as before.
begin() {
    local name=$1
    shift
    rm -f "$at/$name/endpoints.json"
    "$PSD_PROGRAM" --data-dir "$at/$name" --name "$name" --listen "ipc://$at/$name.ipc" "$@" \
        >>"$at/$name.log" 2>&1 &
    pids[$name]=$!
}
has_begun() { [ -s "$at/$1/endpoints.json" ]; }
# node_up NAME ARGS...
node_up() {
    begin "$@"
    if ! wait_for has_begun "$1"; then
        cat "$at/$1.log"
        exit 1
    fi
}
has_ended() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }
# refuses NAME PATTERN ARGS...: it does not start, and says why.
refuses() {
    local name=$1 pattern=$2
    shift 2
    begin "$name" "$@"
    wait_for has_ended "${pids[$name]}" || kill -9 "${pids[$name]}"
    wait "${pids[$name]}" && fail "$name starts with $*"
    unset "pids[$name]"
    tail -1 "$at/$name.log" | grep -Eq -- "$pattern" || {
        fail "$name $*: not $pattern"
        tail -1 "$at/$name.log"
    }
}
speak_to() { export PSCLI_ENDPOINT=ipc://$at/$1.ipc; }
# cluster NAME: in a directory of its own.
cluster() {
    end_nodes
    at=$work/$1
    mkdir "$at"
}

# count KEY VALUE: nodes of that.
count() {
    "$PSCLI_PROGRAM" node list -o json 2>/dev/null | grep -o "\"$1\":\"$2\"" | wc -l
}
are() { [ "$(count "$1" "$2")" -eq "$3" ]; }
# keeps_aside N: so many tables are listed.
keeps_aside() {
    [ "$("$PSCLI_PROGRAM" cluster registry unknown -o name 2>/dev/null | wc -l)" -eq "$1" ]
}
# in_time ARGS...: pscli; again while a node is suspect, for the machine is busy.
in_time() {
    n_checked=$((n_checked + 1))
    wait_for "$PSCLI_PROGRAM" "$@" >"$work/out" 2>"$work/err" || fail "pscli $*"
}
prints() {
    local pattern=$1
    shift
    "$PSCLI_PROGRAM" "$@" </dev/null 2>&1 | grep -Eq -- "$pattern"
}
# says PATTERN ARGS...: pscli says that, in time.
says() {
    n_checked=$((n_checked + 1))
    wait_for prints "$@" || fail "pscli ${*:2}: not $1"
}
dump() { "$PSCLI_PROGRAM" pull "$1" all -o csv --timeout 60s >"$at/$2"; }
# make NAME LEVEL REPLICAS: a table of 1000 rows, and what it has.
make() {
    expect 0 table create "$1" --rows 1000 --type i64 --partitions 6 --ack "$2" --replicas "$3"
    expect 0 table import "$1" --from "$work/rows.csv"
    dump "$1" "$1.csv"
}
# is_whole NAME: all of it is there, exactly.
is_whole() {
    dump "$1" now.csv || fail "$1 cannot be pulled"
    cmp -s "$at/$1.csv" "$at/now.csv" || fail "rows of $1 are lost or wrong"
}
# is_healthy: also that every copy that is wanted is whole.
is_healthy() { wait_for "$PSCLI_PROGRAM" cluster status >"$at/status" || fail "it does not get healthy"; }
forget_registry() { rm -rf "$at/$1"/registry.db* "$at/$1/registry.commits" "$at/$1/registry-log"; }

{
    echo row,col,value
    for ((i = 0; i < 1000; i++)); do echo "$i,0,$((i * 7 + 1))"; done
} >"$work/rows.csv"

# ---- a backup of before a table was made ----

cluster restored
node_up n0
speak_to n0
node_up n1 --join "ipc://$at/n0.ipc"
make old disk 2
expect 0 cluster backup --to "$at/backup"
make one disk 1
make two disk 2
make weak memory 1
is_healthy
kill_node n0
forget_registry n0
refuses n0 'its registry is gone: .* --rebuild-registry'
expect 0 cluster restore --from "$at/backup" --data-dir "$at/n0"
node_up n0
wait_for are state up 2 || exit 1
wait_for keeps_aside 3 || exit 1
says 'node "n1" keeps 3 tables aside that the registry does not know' cluster status
says '^two +[0-9]+ +disk +6 +6 +1000 .* n0, ?n1$' cluster registry unknown
says '^weak +[0-9]+ +memory +6 +[1-5] ' cluster registry unknown
says 'table "two" does not exist' pull two 1
says 'no node that is up has [1-5] of the 6 partitions of table "weak" whole' \
    cluster registry accept weak
says 'needs --yes' cluster registry discard weak
in_time cluster registry discard weak --yes
wait_for keeps_aside 2 || fail "weak was not discarded"
kill_node n1 # which keeps them aside on its disk, too
node_up n1 --join "ipc://$at/n0.ipc"
wait_for are state up 2 || exit 1
in_time cluster registry accept --all --dry-run
wait_for keeps_aside 2 || fail "a dry run, or a restart, changes what is aside"
in_time cluster registry accept two
is_whole two
in_time cluster registry accept --all
for table in old one two; do is_whole $table; done
wait_for keeps_aside 0 || fail "what was accepted is still aside"
is_healthy
kill_node n1
kill_node n0
node_up n0
node_up n1 --join "ipc://$at/n0.ipc"
for table in old one two; do is_whole $table; done

# ---- two of three members ----

export PSD_REGISTRY_VOTERS=3
cluster forced
node_up n0
speak_to n0
node_up n1 --join "ipc://$at/n0.ipc"
node_up n2 --join "ipc://$at/n0.ipc"
wait_for are member voter 2 || exit 1
make first disk 3
kill_node n2
refuses n2 'node "n[01]" at ipc://.*, whose registry votes, answers' --force-new-registry \
    --join "ipc://$at/n0.ipc"
node_up n2 --join "ipc://$at/n0.ipc"
wait_for are member voter 2 || exit 1
make last disk 3
is_healthy
"$PSCLI_PROGRAM" table list -o name | sort >"$at/tables"
for name in n0 n1 n2; do kill_node $name; done
rm -rf "$at/n0" "$at/n1"
node_up n2 --force-new-registry --join "ipc://$at/n0.ipc"
speak_to n2
"$PSCLI_PROGRAM" table list -o name | sort | cmp -s "$at/tables" - || fail "a table is missing"
expect 0 cluster events
out_has 'registry_forced'
for name in n0 n1; do
    expect 0 node remove $name --force --yes
    node_up $name --join "ipc://$at/n2.ipc"
done
wait_for are member voter 2 || exit 1
is_whole first
is_whole last
kill_node n2 # and comes back as a member of the new one, whatever its options say
node_up n2 --join "ipc://$at/n0.ipc"
wait_for are member voter 2 || exit 1
is_whole last

# ---- all of them ----

cluster rebuilt
node_up n0
speak_to n0
for name in n1 n2 n3 n4; do node_up $name --join "ipc://$at/n0.ipc"; done
wait_for are member voter 2 || exit 1
make one disk 1
make two disk 2
make live replica 4
is_healthy
for name in n0 n1 n2; do kill_node $name; done
for name in n0 n1 n2; do forget_registry $name; done
node_up n0 --rebuild-registry
begin n1 --join "ipc://$at/n0.ipc"
begin n2 --join "ipc://$at/n0.ipc"
wait_for are state up 5 || exit 1
wait_for keeps_aside 3 || exit 1
in_time cluster rebuild --from-nodes --dry-run
out_has '^live +[0-9]+ +replica +6 +6 +1000 '
wait_for keeps_aside 3 || fail "a dry run changes what is aside"
in_time cluster rebuild --from-nodes
for table in one two live; do is_whole $table; done
wait_for are member voter 2 || exit 1
is_healthy
expect 0 table create later --rows 10
expect 0 push later 1=5
kill_node n0
node_up n0
for table in one two live; do is_whole $table; done
kill_node n0
refuses n0 'answers, and has the registry or knows one|has a registry' --rebuild-registry
cli_finish
