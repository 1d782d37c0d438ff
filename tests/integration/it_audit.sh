#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The audit at security.level: encrypt: a line for each change and each refusal, with the right
# name; each way of changing the file is found; restarts, a cut end, full and older files.
# shellcheck source-path=SCRIPTDIR source=nodes_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"
# Programs of this user do not find psd by its port: they need the key, as others do.
psd_env=(XDG_STATE_HOME="$work/other" PSD_RUNTIME_DIR="$work/run")
export PSD_SHARDS=1 PSD_SECURITY_LEVEL=encrypt
export PSD_HTTP_LISTEN=off
ipc=ipc://$work/run/psd.ipc
file=$work/n0/audit.jsonl
names=(alice bob carol dave)

as() {
    local key=$work/$1.key
    shift
    PSD_KEY_FILE=$key "$@"
}
owner() {
    expect "$1" --endpoint "$ipc" "${@:2}"
}
# lines PATTERN: how many lines of the file have it.
lines() {
    grep -cE -- "$1" "$file" || :
}
verified() {
    expect 0 auth audit --verify "$1"
    out_has '^verified: '
}

nodes 1 ''
[ "$(stat -c %a "$file")" = 600 ] || fail "mode of audit.jsonl"
for name in "${names[@]}"; do
    expect 0 auth keygen "$name" --file "$work/$name.key"
    owner 0 auth allow "$name" --role job --tables "$name.*" --jobs '*' \
        --key="$(sed -n 's/^public-key //p' "$work/$name.key")"
done
expect 0 auth keygen stranger --file "$work/stranger.key"

# ---- 10 commands a round by five principals, some without the right, and by a stranger ----
# AUDIT_ROUNDS=100 makes a thousand.
rounds=${AUDIT_ROUNDS:-6}
# A change that is asked for again, as psd was slow, has one line; a refusal has two.
before=$(lines '"result":"(OK|NO_JOB)"')
for ((i = 0; i < rounds; i++)); do
    for name in "${names[@]}"; do
        as "$name" expect 0 table create "$name.t$i" --rows 1
    done
    [ "$i" -ge 1 ] || as alice expect 0 table list -o name # is no change
    as alice expect 4 table drop "bob.t$i" --yes
    owner 0 auth deny dave
    owner 0 auth allow dave --role job --tables 'dave.*' --jobs '*'
    as stranger expect 4 table drop alice.t0 --yes
    as bob expect 0 table drop "bob.t$i" --yes
    as carol expect 5 job stop "none-$i" --yes
done
n=$(($(lines '"result":"(OK|NO_JOB)"') - before))
[ "$n" -eq $((8 * rounds)) ] || fail "$n lines of $((8 * rounds)) changes"
for name in "${names[@]}"; do
    [ "$(lines "\"who\":\"$name\",.*\"op\":\"table_create\",\"verb\":\"create\",\"object\":\"table\",\"name\":\"$name\.t[0-9]+\",.*\"result\":\"OK\"")" -eq "$rounds" ] ||
        fail "what $name made"
done
n=$(grep -E '"who":"alice",.*"op":"table_inspect",.*"name":"bob.t[0-9]+",.*"result":"DENIED"' \
    "$file" | grep -o '"name":"[^"]*"' | sort -u | wc -l)
[ "$n" -eq "$rounds" ] || fail "$n requests that alice was refused"
key=$(sed -n 's/^public-key //p' "$work/stranger.key")
n=$(grep -F "\"who\":null,\"uid\":null,\"key\":\"$key\"" "$file" | grep -c '"result":"DENIED"')
[ "$n" -ge $((rounds < 20 ? rounds : 20)) ] || fail "$n times that the stranger was refused"
[ "$(lines '"event":"request",.*"who":null')" -eq "$n" ] || fail "others whom nobody knows"
[ "$(lines "\"who\":\"admin\",\"uid\":$(id -u),.*\"op\":\"auth_deny\",.*\"name\":\"dave\"")" -eq "$rounds" ] ||
    fail "who denied dave"
[ "$(lines '"name":"dave","detail":\{"role":"job","tables":"dave.\*","jobs":"\*"\}')" -eq "$rounds" ] ||
    fail "what dave was allowed"
