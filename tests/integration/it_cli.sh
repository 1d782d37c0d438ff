#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every command in every output format, with one error each; and every command
# that needs a psd while none is there.
LOOK_FOR_LEAKS=yes
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"

formats=${CLI_FORMATS:-table wide json jsonl csv tsv name}
mkdir "$work/outputs"
number=0

# keep FORMAT KIND: the last run's output, for cli_formats.py.
keep() {
    number=$((number + 1))
    cp "$work/out" "$work/outputs/$number.$1.$2"
    cp "$work/err" "$work/outputs/$number.$1.words"
}

# expect_kept CODE FORMAT KIND ARGS...: as expect, and the output is kept.
expect_kept() {
    local want=$1 format=$2 kind=$3
    shift 3
    number=$((number + 1))
    run_into "$work/outputs/$number.$format.$kind" "$work/outputs/$number.$format.words" \
        -o "$format" "$@"
    wants "$want" -o "$format" "$@"
}

# good ARGS...: exit code 0 in every format.
good() {
    local format
    for format in $formats; do
        expect_kept 0 "$format" ok "$@"
    done
}

# bad CODE ARGS...: that exit code, as words and as JSON: the other formats write
# errors as one of these, which the first refusal shows.
error_formats=$formats
bad() {
    local want=$1 format
    shift
    for format in $error_formats; do
        expect_kept "$want" "$format" error "$@"
    done
}

cli_start
expect 0 table create w --rows 1e2 --cols 2
expect 0 table create ranks --rows 16
expect 0 table create emb --keys hash --cols 3
expect 0 table create sp --rows 10 --cols 100 --row-format sparse
expect 0 push w 1=0.5,1 3=0.25,2
expect 0 push sp 3:5=1 3:9=2

bad 5 why # no job is running
error_formats="json table"

# A job whose worker 0 waits for worker 1, which never comes.
PSD_ENDPOINT=$PSCLI_ENDPOINT PSD_JOB=lr PSD_WORKER=0 PSD_WORKERS=2 \
    PSD_MAX_DELAY=0 "$CLI_WORKER" ranks 1 hold >"$work/worker" 2>&1 &
worker_pid=$!
waits() {
    "$PSCLI_PROGRAM" why lr 2>/dev/null | grep -q "worker 1"
}
wait_for waits || { cat "$work/worker"; fail "worker 0 does not wait"; }

good cluster status
good cluster events
good cluster events -n 2
for format in $formats; do
    rm -f "$work/backup"
    expect 0 cluster backup --to "$work/backup" -o "$format"
    keep "$format" ok
done
bad 2 cluster backup --to "$work/backup" # is not written over
mode=$(stat -c %a "$work/backup")
[ "$mode" = 600 ] || fail "a backup, with secrets in it, has mode $mode"
bad 6 cluster restore --from "$work/backup" --data-dir "$work/data"
expect 0 cluster restore --from "$work/backup" --data-dir "$work/restored"
bad 2 cluster restore --from "$work/backup" --data-dir "$work/restored"
bad 6 cluster restore --from "$work/psd.log" --data-dir "$work/restored2"
bad 2 cluster backup
good node list
node=$("$PSCLI_PROGRAM" node list -o name)
good node inspect "$node"
good table list
good table inspect w
good table create dry --rows 10 --dry-run
for format in $formats; do
    expect 0 table create "new-$format" --rows 10 -o "$format"
    keep "$format" ok
    expect 0 table drop "new-$format" --yes -o "$format"
    keep "$format" ok
