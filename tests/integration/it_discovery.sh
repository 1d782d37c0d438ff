#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# security.level: encrypt, and one user who types what suffices at plain: tcp://127.0.0.1:PORT. Programs
# of psd's user find its unix socket, its key and that of its admin; so does a node that joins.
# Another user finds nothing, and a file that is not the user's own is not believed.
# shellcheck source-path=SCRIPTDIR source=nodes_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"
export PSD_SHARDS=1 PSD_HTTP_LISTEN=off PSD_SECURITY_LEVEL=encrypt
me=$(id -u)

nodes 1 ''
key=${PSCLI_ENDPOINT#*#}
export PSCLI_ENDPOINT=${PSCLI_ENDPOINT%%#*}
port=${PSCLI_ENDPOINT##*:}
dir=$XDG_STATE_HOME/psd/run/$(uname -n)
file=$dir/127.0.0.1:$port.json
wait_for test -s "$file"
[ "$(stat -c %a "$file" "$dir" | xargs)" = '600 700' ] || fail "modes of $file"

# ---- one user ----
for carrier in auto ipc lane; do
    PSD_TRANSPORT=$carrier expect 0 auth whoami
    out_is "admin (uid $me)"
done
PSD_TRANSPORT=tcp expect 0 auth whoami
out_has '^admin \(key .* from 127\.0\.0\.1\)'
PSD_KEY_FILE=$work/n0/admin.key expect 0 auth whoami
out_has '^admin \(key '
for host in localhost 127.0.0.1; do
    expect 0 --endpoint "tcp://$host:$port#$key" auth whoami
    out_is "admin (uid $me)"
done
expect 0 table create w --rows 8
PSD_TRANSPORT=lane expect 0 push w 1=1
PSD_TRANSPORT=tcp expect 0 push w 1=1
expect 0 pull w 1
out_has '^1 +2$'
expect 0 run --workers 2 -- true

# ---- nodes join as at plain, and their ports do as well ----
node n1 ''
node n2 ''
expect 0 table create copied --rows 8 --replicas 3
expect 0 push copied 1=1
for name in n0 n1 n2; do
    at=$(sed 's/.*"control":"\([^"#]*\)#.*/\1/' "$work/$name/endpoints.json")
    wait_for test -s "$dir/${at#tcp://}.json"
    for carrier in auto tcp; do
        PSD_TRANSPORT=$carrier expect 0 --endpoint "$at" pull copied 1
        out_has '^1 +1$'
    done
done
expect 0 auth list
for name in n0 n1 n2; do
    out_has "^node.$name +allowed +node "
done

# ---- whose word is not taken ----
# unfound WHY: the user has no other way in.
unfound() {
    expect 4 auth whoami
    grep -q 'asks for a key' "$err_file" || fail "$1: $(cat "$err_file")"
}
chmod 620 "$file"
unfound 'others may write it'
chmod 600 "$file"
mv "$file" "$work/aside"
ln -s "$work/aside" "$file"
unfound 'a link'
rm "$file"
sed 's/"net":[0-9]*/"net":1/' "$work/aside" >"$file"
unfound 'of another network namespace'
sed "s/$key/${key//[0-9]/7}/" "$work/aside" >"$file"
expect 4 --endpoint "$PSCLI_ENDPOINT#$key" auth whoami # it names another key
printf '{"control":' >"$file"
unfound 'half a file'
cp "$work/aside" "$file"
if [ "$me" -eq 0 ]; then
    chown nobody "$file"
    unfound 'of another user'
    chown root "$file"
    # Another user, who knows the port, and may even enter the directories.
    chmod 755 "$work" "$XDG_STATE_HOME" "$XDG_STATE_HOME/psd" "$XDG_STATE_HOME/psd/run" "$dir"
    as_nobody() {
        setpriv --reuid=65534 --regid=65534 --clear-groups \
            env HOME=/nonexistent "$PSCLI_PROGRAM" auth whoami >"$out_file" 2>"$err_file"
    }
    rc=0
    as_nobody || rc=$?
    [ "$rc" -eq 4 ] || fail "another user: $rc: $(cat "$err_file")"
    err_has 'asks for a key'
fi
expect 0 auth whoami

# ---- the end ----
kill_node n0
kill_node n1
kill_node n2
expect 3 auth whoami
err_has 'Connection refused'
node n0 other. # sweeps
wait_for test ! -e "$file"
kill "${pids[n0]}"
wait "${pids[n0]}"
unset 'pids[n0]'
[ -z "$(ls "$dir")" ] || fail "left: $(ls "$dir")"
PSD_SECURITY_LEVEL=plain node n0 plain.
[ -z "$(ls "$dir")" ] || fail "plain needs none: $(ls "$dir")"

cli_finish
