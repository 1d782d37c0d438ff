#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pscli auth invite and auth accept: a client on another machine is let in by a token, which counts
# once, for a while and for one name, and its secret key stays where it was made.
# shellcheck source-path=SCRIPTDIR source=nodes_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"
# Programs of this user do not find psd by its port: they need the key, as others do.
psd_env=(XDG_STATE_HOME="$work/other" PSD_RUNTIME_DIR="$work/run")
export PSD_SHARDS=1 PSD_HTTP_LISTEN=off
ipc=ipc://$work/run/psd.ipc
umask 077

owner() {
    expect "$1" --endpoint "$ipc" "${@:2}"
}
# invite NAME OPTION...: its token, in $work/NAME.token.
invite() {
    owner 0 auth invite "$@"
    cp "$work/out" "$work/$1.token"
}
# accept CODE FILE OPTION...: with the token of the file on standard input, on a machine that has
# neither an endpoint nor a key.
accept() {
    local code=$1 token=$2
    shift 2
    rc=0
    out_file=$work/out
    err_file=$work/err
    env -u PSCLI_ENDPOINT "$PSCLI_PROGRAM" auth accept "$@" <"$token" >"$out_file" 2>"$err_file" ||
        rc=$?
    n_checked=$((n_checked + 1))
    wants "$code" auth accept "$@"
}
public() {
    sed -n 's/^public-key //p' "$1"
}

# ---- level plain has no use for a token ----
nodes 1 plain
expect 2 auth invite alice --role job
err_has 'asks no client for a key \(security.level: plain\)'
end_nodes

export PSD_SECURITY_LEVEL=encrypt
nodes 1 ''
named=$PSCLI_ENDPOINT
owner 0 table create alice.w --rows 4
owner 0 table create bob.w --rows 4

# ---- the whole way ----
invite alice --role job --tables 'alice.*' --jobs 'alice-*'
[ "$(wc -l <"$work/alice.token")" -eq 1 ] || fail "a token is one line"
err_has '^only this host reaches tcp://127.0.0.1:'
owner 0 auth list
! grep -q alice "$work/out" || fail "an invitation is a principal"
accept 0 "$work/alice.token"
key=$work/config/pscli/keys/alice.key
out_is "export PSD_ENDPOINT='$named' PSD_KEY_FILE=$key"
err_has '^alice is let in: job; the rule covers tables "alice.\*" and jobs "alice-\*"$'
[ "$(stat -c %a "$key")" = 600 ] || fail "mode of the key"
line=$(cat "$work/out")
# shellcheck disable=SC2030 # the lines of a shell of alice's
(
    unset PSCLI_ENDPOINT
    eval "$line"
    expect 0 auth whoami
    out_has '^alice \(key '
    expect 0 push alice.w 1=2
    expect 4 push bob.w 1=2
    [ "$n_failed" -eq 0 ]
) || fail "alice works by the line"
n_checked=$((n_checked + 3))
secret=$(sed -n 's/^secret-key //p' "$key")
! grep -rqF -- "$secret" "$work/n0" "$work/n0.log" || fail "psd has a secret key"
owner 0 cluster events
out_has 'principal alice is invited: a token was made for it, by admin \(uid '
out_has 'principal alice .*, by a token of admin'
audit=$work/n0/audit.jsonl
grep '"op":"auth_invite"' "$audit" | grep '"who":"admin"' |
    grep -q '"name":"alice".*"role":"job","tables":"alice.\*","jobs":"alice-\*","key":' ||
    fail "the audit has who invited: $(grep auth_invite "$audit")"
grep '"op":"auth_accept"' "$audit" | grep '"result":"OK"' |
    grep -qF "\"name\":\"alice\",\"detail\":{\"key\":\"$(public "$key")\",\"invited_by\":\"admin\"}" ||
    fail "the audit has who came: $(grep auth_accept "$audit")"
[ "$(grep '"op":"auth_accept"' "$audit" | grep -c '"result":"OK"')" -eq 1 ] ||
    fail "the look at a token is in the audit"

