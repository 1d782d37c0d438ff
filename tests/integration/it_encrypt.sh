#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# security.level: encrypt. tcp takes keys alone, ipc and lane know users by the uid, each request
# and message needs a right, and who has none hears so at once.
# shellcheck source-path=SCRIPTDIR source=nodes_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"
# Programs of this user do not find psd by its port: they need the key, as others do.
psd_env=(XDG_STATE_HOME="$work/other" PSD_RUNTIME_DIR="$work/run")
export PSD_SHARDS=1 PSD_LANE_PEERS=group PSD_SECURITY_LEVEL=encrypt
chmod 711 "$work"
me=$(id -u)
ipc=ipc://$work/run/psd.ipc

# soon CODE TEXT ARGS...: pscli ends with it, with the reason, and long before its time-out.
soon() {
    local code=$1 text=$2 began
    shift 2
    began=$(date +%s%N)
    expect "$code" --timeout 60s "$@"
    [ $((($(date +%s%N) - began) / 1000000)) -lt 20000 ] || fail "pscli $*: it waited"
    err_has "$text"
}
declare -A public=()
# keys NAME: a pair for NAME.
keys() {
    expect 0 auth keygen "$1" --file "$work/$1.key"
    public[$1]=$(sed -n 's/^public-key //p' "$work/$1.key")
}
as() {
    local file=$work/$1.key
    shift
    PSD_KEY_FILE=$file "$@"
}

