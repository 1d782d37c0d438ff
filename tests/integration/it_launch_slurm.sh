#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016 # words for other shells
# pscli run --launcher slurm on a Slurm of two nodes: the bits of local workers, also from a
# script of --batch; exit codes, a killed task, scancel, restarts, a dead Slurm.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
# shellcheck source-path=SCRIPTDIR source=launch_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/launch_lib.sh"
[ "$(id -u)" -eq 0 ] || skip "a Slurm of its own needs root"
export TMPDIR=$work
slurm_start 2
cli_start
by_slurm=(--launcher slurm --slurm "-N 2")
mark=$work/held_by_slurm
touch "$mark"

lr_data
lr_as_local "${by_slurm[@]}" --servers 1
lr_as_local "${by_slurm[@]}" --servers embed:2

# The same in a batch script, which starts its own psd; the script ends with the run's code.
# Options with values of their own, and a directory with a blank.
mkdir "$work/two words"
cd "$work/two words" || exit 1
expect 0 run --endpoint tcp://127.0.0.1:1 --psd "$PSD_PROGRAM" --launcher slurm --servers 2 -n 4 \
    --address 127.0.0.1 --slurm "-N 2 -o $work/batch.out" --batch "$work/job.sh" -- \
    "$PSD_LR_PROGRAM" --train "$work/train" --epochs 2 --save "$work/batch.txt"
cd "$OLDPWD" || exit 1
grep -q -- ' --address 127.0.0.1 ' "$work/job.sh" || fail "the script has no --address"
err_has "start it with: sbatch $work/job.sh"
expect 2 run -n 4 --launcher slurm --batch "$work/job.sh" -- true
err_has "job.sh: the file exists; --yes replaces it"
expect 0 run -n 4 --launcher slurm --batch "$work/other.sh" --dry-run -- true
out_has '^#SBATCH --ntasks=4$'
[ ! -e "$work/other.sh" ] || fail "--dry-run writes a file"
rc=0
sbatch --wait "$work/job.sh" >"$work/out" 2>"$work/err" || rc=$?
if [ "$rc" -ne 0 ] || ! cmp -s "$work/local.txt" "$work/batch.txt"; then
    fail "the batch script gives $rc, or a model of other bits"
    show
    cat "$work/batch.out"
fi

# A task that is killed: the others finish.
expect 137 run "${by_slurm[@]}" -n 4 -o json -- sh -c '[ $PSD_WORKER != 2 ] || kill -9 $$; echo end'
out_has '"worker":2,"exit":137,"signal":9'
[ "$(grep -c '^\[[013]\] end$' "$work/err")" -eq 3 ] || fail "the others did not finish"
expect 7 run "${by_slurm[@]}" -n 2 -- sh -c 'exit $((PSD_WORKER * 7))'

# Started again under its rank, while the others run.
expect 0 run "${by_slurm[@]}" -n 2 --restart 1 -- sh -c '
    if [ $PSD_WORKER = 1 ] && [ ! -e "$0" ]; then
        touch "$0"
        exit 5
    fi
    echo "end $PSD_WORKER"' "$work/tried"
err_has 'worker 1 ended with exit code 5; starting it again \(1 of 1\)'
out_has '^\[1\] end 1$'

# scancel: nothing is left.
"$PSCLI_PROGRAM" run "${by_slurm[@]}" -n 2 -- sh -c 'echo on; exec tail -f "$0"' "$mark" \
    >"$work/out" 2>"$work/err" </dev/null &
run_pid=$!
all_on() {
    [ "$(grep -c on "$work/out")" -eq 2 ]
}
wait_for all_on || fail "the tasks do not start"
scancel --quiet "$(squeue -h -o %i | head -1)"
rc=0
wait "$run_pid" || rc=$?
[ "$rc" -ne 0 ] || fail "a canceled run ends with 0"
wait_for none_left "$mark" || fail "tasks outlive scancel: $(marks_of "$mark")"

# In a batch script without srun one worker starts, and waits for nobody.
cat >"$work/alone.sh" <<SH
#!/bin/sh
#SBATCH --ntasks=2 --output=$work/alone.out
exec $PSCLI_PROGRAM worker exec -- sh -c 'echo \$PSD_WORKER of \$PSD_WORKERS'
SH
sbatch --wait "$work/alone.sh" >/dev/null || fail "a batch script without srun fails"
[ "$(cat "$work/alone.out")" = "0 of 1" ] || fail "a batch script alone is $(cat "$work/alone.out")"
# Under srun without pscli run each task is a worker.
srun -n 2 -N 2 "$PSCLI_PROGRAM" worker exec -- sh -c 'echo $PSD_WORKER of $PSD_WORKERS' |
    sort >"$work/out"
out_is '0 of 2
1 of 2'

# No such nodes; a Slurm that is dead.
expect 1 run --job j --launcher slurm -n 40 --slurm "-N 2 --immediate=1" -- true
err_is_one_line || fail "more tasks than slots: not one line"
slurmctld_pid=$(cat "$work/slurm/run/slurmctld.pid")
end_pid "$slurmctld_pid"
expect 1 run --job j "${by_slurm[@]}" -n 2 -- true
err_has 'Slurm does not answer'
err_is_one_line || fail "a dead Slurm: not one line"
cli_finish
