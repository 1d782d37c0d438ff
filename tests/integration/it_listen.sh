#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What psd listens on: no tcp port when it has ipc alone, the ports that its
# shards are given, localhost and other names; and a configuration that cannot
# be is refused before anything is opened.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"

# start NAME ARGS…: psd with its data in $work/NAME; ready when this returns.
start() {
    local name=$1
    shift
    "$PSD_PROGRAM" --data-dir "$work/$name" "$@" >"$work/$name.log" 2>&1 &
    psd_pid=$!
    if ! wait_for test -s "$work/$name/endpoints.json"; then
        cat "$work/$name.log"
        exit 1
    fi
}

stop() {
    kill "$psd_pid" && wait "$psd_pid"
    psd_pid=
}

# refused CODE PATTERN ARGS…: psd does not start, and says why.
refused() {
    local code=$1 pattern=$2 rc=0
    shift 2
    n_checked=$((n_checked + 1))
    "$PSD_PROGRAM" --data-dir "$work/refused" "$@" >"$work/refused.log" 2>&1 ||
        rc=$?
    if [ "$rc" -ne "$code" ] || ! grep -Eq -- "$pattern" "$work/refused.log"
    then
        fail "psd $*: exit code $rc, not $code with: $pattern"
        cat "$work/refused.log"
    fi
}

field() {
    sed 's/.*"'"$2"'":"\([^"]*\)".*/\1/' "$work/$1/endpoints.json"
}