nodes 1 ''
named=$PSCLI_ENDPOINT
bare=${named%%#*}
[[ $named =~ ^tcp://127\.0\.0\.1:[0-9]+#[0-9a-f]{64}$ ]] || fail "endpoint: $named"
for file in node.key admin.key; do
    [ "$(stat -c %a "$work/n0/$file")" = 600 ] || fail "mode of $file"
done

# ---- the owner ----
expect 0 --endpoint "$ipc" auth whoami
out_is "admin (uid $me)"
expect 0 --endpoint "$ipc" table create alice.w --rows 8
expect 0 --endpoint "$ipc" table create bob.w --rows 8
for carrier in ipc lane; do
    PSD_TRANSPORT=$carrier expect 0 --endpoint "$ipc" push alice.w 1=1
done
cp "$work/n0/admin.key" "$work/admin.key"
as admin expect 0 auth whoami
out_has '^admin \(key '
as admin expect 0 push alice.w 1=1
as admin expect 0 pull alice.w 1
out_has '^1 +3$'

# ---- nobody: no key, a wrong one, that of another server ----
soon 4 'asks for a key, and the endpoint does not name' --endpoint "$bare" table list
soon 4 'this program has none: set PSD_KEY_FILE' table list
as admin soon 4 'names no key, and this program has one' --endpoint "$bare" table list
keys mallory
as mallory soon 4 "key .* is no principal; an admin lets it in: pscli auth allow NAME" table list
other=${named%#*}#$(printf '%064d' 9)
as admin soon 4 'has another key than the endpoint names' --endpoint "$other" table list
as admin soon 2 "what follows '#' is no key" --endpoint "$bare#abc" table list
soon 4 'asks for a key, and the endpoint does not name' --endpoint "$bare" cluster registry list
as mallory soon 4 'is no principal' cluster registry list
as admin expect 0 cluster registry list

# ---- roles ----
keys alice
keys reader
keys operator
as admin expect 0 auth allow alice --role job --tables 'alice.*' --jobs 'alice-*' --key="${public[alice]}"
as admin expect 0 auth allow reader --role reader --tables 'bob.*' --jobs '*' --key="${public[reader]}"
as admin expect 0 auth allow operator --role operator --key="${public[operator]}"
as alice expect 0 auth whoami
as alice expect 0 push alice.w 1=1
as alice expect 0 pull alice.w 1
out_has '^1 +4$'
as alice soon 4 'alice \(key .*\) may not look at table "bob.w": its rules cover tables "alice.\*"; an admin can' pull bob.w 1
as alice expect 0 auth can-i write table alice.w
out_is yes
as alice expect 1 auth can-i write table bob.w
out_is 'no: its rules cover tables "alice.*"'
as alice expect 1 auth can-i stop job bob-1 --as alice
out_is 'no: its rules cover jobs "alice-*"'
as alice expect 1 auth can-i backup cluster
out_is no
as alice soon 4 'alice \(key .*\) may not look at auth; an admin can' auth can-i write table bob.w --as reader
as alice soon 4 'may not look at auth' auth can-i write table bob.w --as nobody
# ---- doctor: what a role may not look at is no finding ----
as alice expect 0 doctor
out_has '^endpoint +ok +tcp://.* answers, in [0-9.]+ ms, and knows you as alice \(key '
out_has '^cluster +skipped +alice \(key .*\) may not look at cluster; an admin can allow it'
out_has '^version +skipped +'
out_has '^shards +ok +row 0 of table "alice.w" came in '
as operator expect 0 doctor
out_has '^cluster +ok +healthy'
out_has '^shards +skipped +.*operator \(key .*\) may not read table'
as mallory expect 1 doctor
out_has '^endpoint +finding +.*is no principal'
as admin expect 0 auth list
out_has '^alice +allowed +job +alice\.\* +alice-\* '
out_has '^operator +allowed +operator +\* +\* '
as alice soon 4 'may not create table "bob.x"' table create bob.x --rows 1
as alice soon 4 'may not backup cluster' cluster backup --to "$work/stolen"
[ ! -e "$work/stolen" ] || fail "a backup was given away"
as alice soon 4 'may not change auth' auth allow alice --role admin
as alice expect 0 table list -o name
out_is 'alice.w'
as alice expect 0 table create alice.x --rows 1
as alice expect 0 table drop alice.x --yes
as reader expect 0 pull bob.w 1
as reader soon 4 'may not write table "bob.w"' push bob.w 1=1
as reader soon 4 'may not look at table "alice.w"' pull alice.w 1
as operator expect 0 cluster status
as operator soon 4 'may not (look|read) table "alice.w"' pull alice.w 1
as operator soon 4 'may not change auth' auth deny alice
as admin expect 0 cluster events
out_has 'table +.*alice.x.*, by alice \(key '

# ---- denied at once, on connections that stand too; allowed again ----
as admin expect 0 auth allow alice --role job --tables '*' --jobs 'alice-*'
as alice "$PSCLI_PROGRAM" table list -o name --watch 20ms >"$work/looks.out" 2>"$work/looks.err" &
looks=$!
as alice "$PSCLI_PROGRAM" bench push --transport tcp --sizes 4k --keys 0 --duration 60s \
    --timeout 60s >"$work/pushes.out" 2>"$work/pushes.err" &
pushes=$!
wait_for test -s "$work/looks.out"
has_bench() {
    as admin "$PSCLI_PROGRAM" table inspect "$(as admin "$PSCLI_PROGRAM" table list -o name |
        grep bench)" -o json 2>/dev/null | grep -q '"pushes": *[1-9]'
}
wait_for has_bench
began=$(date +%s%N)
as admin expect 0 auth deny alice
out_is 'alice is denied'
for job in "$looks" "$pushes"; do
    rc=0
    wait "$job" || rc=$?
    [ "$rc" -eq 4 ] || fail "a denied connection ended with $rc"
done
[ $((($(date +%s%N) - began) / 1000000)) -lt 20000 ] || fail "who was denied went on"
job=
for name in looks pushes; do
    grep -qE 'alice \(key .*\) is denied' "$work/$name.err" || fail "$(cat "$work/$name.err")"
done
as alice soon 4 'alice \(key .*\) is denied' push alice.w 1=1
as admin expect 0 auth allow alice --role job --tables 'alice.*' --jobs '*'
as alice expect 0 push alice.w 1=1

# ---- another user of this host ----
if [ "$me" -eq 0 ]; then
    chmod 644 "$work/err"
    guest() {
        rc=0
        setpriv --reuid=12345 --regid=0 --clear-groups "$PSCLI_PROGRAM" --endpoint "$ipc" "$@" \
            >"$work/out" 2>"$work/err" || rc=$?
        n_checked=$((n_checked + 1))
    }
    guest table list
    [ "$rc" -eq 4 ] || fail "another user: $rc"
    err_has 'uid 12345 is no principal; an admin lets it in: pscli auth allow NAME --role ROLE --tables .GLOB. --jobs .GLOB. --uid 12345'
    expect 0 --endpoint "$ipc" auth allow guest --role reader --tables 'bob.*' --jobs '*' --uid 12345
    for carrier in ipc lane; do
        PSD_TRANSPORT=$carrier guest pull bob.w 1
        [ "$rc" -eq 0 ] || fail "guest reads over $carrier: $rc"
        PSD_TRANSPORT=$carrier guest push bob.w 1=1
        [ "$rc" -eq 4 ] || fail "guest writes over $carrier: $rc"
        err_has 'guest \(uid 12345\) may not write table "bob.w"'
    done
    expect 0 --endpoint "$ipc" auth deny guest
    for carrier in ipc lane; do
        PSD_TRANSPORT=$carrier guest pull bob.w 1
        [ "$rc" -eq 4 ] || fail "guest is denied over $carrier: $rc"
        err_has 'guest \(uid 12345\) is denied'
    done
else
    echo "skipped: another user of this host (not root)"
fi

# ---- a node that would join ----
PSD_SECURITY_LEVEL=plain "$PSD_PROGRAM" --data-dir "$work/rogue" --join "$bare" \
    --listen tcp://127.0.0.1:0 >"$work/rogue.log" 2>&1 &
rogue=$!
wait_for grep -sq registry_silent "$work/rogue.log"
kill "$rogue"
wait "$rogue" 2>/dev/null
[ ! -e "$work/rogue/endpoints.json" ] || fail "a stranger joined"
as admin expect 0 node list -o name
out_is 'n0'
rc=0
timeout 60 "$PSD_PROGRAM" --data-dir "$work/joins" --join "$bare" \
    >"$work/joins.log" 2>&1 || rc=$?
[ "$rc" -eq 2 ] || fail "joining under encrypt: $rc"
grep -q 'this node has no token; an admin there makes one' "$work/joins.log" ||
    fail "no reason: $(cat "$work/joins.log")"

# ---- kept over a restart; no secret anywhere else ----
kill_node n0
mv "$work/n0/node.key" "$work/kept.key"
rc=0
timeout 60 "$PSD_PROGRAM" --data-dir "$work/n0" --listen tcp://127.0.0.1:0 \
    >"$work/lost.log" 2>&1 || rc=$?
[ "$rc" -eq 2 ] || fail "without node.key: $rc"
grep -q 'node.key is missing' "$work/lost.log" || fail "no reason: $(cat "$work/lost.log")"
mv "$work/kept.key" "$work/n0/node.key"
node n0 ''
[ "${PSCLI_ENDPOINT#*#}" = "${named#*#}" ] || fail "the node has another key"
as alice expect 0 auth whoami
as admin expect 0 cluster backup --to "$work/backup"
as admin expect 0 support-bundle --to "$work/bundle.tar" --data-dir "$work/n0"
"$PSD_PROGRAM" --data-dir "$work/n0" --print-config >"$work/config.txt" 2>&1
for file in "$work"/n0/*.key "$work"/*.key; do
    secret=$(sed -n 's/^secret-key //p' "$file")
    if grep -rlF -e "$secret" "$work" | grep -v '\.key$'; then
        fail "a secret key is outside of its file"
    fi
done

cli_finish
