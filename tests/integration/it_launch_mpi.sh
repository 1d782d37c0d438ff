#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016 # words for other shells
# pscli run --launcher mpi: the bits of local workers, exit codes, a rank that is killed,
# too few slots, another mpirun; and worker exec under a plain mpirun.
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
# shellcheck source-path=SCRIPTDIR source=launch_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/launch_lib.sh"
need mpirun openmpi-bin
export TMPDIR=$work
cli_start
by_mpi=(--launcher mpi --oversubscribe)
mark=$work/held_by_mpi
touch "$mark"

lr_data
lr_as_local "${by_mpi[@]}" --servers 1
lr_as_local "${by_mpi[@]}" --servers embed

# A rank that is killed: the others finish, and mpirun's own 0 is not the run's.
expect 137 run "${by_mpi[@]}" -n 4 -o json -- sh -c '[ $PSD_WORKER != 2 ] || kill -9 $$; echo end'
out_has '"worker":2,"exit":137,"signal":9'
[ "$(grep -c '^\[[013]\] end$' "$work/err")" -eq 3 ] || fail "the others did not finish"
# The helper of a rank is killed: nobody can report its end.
expect 137 run "${by_mpi[@]}" -n 3 -- sh -c '[ $PSD_WORKER != 1 ] || kill -9 $PPID; echo end'
err_has 'worker 1: mpirun ended without a report of it'
expect 7 run "${by_mpi[@]}" -n 2 -- sh -c 'exit $((PSD_WORKER * 7))'
# Lines of many ranks at once stay whole.
expect 0 run "${by_mpi[@]}" -n 4 -- sh -c 'i=0
    while [ $i -lt 300 ]; do i=$((i + 1)); echo "rank $PSD_WORKER says line $i to all"; done'
[ "$(grep -Ec '^\[([0-3])\] rank \1 says line [0-9]+ to all$' "$work/out")" -eq 1200 ] ||
    fail "lines were mixed"

# kill -9 of pscli leaves nothing.
"$PSCLI_PROGRAM" run "${by_mpi[@]}" -n 2 -- sh -c 'echo on; exec tail -f "$0"' "$mark" \
    >"$work/out" 2>"$work/err" </dev/null &
run_pid=$!
all_on() {
    [ "$(grep -c on "$work/out")" -eq 2 ]
}
wait_for all_on || fail "the ranks do not start"
kill -9 "$run_pid"
wait "$run_pid" 2>/dev/null
wait_for none_left "$mark" || fail "ranks outlive pscli: $(marks_of "$mark")"

# One line each.
expect 1 run --job j --launcher mpi --hosts localhost:1 -n 1 --mpi "--host localhost:1 -n 3" -- true
err_has 'not enough slots for the workers'
err_is_one_line || fail "too few slots: not one line"
mkdir "$work/bin"
printf '#!/bin/sh\necho HYDRA build details:\n' >"$work/bin/mpirun"
chmod +x "$work/bin/mpirun"
PATH=$work/bin:$PATH expect 2 run "${by_mpi[@]}" -n 2 -- true
err_has 'mpirun is "HYDRA build details:"; allowed: Open MPI 4'
PATH=$work expect 1 run "${by_mpi[@]}" -n 2 -- true
err_has 'mpirun is not installed here'
expect 2 run "${by_mpi[@]}" --hosts '[::1]:2' -n 2 -- true
err_has 'host ::1 with launcher mpi; allowed: names, and addresses of IPv4'
expect 2 run "${by_mpi[@]}" --restart 1 -- true
err_has 'restart with launcher mpi; allowed with: local, ssh, slurm'

# Without pscli run.
root=()
[ "$(id -u)" -ne 0 ] || root=(--allow-run-as-root)
mpirun "${root[@]}" --oversubscribe -n 2 "$PSCLI_PROGRAM" worker exec -- \
    sh -c 'echo $PSD_WORKER of $PSD_WORKERS' 2>"$work/err" | sort >"$work/out"
out_is '0 of 2
1 of 2'

# The helper alone: the first signal to end that comes before the program is the one that
# counts, and one that ends nothing does not end the wait for a restart.
rc=0
printf 'signal 18\nsignal 15\nsignal 9\ngo\n' |
    "$PSCLI_PROGRAM" worker exec --stdin -- sh -c 'exit 3' 2>"$work/err" || rc=$?
[ "$rc" -eq 143 ] || fail "SIGCONT, SIGTERM, SIGKILL before the program: $rc"
mkfifo "$work/orders"
"$PSCLI_PROGRAM" worker exec --launch 0123456789abcdef --stdin -- sh -c '
    [ ! -e "$0" ] || exit 0
    touch "$0"
    exit 5' "$work/tried" <"$work/orders" >"$work/out" 2>"$work/err" &
helper_pid=$!
exec 7>"$work/orders"
printf 'again\ngo\n' >&7
has_ended() {
    [ "$(wc -l <"$work/out")" -eq 2 ]
}
wait_for has_ended || fail "the helper does not tell start and end"
printf 'signal 10\nstart 0\n' >&7
rc=0
wait "$helper_pid" || rc=$?
exec 7>&-
[ "$rc" -eq 0 ] || fail "a helper that gets SIGUSR1 before a restart: $rc"
# Nothing that the program started is left when the helper has ended, not what the helper gets
# only after it has killed the one between.
"$PSCLI_PROGRAM" worker exec -- sh -c '
    setsid sh -c "setsid tail -f \"\$0\" & echo >\"\$0.on\"; exec tail -f \"\$0\"" "$0" &
    until [ -e "$0.on" ]; do :; done' "$mark" >"$work/out" 2>&1 || fail "the helper fails"
none_left "$mark" || fail "processes outlive the helper: $(marks_of "$mark")"

# Text for others.
expect 0 run --launcher kubernetes --dry-run -n 3 --servers 2 --job Wide -- ./train "it's" 'a "b"'
out_has '^  completions: 3$'
out_has '^  replicas: 2$'
out_has 'command: \[pscli, worker, exec, "--", "./train", "it.s", "a [\\]"b[\\]""'
python3 - "$work/out" <<'PY' || fail "the manifest is no YAML"
import sys
try:
    import yaml
except ImportError:
    sys.exit(0)
docs = list(yaml.safe_load_all(open(sys.argv[1])))
kinds = [doc["kind"] for doc in docs]
assert kinds == ["Service", "StatefulSet", "Job"], kinds
env = docs[2]["spec"]["template"]["spec"]["containers"][0]["env"]
assert {"name": "PSD_ENDPOINT", "value": "tcp://wide-psd-0.wide-psd:7171"} in env, env
PY
expect 0 run --launcher yarn --dry-run -n 3 --servers 1 -- ./train x
python3 -c 'import json, sys; d = json.load(open(sys.argv[1]));
assert [c["name"] for c in d["components"]] == ["registry", "worker"]' "$work/out" ||
    fail "the service file is not as it should be"
expect 2 run --launcher kubernetes -- true
err_has 'with --dry-run pscli prints the manifest'
cli_finish
