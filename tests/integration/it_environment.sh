#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Other systems' variables (lib/transport/environment/aliases.def). Every row of the table
# has a line "row FAMILY NAME SETTING" here, and after it checks that see its effect:
# in a program's behaviour, in psd's settings, or in pscli env where only a launch shows
# it. CLI_WORKER and PSD_WORKER_PROGRAM come from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
export PSD_ALIASES=dmlc,overlay,dmtk,parameter_server
unset PSD_WORKERS_LOST_AFTER_MS
cli_start
endpoint=$PSCLI_ENDPOINT
port=${endpoint##*:}
unset PSCLI_ENDPOINT
printf '0 127.0.0.1:1\n1 127.0.0.1:%s\n' "$port" >"$work/endpoints"
printf 'SET_SCHEDULE_RATIO 0.5\n' >"$work/lines"
printf 'SET_SCHEDULE_RATIO x\n' >"$work/wrong"
printf 'ADD_CONNECTION 0 1\nSET_SCHEDULE_NUM 3\n' >"$work/far"
named=
n_seen=1

# row FAMILY NAME SETTING: what is checked from here on. Each row needs a check.
row() {
    [ "$n_seen" -gt 0 ] || fail "$named: nothing sees its effect"
    named="$2"
    n_seen=0
}

# says SETTING VALUE VARIABLE=TEXT...: what pscli env shows, and that it names the row.
says() {
    local setting=$1 value=$2
    shift 2
    run_with "$@" -- env -o tsv
    grep -q "^$setting	$value	$named\(, [A-Z_]*\)\?	" "$work/out" ||
        grep -q "^$setting	$value	[A-Z_]*, $named	" "$work/out" ||
        { fail "$*: not $setting $value"; show; }
    n_seen=$((n_seen + 1))
}

run_with() {
    local variables=()
    while [ "$1" != -- ]; do
        variables+=("$1")
        shift
    done
    shift
    rc=0
    env "${variables[@]}" "$PSCLI_PROGRAM" "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
    n_checked=$((n_checked + 1))
}

# refused TEXT VARIABLE=TEXT...: by pscli env, naming the row.
refused() {
    local text=$1
    shift
    run_with "$@" -- env
    [ "$rc" -eq 2 ] || fail "$*: exit code $rc"
    err_has "$named.*$text"
    n_seen=$((n_seen + 1))
}

# idles: the row sets nothing, and pscli env says why.
idles() {
    run_with "$named=1" -- env -o tsv
    out_has "^$named	1	nothing to do: [a-z]"
    n_seen=$((n_seen + 1))
}

# config KEY VALUE VARIABLE=TEXT...: what psd makes of it.
config() {
    local key=$1 value=$2
    shift 2
    env "$@" "$PSD_PROGRAM" --data-dir "$work/other" --print-config >"$work/out" 2>"$work/err"
    grep -Eq "^ *$key: *\[?\"?$value\"?\]? +# PSD_" "$work/out" ||
        { fail "$*: psd has not $key $value"; grep " $key:" "$work/out"; cat "$work/err"; }
    n_checked=$((n_checked + 1))
    n_seen=$((n_seen + 1))
}

# works PATTERN VARIABLE=TEXT...: cli_worker's output, in a job of its own.
n_jobs=0
works() {
    local pattern=$1
    shift
    n_jobs=$((n_jobs + 1))
    env "PSD_JOB=j$n_jobs" "$@" "$CLI_WORKER" t 1 >"$work/out" 2>"$work/err" ||
        { fail "$*: the worker failed"; show; }
    out_has "$pattern"
    n_checked=$((n_checked + 1))
    n_seen=$((n_seen + 1))
}

# job FIELD VALUE: of the last worker's job.
job() {
    run --endpoint "$endpoint" job inspect "j$n_jobs" -o json
    out_has "\"$1\": *$2"
    n_seen=$((n_seen + 1))
}

# worker_fails PATTERN VARIABLE=TEXT...: psd-worker's error.
worker_fails() {
    local pattern=$1
    shift
    env PSD_JOB=never "$@" "$PSD_WORKER_PROGRAM" >"$work/out" 2>"$work/err" &&
        fail "$*: the worker went on"
    err_has "$pattern"
    n_checked=$((n_checked + 1))
    n_seen=$((n_seen + 1))
}

here="PSD_ENDPOINT=$endpoint"
expect 0 --endpoint "$endpoint" table create t --rows 10

row dmlc DMLC_PS_ROOT_URI PSD_ENDPOINT
works 'worker 0' DMLC_PS_ROOT_URI=127.0.0.1 "DMLC_PS_ROOT_PORT=$port"
says PSD_ENDPOINT tcp://a:1 DMLC_PS_ROOT_URI=a DMLC_PS_ROOT_PORT=1
refused 'DMLC_PS_ROOT_PORT is not; set both' DMLC_PS_ROOT_URI=127.0.0.1
row dmlc DMLC_PS_ROOT_PORT PSD_ENDPOINT
says PSD_ENDPOINT tcp://a:1 DMLC_PS_ROOT_URI=a DMLC_PS_ROOT_PORT=1
refused 'is "x"; allowed: 0..65535' DMLC_PS_ROOT_URI=a DMLC_PS_ROOT_PORT=x
refused 'DMLC_PS_ROOT_URI is not; set both' DMLC_PS_ROOT_PORT=1
row dmlc DMLC_NUM_WORKER PSD_WORKERS
works 'worker 0' "$here" DMLC_NUM_WORKER=3
job expected 3
refused 'is "0"; allowed: 1..4096' DMLC_NUM_WORKER=0
row dmlc DMLC_NUM_SERVER PSD_SERVERS
works 'worker 0' "$here" DMLC_NUM_SERVER=1
worker_fails '2 of 3 servers are missing after 15000 ms .*; there: [a-z]' \
    "$here" DMLC_NUM_SERVER=3 PSD_TIMEOUT_MS=15000
row dmlc DMLC_ROLE PSD_ROLE
says PSD_ROLE scheduler DMLC_ROLE=scheduler
worker_fails 'DMLC_ROLE makes PSD_ROLE "server", and this program joins as a worker' \
    "$here" DMLC_ROLE=server
refused 'is "master"; allowed: worker, server, scheduler' DMLC_ROLE=master
row dmlc DMLC_WORKER_ID PSD_WORKER
works 'worker 2' "$here" DMLC_WORKER_ID=2 PSD_WORKERS=3
row dmlc DMLC_RANK PSD_WORKER
works 'worker 1' "$here" DMLC_RANK=1 PSD_WORKERS=3
refused 'differ: one makes PSD_WORKER "2", the other "1"; unset one' DMLC_RANK=1 DMLC_WORKER_ID=2
works 'worker 3' "$here" DMLC_RANK=1 DMLC_WORKER_ID=2 PSD_WORKER=3 PSD_WORKERS=4
row dmlc DMLC_TASK_ID PSD_WORKER
works 'worker 2' "$here" DMLC_TASK_ID=2 PSD_WORKERS=3
says PSD_WORKER 2 DMLC_TASK_ID=2
named=DMLC_RANK
says PSD_WORKER 1 DMLC_TASK_ID=2 DMLC_RANK=1
row dmlc DMLC_NODE_HOST PSD_LISTEN_ENDPOINTS
config endpoints tcp://127.0.0.2:0 DMLC_NODE_HOST=127.0.0.2
row dmlc DMLC_INTERFACE PSD_LISTEN_ENDPOINTS
config endpoints tcp://127.0.0.1:0 DMLC_INTERFACE=lo
refused 'no such interface' DMLC_INTERFACE=none0
row dmlc PORT PSD_LISTEN_ENDPOINTS
config endpoints tcp://127.0.0.1:7777 PORT=7777 DMLC_ROLE=server
run_with PORT=7777 -- env
out_has 'PORT +7777 +not read: DMLC_ROLE is not set'
row dmlc PS_NETWORK_PREFIX PSD_LISTEN_ENDPOINTS
config endpoints tcp://127.0.0.1:0 PS_NETWORK_PREFIX=127.0
row dmlc DMLC_LOCAL PSD_TRANSPORT
says PSD_TRANSPORT ipc DMLC_LOCAL=1
works 'worker 0' "$here" DMLC_LOCAL=1
row dmlc DMLC_PS_VAN_TYPE PSD_TRANSPORT
says PSD_TRANSPORT tcp DMLC_PS_VAN_TYPE=p3
worker_fails 'DMLC_PS_VAN_TYPE is "ibverbs"; allowed: zmq, p3 .*there is no RDMA transport' \
    "$here" DMLC_PS_VAN_TYPE=ibverbs
row dmlc DMLC_ENABLE_RDMA -
worker_fails 'DMLC_ENABLE_RDMA is set, and psd refuses it: .*RDMA' "$here" DMLC_ENABLE_RDMA=1
row dmlc DMLC_PS_WATER_MARK PSD_LIMITS_HIGH_WATER
config high_water 2000 DMLC_PS_WATER_MARK=2000
row dmlc PS_VERBOSE PSD_LOG_LEVEL
config level debug PS_VERBOSE=2
refused 'is "3"; allowed: 0, 1, 2' PS_VERBOSE=3
row dmlc PS_HEARTBEAT_INTERVAL PSD_WORKERS_HEARTBEAT_MS
config heartbeat_ms 1000 PS_HEARTBEAT_INTERVAL=1
row dmlc PS_HEARTBEAT_TIMEOUT PSD_WORKERS_LOST_AFTER_MS
config lost_after_ms 9000 PS_HEARTBEAT_TIMEOUT=9
config lost_after_ms 60000 PS_HEARTBEAT_TIMEOUT=60
row dmlc PS_RESEND -
idles
row dmlc PS_RESEND_TIMEOUT -
idles
row dmlc DMLC_USE_KUBERNETES -
idles
row dmlc DMLC_JOB_CLUSTER -
idles
row dmlc DMLC_TRACKER_URI -
idles
row dmlc DMLC_TRACKER_PORT -
idles
row dmlc PS_DROP_MSG -
worker_fails 'PS_DROP_MSG is set, and psd refuses it' "$here" PS_DROP_MSG=10
works 'worker 0' "$here" PS_DROP_MSG=0

row overlay ENABLE_LEMETHOD PSD_OVERLAY
says PSD_OVERLAY pairs ENABLE_LEMETHOD=1
works 'worker 0' "$here" ENABLE_LEMETHOD=1
worker_fails 'ENABLE_LEMETHOD makes PSD_OVERLAY "pairs", which needs max_delay 0; it is 2' \
    "$here" ENABLE_LEMETHOD=1 PSD_MAX_DELAY=2
works 'worker 0' "$here" ENABLE_LEMETHOD=0
row overlay ENABLE_TSENGINE PSD_OVERLAY
says PSD_OVERLAY queue ENABLE_TSENGINE=1
works 'worker 0' "$here" ENABLE_TSENGINE=1
refused 'differ: one makes PSD_OVERLAY' ENABLE_TSENGINE=1 ENABLE_LEMETHOD=1
row overlay ENABLE_TS PSD_OVERLAY
says PSD_OVERLAY queue ENABLE_TS=1
row overlay LEMETHOD_CONNECTION_TYPE PSD_OVERLAY_LINKS
says PSD_OVERLAY_LINKS listed LEMETHOD_CONNECTION_TYPE=2
refused 'is "3"; allowed: 0, 1, 2' LEMETHOD_CONNECTION_TYPE=3
works 'worker 0' "$here" ENABLE_LEMETHOD=1 LEMETHOD_CONNECTION_TYPE=0
works 'worker 0' "$here" ENABLE_LEMETHOD=1 LEMETHOD_CONNECTION_TYPE=2 "LEMETHOD_CONF_PATH=$work/lines"
worker_fails 'PSD_OVERLAY_LINKS is "listed", and PSD_OVERLAY_FILE, which lists them, is not set; set both' \
    "$here" ENABLE_LEMETHOD=1 LEMETHOD_CONNECTION_TYPE=2
worker_fails 'LEMETHOD_CONNECTION_TYPE makes PSD_OVERLAY_LINKS "listed", and PSD_OVERLAY is "tree"; allowed with: pairs, queue' \
    "$here" PSD_OVERLAY=tree LEMETHOD_CONNECTION_TYPE=2
row overlay LEMETHOD_CONF_PATH PSD_OVERLAY_FILE
says PSD_OVERLAY_FILE "$work/lines" "LEMETHOD_CONF_PATH=$work/lines"
refused 'wrong.*1.*SET_SCHEDULE_RATIO' "LEMETHOD_CONF_PATH=$work/wrong"
worker_fails "LEMETHOD_CONF_PATH: $work/wrong:1: SET_SCHEDULE_RATIO is \"x\"; a number from 0 to 1 is allowed" \
    "$here" ENABLE_LEMETHOD=1 "LEMETHOD_CONF_PATH=$work/wrong"
worker_fails "LEMETHOD_CONF_PATH: $work/none cannot be read: No such file" \
    "$here" ENABLE_LEMETHOD=1 LEMETHOD_CONNECTION_TYPE=0 "LEMETHOD_CONF_PATH=$work/none"
mkfifo "$work/fifo"
worker_fails "LEMETHOD_CONF_PATH: $work/fifo is no regular file" \
    "$here" ENABLE_LEMETHOD=1 "LEMETHOD_CONF_PATH=$work/fifo"
worker_fails "LEMETHOD_CONF_PATH: $work is no regular file" \
    "$here" ENABLE_LEMETHOD=1 "LEMETHOD_CONF_PATH=$work"
worker_fails "LEMETHOD_CONF_PATH: $work/far:2: SET_SCHEDULE_NUM is \"3\"; a whole number from 1 to 2 is allowed" \
    "$here" ENABLE_LEMETHOD=1 PSD_WORKERS=2 "LEMETHOD_CONF_PATH=$work/far"
worker_fails "LEMETHOD_CONF_PATH makes PSD_OVERLAY_FILE \"$work/lines\", and PSD_OVERLAY is \"auto\"; allowed with: pairs, queue" \
    "$here" PSD_OVERLAY=auto "LEMETHOD_CONF_PATH=$work/lines"
row overlay GREED_RATE PSD_OVERLAY_GREED
says PSD_OVERLAY_GREED 0.25 GREED_RATE=0.25
refused 'is "1.5"; allowed: 0..1' GREED_RATE=1.5
worker_fails 'GREED_RATE is "-0.1"; allowed: 0..1' "$here" ENABLE_LEMETHOD=1 GREED_RATE=-0.1
worker_fails 'GREED_RATE is "much"; allowed: 0..1' "$here" ENABLE_TSENGINE=1 GREED_RATE=much
worker_fails 'GREED_RATE makes PSD_OVERLAY_GREED "0.5", and PSD_OVERLAY is "tree"; allowed with: pairs, queue' \
    "$here" PSD_OVERLAY=tree GREED_RATE=0.5
refused 'differ: one makes PSD_OVERLAY_GREED' GREED_RATE=0.5 MAX_GREED_RATE=0.6
works 'worker 0' "$here" ENABLE_LEMETHOD=1 GREED_RATE=1
row overlay MAX_GREED_RATE PSD_OVERLAY_GREED
says PSD_OVERLAY_GREED 0.9 MAX_GREED_RATE=0.9
row overlay MAX_GREED_RATE_TS PSD_OVERLAY_GREED
says PSD_OVERLAY_GREED 0.9 MAX_GREED_RATE_TS=0.9
row overlay ENABLE_INTER_TS PSD_OVERLAY_BETWEEN
says PSD_OVERLAY_BETWEEN queue ENABLE_INTER_TS=1
works 'worker 0' "$here" ENABLE_INTER_TS=1
worker_fails 'ENABLE_INTER_TS makes PSD_OVERLAY_BETWEEN "queue", and PSD_OVERLAY makes the overlay "tree"; allowed with it: off, tree' \
    "$here" PSD_OVERLAY=tree ENABLE_INTER_TS=1
worker_fails 'PSD_OVERLAY_BETWEEN makes PSD_OVERLAY_BETWEEN "tree", and PSD_OVERLAY makes the overlay "auto"; allowed with it: off$' \
    "$here" PSD_OVERLAY=auto PSD_OVERLAY_BETWEEN=tree
worker_fails 'ENABLE_INTER_TS makes PSD_OVERLAY_BETWEEN "queue", and PSD_OVERLAY_WITHIN is "off"' \
    "$here" PSD_OVERLAY_WITHIN=off ENABLE_INTER_TS=1
works 'worker 0' "$here" PSD_OVERLAY=off ENABLE_INTER_TS=1
row overlay ENABLE_INTRA_TS PSD_OVERLAY_WITHIN
says PSD_OVERLAY_WITHIN queue ENABLE_INTRA_TS=1
works 'worker 0' "$here" ENABLE_INTRA_TS=1
worker_fails 'ENABLE_INTRA_TS makes PSD_OVERLAY_WITHIN "queue", and ENABLE_LEMETHOD makes the overlay "pairs"; allowed with it: off, pairs' \
    "$here" ENABLE_LEMETHOD=1 ENABLE_INTRA_TS=1
worker_fails 'PSD_SITE is "a:0": "a:0" names no site; allowed: NAME, or NAME:N,NAME:N,' \
    "$here" PSD_OVERLAY=tree PSD_SITE=a:0
PSD_SITE='two words' expect 2 env
err_has 'PSD_SITE is "two words": "two words" names no site'
row overlay ENABLE_AGGREGATION PSD_OVERLAY_UP
says PSD_OVERLAY_UP off ENABLE_AGGREGATION=0
row overlay ENABLE_DISTRIBUTION PSD_OVERLAY_DOWN
says PSD_OVERLAY_DOWN off ENABLE_DISTRIBUTION=0

row dmtk num_servers PSD_SERVERS
works 'worker 0' "$here" num_servers=1
says PSD_SERVERS 2 num_servers=2
row dmtk num_servers PSD_ENDPOINT
says PSD_ENDPOINT embed: num_servers=0
refused 'is 0, a server in every process: .* there are 2' num_servers=0 PSD_WORKERS=2
row dmtk num_aggregator -
idles
row dmtk num_trainers PSD_TRAINERS
says PSD_TRAINERS 4 num_trainers=4
row dmtk max_delay PSD_MAX_DELAY
works 'worker 0' "$here" max_delay=5
job max_delay 5
row dmtk num_lock PSD_LOCKS
says PSD_LOCKS 7 num_lock=7
row dmtk lock_option PSD_LOCK
says PSD_LOCK lock-free lock_option=LockFree
row dmtk is_pipeline PSD_PIPELINE
says PSD_PIPELINE off is_pipeline=false
row dmtk server_endpoint_file PSD_ENDPOINT
works 'worker 0' "server_endpoint_file=$work/endpoints"
refused 'No such file' server_endpoint_file=/none
row dmtk config PSD_ENDPOINT
works 'worker 0' "config=$work/endpoints"
row dmtk serverid PSD_NODE_NAME
config name server-3 serverid=3
row dmtk workers PSD_WORKERS
works 'worker 0' "$here" workers=2
job expected 2
row dmtk endpoint PSD_LISTEN_ENDPOINTS
config endpoints tcp://127.0.0.1:5555 endpoint=127.0.0.1:5555
row dmtk loglevel PSD_LOG_LEVEL
config level error loglevel=fatal
row dmtk logfile -
refused 'standard error: redirect that' logfile=x
row dmtk ps_role PSD_ROLE
says PSD_ROLE both ps_role=default
row dmtk machine_file PSCLI_HOSTFILE
printf '127.0.0.9\n' >"$work/hosts"
run_with "machine_file=$work/hosts" "$here" -- run -n 1 --launcher ssh --dry-run -- true
out_has '127\.0\.0\.9'
n_seen=1
row dmtk sync PSD_MAX_DELAY
works 'worker 0' "$here" sync=false
job max_delay -1
row dmtk ma PSD_COMBINE
run_with "$here" ma=true -- table create averaged --rows 10
run --endpoint "$endpoint" table inspect averaged -o json
out_has '"combine": *"clock-mean"'
n_seen=1

row parameter_server num_servers PSD_SERVERS
says PSD_SERVERS 2 num_servers=2
row parameter_server num_workers PSD_WORKERS
works 'worker 0' "$here" num_workers=2
job expected 2
row parameter_server num_unused PSD_SPARES
worker_fails '1 of 2 servers are missing' "$here" num_servers=1 num_unused=1 PSD_TIMEOUT_MS=15000
row parameter_server num_replicas PSD_REPLICAS
run_with "$here" num_replicas=1 -- table create copied --rows 10
err_has 'copied wants copies on 2 nodes; 1 are up'
n_seen=1
row parameter_server num_threads PSD_SHARDS
config shards 3 num_threads=3
node="role:SERVER,hostname:'127.0.0.1',port:8123,id:'S0'"
row parameter_server my_node PSD_ROLE
says PSD_ROLE server "my_node=$node"
refused 'allowed: role:SERVER,hostname' my_node=S0
row parameter_server my_node PSD_LISTEN_ENDPOINTS
config endpoints tcp://127.0.0.1:8123 "my_node=$node"
row parameter_server scheduler PSD_ENDPOINT
works 'worker 0' "scheduler=role:SCHEDULER,hostname:'127.0.0.1',port:$port,id:'H'"
row parameter_server bind_to PSD_LISTEN_ENDPOINTS
config endpoints tcp://127.0.0.1:8124 bind_to=8124
row parameter_server interface PSD_LISTEN_ENDPOINTS
config endpoints tcp://127.0.0.1:0 interface=lo
row parameter_server report_interval PSD_WORKERS_HEARTBEAT_MS
config heartbeat_ms 1000 report_interval=1
row parameter_server app_file -
refused 'a program reads its own file' app_file=x
row - - -

# What ps-lite's default handle becomes: no alias says it, so the variable is its origin.
run_with PSD_PS_REPLICAS=2 -- env -o tsv
grep -q "^PSD_PS_REPLICAS	2	PSD_PS_REPLICAS	" "$work/out" || { fail "PSD_PS_REPLICAS"; show; }
# A family that is not named is not read, and that is said.
run_with PSD_ALIASES=dmlc num_servers=3 -- env
out_has 'num_servers +3 +not read: PSD_ALIASES does not name dmtk'
# Ranks where none is named: the lowest that nobody had.
n_jobs=$((n_jobs + 1))
both=("PSD_JOB=j$n_jobs" "$here" DMLC_ROLE=worker DMLC_NUM_WORKER=2)
env "${both[@]}" "$CLI_WORKER" t 1 >"$work/one" 2>"$work/err" &
one=$!
env "${both[@]}" "$CLI_WORKER" t 1 >"$work/two" 2>"$work/err2" || fail "second worker"
wait "$one" || fail "first worker"
cat "$work/one" "$work/two" | sort >"$work/out"
out_is "$(printf 'worker 0 ready\nworker 1 ready')"
cli_finish
