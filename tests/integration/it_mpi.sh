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
need mpirun openmpi-bin
export TMPDIR=$work
mkdir -m 755 "$work/carriers"
cp "$PSD_MPI_CARRIER" "$work/carriers/libpsd-mpi.so"
chmod 644 "$work/carriers/libpsd-mpi.so"
export PSD_CARRIER_DIR=$work/carriers

# program WORDS...: as pscli is run.
program() {
    out_file=$work/out
    err_file=$work/err
    rc=0
    "$@" >"$work/out" 2>"$work/err" </dev/null || rc=$?
    n_checked=$((n_checked + 1))
}

# by_mpi N PROGRAM...: each rank is a worker and a server.
by_mpi() {
    local n=$1
    shift
    PSD_ENDPOINT=mpi: program timeout 90 mpirun --allow-run-as-root --oversubscribe \
        --bind-to none --mca mpi_yield_when_idle 1 -n "$n" \
        -x PSD_ENDPOINT -x PSD_CARRIER_DIR -x PSD_TIMEOUT_MS -x TMPDIR "$@"
}

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
out_has '^0 connections, 0 unix sockets$'
[ "$(grep -c '^carrier: at least what was pushed, at least what was pulled$' "$out_file")" -eq 3 ] || {
    fail "the carrier has not carried what was moved"
    show
}
# Some 2 %; what spins takes all it gets.
[ "$(awk '$1 == "idle:" && $2 < 20' "$out_file" | wc -l)" -eq 3 ] || {
    fail "an idle rank takes much"
    show
}

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
expect 2 run --launcher mpi --servers embed -n 2 -- true
err_has 'PSD_TRANSPORT=mpi works only in programs that mpirun starts'
unset PSD_TRANSPORT
PSD_ENDPOINT=mpi: expect 2 run -n 2 -- true
err_has 'PSD_ENDPOINT=mpi: works only in programs that mpirun starts'
by_mpi 2 sh -c 'export PSD_TRANSPORT; [ $OMPI_COMM_WORLD_RANK = 0 ] || PSD_TRANSPORT=mpi
    exec "$0"' "$PSD_HELLO_PROGRAM"
[ "$rc" -ne 0 ] || fail "ranks of two transports, and mpirun says 0"
err_has 'PSD_TRANSPORT is "mpi" in one of the ranks'
PSD_ENDPOINT=mpi: program "$PSD_HELLO_PROGRAM"
wants 1 psd-hello without mpirun
err_has 'connect to mpi:: carrier mpi: no mpirun has started this process'
err_is_one_line || fail "without mpirun: not one line"
PSD_ENDPOINT=mpi: PSD_CARRIER_DIR=$work program "$PSD_HELLO_PROGRAM"
err_has "connect to mpi:: carrier mpi, $work/libpsd-mpi\\.so: No such file or directory"
err_is_one_line || fail "without the plug-in: not one line"
cli_finish
