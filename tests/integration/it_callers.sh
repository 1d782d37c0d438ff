#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# psd knows who asks: a user of this host over ipc by the uid, over tcp the address. The history
# says who changed something. A psd that cannot learn who connects does not start.
# shellcheck source-path=SCRIPTDIR source=nodes_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes_lib.sh"
export PSD_SHARDS=1 PSD_LANE_PEERS=group PSD_RUNTIME_DIR=$work/run
chmod 711 "$work"
me=$(id -u)

nodes 1 ''
ipc=ipc://$work/run/psd.ipc
expect 0 auth whoami
out_is '127.0.0.1: no principal'
expect 0 --endpoint "$ipc" auth whoami
out_is "uid $me: no principal"
expect 0 table create t0 --rows 8
expect 0 auth allow alice --role admin --uid "$me"
expect 0 --endpoint "$ipc" auth whoami
out_is "alice (uid $me)"
expect 0 --endpoint "$ipc" auth whoami -o json
out_has '"principal": *"alice"'
out_has "\"uid\": *$me"
out_has '"key": *null'
expect 0 --endpoint "$ipc" table create t1 --rows 8
expect 0 --endpoint "$ipc" table drop t0 --yes
expect 0 auth allow bob --role admin --uid 4000000000
expect 0 auth deny alice
expect 0 --endpoint "$ipc" auth whoami
out_is "alice (uid $me): denied"
expect 0 cluster events
out_has 'table +.*t0.*, by 127.0.0.1$'
out_has "table +.*t1.*, by alice \\(uid $me\\)\$"
out_has "drop +.*t0.*, by alice \\(uid $me\\)\$"
out_has 'principal alice is denied, by 127.0.0.1$'

# Another user of this host. 65534 stands for all that the kernel cannot name.
expect 2 auth allow nobody --role reader --uid 65534
if [ "$me" -eq 0 ]; then
    as_user() {
        setpriv --reuid="$1" --regid=0 --clear-groups \
            "$PSCLI_PROGRAM" --endpoint "$ipc" auth whoami 2>"$work/err"
    }
    who=$(as_user 12345)
    [ "$who" = 'uid 12345: no principal' ] || fail "another user: $who"
    expect 0 auth allow guest --role reader --uid 12345
    who=$(as_user 12345)
    [ "$who" = 'guest (uid 12345)' ] || fail "another user with a principal: $who"
    who=$(as_user 65534)
    [ "$who" = 'an unknown peer: no principal' ] || fail "a user that has no uid here: $who"
else
    echo "skip: not root, so no other user asks"
fi
end_nodes

# ---- without the thread that is asked who connects ----
# refuses WHAT COMMAND...: it exits with 1 and says why, and nothing listens.
refuses() {
    local what=$1 code=0
    shift
    LD_PRELOAD=$NO_ZAP timeout 60 "$@" >"$work/refused" 2>&1 || code=$?
    [ "$code" -eq 1 ] || fail "$what: exit code $code"
    grep -q 'learns who connects (ZAP) cannot start: bind' "$work/refused" ||
        fail "$what: no reason: $(tail -3 "$work/refused")"
    if grep -q 'listening control=' "$work/refused"; then
        fail "$what: it listens"
    fi
}
if [ -n "${NO_ZAP:-}" ]; then
    port=$((20000 + $$ % 10000))
    refuses psd "$PSD_PROGRAM" --data-dir "$work/none" --listen "tcp://127.0.0.1:$port"
    expect 3 --endpoint "tcp://127.0.0.1:$port" --timeout 2s auth whoami
    [ ! -e "$work/none/endpoints.json" ] || fail "it was announced"
    refuses embed env PSD_ENDPOINT=embed: "$ROLE_PROGRAM"
fi
cli_finish