done
good table drop w --dry-run
good table export w --to "$work/w.npy"
good table export w --to "$work/w.csv"
good table export sp --to "$work/sp.txt"
good table import w --from "$work/w.npy"
good table import w --from "$work/w.csv" --dry-run
good table import sp --from "$work/sp.txt"
good push w 1=0.5,1
good push w 1:1=3 --dry-run
good pull w 1,3
good pull w all
good pull w 1-3 --cols 1
good pull sp 3
good pull emb 7
good job list
good job inspect lr
good job stop lr --dry-run
printf 'ADD_CONNECTION 0 1\nSET_SCHEDULE_RATIO 0.25\n' >"$work/lemethod.conf"
good job check-overlay "$work/lemethod.conf" --workers 2
expect 0 job check-overlay "$work/lemethod.conf" --workers 2
out_has '^FROM +TO +REMOVED +LINE$'
out_has '^0 +1 +(no|false) +1$'
good worker list lr
good clock list
good clock inspect lr
good why lr
good why # the only one that runs
expect 0 why
out_has 'worker 1'
err_has '^job lr$'

# Of two jobs one has to be named; one that is watched stays the one.
"$PSCLI_PROGRAM" why --watch 50ms >"$work/watched" 2>&1 &
watcher_pid=$!
watched() {
    [ "$(grep -c '^job lr$' "$work/watched")" -ge "$1" ]
}
wait_for watched 2 || fail "why --watch shows nothing"
PSD_ENDPOINT=$PSCLI_ENDPOINT PSD_JOB=other PSD_WORKER=0 PSD_WORKERS=2 \
    PSD_MAX_DELAY=0 "$CLI_WORKER" ranks 1 hold >"$work/other" 2>&1 &
other_pid=$!
other_waits() {
    "$PSCLI_PROGRAM" why other 2>/dev/null | grep -q "worker 1"
}
wait_for other_waits || { cat "$work/other"; fail "job other does not wait"; }
bad 2 why
err_has '2 jobs are running'
wait_for watched $(($(grep -c '^job lr$' "$work/watched") + 2)) ||
    fail "why --watch has ended with a second job"
kill $watcher_pid
expect 0 job stop other
wait $watcher_pid $other_pid

# Several tables at once: all of them or none.
expect 0 table create one --rows 10
expect 0 table create two --rows 10
bad 5 table drop one nobody --yes
bad 2 table drop one two one --yes
bad 2 table drop one two
err_has 'dropping tables "one", "two" with 20 rows \(80 B\) needs --yes'
expect 0 table inspect one
good table drop one two --dry-run
expect 0 table drop one two --yes -o csv
out_is 'table,dropped,dry_run,rows,bytes
one,true,,10,40
two,true,,10,40'
expect 5 table inspect two
bad 2 checkpoint drop nobody
bad 5 checkpoint drop nobody --yes
good run -n 2 --dry-run true
for format in $formats; do
    expect 0 run -n 2 -o "$format" -- true
    if [ "$format" != table ] && [ "$format" != wide ]; then
        keep "$format" ok
    fi
done
# Three verbs of one code: a bench takes seconds.
short="--sizes 4k --keys 100 --floats 1 --repeats 1 --duration 1ms"
# shellcheck disable=SC2086 # a word each
{
    good bench push $short --transport tcp
    expect 0 bench pull $short --transport tcp
    expect 0 bench pushpull $short --transport tcp
}
good bench latency --requests 10 --repeats 1 --transport ipc
good explain
good explain E2003
good plan --rows 1e6 --cols 16 --updater adagrad --nodes 2 --shards 2
good plan --rows 64M --keys hash --partitions 12 --replicas 2
good plan --rows 1000 --cols 1e5 --row-format sparse --fill 0.01

