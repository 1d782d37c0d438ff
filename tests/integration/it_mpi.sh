#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# PSD_ENDPOINT=mpi: under a plain mpirun, with nothing else running, and PSD_TRANSPORT=mpi: the
# bits of workers beside a psd, no connection but MPI's, a rank that fails, one that is killed,
# what is refused, and nothing left.
# shellcheck disable=SC2016 # words for other shells
# shellcheck source-path=SCRIPTDIR source=cli_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cli_lib.sh"
# shellcheck source-path=SCRIPTDIR source=launch_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/launch_lib.sh"
# shellcheck source-path=SCRIPTDIR source=mpi_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/mpi_lib.sh"
mpi_carrier
export TMPDIR=$work

lr_data
unset PSD_TRANSPORT
for transport in auto mpi; do
    PSD_TRANSPORT=$transport by_mpi 4 "$PSD_LR_PROGRAM" --train "$work/train" --epochs 2 \
        --save "$work/$transport.txt"
    wants 0 psd-lr by mpirun over "$transport"
    # A rank that a busy machine lets wait is missed, or waited for, and that is said.
    ! grep -v '^warn ' "$err_file" || fail "psd-lr over $transport: more than that on stderr"
    cmp -s "$work/local.txt" "$work/$transport.txt" ||
        fail "by mpirun over $transport the model has other bits"
done

# All goes over MPI, and nothing beside it.
export PSD_TRANSPORT=mpi
by_mpi 3 "$RANK_BYTES" 2
wants 0 rank_bytes by mpirun
out_has ': 0 connections, 0 unix sockets$'
[ "$(grep -c '^carrier: at least what was pushed, at least what was pulled$' "$out_file")" -eq 3 ] || {
    fail "the carrier has not carried what was moved"
    show
}
# Some 2 %; what spins takes all it gets.
[ "$(awk '$1 == "idle:" && $2 < 20' "$out_file" | wc -l)" -eq 3 ] || {
    fail "an idle rank takes much"
    show
}

# The same by pscli run, which starts no psd then, and knows nothing of their job.
PSCLI_ENDPOINT=tcp://127.0.0.1:1 expect 0 run --launcher mpi --oversubscribe --servers embed -n 4 -- \
    "$PSD_LR_PROGRAM" --train "$work/train" --epochs 2 --save "$work/run.txt"
err_has '^4 ranks serve; rank 0 has their registry$'
cmp -s "$work/local.txt" "$work/run.txt" || fail "by pscli run over mpi the model has other bits"
expect 7 run --launcher mpi --oversubscribe --servers embed -n 2 --allow-lost 1 -- \
    sh -c '[ $PSD_WORKER = 0 ] || exit 7'
err_has 'its registry was in a rank, so nothing is known of its slices'
expect 0 run --launcher mpi --servers embed -n 2 --dry-run -- true
out_has ' -x PSD_ENDPOINT=mpi: '
! grep -q PSD_SERVERS "$out_file" || fail "ranks get PSD_SERVERS"
expect 2 run --launcher mpi --servers embed:1 -n 2 -- true
err_has 'servers is "embed:1", and with PSD_TRANSPORT=mpi or mpi,auto each rank serves; allowed: embed'

