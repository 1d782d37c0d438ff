/* SPDX-License-Identifier: Apache-2.0 */
/* A table's filter, as text and as what it means. */
#include "protocol/facts/table_filter.h"

#include <assert.h>
#include <string.h>

static_assert(PS_TABLE_FILTER_SIZE == PS_FILTER_TEXT_MAX, "a spec has room for every filter");

psd_status_t ps_table_filter_set(ps_table_spec_t *spec, const char *text, psd_error_t *err)
{
    ps_filter_t filter = {0};
    psd_status_t rc = PSD_OK;

    if (text[0] != '\0') {
        rc = ps_filter_parse(text, &filter, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    memset(spec->filter, 0, sizeof spec->filter);
    if (!ps_filter_is_none(&filter)) {
        ps_filter_format(&filter, spec->filter);
    }
    return PSD_OK;
}

psd_status_t ps_table_filter_check(const ps_table_spec_t *spec, const ps_filter_t *filter,
                                   psd_error_t *err)
{
    ps_updater_kind_t kind = spec->updater.kind;
    psd_status_t rc = ps_filter_check(filter, spec->type, err);

    if (rc == PSD_OK && filter->thin != PS_THIN_NONE && kind != PS_UPDATER_ADD &&
        kind != PS_UPDATER_SGD) {
        rc = psd_error_set(err, PSD_INVALID,
                           "filter %s sends values late or not at all; allowed "
                           "with the updaters add and sgd",
                           ps_filter_thin_name(filter->thin));
    }
    return rc;
}

psd_status_t ps_table_filter_get(const ps_table_spec_t *spec, ps_filter_t *ret_filter,
                                 psd_error_t *err)
{
    ps_filter_t filter = {0};
    psd_status_t rc = PSD_OK;

    if (spec->filter[0] != '\0') {
        rc = ps_filter_parse(spec->filter, &filter, err);
    }
    if (rc == PSD_OK) {
        rc = ps_table_filter_check(spec, &filter, err);
    }
    if (rc == PSD_OK) {
        *ret_filter = filter;
    }
    return rc;
}