# ---- once: the same machine may ask again, another one may not ----
accept 0 "$work/alice.token"
out_is "$line"
accept 4 "$work/alice.token" --file "$work/other.key"
err_has 'the token for principal "alice" was used, with the key .*: pscli auth invite alice'
[ ! -e "$work/other.key" ] || fail "a key was made in vain"
owner 2 auth invite alice --role job
err_has 'there is a principal alice already: "pscli auth allow alice"'
owner 0 auth deny alice
accept 4 "$work/alice.token"
err_has 'token for principal "alice" was used'

# ---- one who was denied comes back by another key ----
invite alice --role reader
accept 2 "$work/alice.token" --file "$work/n0/admin.key"
err_has 'has a key of admin, and the token lets in alice'
accept 0 "$work/alice.token" --file "$work/alice2.key"
PSD_KEY_FILE=$work/alice2.key expect 0 pull bob.w 1
PSD_KEY_FILE=$work/alice2.key expect 4 push alice.w 1=2
PSD_KEY_FILE=$key expect 4 auth whoami
err_has 'is no principal'

# ---- expired; replaced by a newer one; void when the principal is denied ----
invite late --role reader --ttl 1s
wait_for sh -c "[ \$((\$(date +%s) - $(stat -c %Y "$work/late.token"))) -ge 2 ]"
accept 4 "$work/late.token"
err_has 'the token for principal "late" has expired; an admin makes another one: pscli auth invite late'
[ ! -e "$work/config/pscli/keys/late.key" ] || fail "a key was made for an expired token"
invite carol --role reader
mv "$work/carol.token" "$work/old.token"
invite carol --role reader
accept 4 "$work/old.token"
err_has '"carol" counts no longer: another one was made, or it was taken back; an admin makes'
owner 0 auth deny alice
invite alice --role reader
owner 0 auth deny alice
accept 4 "$work/alice.token"
err_has 'token for principal "alice" counts no longer'
invite nobody --role admin
owner 0 auth deny nobody
out_is 'nobody is no principal; its token is void'
accept 4 "$work/nobody.token"
err_has 'token for principal "nobody" counts no longer'
owner 0 auth deny nobody # again: the answer may not have arrived
owner 2 auth deny jim
err_has 'there is no principal "jim"'

# ---- the key that was denied stays so, and a uid does not come back ----
owner 0 auth allow hal --role job --uid 4711
invite ivy --role job
accept 0 "$work/ivy.token"
ivy=$work/config/pscli/keys/ivy.key
owner 0 auth allow ivy --role job --uid 4712
owner 0 auth deny ivy
invite ivy --role job
accept 4 "$work/ivy.token"
err_has 'that is the key with which ivy was denied; move its file away'
PSD_KEY_FILE=$ivy expect 4 auth whoami
mv "$ivy" "$work/ivy.stolen"
accept 0 "$work/ivy.token"
PSD_KEY_FILE=$ivy expect 0 auth whoami
PSD_KEY_FILE=$work/ivy.stolen expect 4 auth whoami
owner 0 auth list -o json
python3 - "$work/out" <<'END' || fail "uids: $(cat "$work/out")"
import json, sys
uids = {one["name"]: one["uid"] for one in json.load(open(sys.argv[1]))["principals"]}
assert uids["hal"] == 4711 and uids["ivy"] is None, uids
END
n_checked=$((n_checked + 1))

# ---- a key that "keygen" made before ----
expect 0 auth keygen gina
gina=$work/config/pscli/keys/gina.key
before=$(public "$gina")
invite gina --role reader
accept 0 "$work/gina.token"
[ "$(public "$gina")" = "$before" ] || fail "accept made another key"
PSD_KEY_FILE=$gina expect 0 auth whoami
out_has '^gina \(key '

# ---- who made it may let nobody in any more ----
owner 0 auth allow boss --role admin --key="$(public "$key")"
PSD_KEY_FILE=$key expect 0 auth invite dave --role admin
cp "$work/out" "$work/dave.token"
owner 0 auth deny boss
accept 4 "$work/dave.token"
err_has 'token for principal "dave" was made by boss, who may not let anybody in now'

