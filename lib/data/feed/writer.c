/* SPDX-License-Identifier: Apache-2.0 */
/* psd_writer - samples, printed line by line into a file that is there when it
 * is whole, or given to the sink of a format that has no lines. */
#include "psd_data.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>

#include "base/alloc.h"
#include "data/formats/format.h"
#include "data/streams/file_out.h"
#include "transport/threads/fork.h"

#define FLUSH_BYTES ((size_t)1 << 20)

struct psd_writer {
    unsigned n_forks; /* before it was opened */
    const ps_sample_format_t *format;
    char *path;          /* owned */
    ps_file_out_t *file; /* owned; of formats with lines */
    ps_sink_t *sink;     /* owned; of others */
    ps_buffer_t text;
    uint64_t n_samples;
    ps_printed_t before; /* what all of them have in common */
    bool lossy;
    locale_t plain; /* numbers are printed by it */
};

/* Begins a public call: empties err. Errors: PSD_CLOSED: the file is the parent
 * process's. */
static psd_status_t enter(const psd_writer_t *self, psd_error_t *err)
{
    psd_error_clear(err);
    return ps_fork_is_since(self->n_forks) ? ps_fork_error("writer", err) : PSD_OK;
}

psd_status_t psd_writer_open(const char *path, const char *format, psd_writer_t **ret_writer,
                             psd_error_t *err)
{
    psd_error_clear(err);

    PSD_AUTO(psd_writer_close) psd_writer_t *self = NULL;
    const ps_sample_format_t *found = NULL;
    psd_status_t rc = ps_sample_format_find(format, &found, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (found->print == NULL && found->sink == NULL) {
        return psd_error_set(err, PSD_INVALID, "format %s is only read", found->name);
    }
    self = ps_alloc(1, sizeof *self);
    if (self != NULL) {
        self->path = ps_strdup(path);
    }
    if (self == NULL || self->path == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a writer");
    }
    self->n_forks = ps_fork_count();
    self->format = found;
    self->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (self->plain == (locale_t)0) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a locale");
    }
    rc = found->sink != NULL ? found->sink->open(path, &self->sink, err)
                             : ps_file_out_open(path, 0666, &self->file, err);
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_writer = self;
    self = NULL;
    return PSD_OK;
}

void psd_writer_close(psd_writer_t **self_p)
{
    psd_writer_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_file_out_close(&self->file);
    if (self->sink != NULL) {
        self->format->sink->close(&self->sink);
    }
    ps_free(self->path);
    ps_buffer_done(&self->text);
    if (self->plain != (locale_t)0) {
        freelocale(self->plain);
    }
    ps_free(self);
    *self_p = NULL;
}

static psd_status_t flush(psd_writer_t *self, psd_error_t *err)
{
    psd_status_t rc = ps_file_out_write(self->file, self->text.data, self->text.size, err);

    self->text.size = 0;
    return rc;
}

/* Would something of it be left out? */
static psd_status_t check_whole(const ps_sample_format_t *format, const psd_samples_t *samples,
                                size_t i, psd_error_t *err)
{
    size_t tag_size = 0;
    const char *what = NULL;

    (void)psd_samples_tag(samples, i, &tag_size);
    if (samples->weights[i] != 1 && !format->holds_heads) {
        what = "a weight";
    } else if (samples->initials[i] != 0 && !format->holds_heads) {
        what = "an initial prediction";
    } else if (tag_size != 0 && !format->holds_heads) {
        what = "a tag";
    } else if (samples->queries[i] != 0 && !format->holds_queries) {
        what = "a query";
    } else if (!isnan(samples->labels[i]) && format->unlabelled) {
        what = "a label";
    }
    if (what != NULL) {
        return psd_error_set(err, PSD_INVALID, "a sample with %s, which %s cannot hold", what,
                             format->name);
    }
    return PSD_OK;
}

/* One group without a name is none. */
static psd_status_t check_groups(const ps_sample_format_t *format, const psd_samples_t *samples,
                                 size_t i, bool lossy, psd_error_t *err)
{
    size_t first = samples->groups[i];
    size_t n = samples->groups[i + 1] - first;

    if (format->holds_groups || n == 0 || (n == 1 && (lossy || samples->group_ids[first] == 0))) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_INVALID,
                         "a sample of %zu group%s (id %" PRId64
                         "); %s has no groups: they can be merged",
                         n, n == 1 ? "" : "s", samples->group_ids[first], format->name);
}

/* Appends sample i to the text, or leaves the text unchanged. */
static psd_status_t print_one(psd_writer_t *self, const psd_samples_t *samples, size_t i,
                              psd_error_t *err)
{
    size_t size = self->text.size;
    psd_status_t rc = self->lossy ? PSD_OK : check_whole(self->format, samples, i, err);

    if (rc == PSD_OK) {
        rc = check_groups(self->format, samples, i, self->lossy, err);
    }
    if (rc == PSD_OK) {
        rc = self->sink != NULL ? self->format->sink->write(self->sink, samples, i, err)
                                : self->format->print(samples, i, &self->before, &self->text, err);
    }
    if (rc != PSD_OK) {
        self->text.size = size;
        return psd_error_wrap(err, rc, "%s: sample %" PRIu64, self->path, self->n_samples + 1);
    }
    self->n_samples++;
    return PSD_OK;
}

static psd_status_t print_all(psd_writer_t *self, const psd_samples_t *samples, psd_error_t *err)
{
    for (size_t i = 0; i < samples->n; i++) {
        psd_status_t rc = print_one(self, samples, i, err);

        if (rc == PSD_OK && self->text.size >= FLUSH_BYTES) {
            rc = flush(self, err);
        }
        if (rc != PSD_OK) {
            return rc;
        }
    }
    return PSD_OK;
}

void psd_writer_set_lossy(psd_writer_t *self, bool lossy)
{
    self->lossy = lossy;
}

psd_status_t psd_writer_write(psd_writer_t *self, const psd_samples_t *samples, psd_error_t *err)
{
    if (enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    locale_t before = uselocale(self->plain);
    psd_status_t rc = print_all(self, samples, err);

    (void)uselocale(before);
    return rc;
}

psd_status_t psd_writer_commit(psd_writer_t *self, psd_error_t *err)
{
    if (enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    psd_status_t rc = PSD_OK;

    if (self->sink != NULL) {
        return self->format->sink->commit(self->sink, err);
    }
    rc = flush(self, err);
    return rc == PSD_OK ? ps_file_out_commit(self->file, err) : rc;
}

const char *psd_writer_beside(const psd_writer_t *self)
{
    return self->file != NULL ? ps_file_out_beside(self->file) : "";
}
