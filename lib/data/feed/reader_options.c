/* SPDX-License-Identifier: Apache-2.0 */
/* How to read: setters that refuse what is not allowed. */
#include "data/feed/reader_options.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"

#define BITS_DEFAULT 18
#define BITS_MAX 61
#define SCALE_MAX 1e9f /* times a byte it is finite */

static const psd_reader_options_t DEFAULTS = {
    .share = {0, 1}, .parser = {.bits = BITS_DEFAULT, .constant = true, .scale = 1}};

psd_reader_options_t *psd_reader_options_new(void)
{
    psd_reader_options_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        *self = DEFAULTS;
    }
    return self;
}

void psd_reader_options_destroy(psd_reader_options_t **self_p)
{
    if (*self_p != NULL) {
        ps_reader_options_done(*self_p);
    }
    ps_free(*self_p);
    *self_p = NULL;
}

/* Puts a copy in its place; NULL stays NULL. */
static bool copy_text(char **text_p)
{
    const char *text = *text_p;

    *text_p = text == NULL ? NULL : ps_strdup(text);
    return text == NULL || *text_p != NULL;
}

bool ps_reader_options_copy(const psd_reader_options_t *options, psd_reader_options_t *ret_options)
{
    psd_reader_options_t copy = options == NULL ? DEFAULTS : *options;
    bool ok = copy_text(&copy.parser.labels_path);

    ok = copy_text(&copy.parser.vocabulary_path) && ok;
    ok = copy_text(&copy.cache_directory) && ok;
    if (!ok) {
        ps_reader_options_done(&copy);
        return false;
    }
    *ret_options = copy;
    return true;
}

void ps_reader_options_done(psd_reader_options_t *self)
{
    ps_free(self->parser.labels_path);
    ps_free(self->parser.vocabulary_path);
    ps_free(self->cache_directory);
    *self = (psd_reader_options_t){0};
}

psd_status_t psd_reader_options_set_format(psd_reader_options_t *self, const char *format,
                                           psd_error_t *err)
{
    psd_error_clear(err);
    if (strcmp(format, "auto") == 0) {
        self->format = NULL;
        return PSD_OK;
    }
    return ps_sample_format_find(format, &self->format, err);
}

psd_status_t psd_reader_options_set_share(psd_reader_options_t *self, uint32_t part,
                                          uint32_t n_parts, psd_error_t *err)
{
    psd_error_clear(err);
    if (part >= n_parts) {
        return psd_error_set(err, PSD_INVALID,
                             "share %" PRIu32 " of %" PRIu32 "; shares count from 0", part,
                             n_parts);
    }
    self->share = (ps_share_t){part, n_parts};
    return PSD_OK;
}

void psd_reader_options_set_strict(psd_reader_options_t *self, bool strict)
{
    self->strict = strict;
}

psd_status_t psd_reader_options_set_entries(psd_reader_options_t *self, psd_entries_t entries,
                                            psd_error_t *err)
{
    psd_error_clear(err);
    /* A number of another language may be none of the enumeration's. */
    if ((unsigned)entries > PSD_ENTRIES_DENSE) {
        return psd_error_set(err, PSD_INVALID, "%u is not a kind of entries; 0, 1 and 2 are",
                             (unsigned)entries);
    }
    self->parser.entries = entries;
    self->parser.entries_set = true;
    return PSD_OK;
}

void psd_reader_options_set_max_lines(psd_reader_options_t *self, uint64_t max_lines)
{
    self->max_lines = max_lines;
}

void psd_reader_options_set_merge(psd_reader_options_t *self, bool merge)
{
    self->merge = merge;
}

psd_status_t psd_reader_options_set_bits(psd_reader_options_t *self, uint32_t bits,
                                         psd_error_t *err)
{
    psd_error_clear(err);
    if (bits < 1 || bits > BITS_MAX) {
        return psd_error_set(err, PSD_INVALID,
                             "%" PRIu32 " bits of an index; 1 .. %d are "
                             "allowed",
                             bits, BITS_MAX);
    }
    self->parser.bits = bits;
    return PSD_OK;
}

void psd_reader_options_set_constant(psd_reader_options_t *self, bool constant)
{
    self->parser.constant = constant;
}

void psd_reader_options_set_hash_all(psd_reader_options_t *self, bool hash_all)
{
    self->parser.hash_all = hash_all;
}

psd_status_t psd_reader_options_set_scale(psd_reader_options_t *self, float scale, psd_error_t *err)
{
    psd_error_clear(err);
    if (!(fabsf(scale) <= SCALE_MAX) || scale == 0) {
        return psd_error_set(err, PSD_INVALID,
                             "a scale of %g; numbers from -%g to %g but 0 are "
                             "allowed",
                             (double)scale, (double)SCALE_MAX, (double)SCALE_MAX);
    }
    self->parser.scale = scale;
    return PSD_OK;
}

/* Puts a copy of the path, or NULL, in the place of what is there. */
static psd_status_t set_path(char **path_p, const char *path, psd_error_t *err)
{
    char *copy = path == NULL ? NULL : ps_strdup(path);

    if (path != NULL && copy == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the name of %s", path);
    }
    ps_free(*path_p);
    *path_p = copy;
    return PSD_OK;
}

psd_status_t psd_reader_options_set_labels(psd_reader_options_t *self, const char *path,
                                           psd_error_t *err)
{
    psd_error_clear(err);
    return set_path(&self->parser.labels_path, path, err);
}

psd_status_t psd_reader_options_set_vocabulary(psd_reader_options_t *self, const char *path,
                                               psd_error_t *err)
{
    psd_error_clear(err);
    return set_path(&self->parser.vocabulary_path, path, err);
}

psd_status_t psd_reader_options_set_rows(psd_reader_options_t *self, uint64_t first, uint64_t end,
                                         psd_error_t *err)
{
    psd_error_clear(err);
    if (first >= end) {
        return psd_error_set(err, PSD_INVALID, "rows from %" PRIu64 " up to before %" PRIu64, first,
                             end);
    }
    self->parser.first = first;
    self->parser.end = end;
    return PSD_OK;
}

psd_status_t psd_reader_options_set_cache(psd_reader_options_t *self, const char *directory,
                                          psd_error_t *err)
{
    psd_error_clear(err);
    return set_path(&self->cache_directory, directory, err);
}
