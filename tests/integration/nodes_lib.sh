# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Clusters of several psd for tests of pscli, with what cli_lib.sh has; all of
# them have one directory of checkpoints. $job is a program in the background
# that ends with them.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
export PSD_CHECKPOINT_DIR=$work/checkpoints
export PSD_CLUSTER_SUSPECT_AFTER=3000 # a busy machine makes no node silent
export PSD_REGISTRY_VOTERS=1          # … and nobody else lead, where that is not the matter
declare -A pids=()
psd_env=() # variables that psd sees, and clients do not
job=

end_nodes() {
    local name
    if [ -n "$job" ]; then
        kill "$job" 2>/dev/null
        wait "$job" 2>/dev/null
        job=
    fi
    for name in "${!pids[@]}"; do
        kill -KILL "${pids[$name]}" 2>/dev/null
        wait "${pids[$name]}" 2>/dev/null
    done
    pids=()
}
trap 'end_nodes; cli_end' EXIT

# node NAME: starts it; n0 has the registry.
node() {
    local name=$1 join=()
    rm -f "$work/$2$name/endpoints.json"
    [ "$name" = n0 ] || join=(--join "$PSCLI_ENDPOINT")
    env "${psd_env[@]}" PSD_NODE_NAME="$name" "$PSD_PROGRAM" --data-dir "$work/$2$name" \
        --listen "tcp://127.0.0.1:${3:-0}" "${join[@]}" \
        >>"$work/$2$name.log" 2>&1 &
    pids[$name]=$!
    if ! wait_for test -s "$work/$2$name/endpoints.json"; then
        cat "$work/$2$name.log"
        exit 1
    fi
    if [ "$name" = n0 ]; then
        PSCLI_ENDPOINT=$(sed 's/.*"control":"\([^"]*\)".*/\1/' \
            "$work/$2$name/endpoints.json")
        export PSCLI_ENDPOINT
    fi
}

# nodes N NAME: a new cluster of so many.
nodes() {
    local i
    end_nodes
    for ((i = 0; i < $1; i++)); do
        node "n$i" "$2"
    done
}

kill_node() {
    kill -KILL "${pids[$1]}"
    wait "${pids[$1]}" 2>/dev/null
    unset "pids[$1]"
}
