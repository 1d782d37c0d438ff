#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pscli auth rotate: a client's key changes again and again under workers that push, without a
# restart, a lost push or a pause; a denied principal loses both keys; the old key is refused
# after its time. PSD_ROTATIONS=100 is the whole of it, with its bound of 2 s on each push.
# shellcheck source-path=SCRIPTDIR source=nodes_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"
# Programs of this user do not find psd by its port: they need the key, as others do.
psd_env=(XDG_STATE_HOME="$work/other" PSD_RUNTIME_DIR="$work/run")
export PSD_SHARDS=1 PSD_SECURITY_LEVEL=encrypt PSD_HTTP_LISTEN=off
ipc=ipc://$work/run/psd.ipc
rotations=${PSD_ROTATIONS:-2}
pause_ms=$((rotations < 100 ? 30000 : 2000)) # a busy machine may be slow
key_file=$work/alice.key
workers=()

as() {
    local file=$work/$1.key
    shift
    PSD_KEY_FILE=$file "$@"
}
owner() {
    expect "$1" --endpoint "$ipc" "${@:2}"
}
public() {
    sed -n 's/^public-key //p' "$1"
}
end_workers() {
    [ ${#workers[@]} -eq 0 ] || kill "${workers[@]}" 2>/dev/null
}
trap 'end_workers; end_nodes; cli_end' EXIT

nodes 1 ''
for name in alice bob mallory; do
    expect 0 auth keygen "$name" --file "$work/$name.key"
    [ "$name" = mallory ] || owner 0 auth allow "$name" --role job --tables "$name.*" --jobs '*' \
        --key="$(public "$work/$name.key")"
done
owner 0 table create alice.w --rows 4

# ---- one rotation ----
before=$(public "$key_file")
cp "$key_file" "$work/first.key"
as alice expect 0 auth rotate
out_has "^alice has a new key in $key_file; the old key, in $key_file.old, counts beside it"
after=$(public "$key_file")
[ "$before" != "$after" ] || fail "the key is the old one"
cmp "$work/first.key" "$key_file.old" || fail "the old file was not kept"
[ ! -e "$key_file.new" ] || fail "the new file has two names"
[ "$(stat -c %a "$key_file")" = 600 ] || fail "mode of the new file"
as alice expect 0 push alice.w 0=1
as first expect 0 push alice.w 0=1
owner 0 auth list -o json
out_has "\"key\": *\"${after//[^a-zA-Z0-9]/.}\""
out_has "\"old_key\": *\"${before//[^a-zA-Z0-9]/.}\""
owner 0 auth list
out_has "^alice .*${after//[^a-zA-Z0-9]/.} +${before//[^a-zA-Z0-9]/.} "
owner 0 cluster events
out_has 'principal alice has a new key, and the old key for a while, by alice'

# ---- what is refused, each in one line ----
as alice expect 1 auth rotate
err_has "the new key is in $key_file.new, and $key_file is as it was; .*: alice has two keys for [0-9]+ s more: wait, or use --grace 0s"
as first expect 4 auth rotate
err_has 'that is the old key of alice: use the new one'
rm "$work/first.key.new"
cmp "$work/first.key" "$key_file.old" || fail "a refused rotation replaced the old file"
for name in alice first; do
    [ ! -e "$work/$name.key.kept" ] || fail "$name.key.kept was left"
done
expect 2 --endpoint "$ipc" auth rotate
err_has 'PSD_KEY_FILE is not set'
as alice expect 2 --endpoint "$ipc" auth rotate
err_has 'not by the key in .*alice.key: use its endpoint over tcp'
as bob expect 2 auth rotate alice
err_has 'the key in .*bob.key is not that of alice'
as bob expect 4 auth rotate alice --key="$(public "$work/mallory.key")"
err_has 'bob \(key .*\) may not change auth'
as mallory expect 4 auth rotate
err_has 'is no principal'
as bob expect 2 auth rotate --key="$(public "$work/mallory.key")"
err_has 'NAME is missing'
owner 2 auth rotate nobody --key="$(public "$work/mallory.key")"
err_has 'there is no principal "nobody"'
owner 2 auth rotate bob --key=short
err_has 'key of bob; allowed: the 40 characters'
owner 2 auth rotate bob --key="$after"
err_has 'the key of bob is that of alice already'
owner 2 auth rotate bob --key="$before"
err_has 'the key of bob is that of alice already'
owner 0 auth allow local --role reader --uid 4242
owner 2 auth rotate local --key="$(public "$work/mallory.key")"
err_has 'local has no key: it is known by its uid'
owner 2 auth rotate node.n0 --key="$(public "$work/mallory.key")"
err_has 'node.n0 is a node, and keys of nodes cannot be changed'
as bob expect 2 auth rotate --grace 31d

# ---- one that did not come to its end goes on ----
# goes_on: the key of FILE.new becomes that of FILE.
goes_on() {
    local key
    key=$(public "$key_file.new")
    as alice expect 0 auth rotate
    [ "$(public "$key_file")" = "$key" ] || fail "the new file was not taken"
    [ ! -e "$key_file.new" ] || fail "the new file stayed"
}
owner 0 auth rotate alice --key="$after" --grace 0s # the old key ends
as first expect 4 push alice.w 0=1
err_has 'is no principal'
rm "$key_file.old"
mkdir "$key_file.old"
as alice expect 1 auth rotate
err_has 'cannot keep .*alice.key as .*alice.key.old: '
as alice expect 0 auth whoami -o json
out_has "\"key\": *\"${after//[^a-zA-Z0-9]/.}\"" # psd was not asked
rmdir "$key_file.old"
goes_on # psd does not know the new key yet, which the refused command has made
owner 0 auth rotate alice --key="$(public "$key_file")" --grace 0s
expect 0 auth keygen alice --file "$key_file.new"
owner 0 auth rotate alice --key="$(public "$key_file.new")"
goes_on # psd knows it
cp "$work/bob.key" "$key_file.new"
as alice expect 2 auth rotate
err_has 'alice.key.new has a key of bob, but that in .*alice.key is of alice: give it another'
rm "$key_file.new"
as alice expect 0 push alice.w 0=1

# ---- again and again, under workers that push ----
owner 0 auth rotate alice --key="$(public "$key_file")" --grace 0s
mkfifo "$work/said"
exec {said}<>"$work/said"
for i in 0 1 2 3; do
    PSD_KEY_FILE=$key_file PSD_ENDPOINT=$PSCLI_ENDPOINT "$STEADY_PUSHER" alice.w 100 \
        >"$work/worker$i" 2>"$work/said" &
    workers+=($!)
done
# each_says TEXT: one line of each worker, whatever else they report meanwhile.
each_says() {
    local n=0 line
    while ((n < 4)); do
        read -r -t 120 -u "$said" line || fail "a worker did not say: $1"
        [[ $line != steady_pusher:* ]] || fail "a worker ended: $line"
        [[ $line != *"$1"* ]] || n=$((n + 1))
    done
}
each_says 'has pushed'
for ((n = 1; n <= rotations; n++)); do
    as alice expect 0 auth rotate --grace 1h
    each_says 'goes on with the new key'
    owner 0 auth rotate alice --key="$(public "$key_file")" --grace 0s
done
kill "${workers[@]}"
sum=0
for i in 0 1 2 3; do
    wait "${workers[$i]}" || fail "worker $i: $(timeout 1 head -n 1 <&"$said")"
    sum=$((sum + $(sed -n 's/ pushes$//p' "$work/worker$i")))
    longest=$(sed -n 's/^longest wait \([0-9]*\) ms$/\1/p' "$work/worker$i")
    [ "$longest" -le "$pause_ms" ] || fail "worker $i waited $longest ms for a push"
done
workers=()
as alice expect 0 pull alice.w 1
out_has "^1 +$sum\$"

# ---- the old key ends when its time is over; the refusal is in the audit ----
cp "$key_file" "$work/last.key"
as alice expect 0 auth rotate --grace 100ms
is_over() {
    ! "$PSCLI_PROGRAM" --endpoint "$ipc" auth list -o json | grep -q '"old_key": *"'
}
wait_for is_over
as last expect 4 push alice.w 0=1
err_has 'is no principal'
as alice expect 0 push alice.w 0=1
grep -F "\"key\":\"$(public "$work/last.key")\"" "$work/n0/audit.jsonl" | grep -q '"result":"DENIED"' ||
    fail "the audit has no refusal of the old key"
grep -q '"who":"alice",.*"op":"auth_rotate",.*"result":"OK"' "$work/n0/audit.jsonl" ||
    fail "the audit has no rotation"
! grep '"op":"auth_rotate"' "$work/n0/audit.jsonl" | grep -q '"name":"[^"]\{40\}"' ||
    fail "the audit has a key as the name of a principal"

# ---- a denied principal loses both keys at once; over a restart, too ----
cp "$key_file" "$work/last.key"
as alice expect 0 auth rotate
kill_node n0
node n0 ''
as last expect 0 auth whoami
as alice expect 0 auth whoami
owner 0 auth deny alice
as alice expect 4 push alice.w 0=1
err_has 'alice \(key .*\) is denied'
as last expect 4 push alice.w 0=1
err_has 'is no principal'
owner 0 auth allow alice --role job --tables 'alice.*' --jobs '*'
as alice expect 0 auth whoami
as last expect 4 auth whoami
cli_finish
