/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_table_filter - the filter of a table's calls
 *
 * What     A table's spec carries its filter as text, for rooms that cannot
 *          know filters; here text and filter meet.
 */
#ifndef PS_PROTOCOL_TABLE_FILTER_H
#define PS_PROTOCOL_TABLE_FILTER_H

#include "model/tables/table.h"
#include "wire/filters/filter.h"

/* Sets the spec's filter from text as ps_filter_parse takes it, in its one
 * order; "" is none. Errors: PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_table_filter_set(ps_table_spec_t *spec, const char *text,
                                                psd_error_t *err);
/* The filter of a spec. Errors: PSD_INVALID the text is none; the table's type
 * or updater does not go with it. */
PSD_MUST_CHECK psd_status_t ps_table_filter_get(const ps_table_spec_t *spec,
                                                ps_filter_t *ret_filter, psd_error_t *err);
/* Whether values of a table may be sent late or left out. Errors: PSD_INVALID
 * its updater does not add up. */
PSD_MUST_CHECK psd_status_t ps_table_filter_check(const ps_table_spec_t *spec,
                                                  const ps_filter_t *filter, psd_error_t *err);
#endif
