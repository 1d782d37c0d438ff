#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pscli run: environment, lines, exit codes, signals, and a psd of its own; then
# settings: flag, environment, context, default.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
cli_start
export TMPDIR=$work

# The overlay is for all workers, whatever the environment says, and needs clocks in step.
# shellcheck disable=SC2016
PSD_OVERLAY=off expect 0 run -n 2 --job relays --overlay tree -- sh -c 'echo "is $PSD_OVERLAY"'
out_has '^\[0\] is tree$'
out_has '^\[1\] is tree$'
# shellcheck disable=SC2016
expect 0 run -n 1 --job relays --overlay pairs -- sh -c 'echo "is $PSD_OVERLAY"'
out_has '^\[0\] is pairs$'
expect 2 run -n 2 --overlay auto --max-delay 1 -- true
err_has 'overlay auto with --max-delay 1; allowed with it: tree, off'
expect 0 run -n 2 --overlay tree --max-delay 1 --dry-run -- true
expect 2 run -n 2 --overlay ring -- true
err_has 'allowed: off, auto, tree, pairs, queue'
# shellcheck disable=SC2016
expect 0 run -n 3 --job j --max-delay -1 -- bash -c \
    'echo "$PSD_JOB $PSD_WORKER $PSD_WORKERS $PSD_MAX_DELAY $PSD_ENDPOINT"'
for rank in 0 1 2; do
    out_has "^\\[$rank\\] j $rank 3 -1 $PSCLI_ENDPOINT$"
done
# The exit code is that of the first one that failed.
# shellcheck disable=SC2016
expect 1 run -n 3 -- bash -c '[ $PSD_WORKER = 1 ] && exit 1
    for ((i = 0; i < 2000; i++)); do
        grep -q "worker 1 ended with exit code 1" "$0" && exit 3
        read -rt 0.05 <> <(:)
    done' "$work/err"
err_has 'worker 2 ended with exit code 3'
# shellcheck disable=SC2016
expect 137 run -n 2 -o json -- bash -c 'echo on; kill -9 $$'
out_has '"exit":137,"workers":\[\{"worker":0,"exit":137,"signal":9\}'
err_has '^\[1\] on$'
# It is said at once, not when the others have ended.
# shellcheck disable=SC2016
expect 137 run -n 2 -- bash -c '[ $PSD_WORKER = 1 ] || kill -9 $$
    for ((i = 0; i < 2000; i++)); do
        grep -q "worker 0 was killed by signal 9" "$0" && exit 0
        read -rt 0.05 <> <(:)
    done
    exit 200' "$work/err"
expect 127 run -- "$work/no-such-program"
err_has "$work/no-such-program cannot be started: No such file"
expect 0 run -n 2 -- bash -c 'printf "no line end"; printf oops >&2'
out_has '^\[0\] no line end$'
err_has '^\[1\] oops$'
expect 0 run -- bash -c 'head -c 20000 /dev/zero | tr "\0" x; echo'
[ "$(tr -dc x <"$work/out" | wc -c)" -eq 20000 ] || fail "a long line is cut"
# One that fails is started again under its rank, while the others run.
# shellcheck disable=SC2016
expect 3 run -n 2 --restart 2 -- bash -c '[ $PSD_WORKER = 0 ] || exit 0
    echo x >>"$0"
    exit 3' "$work/tries"
err_has 'worker 0 ended with exit code 3; starting it again \(1 of 2\)'
[ "$(wc -l <"$work/tries")" -eq 3 ] || fail "not two restarts"

# A real job.
expect 0 table create ranks --rows 16
expect 0 run -n 4 --job real -- "$CLI_WORKER" ranks 5
expect 0 pull ranks 0-3 -o csv
out_is 'row,0
0,5
1,5
2,5
3,5'
expect 0 job list -o csv
out_has '^real,finished,0,4,5,5,'
# One that fails before it has joined ends the others when one of them has, also
# one that is stopped, or hears no SIGTERM; under a name that was used, too.
expect 0 run -n 4 --job short -- "$CLI_WORKER" ranks 5
# shellcheck disable=SC2016
expect 3 run -n 4 --job short -- bash -c '
    [ $PSD_WORKER = 0 ] && exec sleep 1000
    [ $PSD_WORKER = 1 ] && exit 3
    [ $PSD_WORKER = 2 ] && kill -STOP $$
    trap "" TERM
    "$0" ranks 5
    sleep 1000' "$CLI_WORKER"
