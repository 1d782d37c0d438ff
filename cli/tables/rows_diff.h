/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_rows_diff - where the values of two tables differ
 *
 * What     Reads both tables in the order of their keys: some MiB of the first one, then
 *          the rows of the second one up to the same key. A value that a sparse row does
 *          not have is 0. Rows that one table has alone, since it is longer or has
 *          hash keys, are no differences of values; they are counted separately.
 * Equal    Numbers are, when they differ by at most the tolerance; NaN equals NaN.
 * Owner    The caller; ps_rows_diff frees what it takes itself.
 */
#ifndef PS_CLI_ROWS_DIFF_H
#define PS_CLI_ROWS_DIFF_H

#include "cli/run/view.h"

typedef enum ps_side { PS_SIDE_BOTH = 0, PS_SIDE_A, PS_SIDE_B } ps_side_t;

typedef struct ps_rows_diff {
    const ps_view_t *a; /* borrowed, as all here; of one type and of as many columns */
    const ps_view_t *b;
    double tolerance; /* >= 0 */
    uint32_t timeout_ms;
    /* Called for each difference, in the order of keys and columns. side BOTH: of values
     * at a column. A or B: of a row that is there alone; col and values are of no use. */
    psd_status_t (*found)(void *arg, ps_side_t side, uint64_t row, uint32_t col, const void *a,
                          const void *b, double difference, psd_error_t *err);
    void *arg;

    uint64_t n_rows;        /* of both tables, compared */
    uint64_t n_rows_differ; /* of these, with a difference */
    uint64_t n_values;      /* that differ */
    uint64_t n_only_a;      /* rows */
    uint64_t n_only_b;
    double largest; /* difference; infinite when one of the values is not finite */
} ps_rows_diff_t;

/* Errors: as ps_scan; what found returns; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_rows_diff(ps_rows_diff_t *self, psd_error_t *err);
#endif
