/* SPDX-License-Identifier: Apache-2.0 */
/* ps_bench_list - "4k,64k" or "1,64" as numbers */
#ifndef PS_CLI_BENCH_LIST_H
#define PS_CLI_BENCH_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

#define PS_BENCH_LIST_MAX 32

typedef struct ps_bench_list {
    uint64_t numbers[PS_BENCH_LIST_MAX];
    size_t n;
} ps_bench_list_t;

/* Sizes with commas between, each 1 .. max; "none" is an empty list. `what`
 * names the option in errors. Errors: PSD_USAGE. */
PSD_MUST_CHECK psd_status_t ps_bench_list_read(const char *text, const char *what, uint64_t max,
                                               ps_bench_list_t *ret_list, psd_error_t *err);
#endif
