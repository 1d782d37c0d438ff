/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/client: a call other than a plain push or pull; it waits. */
#ifndef PS_CLIENT_OPS_H
#define PS_CLIENT_OPS_H

#include "client/requests/call.h"

typedef struct ps_row_work {
    ps_call_t call;
    psd_select_t select; /* plain */
    bool sparse;         /* sparse rows are wanted */
    ps_cuts_t cuts;
    ps_aggregate_t *aggregates; /* owned; of each cut */
    size_t n_aggregates;
    psd_result_t *result; /* owned; where rows go; NULL: there are none */
} ps_row_work_t;

#define PS_WORK(of_table, of_kind, of_verb, options_or_null) \
    {                                                        \
        .call = {                                            \
            .table = (of_table),                             \
            .kind = (of_kind),                               \
            .verb = (of_verb),                               \
            .options = (options_or_null)                     \
        }                                                    \
    }

/* Fits PSD_AUTO. */
void ps_work_done(ps_row_work_t *self);
/* Cuts it into slices, each with its aggregate. select NULL: everything. */
PSD_MUST_CHECK psd_status_t ps_work_cut(ps_row_work_t *self, const psd_select_t *select,
                                        psd_error_t *err);
/* Sends the slices and waits for all of them. */
PSD_MUST_CHECK psd_status_t ps_work_run(ps_row_work_t *self, psd_error_t *err);
/* Returns rc and puts the name of the operation in front of the error. For
 * errors before anything is sent; later errors name it themselves. */
PSD_MUST_CHECK psd_status_t ps_work_refuse(const ps_row_work_t *self, psd_status_t rc,
                                           psd_error_t *err);
#endif
