# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
# What the tests of PSD_ENDPOINT=mpi: share. Source it after launch_lib.sh.

# The plug-in in a directory that nobody else can change.
mpi_carrier() {
    need mpirun openmpi-bin
    mkdir -m 755 "$work/carriers"
    cp "$PSD_MPI_CARRIER" "$work/carriers/libpsd-mpi.so"
    chmod 644 "$work/carriers/libpsd-mpi.so"
    export PSD_CARRIER_DIR=$work/carriers
}

# program WORDS...: as pscli is run. program_into NAME WORDS...: to $work/NAME.out and .err.
program_into() {
    out_file=$work/$1out
    err_file=$work/$1err
    shift
    rc=0
    "$@" >"$out_file" 2>"$err_file" </dev/null || rc=$?
    n_checked=$((n_checked + 1))
}
program() {
    program_into "" "$@"
}

# by_mpi N WORDS...: options of mpirun and the program; each rank is a worker and a server.
by_mpi() {
    local n=$1
    shift
    PSD_ENDPOINT=mpi: program_into "${by_mpi_name-}" timeout 90 mpirun --allow-run-as-root --oversubscribe \
        --bind-to none --mca mpi_yield_when_idle 1 -n "$n" \
        -x PSD_ENDPOINT ${PSD_TRANSPORT:+-x PSD_TRANSPORT} -x PSD_CARRIER_DIR -x PSD_TIMEOUT_MS \
        -x TMPDIR "$@"
}
