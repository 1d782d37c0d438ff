#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What pscli answers people with: one line where something was done, all of it
# with -v, nothing with --quiet; short options and verbs; numbers that JavaScript
# would round; options that are given again; a table that goes on after a loss.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"

# says LINE ARGS...: exactly that line, and nothing else; nothing with --quiet.
says() {
    local line=$1
    shift
    expect 0 "$@"
    out_is "$line"
    [ ! -s "$work/err" ] || { fail "pscli $*: words beside the answer"; show; }
}

cli_start
node=$("$PSCLI_PROGRAM" node list -o name)

# ---- one line, all of it, nothing ----
says 'would create table "w"' table create w --rows 1000 --dry-run
says 'created table "w" (1000 x 1 f32, 2 partitions)' \
    table create w --rows 1000 --partitions 2
says 'created table "emb" (any x 3 i64, 4 partitions)' \
    table create emb --keys hash --cols 3 --type i64 --partitions 4
expect 0 table create v --rows 10 -v
out_has '^ROWS_PUSHED +0$'
expect 0 table create q --rows 10 --quiet
out_is ''
says 'pushed 2 rows to "w" (ack memory)' push w 1=0.5 3=2
says 'would push 1 row to "w" (ack memory)' push w 1=0.5 --dry-run
expect 0 push w 1=0.5 -q
out_is ''
expect 0 push w 1=0.5 -q -o json
out_is '{"schema_version":1,"table":"w","rows":1,"ack":"memory"}'
expect 0 push w 1=0.5 --verbose
out_has '^ACK +memory$'
expect 0 node inspect "$node"
out_has "^node \"$node\" at tcp://[0-9.:]* is up: [0-9]+ shards, [0-9]+ primaries, 0 replicas, "
[ "$(wc -l <"$work/out")" -eq 1 ] || fail "node inspect says more than a line"
expect 0 node inspect "$node" -v
out_has '^INCARNATION '

says 'pushed 1 row to "w" (ack memory)' push w 5=1
expect 2 node list here
err_has 'unexpected argument "here": pscli node list; --help'

# ---- an address of somebody else: here a shard's port ----
other=$(sed 's/.*"shards":\["\([^"]*\)".*/\1/' "$work/data/endpoints.json")
expect_told 3 1000 "waited [0-9]+ ms: connect to $other: no answer from $other within [0-9]+ ms: something listens there and does not answer like psd: another service, the port of a shard" \
    cluster status --endpoint "$other"

# ---- a table's values ----
expect 0 pull w 1
out_is 'ROW           VALUE
1             2'
expect 0 pull emb 18446744073709551615
out_has '^ROW +C0 +C1 +C2$'
out_has '^18446744073709551615  0 +0 +0$'

# ---- a row that is given twice ----
expect 2 push w 1=1 2=1 1=2
err_has 'row 1 column 0 is given twice; give it once, or push twice'
expect 0 pull w 2
out_has '^2 +0$' # nothing of it was pushed

# ---- short options and verbs, and what is near ----
expect 0 -h
out_has '^pscli - '
expect 0 table create -h
out_has '^Usage: pscli table create'
expect 0 version
out_has '^pscli [0-9]'
expect 0 version -o json
out_has '"version":"'
expect 0 table ls -o name
out_has '^emb$'
expect 0 table rm q -y
out_is 'TABLE    q
DROPPED  true
ROWS     10
BYTES    40 B'
expect 2 xyzzy list
err_has 'unknown command "xyzzy"'
! grep -q 'did you mean' "$work/err" || fail '"xyzzy" is near to nothing'
expect 2 tablf list
err_has 'did you mean "table"'

# ---- names of variables that nobody reads ----
PSCLI_TIMEOUTT=5s PSD_TRANSPRT=tcp run table list
err_has 'warning: no option has the variable PSCLI_TIMEOUTT; did you mean PSCLI_TIMEOUT\?'
err_has 'warning: no option has the variable PSD_TRANSPRT; did you mean PSD_TRANSPORT\?'
PSD_LIMITS_CHUNK_BYTES=65536 PSD_SHARDS=2 run table list
[ ! -s "$work/err" ] || { fail "a key of psd is warned of"; show; }

# ---- numbers above 2^53 ----
expect 0 push emb 9007199254740993=9007199254740993,-9007199254740993,7
expect 0 pull emb 9007199254740993 -o json
out_has '"row":9007199254740993,"values":\[9007199254740993,-9007199254740993,7\]'
expect 0 pull emb 9007199254740993 -o json --big-as-text
out_has '"row":"9007199254740993","values":\["9007199254740993","-9007199254740993",7\]'
expect 0 table inspect emb -o json --big-as-text
out_has '"last_row":"[0-9]{17,}"'