[ "$(lines '"who":"bob",.*"op":"table_drop",.*"result":"OK"')" -eq "$rounds" ] || fail "what bob dropped"
[ "$(lines '"who":"carol",.*"op":"job_stop",.*"name":"none-[0-9]+",.*"result":"NO_JOB","code":"E')" -eq "$rounds" ] || fail "what was not there"

owner 0 auth allow carol --role reader --tables 'alice.*' --jobs '*' # a row that she may only read
as carol expect 4 push alice.t0 0=1
lines '"who":"carol",.*"op":"PUSH","verb":"write","object":"table","name":"alice.t0",.*"DENIED"' |
    grep -q '[1-9]' || fail "that carol may not push"
as alice expect 0 push alice.t0 0=1
[ "$(lines '"PUSH".*"OK"')" -eq 0 ] || fail "a push is no line"

# ---- the log has each line's number and digest ----
in_log() {
    grep -qE " audit line=$1 who=.* digest=$2\$" "$work/n0.log" ||
        fail "the log has line $1 with digest $2: $(grep -E " audit line=$1 " "$work/n0.log")"
    n_checked=$((n_checked + 1))
}
while read -r line; do
    seq=${line#\{\"seq\":}
    digest=${line##*\"digest\":\"}
    in_log "${seq%%,*}" "${digest%\"\}}"
done < <(grep '"event":"request"' "$file" | tail -n 30)
grep -qE ' audit line=[0-9]+ who=alice address=127.0.0.1 key="[^"]*" op=table_inspect name="bob.t0" result=DENIED ' \
    "$work/n0.log" || fail "the log has who was refused"

# ---- read: by an admin alone ----
owner 0 auth audit -n 3 -o jsonl
[ "$(wc -l <"$out_file")" -eq 3 ] || fail "-n 3: $(cat "$out_file")"
owner 0 auth audit --since 1h
out_has 'alice .*table_inspect .*bob.t3 .*DENIED'
as alice expect 4 auth audit
owner 0 auth audit --who alice --refused -o jsonl
[ "$(grep -c '"who":"alice".*"DENIED"' "$out_file")" -eq "$(wc -l <"$out_file")" ] ||
    fail "--who alice --refused: $(cat "$out_file")"
expect 2 auth audit --verify --refused "$file"
owner 0 auth audit --verify
out_has "^verified: lines 1 to $(wc -l <"$file"), "
verified "$file"
verified "$work/n0"

# ---- a file that was changed (test_audit_chain has each byte and each line) ----
n=$(wc -l <"$file")
# mutated TEXT: the copy is found to be wrong, with that reason.
mutated() {
    expect 1 auth audit --verify "$work/copy"
    out_has "^NOT verified: .*$1"
}
sed '0,/"who":"alice"/s//"who":"mallory"/' "$file" >"$work/copy" # a name
mutated 'line 7: it was changed'
sed 50d "$file" >"$work/copy"
mutated 'line 50: it is number 51, .* removed'
sed '50{h;d};51{G}' "$file" >"$work/copy"
mutated 'line 50: it is number 51, .* moved'
sed 50p "$file" >"$work/copy"
mutated 'line 51: it is number 50, .* inserted'
head -c -5 "$file" >"$work/copy"
mutated 'no end'

# ---- psd itself knows how long it is ----
head -n -3 "$file" >"$work/copy"
cat "$work/copy" >"$file"
owner 1 auth audit --verify
out_has "psd has written number $n"

# ---- a restart goes on; a cut end is noted ----
kill_node n0
head -c -20 "$file" >"$work/copy"
cat "$work/copy" >"$file"
expect 1 auth audit --verify "$file"
node n0 ''
verified "$file"
out_has ', 1 cut, '
grep -q 'audit_cut' "$work/n0.log" || fail "the log says nothing of the cut"
owner 0 auth audit --verify

# ---- one with wrong lines stays, beside a new one ----
kill_node n0
sed -i '3s/"unix_ms":1/"unix_ms":2/' "$file"
node n0 ''
grep -q 'audit_damaged' "$work/n0.log" || fail "the log says nothing of the damage"
verified "$file"
expect 1 auth audit --verify "$work/n0"
out_has 'audit\.[0-9]+\.jsonl: line 3: it was changed'

# ---- none ----
kill_node n0
rm -f "$work"/n0/audit.*
PSD_AUDIT_FILES=0 node n0 ''
owner 2 auth audit
[ ! -e "$file" ] || fail "audit.files is 0, and there is one"

cli_finish
