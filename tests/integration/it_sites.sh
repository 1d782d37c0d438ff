#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Workers in sites: what pscli run and PSD_SITE say, what job inspect shows, the bits of a training,
# which are those without, and a plan without the gateway of a site that dies. PSD_LR_PROGRAM comes
# from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
data=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../data/agaricus" && pwd)
train=$work/train.libsvm
gzip -dc "$data/agaricus.train.libsvm.gz" | head -800 >"$train"
export PSD_WORKERS_HEARTBEAT_MS=50
cli_start
export PSD_ENDPOINT=$PSCLI_ENDPOINT
http=$(sed 's/.*"http":"http:\/\/\([^"]*\)".*/\1/' "$work/data/endpoints.json")
n_bundles() {
    exec 3<>"/dev/tcp/${http%:*}/${http##*:}"
    printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
    awk '/^psd_requests_total.*"bundle"/ {n += $2} END {print n + 0}' <&3
    exec 3<&-
}

# ---- what is said ----

# shellcheck disable=SC2016
PSD_SITE=north expect 0 run -n 2 --job said --site east:1,west -- sh -c 'echo "is $PSD_SITE"'
out_has '^\[0\] is east:1,west$'
out_has '^\[1\] is east:1,west$'
expect 2 run -n 2 --site east:0,west -- true
err_has '^pscli: E[0-9]+ --site is "east:0,west": "east:0" names no site; allowed: NAME, or NAME:N,'

# ---- bits ----

# trains NAME ARGS...: a training of four workers, with these of pscli run.
trains() {
    local name=$1
    shift
    expect 0 run -n 4 --job "$name" "$@" -- "$PSD_LR_PROGRAM" --train "$train" --table "$name" \
        --epochs 20 --minibatch 100 --save "$work/$name"
}
# adds_up NAME ARGS...: the same with bundles, and the bits of star. Where workers wait for a
# processor, a training may be over before they have heard of their plan: then one more.
adds_up() {
    local before n name
    before=$(n_bundles)
    for ((n = 1; n <= 10; n++)); do
        name=$1$n
        trains "$name" "${@:2}"
        cmp "$work/star" "$work/$name" || fail "with sites ($name) a training has other bits"
        [ "$(n_bundles)" -gt "$before" ] && return
    done
    fail "$1: ten trainings, and no bundle"
}
PSD_COMBINE=clock-sum trains star
adds_up uneven --overlay tree --site east:1,west:1,east:1,west:1
adds_up turns --overlay pairs --site east:1,west:2,east
PSD_OVERLAY_LISTEN='tcp://127.0.0.1:*' adds_up decides --overlay auto --site east:2,west
PSD_OVERLAY_BETWEEN=tree adds_up between --overlay tree --site east:1,west:1,north

# ---- the plan ----

# shellcheck disable=SC2016
"$PSCLI_PROGRAM" run -n 4 --job dies --overlay tree --site east:1,west:3 -- sh -c \
    'echo $$ >"$0/pid.$PSD_WORKER"; exec "$@"' "$work" "$PSD_LR_PROGRAM" --train "$train" \
    --table dies --epochs 100000 --minibatch 100 >"$work/dies" 2>&1 &
runs=$!
# sends WORKER SITE TO: as job inspect shows it.
sends() {
    run job inspect dies
    grep -Eq "^$1 +tcp://127.0.0.1:[0-9]+ +plain +$2 +$3\$" "$work/out"
}
wait_for sends 3 west 'worker 2' || { fail "worker 3 sends to others"; show; }
for line in '0 east nodes' '1 west nodes'; do
    # shellcheck disable=SC2086
    sends $line || { fail "the plan has no \"$line\""; show; }
done
sends 2 west 'worker 1' || { fail "worker 2 sends to others"; show; }
kill -KILL "$(cat "$work/pid.1")"
wait_for sends 2 west nodes || { fail "nobody is west's gateway"; show; }
sends 3 west 'worker 2' || { fail "worker 3 has no gateway"; show; }
if grep -q '^1 ' "$work/out"; then
    fail "who died is in the plan"
fi
expect 0 run -n 1 --job other -- true # psd goes on
expect 0 job stop dies
wait "$runs" # with the exit code of the one that was killed
cli_finish