# ---- options that may be given again ----
expect 2 checkpoint create one --tables w
err_has 'did you mean --table\?'
expect 0 checkpoint create one --table w --table emb --table v
expect 0 checkpoint inspect one -o json
out_has '"w"'
expect 0 table drop w emb v --yes
expect 2 checkpoint restore one --table w --table v --as x
err_has '--as needs one --table'
expect 0 checkpoint restore one --table w --table v
expect 0 table list -o name
out_is 'w
v'
expect 0 checkpoint list -o csv
out_has 'created_unix_ms'
expect 0 checkpoint list
out_has ' CREATED$'
out_has ' 20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9:]*Z$'
expect 0 job list
out_has ' CREATED$'

# ---- a backup never replaces another ----
expect 0 cluster backup --to "$work/backup"
cp "$work/backup" "$work/backup.kept"
expect 2 cluster backup --to "$work/backup"
err_has 'which exists already; allowed: a new file'
cmp -s "$work/backup" "$work/backup.kept" || fail "a backup was written over"

# ---- rows that are lost, and known to be ----
status_is() {
    "$PSCLI_PROGRAM" cluster status -o json 2>/dev/null |
        grep -q "\"healthy\":$1"
}
kill "$psd_pid"
wait "$psd_pid"
psd_pid=
export PSD_LIMITS_CHUNK_BYTE=65536
cli_start
unset PSD_LIMITS_CHUNK_BYTE
wait_for grep -q 'warn environment_unknown name=PSD_LIMITS_CHUNK_BYTE' \
    "$work/psd.log" || fail "psd does not warn of a variable that nobody reads"
wait_for status_is false || fail "a loss of rows is healthy"
expect 0 table list
out_has '^w .* ROWS LOST$'
expect 0 table list -o json
out_has '"rows_lost":true,"loss_acked":false'
expect 5 table ack nobody
says 'table "w" continues without the lost rows' table ack w
says 'table "w" continues without the lost rows' table ack w
expect 0 table list
out_has '^w .* known$'
out_has '^v .* ROWS LOST$'
status_is false || fail "healthy though one table's loss is not known"
says 'table "v" continues without the lost rows' table ack v
status_is true || fail "not healthy though all losses are known"
expect 0 cluster events
out_has 'the loss of rows of table w was acknowledged'
expect 0 cluster events --kind loss_acked,queue --no-headers
[ "$(wc -l <"$work/out")" -eq 2 ] || fail "not the two acknowledged losses: $(cat "$work/out")"
expect 0 cluster events --kind loss_acked -n 1 --columns kind,text -o tsv --no-headers
out_is "loss_acked	the loss of rows of table v was acknowledged, by 127.0.0.1"
expect 0 cluster events --since 1h -o name
[ "$(wc -l <"$work/out")" -gt 5 ] || fail "few events of the last hour"
expect 0 cluster events --since 1ms --kind note -o name
out_is ''
expect 2 cluster events --kind loss,acked
err_has '--kind has "loss"; allowed'
expect 2 cluster events --kind ''
err_has '--kind is empty'
expect 0 cluster events --kind registry_restored -o name
out_is ''
expect 2 cluster events --follow --columns nosuch
expect 2 cluster events --follow --watch 1s
err_has '--follow .* without --watch'
# Events as they happen: only later ones of that kind, each at once.
"$PSCLI_PROGRAM" cluster events --follow -n 1 --kind drop,table -o json >"$work/followed" &
follower=$!
wait_for grep -q '"kind":"table"' "$work/followed" || fail "--follow shows nothing"
"$PSCLI_PROGRAM" table create followed --rows 1 --quiet
wait_for grep -q 'table followed was created' "$work/followed" || fail "--follow: no table"
"$PSCLI_PROGRAM" table drop followed --yes --quiet
wait_for grep -q '"kind":"drop"' "$work/followed" || fail "--follow: no drop"
[ "$(wc -l <"$work/followed")" -eq 3 ] || fail "--follow: $(cat "$work/followed")"
kill $follower
wait $follower
says 'created table "new" (10 x 1 f32, 1 partitions)' \
    table create new --rows 10 --partitions 1
says 'table "new" has lost no rows' table ack new
# It is known after a restart, too; and a further loss is another one.
kill "$psd_pid"
wait "$psd_pid"
psd_pid=
cli_start
wait_for status_is false || fail "a further loss is healthy"

# ---- a drain waits, unless told not to ----
expect 0 node drain "$node" --no-wait
out_has "^node \"$node\" drains: [0-9]+ copies are left$"
expect 0 node drain "$node" --stay
out_has "^node \"$node\" stays, with [0-9]+ copies$"
expect 0 table drop w v new --yes
says "node \"$node\" is empty: you can stop and remove it" \
    node drain "$node"
cli_finish