# ---- … also when it may again: whoever held its key has made the token ----
owner 0 auth allow boss --role admin
accept 4 "$work/dave.token"
err_has 'token for principal "dave" counts no longer'
PSD_KEY_FILE=$key expect 0 auth invite dora --role admin
cp "$work/out" "$work/dora.token"
PSD_KEY_FILE=$key expect 0 node invite n8
cp "$work/out" "$work/n8.token"
owner 0 auth allow boss --role reader
owner 0 auth allow boss --role admin
accept 4 "$work/dora.token"
err_has 'token for principal "dora" counts no longer'
rc=0
PSD_RUNTIME_DIR=$work/rogue_run timeout 60 "$PSD_PROGRAM" --data-dir "$work/rogue8" \
    --listen tcp://127.0.0.1:0 --name n8 --token-file "$work/n8.token" >"$work/rogue8.log" 2>&1 ||
    rc=$?
[ "$rc" -eq 4 ] || fail "a node by a token of one who was no admin for a while: $rc"
grep -q 'the token for node "n8" counts no longer' "$work/rogue8.log" ||
    fail "$(cat "$work/rogue8.log")"
owner 0 auth deny boss

# ---- somebody else got in under that name meanwhile ----
expect 0 auth keygen carol --file "$work/carol1.key"
owner 0 auth allow carol --role metrics --key="$(public "$work/carol1.key")"
accept 2 "$work/carol.token" --file "$work/carol2.key"
err_has 'the key is in .*carol2.key, and is not let in: .*there is a principal carol already'

# ---- of a node that has not come ----
owner 0 node invite n9
owner 0 auth deny node.n9
out_is 'node.n9 is no principal; its token is void'

# ---- of a node for a client, and the reverse ----
owner 0 node invite n7
cp "$work/out" "$work/n7.token"
accept 4 "$work/n7.token"
err_has 'the token lets in node "n7", and no client: "psd --token-file FILE" takes it'
invite erin --role job
rc=0
PSD_RUNTIME_DIR=$work/rogue_run timeout 60 "$PSD_PROGRAM" --data-dir "$work/rogue" --listen tcp://127.0.0.1:0 --name erin \
    --token-file "$work/erin.token" >"$work/rogue.log" 2>&1 || rc=$?
[ "$rc" -eq 4 ] || fail "a client's token for a node: $rc"
grep -q 'the token lets in client "erin", and no node' "$work/rogue.log" ||
    fail "$(cat "$work/rogue.log")"
accept 0 "$work/erin.token" # it was not used up

# ---- no token at all ----
sed 's/#[^#]*$/#0000000000000000000000000000000000000000000000000000000000000001/' \
    "$work/erin.token" >"$work/wrong.token"
accept 4 "$work/wrong.token"
err_has 'is no token that counts here; an admin makes another one: pscli auth invite NAME'
accept 2 /dev/null
err_has 'that is no token; allowed: the line that "pscli node invite" or "pscli auth invite" prints'
accept 2 /dev/null "$(cat "$work/erin.token")"
err_has 'FILE is a token; allowed: the path of a file'
! grep -qF "$(sed 's/.*#//' "$work/erin.token")" "$work/err" || fail "pscli shows a token"
chmod 644 "$work/erin.token"
accept 2 /dev/null "$work/erin.token"
err_has 'others may read the token in'
sed "s/#[0-9a-f]*#/#$(printf '%064d' 9)#/" "$work/wrong.token" >"$work/server.token"
accept 4 "$work/server.token"
err_has 'has another key than the endpoint names'
PSD_KEY_FILE=$work/alice2.key expect 4 auth invite mallory --role admin
owner 2 auth invite mallory --role node
err_has 'role "node"; allowed: admin, operator, job, reader, metrics'
owner 2 auth invite mallory
err_has '--role is missing'
owner 2 auth invite mallory --role job --tables 'x*'
err_has '--jobs is missing beside --tables'
owner 2 auth invite mallory --role job --tables 'x y' --jobs '*'
owner 2 auth invite node.n0 --role job
err_has 'principal node.n0 is a node; choose another name'

# ---- void after another start ----
invite frank --role reader
kill_node n0
port=${named%#*}
node n0 '' "${port##*:}"
accept 4 "$work/frank.token"
err_has 'is no token that counts here'
cli_finish
