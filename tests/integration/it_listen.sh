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
err_has "the node at ipc://.* offers no tcp, which was asked for"
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
export PSD_LISTEN_SHARD_PORTS=$((first + 1))-$((first + 2))
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
