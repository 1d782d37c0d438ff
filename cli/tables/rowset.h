/* SPDX-License-Identifier: Apache-2.0 */
/* ps_rowset - which rows (or columns): "7", "1,3,5", "10-19", "all", and the
 * first three with commas between */
#ifndef PS_CLI_ROWSET_H
#define PS_CLI_ROWSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/requests/scan.h"

typedef struct ps_rowset {
    bool all;         /* then there are no spans */
    ps_span_t *spans; /* owned; in the order given */
    size_t n_spans, capacity;
} ps_rowset_t;

/* Frees and zeroes; fits PSD_AUTO. */
void ps_rowset_done(ps_rowset_t *self);
/*
 * what  in   for errors: "ROWS", "--cols"
 * max   in   the greatest number allowed
 * self  out  empty before
 * Errors: PSD_USAGE not understood; PSD_RANGE above max, naming the number;
 * PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_rowset_parse(ps_rowset_t *self, const char *text, const char *what,
                                            uint64_t max, psd_error_t *err);
/*
 * Every number as an array, in order; ret_numbers NULL for all.
 * n_max        in   more numbers are PSD_LIMIT
 * ret_numbers  out  the caller frees it with ps_free
 */
PSD_MUST_CHECK psd_status_t ps_rowset_u32(const ps_rowset_t *self, const char *what, size_t n_max,
                                          uint32_t **ret_numbers, size_t *ret_n, psd_error_t *err);
#endif
