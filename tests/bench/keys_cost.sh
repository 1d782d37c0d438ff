#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Instructions for each key of a push and a pull of 100,000 keys, counted by
# callgrind, against the bounds below. keys_cost.sh PROGRAM
# Instructions are the same on every quiet or busy machine; a bound leaves a
# tenth for other compilers and libraries. Lower it when the code got better.
set -u
export LC_ALL=C
unset MALLOC_PERTURB_ # it would count filling memory
program=${1:?usage: keys_cost.sh PROGRAM}
keys=100000
n_failed=0

# count WHAT FLOATS: instructions inside measured_WHAT.
count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        --toggle-collect="measured_$1" "$program" "$1" "$2" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

# check WHAT FLOATS BOUND: at most BOUND instructions for each key.
check() {
    local counted
    counted=$(count "$1" "$2")
    if [ -z "$counted" ] || [ "$counted" -lt "$keys" ]; then
        echo "FAIL $1 of $2 floats: nothing was counted (\"$counted\")"
        n_failed=$((n_failed + 1))
        return
    fi
    echo "$1 of $2 floats: $((counted / keys)) instructions a key," \
        "at most $3"
    if [ $((counted / keys)) -gt "$3" ]; then
        echo "FAIL $1 of $2 floats"
        n_failed=$((n_failed + 1))
    fi
}

check push 1 192
check pull 1 189
check push 64 388
check pull 64 278
[ $n_failed -eq 0 ]
