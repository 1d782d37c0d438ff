/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_table_filter - the filter of a table's calls
 *
 * What     A table's spec carries its filter as text, because the rooms that
 *          use the spec do not know filters. This file converts between both.
 */
#ifndef PS_PROTOCOL_TABLE_FILTER_H
#define PS_PROTOCOL_TABLE_FILTER_H

#include "model/tables/table.h"
#include "wire/filters/filter.h"

/* Sets the spec's filter from text, which ps_filter_parse must accept, in
 * canonical order; "" is none. Errors: PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_table_filter_set(ps_table_spec_t *spec, const char *text,
                                                psd_error_t *err);
/* The filter of a spec. Errors: PSD_INVALID the text is not a filter, or the
 * filter does not suit the table's type or updater. */
PSD_MUST_CHECK psd_status_t ps_table_filter_get(const ps_table_spec_t *spec,
                                                ps_filter_t *ret_filter, psd_error_t *err);
/* Whether values of a table may be sent late or left out. Errors: PSD_INVALID
 * its updater is not additive. */
PSD_MUST_CHECK psd_status_t ps_table_filter_check(const ps_table_spec_t *spec,
                                                  const ps_filter_t *filter, psd_error_t *err);
#endif
