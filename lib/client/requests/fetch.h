/* SPDX-License-Identifier: Apache-2.0 */
/* ps_fetch_about - rows in the order of their keys, for whoever reads a table piece by piece */
#ifndef PS_CLIENT_FETCH_H
#define PS_CLIENT_FETCH_H

#include "psd/rows.h"

/*
 * As psd_fetch, but the bound is none: of a table whose rows are partitioned by hash it gives
 * all rows that have come and that no other row can precede. Shards answer with as many bytes
 * as limits.slice_bytes allows, and what a bound cuts off would have to come again.
 *
 * n_rows  in  there may be more, and fewer only when there are no more; 0: all
 *
 * The timeout is that of each request to a partition there, else that of the call. Errors:
 * as psd_fetch.
 */
PSD_MUST_CHECK psd_status_t ps_fetch_about(psd_table_t *table, const psd_select_t *select,
                                           bool sparse, size_t n_rows, const psd_call_t *call,
                                           psd_result_t **ret_result, psd_error_t *err);
#endif
