#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Worker 0 is killed while it trains: the next worker measures the test set and saves the model.
# With all workers there, worker 0 does.
# PSD_LR_PROGRAM and PSD_MF_PROGRAM come from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
export PSD_WORKERS_LOST_AFTER_MS=1000
cd "$work" || exit 1
awk 'BEGIN {
    for (i = 0; i < 200; i++)
        print (i % 2 ? "+1" : "-1"), (i % 2 ? 1 : 2) ":1", 3 + i % 5 ":1"
}' >set
awk 'BEGIN { for (i = 0; i < 300; i++) print i % 20 "," i % 15 "," 1 + i % 5 }' >ratings
cli_start

# worker 0 writes its pid, and stops at its end before it meets the others.
cat >first <<'END'
#!/usr/bin/env bash
[ "$PSD_WORKER" = 0 ] && echo $$ >pid0
exec "$@"
END
chmod +x first

# killed JOB PROGRAM OPTIONS...: three workers; worker 0 is killed after its first clocks.
killed() {
    local job=$1 run
    shift
    rm -f pid0 model
    "$PSCLI_PROGRAM" run -n 3 --job "$job" --allow-lost 1 -- ./first "$@" --save model \
        >out.run 2>err.run &
    run=$!
    wait_for has_clocks "$job"
    kill -KILL "$(cat pid0)"
    wait $run || fail "$job: exit code $?: $(cat err.run)"
    n_checked=$((n_checked + 1))
    [ -s model ] || fail "$job: no model: $(cat out.run err.run)"
    grep -Eq '1 of 3 workers failed' err.run || fail "$job: nobody said it: $(cat err.run)"
}
has_clocks() {
    [ -s pid0 ] && "$PSCLI_PROGRAM" clock list "$1" -o csv 2>/dev/null | grep -Eq '^0,[0-9]*[1-9]'
}

killed lr "$PSD_LR_PROGRAM" --train set --test set --table lr --epochs 100000000 --minibatch 10
cli_finish
