#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A cluster of three nodes at security.level: encrypt. Nodes join by tokens, which count once, for
# a while and for one name; every link is CURVE; a client with a key finds all nodes; the sum is
# exact after the leader is killed; a denied node is cut off.
# shellcheck source-path=SCRIPTDIR source=nodes_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"
# Programs of this user do not find psd by its port: they need the key, as others do.
psd_env=(XDG_STATE_HOME="$work/other")
export PSD_SHARDS=1 PSD_HTTP_LISTEN=off PSD_SECURITY_LEVEL=encrypt PSD_REGISTRY_VOTERS=3
export PSD_CLUSTER_SUSPECT_AFTER=2000 PSD_CLUSTER_HEARTBEAT=200 PSCLI_TIMEOUT=60s
umask 077

# refused CODE TEXT ARGS...: a node that would join ends with it, and one line says why.
refused() {
    local code=$1 text=$2 rc=0
    shift 2
    timeout 60 "$PSD_PROGRAM" --data-dir "$work/rogue" --listen tcp://127.0.0.1:0 "$@" \
        >"$work/rogue.log" 2>&1 || rc=$?
    [ "$rc" -eq "$code" ] || fail "psd $*: $rc, not $code: $(cat "$work/rogue.log")"
    grep -q "$text" "$work/rogue.log" || fail "psd $*: $(cat "$work/rogue.log")"
    rm -rf "$work/rogue"
    n_checked=$((n_checked + 1))
}
# invite NAME [OPTION...]: its token, in a file.
invite() {
    expect 0 node invite "$@"
    cp "$work/out" "$work/$1.token"
}
# joins NAME: by its token.
joins() {
    PSD_SECURITY_TOKEN_FILE=$work/$1.token node "$1" ''
}

node n0 ''
first=$PSCLI_ENDPOINT
export PSD_KEY_FILE=$work/n0/admin.key
invite n1
[ "$(wc -l <"$work/n1.token")" -eq 1 ] || fail "a token is one line"

# ---- who may not join ----
refused 2 'this node has no token' --join "${first%%#*}"
refused 4 'lets in node "n1", and this one is "x"' --token-file "$work/n1.token" --name x
sed 's/#[^#]*$/#0000000000000000000000000000000000000000000000000000000000000001/' \
    "$work/n1.token" >"$work/wrong.token"
refused 4 'is neither a node of this cluster nor a token' --token-file "$work/wrong.token"
chmod 644 "$work/wrong.token"
refused 2 'others may read the token' --token-file "$work/wrong.token"
mkfifo "$work/fifo"
refused 2 'is no regular file' --token-file "$work/fifo"
refused 2 'cluster.join is a token' --join "$(cat "$work/n1.token")"
! grep -qF "$(sed 's/.*#//' "$work/n1.token")" "$work/rogue.log" || fail "psd shows a token"
refused 2 'token_file is a token' --token-file "$(cat "$work/n1.token")"
! grep -qF "$(sed 's/.*#//' "$work/n1.token")" "$work/rogue.log" || fail "psd shows a token"
invite late --ttl 1s
wait_for sh -c "[ \$((\$(date +%s) - $(stat -c %Y "$work/late.token"))) -ge 2 ]"
refused 4 'for node "late" has expired' --token-file "$work/late.token" --name late

# ---- three nodes ----
joins n1
refused 4 'for node "n1" was used' --token-file "$work/n1.token" --name n1
invite n2
"$PSD_PROGRAM" --data-dir "$work/n2" --listen tcp://127.0.0.1:0 --name n2 --token-file - \
    <"$work/n2.token" >>"$work/n2.log" 2>&1 &
pids[n2]=$!
wait_for test -s "$work/n2/endpoints.json"
rm "$work/n1.token"
votes() {
    "$PSCLI_PROGRAM" cluster registry list -o json 2>/dev/null | grep -q '"voters_up": *3'
}
joined() { # looks first where looking is cheap
    grep -sq registry_joined "$work/n1.log" && grep -sq registry_joined "$work/n2.log"
}
wait_for joined
wait_for votes
expect 0 auth list
for name in n0 n1 n2; do
    out_has "^node.$name +allowed +node "
done

# ---- rows, their copies, and the death of the node that leads ----
expect 0 table create w --rows 64 --replicas 2 --partitions 4
for ((i = 0; i < 3; i++)); do
    expect 0 push w 1=1 20=1 40=1 60=1
done
PSCLI_ENDPOINT=$(sed 's/.*"control":"\([^"]*\)".*/\1/' "$work/n1/endpoints.json")
[ "${PSCLI_ENDPOINT#*#}" != "${first#*#}" ] || fail "two nodes have one key"
expect 0 pull w 1
out_has '^1 +3$'
kill_node n0
expect 0 push w 1=1 20=1 40=1 60=1
wait_for grep -sq registry_leads "$work/n1.log" "$work/n2.log"
for row in 1 20 40 60; do
    expect 0 pull w "$row"
    out_has "^$row +4\$"
done

# ---- the node comes back, without a token ----
PSD_NODE_NAME=n0 "$PSD_PROGRAM" --data-dir "$work/n0" --listen tcp://127.0.0.1:0 \
    >>"$work/n0.log" 2>&1 &
pids[n0]=$!
wait_for grep -sq registry_follows "$work/n0.log"
expect 0 push w 1=1
expect 0 pull w 1
out_has '^1 +5$'

# ---- rules count at the shards of all nodes, and a denied node is cut off ----
expect 0 auth keygen alice --file "$work/alice.key"
public=$(sed -n 's/^public-key //p' "$work/alice.key")
expect 0 auth allow alice --role job --tables 'alice.*' --jobs 'alice-*' --key="$public"
PSD_KEY_FILE=$work/alice.key expect 4 pull w 1
err_has 'alice .* may not look at table "w"'
PSD_KEY_FILE=$work/alice.key expect 0 table create alice.w --rows 64 --partitions 4
heard() {
    PSD_KEY_FILE=$work/alice.key "$PSCLI_PROGRAM" push alice.w 1=1 20=1 40=1 60=1 >/dev/null 2>&1
}
wait_for heard
PSD_KEY_FILE=$work/alice.key expect 0 auth rotate # each node hears of the second key
wait_for heard
PSD_KEY_FILE=$work/alice.key.old expect 0 push alice.w 1=1 20=1 40=1 60=1
expect 4 auth deny node.n2
err_has 'node n2 has a part of the registry: pscli cluster registry remove n2 first'
expect 4 auth allow node.n2 --role reader
err_has 'cluster registry remove n2 first'
state_of_n2() {
    "$PSCLI_PROGRAM" node list >"$work/nodes" && grep -qE "^n2 +($1) " "$work/nodes"
}
wait_for state_of_n2 up
wait_for votes
expect 0 cluster registry remove n2
expect 0 auth deny node.n2
wait_for state_of_n2 'suspect|down'
wait_for grep -q 'rights_not_heard .*status=DENIED' "$work/n2.log"
expect 0 cluster events
out_has 'node n2 is invited: a token was made for it.*admin'

# ---- no secret leaves its file ----
expect 0 cluster backup --to "$work/backup"
for secret in $(sed -n 's/^secret-key //p' "$work"/n?/*.key) "$(sed 's/.*#//' "$work/n2.token")"; do
    if grep -rlF -e "$secret" "$work" | grep -v -e '\.key$' -e '\.token$'; then
        fail "a secret is outside of its file"
    fi
done

cli_finish
