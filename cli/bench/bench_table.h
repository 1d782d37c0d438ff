/* SPDX-License-Identifier: Apache-2.0 */
/* ps_bench_table - a table of the benchmark, with every row stored */
#ifndef PS_CLI_BENCH_TABLE_H
#define PS_CLI_BENCH_TABLE_H

#include "cli/bench/bench_team.h"

#define PS_BENCH_NAME_SIZE 64

/* Makes a table as the shape wants it, with a free name, and pushes every row
 * of a hash table once. Errors: as psd_table_create and psd_push. */
PSD_MUST_CHECK psd_status_t ps_bench_table_make(const ps_cli_t *cli, psd_client_t *client,
                                                const ps_bench_shape_t *shape,
                                                char ret_name[PS_BENCH_NAME_SIZE],
                                                psd_error_t *err);
/* The same, with n_keys new rows of a hash table in each push, one push at a
 * time; ret_sample says how they went. */
PSD_MUST_CHECK psd_status_t ps_bench_table_grow(const ps_cli_t *cli, psd_client_t *client,
                                                const ps_bench_shape_t *shape,
                                                char ret_name[PS_BENCH_NAME_SIZE],
                                                ps_bench_sample_t *ret_sample, psd_error_t *err);
/* Drops it, on a new connection when a shard has refused the client. Best
 * effort: the measurement counts more. */
void ps_bench_table_drop(const ps_cli_t *cli, psd_client_t *client, const char *name);
#endif
