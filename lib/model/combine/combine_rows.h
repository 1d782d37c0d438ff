/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/model/combine: pushes of unlike rows, row by row. */
#ifndef PS_MODEL_COMBINE_ROWS_H
#define PS_MODEL_COMBINE_ROWS_H

#include "model/combine/combine_sum.h"

/* Parts with rows, in order. Of dense ones that all have the same columns
 * (like: the first part's) the sum is dense, else sparse. */
PSD_MUST_CHECK psd_status_t ps_combine_rows(const ps_combine_args_t *args, ps_sum_t *sum,
                                            const ps_combine_part_t *parts, size_t n_parts,
                                            bool like, ps_slice_t *ret_slice,
                                            ps_payload_t **ret_payload, psd_error_t *err);
#endif
