/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lists of rows and columns. */
#include "cli/tables/rowset.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

#define PART_SIZE 48 /* two numbers of 20 digits and what is between */

void ps_rowset_done(ps_rowset_t *self)
{
    ps_free(self->spans);
    *self = (ps_rowset_t){0};
}

static bool parse_part(char *part, ps_span_t *ret_span)
{
    char *dash = strchr(part, '-');

    ret_span->is_single = dash == NULL;
    if (dash == NULL) {
        if (!ps_text_u64(part, &ret_span->first)) {
            return false;
        }
        ret_span->last = ret_span->first;
        return true;
    }
    *dash = '\0';
    return ps_text_u64(part, &ret_span->first) && ps_text_u64(dash + 1, &ret_span->last) &&
           ret_span->first <= ret_span->last;
}

static psd_status_t add_part(ps_rowset_t *self, const char *text, size_t length, const char *what,
                             uint64_t max, psd_error_t *err)
{
    char part[PART_SIZE] = "";
    ps_span_t span = {0};

    if (length < sizeof part) {
        memcpy(part, text, length);
    }
    if (!parse_part(part, &span)) {
        return psd_error_set(err, PSD_USAGE, "%s has \"%.*s\"; allowed: 7, 1,3,5, 10-19, all", what,
                             (int)(length < 80 ? length : 80), text);
    }
    if (span.last > max) {
        return psd_error_set(err, PSD_RANGE, "%s has %" PRIu64 "; the last one is %" PRIu64, what,
                             span.last, max);
    }
    if (!ps_grow(&self->spans, &self->capacity, self->n_spans + 1, sizeof *self->spans)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %s", what);
    }
    self->spans[self->n_spans++] = span;
    return PSD_OK;
}

psd_status_t ps_rowset_parse(ps_rowset_t *self, const char *text, const char *what, uint64_t max,
                             psd_error_t *err)
{
    if (strcmp(text, "all") == 0) {
        self->all = true;
        return PSD_OK;
    }
    for (;;) {
        size_t length = strcspn(text, ",");
        psd_status_t rc = add_part(self, text, length, what, max, err);

        if (rc != PSD_OK || text[length] == '\0') {
            return rc;
        }
        text += length + 1;
    }
}

psd_status_t ps_rowset_u32(const ps_rowset_t *self, const char *what, size_t n_max,
                           uint32_t **ret_numbers, size_t *ret_n, psd_error_t *err)
{
    uint64_t n = 0;
    size_t at = 0;
    uint32_t *numbers = NULL;

    if (self->all) {
        *ret_numbers = NULL;
        *ret_n = 0;
        return PSD_OK;
    }
    for (size_t i = 0; i < self->n_spans; i++) {
        n += self->spans[i].last - self->spans[i].first + 1;
        if (n > n_max) {
            return psd_error_set(err, PSD_LIMIT, "%s names more than %zu", what, n_max);
        }
    }
    numbers = ps_alloc((size_t)n, sizeof *numbers);
    if (numbers == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %s", what);
    }
    for (size_t i = 0; i < self->n_spans; i++) {
        for (uint64_t v = self->spans[i].first; v <= self->spans[i].last; v++) {
            numbers[at++] = (uint32_t)v;
        }
    }
    *ret_numbers = numbers;
    *ret_n = at;
    return PSD_OK;
}
