/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/client: pushes whose filter sends only a part of the
 * values. */
#ifndef PS_CLIENT_THIN_H
#define PS_CLIENT_THIN_H

#include "client/requests/call.h"
#include "client/slices/select.h"

/*
 * Thins a checked push; any other call stays as it is.
 *
 * filter      in      thins
 * select      in/out  rows and columns that are sent
 * ret_values  out     their values, when *ret_thinned
 *
 * Both are borrowed from the table until the next call of this kind.
 * Errors: PSD_INVALID the table's updater or the selection does not allow it;
 * PSD_NOMEM. Then nothing was pushed.
 */
PSD_MUST_CHECK psd_status_t ps_thin_call(const ps_call_t *call, const ps_filter_t *filter,
                                         psd_select_t *select, const void **ret_values,
                                         bool *ret_thinned, psd_error_t *err);
/* The values that the table's pushes held back, as a push. ret_n: values; 0:
 * none. */
PSD_MUST_CHECK psd_status_t ps_thin_rest(psd_table_t *table, psd_select_t *ret_select,
                                         const void **ret_values, size_t *ret_n, psd_error_t *err);
/* The push that one of these made was not started: the values that were held
 * back before it are held back again. */
void ps_thin_undo(psd_table_t *table);
#endif