err_has 'worker 1 ended with exit code 3'
err_has 'worker 1 never joined job short: stopping the others'
err_has 'worker 3 does not stop: killing it'
err_has 'worker 3 was killed by signal 9'
if grep -q 'worker [02]' "$work/err"; then
    fail "ends are told that are no news"
    show
fi
# Trainings of psd_train.h meet in a job of their own before.
# shellcheck disable=SC2016
expect 3 run -n 2 --job meets -- bash -c '[ $PSD_WORKER = 1 ] && exit 3
    exec "$0" "$1"' "$PSD_TRAIN_PROGRAM" "$0"
err_has 'worker 1 never joined job meets: stopping the others'
# The table is there if worker 0 came that far before it was stopped.
"$PSCLI_PROGRAM" table drop meets.agree2.2 --yes >/dev/null 2>&1 || true

# One that has joined and fails leaves the others at work; so do those of another
# job.
killed_as() {
    local name=$1 said=$work/err
    shift
    # shellcheck disable=SC2016
    "$PSCLI_PROGRAM" run -n 2 --max-delay -1 --job "$name" -- "$@" bash -c '
        [ $PSD_WORKER = 1 ] && exec "$1" ranks 1000000000
        for ((i = 0; i < 2000; i++)); do
            grep -q "worker 1 was killed by signal 9" "$0" && exec "$1" ranks 1
            read -rt 0.05 <> <(:)
        done' "$said" "$CLI_WORKER" >"$work/out" 2>"$work/err" &
    local pid=$! child children
    has_joined() {
        "$PSCLI_PROGRAM" worker list "$joins" -o csv 2>/dev/null |
            grep -q '^1,running,'
    }
    wait_for has_joined || fail "$name: nobody has joined"
    read -ra children <"/proc/$pid/task/$pid/children"
    for child in "${children[@]}"; do
        ! grep -q '^cli_worker' "/proc/$child/comm" || kill -9 "$child"
    done
    rc=0
    wait "$pid" || rc=$?
    n_checked=$((n_checked + 1))
    if [ "$rc" -ne 137 ] || grep -q 'never joined' "$work/err" ||
        ! grep -q 'worker 0 ready' "$work/out"; then
        fail "$name: exit code $rc of a run of which one was killed"
        show
    fi
}
joins=killed
killed_as killed
joins=inner
killed_as outer env PSD_JOB=inner

# Signals reach the workers, also behind a shell, and the third one kills. Those that come
# before pscli has read the last one are one signal: on a busy machine more are sent, but none
# to a pscli that is about to end.
run_and_signal() {
    local want=$1 n=$2 i k
    shift 2
    : >"$work/out"
    # bash starts what runs in the background with SIGINT ignored.
    env --default-signal=INT "$PSCLI_PROGRAM" run -n 2 -- "$@" \
        >"$work/out" 2>"$work/err" &
    local pid=$!
    started() {
        [ "$(grep -c on "$work/out")" -eq 2 ]
    }
    wait_for started || fail "the workers did not start"
    for ((i = 0; i < n; i++)); do
        kill -INT $pid
        read -rt 0.3 <> <(:) || :
    done
    for ((i = 0; n == 3 && i < 10; i++)); do
        for ((k = 0; k < 100; k++)); do
            kill -0 $pid 2>/dev/null || break 2
            read -rt 0.1 <> <(:) || :
        done
        kill -INT $pid 2>/dev/null || :
    done
    rc=0
    wait $pid || rc=$?
    [ $rc -eq "$want" ] || fail "run ended by signals: $rc, not $want"
}
run_and_signal 130 1 bash -c 'echo on; sleep 60; exit'
run_and_signal 137 3 bash -c 'trap "" INT; echo on; while :; do sleep 1; done'
run_and_signal 130 1 bash -c 'trap "exit 7" INT; echo on; sleep 60 & wait'

