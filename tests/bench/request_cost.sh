#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Instructions that a shard spends on a push and a pull of 1 key and 16 floats,
# from bytes to bytes, counted by callgrind, against the bounds below.
# request_cost.sh PROGRAM
# A bound leaves 2 % for other machines and libraries. Lower it when the code
# got better.
set -u
export LC_ALL=C
unset MALLOC_PERTURB_ # it would count filling memory
program=${1:?usage: request_cost.sh PROGRAM}
n_failed=0

# check WHAT KEYS BOUND: at most BOUND instructions for each request.
check() {
    local counted requests
    requests=$("$program" "$1" "$2")
    counted=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        --toggle-collect=measured_requests "$program" "$1" "$2" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p')
    if [ -z "$counted" ] || [ "$counted" -lt "${requests:-1}" ]; then
        echo "FAIL $1, $2 keys: nothing was counted (\"$counted\")"
        n_failed=$((n_failed + 1))
        return
    fi
    echo "$1, $2 keys: $((counted / requests)) instructions a request," \
        "at most $3"
    if [ $((counted / requests)) -gt "$3" ]; then
        echo "FAIL $1, $2 keys"
        n_failed=$((n_failed + 1))
    fi
}

check push range 3620
check pull range 3110
check push hash 4520
check pull hash 3380
[ $n_failed -eq 0 ]
