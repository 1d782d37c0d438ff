#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mpi_ranks.sh MPIRUN PLUG-IN CARRIERS RANKS: the cases of every carrier in two ranks at
# once; two ranks that talk to each other; one that is killed.
set -eu
export LC_ALL=C
mpirun=$1 plugin=$2 carriers=$3 ranks=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -m 755 "$work/carriers"
cp "$plugin" "$work/carriers/libpsd-mpi.so"
chmod 644 "$work/carriers/libpsd-mpi.so"

by_mpi() {
    local begin=$SECONDS rc=0
    timeout 280 "$mpirun" --allow-run-as-root --oversubscribe --bind-to none \
        --mca mpi_yield_when_idle 1 "$@" </dev/null || rc=$?
    echo "after $((SECONDS - begin)) s exit code $rc: mpirun $*"
    return "$rc"
}

by_mpi -n 2 "$carriers" mpi "$plugin"
by_mpi -n 2 "$ranks" talk "$work/carriers"
# Its own exit code is no matter: one rank was killed.
by_mpi --mca orte_enable_recovery 1 -n 2 "$ranks" die "$work/carriers" "$work/told" || :
[ -e "$work/told" ]