# tcp_ports: those that $psd_pid listens on, one a line, in order.
tcp_ports() {
    local fd inode
    for fd in "/proc/$psd_pid/fd"/*; do
        inode=$(readlink "$fd") || continue
        case $inode in
        socket:*)
            inode=${inode#socket:[}
            awk -v inode="${inode%]}" '$10 == inode && $4 == "0A" {
                split($2, at, ":"); print at[2]
            }' /proc/net/tcp /proc/net/tcp6
            ;;
        esac
    done | while read -r port; do echo $((16#$port)); done | sort -n
}

# free_ports N: the first of so many ports, none of which anybody listens on.
free_ports() {
    local first port
    for ((first = 20000 + RANDOM % 10000; first < 32000; first++)); do
        for ((port = first; port < first + $1; port++)); do
            (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
        done
        if [ "$port" -eq $((first + $1)) ]; then
            echo "$first"
            return
        fi
    done
}

is() {
    n_checked=$((n_checked + 1))
    if [ "$2" != "$3" ]; then
        fail "$1 is \"$2\", not \"$3\""
    fi
}

use() {
    expect 0 table create "$1" --rows 100
    expect 0 push "$1" 1=2.5
    expect 0 pull "$1" 1 -o csv
    out_has '^1,2.5$'
}

# ---- ipc alone ----

start ipc --listen "ipc://$work/control.ipc" --shards 2
is "the tcp ports of a node with ipc alone" "$(tcp_ports)" ""
is "its control endpoint" "$(field ipc control)" "ipc://$work/control.ipc"
export PSCLI_ENDPOINT=ipc://$work/control.ipc
use w
expect 0 cluster status
expect 0 node list
PSD_TRANSPORT=tcp PSD_ENDPOINT=$PSCLI_ENDPOINT "$PSD_HELLO_PROGRAM" \
    >"$work/out" 2>"$work/err"
n_checked=$((n_checked + 1))
err_has "tcp was asked for, but the node at ipc://.* offers none"
PSD_TRANSPORT=lane PSD_ENDPOINT=$PSCLI_ENDPOINT "$PSD_HELLO_PROGRAM" \
    >"$work/out" 2>"$work/err" || fail "psd-hello over a lane of ipc alone"

# A second node, and copies between the two, over unix sockets only.
PSD_NODE_NAME=second "$PSD_PROGRAM" --data-dir "$work/second" --shards 1 \
    --listen "ipc://$work/second.ipc" --join "$PSCLI_ENDPOINT" \
    >"$work/second.log" 2>&1 &
second_pid=$!
trap 'kill "$second_pid" 2>/dev/null; cli_end' EXIT
wait_for test -s "$work/second/endpoints.json" || cat "$work/second.log"
expect 0 table create c --rows 100 --replicas 2 --ack replica
expect 0 push c 1=2.5
whole() {
    "$PSCLI_PROGRAM" cluster status 2>/dev/null | grep -q 'problems *none'
}
wait_for whole || { "$PSCLI_PROGRAM" cluster status; fail "copies over ipc"; }
kill "$second_pid" && wait "$second_pid"
stop

# ---- ports of shards ----

first=$(free_ports 3)
export PSD_LISTEN_SHARD_PORTS=$((first + 1))-$((first + 2)) PSD_HTTP_LISTEN=off
start ports --listen "tcp://127.0.0.1:$first" --shards 2
is "the tcp ports with listen.shard_ports" "$(tcp_ports | tr '\n' ' ')" \
    "$first $((first + 1)) $((first + 2)) "
export PSCLI_ENDPOINT=tcp://127.0.0.1:$first
use w
refused 1 "listen.shard_ports: shard 0: .*127.0.0.1:$((first + 1)).*in use" \
    --listen tcp://127.0.0.1:0 --shards 2
refused 2 "listen.shard_ports is .*, which is 2 ports; allowed: .* which is 3" \
    --listen tcp://127.0.0.1:0 --shards 3
refused 2 "of which shard 1 has $((first + 2)), as listen.endpoints has" \
    --listen "tcp://127.0.0.1:$((first + 2))" --shards 2
stop
unset PSD_LISTEN_SHARD_PORTS

# ---- names of hosts ----

start named --listen tcp://localhost:0 --shards 1
case $(field named control) in
tcp://127.0.0.1:*) ;;
*) fail "tcp://localhost:0 is bound as $(field named control)" ;;
esac
PSCLI_ENDPOINT=tcp://localhost:$(tcp_ports | head -1)
case $(field named control) in
*:"${PSCLI_ENDPOINT##*:}") ;;
*) PSCLI_ENDPOINT=tcp://localhost:$(tcp_ports | tail -1) ;;
esac
use w
refused 1 'host "no.such.host.invalid": ' --listen tcp://no.such.host.invalid:0 \
    --config <(echo 'security: {allow_plaintext: true}')

# Three nodes more at once, none of which is given a name; each keeps its own.
# join NAME: starts one; its data is in $work/NAME.
join() {
    rm -f "$work/$1/endpoints.json"
    "$PSD_PROGRAM" --data-dir "$work/$1" --listen tcp://127.0.0.1:0 --shards 1 \
        --join "$PSCLI_ENDPOINT" >>"$work/$1.log" 2>&1 &
    more_pids+=($!)
}
more_pids=()
end_more() {
    [ ${#more_pids[@]} -eq 0 ] || kill "${more_pids[@]}" 2>/dev/null
    [ ${#more_pids[@]} -eq 0 ] || wait "${more_pids[@]}" 2>/dev/null
    more_pids=()
}
trap 'end_more; cli_end' EXIT
first_name=$(field named node)
for round in 1 2; do
    for name in a b c; do
        join $name
    done
    for name in a b c; do
        wait_for test -s "$work/$name/endpoints.json" || cat "$work/$name.log"
    done
    is "the nodes' names, round $round" \
        "$(for name in a b c; do field $name node; done | sort | tr '\n' ' ')" \
        "$first_name-2 $first_name-3 $first_name-4 "
    names=$(for name in a b c; do field $name node; done | tr '\n' ' ')
    [ "$round" -eq 1 ] || is "names that are kept" "$names" "$kept"
    kept=$names
    end_more
done

# ---- a registry of another cluster at the old address: told once ----

port=${PSCLI_ENDPOINT##*:}
join a
wait_for test -s "$work/a/endpoints.json" || cat "$work/a.log"
stop
start other --listen "tcp://localhost:$port" --shards 1
wait_for grep -q registry_refuses "$work/a.log" || cat "$work/a.log"
read -rt 2 <> <(:) || : # in which it was told twenty times
is "how often a foreign registry is told of" \
    "$(grep -c registry_refuses "$work/a.log")" 1
end_more
stop

# ---- no descriptor is left ----

(ulimit -n 80 && exec "$PSD_PROGRAM" --data-dir "$work/few" --shards 1 \
    --listen tcp://127.0.0.1:0) >"$work/few.log" 2>&1 &
psd_pid=$!
wait_for test -s "$work/few/endpoints.json" || cat "$work/few.log"
PSCLI_ENDPOINT=$(field few control)
# Both kinds of sockets, more than there are descriptors; held until it is said.
python3 - "$PSCLI_ENDPOINT" "$(field few ipc)" "$work/held" <<'END' &
import os
import socket
import sys
import time

host, port = sys.argv[1][6:].rsplit(":", 1)
held = []
end = time.monotonic() + 90
while not os.path.exists(sys.argv[3]) and time.monotonic() < end:
    for kind, to in ((socket.AF_UNIX, sys.argv[2][6:]),
                     (socket.AF_INET, (host, int(port)))):
        one = socket.socket(kind)
        one.setblocking(False)
        try:
            one.connect(to)
        except OSError:
            pass
        held.append(one)
    if len(held) > 300:
        for one in held[200:]:
            one.close()
        del held[200:]
    time.sleep(0.01)
END
holder=$!
wait_for grep -q files_out "$work/few.log" || cat "$work/few.log"
is "how often it is told" "$(grep -c files_out "$work/few.log")" 1
touch "$work/held"
wait "$holder"
# While it lasts, and for a few seconds after.
expect_files() {
    "$PSCLI_PROGRAM" --timeout 5s cluster status 2>/dev/null |
        grep -q 'is out of file descriptors'
}
wait_for expect_files || fail "cluster status does not tell of descriptors"
wait_for grep -q files_back "$work/few.log" || cat "$work/few.log"
use w
stop

# ---- a file that cannot be, as a reload looks at it ----

rm -rf "$work/refused"
printf 'lane:\n  peers: everybody\n' >"$work/bad.yaml"
refused 2 'bad.yaml:2: lane.peers is "everybody"; allowed: owner \| group' \
    --config "$work/bad.yaml" --check-config
printf 'listen: {\n' >"$work/bad.yaml"
refused 2 'bad.yaml:.: not YAML' --config "$work/bad.yaml" --check-config
refused 2 'nowhere.yaml' --config "$work/nowhere.yaml" --check-config
printf 'lane:\n  peers: group\nruntime_dir: /run/psd\n' >"$work/good.yaml"
refused 0 '' --config "$work/good.yaml" --check-config
[ ! -e "$work/refused" ] || fail "--check-config took the data directory"

cli_finish
