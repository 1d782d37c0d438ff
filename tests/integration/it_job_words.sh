#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What people are told of a job: how long a worker that computes has been silent,
# in `why` and where its rank is wanted; that the job works with a table that is
# to be dropped; and how long ago it was stopped, or finished. With the overlay `why`
# says which relay has whose push. PSD_LR_PROGRAM comes from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
export PSD_WORKERS_HEARTBEAT_MS=300
worker=
end_worker() {
    if [ -n "$worker" ]; then
        kill -KILL "$worker" 2>/dev/null
        wait "$worker" 2>/dev/null
    fi
    cli_end
}
trap end_worker EXIT

export PSD_WORKER=0 PSD_WORKERS=1 PSD_MAX_DELAY=0
# work JOB CLOCKS: its only worker, to the end.
work() {
    PSD_ENDPOINT=$PSCLI_ENDPOINT PSD_JOB=$1 "$CLI_WORKER" w "$2" \
        >"$work/worker" 2>&1
}
why_has() {
    "$PSCLI_PROGRAM" why "$1" >"$work/out" 2>&1 && grep -Eq "$2" "$work/out"
}
first_line_is() {
    expect 0 why "$1"
    head -n 1 "$work/out" | grep -Exq "$2" ||
        { fail "the first line of why is not: $2"; show; }
}
uses_it() {
    "$PSCLI_PROGRAM" table drop w 2>&1 | grep -q "used by job \"$1\""
}
ago='[0-9]+\.[0-9] s ago'

cli_start
expect 0 table create w --rows 100

PSD_ENDPOINT=$PSCLI_ENDPOINT PSD_JOB=busy "$CLI_WORKER" w 1000000000 \
    >"$work/busy" 2>&1 &
worker=$!
wait_for why_has busy 'nobody waits; worker 0 is computing$' || exit 1
wait_for uses_it busy || exit 1
kill -STOP "$worker"
wait_for why_has busy "worker 0 is computing \\(last seen $ago\\)$" || exit 1
work busy 1 && fail "two workers have one rank"
cp "$work/worker" "$work/err"
err_has "worker 0 of job busy is running already \\(last seen $ago\\); a worker counts as running until it is silent for 60\\.0 s"

expect 0 cluster status
out_has '^jobs +1, 1 running$'
expect 2 table drop w
err_has 'dropping table "w" with 100 rows \([0-9]+ B, used by job "busy"\) needs --yes'
expect 0 job stop busy
first_line_is busy "job \"busy\" was stopped $ago"
expect 0 cluster status
out_has '^jobs +1, 0 running$'
expect 2 table drop w
err_has 'dropping table "w" with 100 rows \([0-9]+ B\) needs --yes'

work ended 2 || fail "a worker fails: $(cat "$work/worker")"
first_line_is ended "job \"ended\" finished $ago"
[ "$(wc -l <"$work/out")" -eq 1 ] || { fail "why says more of its end"; show; }

# Pushes on their way through relays: who waits for its own push hears where it is.
data=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../data/agaricus" && pwd)
gzip -dc "$data/agaricus.train.libsvm.gz" | head -1500 >"$work/train"
"$PSCLI_PROGRAM" run -n 3 --job relays --overlay tree -- "$PSD_LR_PROGRAM" \
    --train "$work/train" --epochs 100000 --minibatch 100 >"$work/relays" 2>&1 &
relays=$!
names_relay() {
    run why relays
    grep -Eq 'its own push \(with the relay of worker [0-2] for [0-9.]+ s, which' "$work/out"
}
wait_for names_relay || { fail "why names no relay"; show; }
expect 0 job stop relays
wait "$relays" # with the exit code of a job that was stopped
cli_finish
