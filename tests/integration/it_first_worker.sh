#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Worker 0 is killed while it trains: the next worker measures the test set and saves the model,
# and says that one was lost. PSD_LR_PROGRAM and PSD_MF_PROGRAM come from meson.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
cd "$work" || exit 1
awk 'BEGIN {
    for (i = 0; i < 90; i++)
        print (i % 2 ? "+1" : "-1"), (i % 2 ? 1 : 2) ":1", 3 + i % 5 ":1"
}' >samples
awk 'BEGIN { for (i = 0; i < 300; i++) print i % 20 "," i % 15 "," 1 + i % 5 }' >ratings
cat >worker <<'END'
#!/usr/bin/env bash
if [ "$PSD_WORKER" = 0 ]; then echo $$ >pid0; fi
exec "$@"
END
chmod +x worker
cli_start

# Worker 0 has finished a few clocks, and more are to come.
trains() {
    "$PSCLI_PROGRAM" clock inspect "$1" -o csv >clocks 2>/dev/null &&
        awk -F, '$1 == 0 && $3 > 5 { found = 1 } END { exit !found }' clocks
}
ended() {
    ! kill -0 "$run" 2>/dev/null
}
trains_or_ended() {
    trains "$1" || ended
}

# killed JOB EPOCHS PROGRAM OPTIONS...: three workers; worker 0 is killed. Where it has ended
# before that, the next job has more epochs.
killed() {
    local job=$1 epochs=$2
    shift 2
    while [ "$epochs" -lt 1000000 ]; do
        rm -f pid0 model
        "$PSCLI_PROGRAM" run -n 3 --job "$job.$epochs" -- ./worker "$@" \
            --table "$job.$epochs" --epochs "$epochs" --save model >out.run 2>err.run &
        run=$!
        wait_for trains_or_ended "$job.$epochs"
        kill -KILL "$(cat pid0)" 2>/dev/null
        wait "$run"
        rc=$? # 137: nobody has done the part of worker 0
        if grep -q '1 of 3 workers failed' err.run; then
            [ $rc -eq 137 ] || fail "$job: exit code $rc: $(cat err.run)"
            break
        fi
        epochs=$((epochs * 5))
    done
    n_checked=$((n_checked + 1))
    [ -s model ] || fail "$job: no model, or nobody was killed: $(cat out.run err.run)"
}

killed lr 2000 "$PSD_LR_PROGRAM" --train samples --test samples --minibatch 10
grep -q '^\[1\] test .*AUC' out.run || fail "nobody has measured: $(cat out.run)"
killed mf 1000 "$PSD_MF_PROGRAM" --train ratings
cli_finish