# A psd of its own, gone afterwards.
dead=tcp://127.0.0.1:1
expect 3 run --endpoint $dead --timeout 200ms -- true
# shellcheck disable=SC2016
expect 0 run --endpoint $dead --servers 1 --psd "$PSD_PROGRAM" -n 2 -- bash -c \
    'PSCLI_ENDPOINT=$PSD_ENDPOINT "$PSCLI_PROGRAM" node list -o jsonl'
out_has '"state":"up"'
err_has 'starting a private one'
own=$(sed -n 's/.*"endpoint":"\([^"]*\)".*/\1/p' "$work/out" | head -1)
expect 3 node list --endpoint "$own" --timeout 200ms
if compgen -G "$work/pscli-run-*" >/dev/null; then
    fail "the private psd's directory stays"
fi
expect 1 run --endpoint $dead --servers 1 --timeout 500ms \
    --psd "$work/nothing" -- true
err_has 'cannot be started as a private psd'
expect 1 run --endpoint $dead --servers 1 --timeout 500ms --psd /bin/false -- true
kill -STOP "$psd_pid"
for timeout in 500ms 1500ms; do
    expect 3 run --servers 1 --timeout $timeout -- true
    if grep -q private "$work/err"; then
        fail "a private psd beside one that is slow"
    fi
done
kill -CONT "$psd_pid"
expect 0 run --servers 1 -- true
if grep -q private "$work/err"; then
    fail "a private psd beside one that runs"
fi
# Neither another psd's directory nor that of the unit that started pscli.
mkdir "$work/others"
touch "$work/others/trainer.pid"
PSD_RUNTIME_DIR=$work/others RUNTIME_DIRECTORY=$work/others \
    expect 0 run --endpoint $dead --servers 1 --psd "$PSD_PROGRAM" -- true

# Settings.
mkdir -p "$work/config/pscli/contexts"
here=$PSCLI_ENDPOINT
printf '# the one of this test\nendpoint = %s\noutput=name\n' "$here" \
    >"$work/config/pscli/contexts/here"
unset PSCLI_ENDPOINT
expect 0 --context here table list
out_is ranks
expect 0 --context here table list -o csv
out_has '^name,rows,'
PSCLI_OUTPUT=jsonl expect 0 --context here table list
out_has '^\{"schema_version":1,"name":"ranks"'
PSCLI_CONTEXT=here expect 0 table list
out_is ranks
PSCLI_ENDPOINT=$dead PSCLI_CONTEXT=here PSCLI_TIMEOUT=200ms expect 3 table list
PSCLI_ENDPOINT=$dead expect 0 table list --endpoint "$here"
PSCLI_TIMEOUT=soon expect 2 table list
err_has 'PSCLI_TIMEOUT is "soon"'
expect 2 --context ../here table list
expect 2 --context nowhere table list
err_has 'contexts/nowhere'
echo 'color=red' >>"$work/config/pscli/contexts/here"
expect 2 --context here table list
err_has 'here:4: color: unknown key'
export PSCLI_ENDPOINT=$here

# --watch goes on until it is stopped.
: >"$work/watched"
"$PSCLI_PROGRAM" table list -o name --watch 10ms >"$work/watched" &
watch_pid=$!
thrice() {
    [ "$(wc -l <"$work/watched")" -ge 3 ]
}
wait_for thrice || fail "--watch does not repeat"
kill $watch_pid
wait $watch_pid 2>/dev/null
# A Slurm that is there and has no settings.
mkdir -p "$work/bin"
printf '#!/bin/sh\necho "srun: fatal: no settings" >&2\nexit 1\n' >"$work/bin/srun"
chmod +x "$work/bin/srun"
PATH=$work/bin:$PATH expect 1 run --launcher slurm -n 1 -- true
err_has 'srun does not start: srun: fatal: no settings'
cli_finish