bad 2 cluster statsu
bad 2 cluster events -n 0
bad 2 node list extra
bad 5 node inspect nobody
bad 2 table create w
bad 6 table create w --rows 10
bad 2 table create v --rows 10 --type f16
bad 2 table list --endpoint nonsense
bad 5 table inspect nobody
bad 2 table drop w
bad 5 table drop nobody --yes
bad 2 table export w
bad 2 table export sp --to "$work/sp.npy"
bad 1 table export w --to "$work/no/such/directory.csv"
bad 2 table import w
bad 1 table import w --from "$work/nothing.csv"
bad 5 push nobody 1=1
bad 1 push w 1=x,1
bad 1 push w 100=1,1
bad 1 push w 1=nan,1
bad 2 push w 1
bad 1 pull w 100
bad 2 pull w 1-
bad 1 pull w 1 --cols 2
bad 2 job list --watch nonsense
bad 5 job inspect nobody
bad 5 job stop nobody
bad 2 job check-overlay "$work/lemethod.conf" --workers 1
err_has 'lemethod.conf:1: ADD_CONNECTION names "1"'
bad 1 job check-overlay "$work/no-such.conf"
printf 'SET_SCHEDULE_NUM 0\n' >"$work/lemethod.conf"
bad 2 job check-overlay "$work/lemethod.conf" --workers 4
err_has 'lemethod.conf:1: SET_SCHEDULE_NUM is "0"; a whole number from 1 to 4 is allowed'
printf 'ADD_CONNECTION site:a 1\n' >"$work/lemethod.conf"
bad 2 job check-overlay "$work/lemethod.conf"
err_has 'lemethod.conf:1: ADD_CONNECTION names "site:a"; a worker.s rank from 0 to 4095 is allowed'
bad 5 worker list nobody
bad 2 clock list --timeout 0
bad 5 clock inspect nobody
bad 5 why nobody
bad 2 run -n 2 --launcher ssh -- true
bad 2 run -n 2 --servers many -- true
PSCLI_ENDPOINT=embed: bad 2 run -n 2 -- true
err_has 'workers need one that they share'
bad 2 run -n 0 -- true
bad 2 bench push --sizes big
bad 2 bench pull --in-flight 0
bad 2 bench pushpull --transport udp
bad 2 bench latency --requests 1
bad 2 bench suite --only nothing
bad 2 explain E9999
bad 2 plan
bad 2 plan --rows 1.5
bad 2 plan --rows 1e9 --fill 0
bad 2 plan --rows 1e9 --fill x
bad 2 plan --rows 10 --updater adaa
bad 2 plan --rows 10 --type i32 --updater adagrad
bad 2 plan --rows 10 --partitions 0
bad 2 plan --rows 1e13
bad 2 completion tcsh
bad 2 help nothing
bad 2 xyzzy list
bad 2 --context nowhere table list

expect 0 job stop lr -o json
out_is '{"schema_version":1,"job":"lr","state":"stopped"}'
wait "$worker_pid"
expect 0 --version -o json
expect 0 --help

# No psd: at once, and with --wait within the deadline: exit code 3, naming the
# endpoint.
kill "$psd_pid"
wait "$psd_pid"
psd_pid=

# down_as FORMAT WORDS ARGS...: the error has the words, and the endpoint.
down_as() {
    local format=$1
    local words=$2
    shift 2
    expect 3 -o "$format" "$@"
    for words in "$words" "$PSCLI_ENDPOINT"; do
        if ! cat "$work/out" "$work/err" | grep -qF "$words"; then
            fail "pscli $*: the error does not say: $words"
            show
        fi
    done
    keep "$format" error
}
down() {
    down_as table 'Connection refused' --timeout 10m "$@"
    down_as json '100 ms' --wait --timeout 100ms "$@"
}
down cluster status
down cluster events
down node list
down node inspect a
down table create v --rows 10
down table create v --rows 10 --dry-run
down table list
down table inspect w
down table drop w --yes
down table export w --to "$work/w2.npy"
down table import w --from "$work/w.npy"
down push w 1=1
down push w --from "$work/w.txt"
down pull w 1
down job list
down job inspect lr
down job stop lr
down worker list lr
down clock list
down clock inspect lr
down why lr
down run -n 1 -- true
down bench push
down bench pull
down bench pushpull
down bench latency
expect 0 explain E3001
expect 0 plan --rows 1.5M --cols 4 --updater adagrad -o csv
out_has '^table,1,8,1500000,24000000,24000000,'
expect 0 plan --rows 1e12 --cols 1000
err_has '^warning: a node needs 3[0-9.]* TiB, and this host has '
expect 0 plan --rows 1000 --shards 16 --quiet -o name
out_has '^partition$'
expect 0 completion bash

python3 "$(dirname "${BASH_SOURCE[0]}")/cli_formats.py" "$work/outputs" ||
    fail "outputs are not of their format"
cli_finish
