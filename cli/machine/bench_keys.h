/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_bench_keys - the rows that requests name: a different list for each
 * request
 *
 * What     A mixing function makes a hash table's n_rows keys from 0 .. n_rows
 *          - 1: they look random, and need no memory. A list is a sample of
 *          them or, of a range table, a sample of its rows; ascending and
 *          without duplicates.
 */
#ifndef PS_CLI_BENCH_KEYS_H
#define PS_CLI_BENCH_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

/* The key of row i of a hash table; a different i gives a different key. */
uint64_t ps_bench_key(uint64_t i);
/* Sorts ascending; spare has room for n. */
void ps_bench_sort_keys(uint64_t *keys, uint64_t *spare, size_t n);
/* Fills keys with n of the table's n_rows >= n keys; spare has room for n. */
void ps_bench_sample_keys(ps_rng_t *rng, bool hash, uint64_t n_rows, uint64_t *keys,
                          uint64_t *spare, size_t n);
#endif