# With mpi,auto ranks go on by MPI; a node and a worker beside mpirun join by tcp, push, and leave.
guests() {
    local join guest_pid
    join=$(sed 's/.*"control":"\([^"]*\)".*/\1/' "$work"/psd-embed-*/endpoints.json | head -1)
    export PSCLI_ENDPOINT=$join
    "$PSD_PROGRAM" --data-dir "$work/guest" --name guest --listen tcp://127.0.0.1:0 \
        --join "$join" >"$work/guest.log" 2>&1 &
    guest_pid=$!
    launch_pids+=("$guest_pid")
    has_guest() {
        run node inspect guest -o json && grep -q '"state":"up"' "$out_file"
    }
    wait_for has_guest || fail "no node joins the ranks: $(cat "$work/guest.log")"
    PSD_ENDPOINT=$join PSD_WORKER=2 PSD_WORKERS=2 program "$RANK_GUESTS"
    wants 0 a worker beside the ranks
    expect 0 node list --columns name,primary
    out_has '^guest +[1-9]'
    expect 0 node drain guest
    expect 0 node list --columns name,primary
    out_has '^guest +0'
    kill "$guest_pid"
    wait "$guest_pid"
    unset PSCLI_ENDPOINT
}
export PSD_TRANSPORT=mpi,auto
by_mpi 2 "$RANK_BYTES"
wants 0 rank_bytes by mpirun over mpi,auto
[ "$(grep -c '^carrier: at least what was pushed, at least what was pulled$' "$out_file")" -eq 2 ] || {
    fail "with mpi,auto ranks do not use MPI"
    show
}
(by_mpi_name=ranks. by_mpi 2 "$RANK_GUESTS" "$work/ready" "$work/done"; exit "$rc") &
ranks_pid=$!
if wait_for test -e "$work/ready"; then
    guests
else
    fail "the ranks have no job"
fi
touch "$work/done"
rc=0
wait "$ranks_pid" || rc=$?
[ "$rc" -eq 0 ] || fail "ranks with a guest: $rc: $(cat "$work"/ranks.*)"
grep -qx 'all rows are 12' "$work/ranks.out" || fail "rows are lost: $(cat "$work"/ranks.*)"
export PSD_TRANSPORT=mpi

# A rank that fails does not wait for the others, and mpirun ends them.
by_mpi 2 sh -c '[ $OMPI_COMM_WORLD_RANK = 0 ] || exec "$0" --no-such-option; exec "$0" --train "$1"' \
    "$PSD_LR_PROGRAM" "$work/train"
[ "$rc" -ne 0 ] || fail "a rank failed, and mpirun says 0"
[ "$rc" -ne 124 ] || fail "a rank failed, and the others hang"
# One is killed while the others need it.
by_mpi 3 "$RANK_SUMS" 1 40 20
[ "$rc" -eq 137 ] || fail "a rank was killed: mpirun says $rc, not 137"
wait_for none_left "$RANK_SUMS" || fail "ranks outlive mpirun: $(marks_of "$RANK_SUMS")"

# One line each, and no wait.
PSD_ENDPOINT=tcp://127.0.0.1:1 program "$PSD_HELLO_PROGRAM"
wants 1 psd-hello over mpi, beside a psd
err_has 'PSD_TRANSPORT=mpi is allowed only with PSD_ENDPOINT=mpi:'
err_is_one_line || fail "mpi beside a psd: not one line"
expect 2 run --servers embed -n 2 -- true
err_has 'PSD_TRANSPORT=mpi works only in programs that mpirun starts'
expect 2 run --launcher mpi --servers 1 -n 2 -- true
err_has 'PSD_TRANSPORT=mpi works only in programs that mpirun starts'
unset PSD_TRANSPORT
PSD_ENDPOINT=mpi: expect 2 run -n 2 -- true
err_has 'PSD_ENDPOINT=mpi: works only in programs that mpirun starts'
by_mpi 2 sh -c 'export PSD_TRANSPORT; [ $OMPI_COMM_WORLD_RANK = 0 ] || PSD_TRANSPORT=mpi
    exec "$0"' "$PSD_HELLO_PROGRAM"
[ "$rc" -ne 0 ] || fail "ranks of two transports, and mpirun says 0"
err_has 'PSD_TRANSPORT is "mpi" in rank 1, and not in rank 0'
PSD_ENDPOINT=mpi: program "$PSD_HELLO_PROGRAM"
wants 1 psd-hello without mpirun
err_has 'connect to mpi:: carrier mpi: no mpirun has started this process'
err_is_one_line || fail "without mpirun: not one line"
PSD_ENDPOINT=mpi: PSD_CARRIER_DIR=$work program "$PSD_HELLO_PROGRAM"
err_has "connect to mpi:: carrier mpi, $work/libpsd-mpi\\.so: No such file or directory"
err_is_one_line || fail "without the plug-in: not one line"
cli_finish
