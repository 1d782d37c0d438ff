/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples as docword.txt. Its first lines say how many documents, words and
 * entries there are, so the entries wait until all are known.
 */
#include "data/sinks/sink.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "data/streams/file_out.h"
#include "data/sinks/spool.h"

#define FLUSH_BYTES ((size_t)256 << 10)
#define LINE_SIZE 64

struct ps_sink {
    char *path;          /* owned */
    ps_file_out_t *file; /* owned */
    ps_spool_t waiting;
    ps_buffer_t text; /* lines that do not wait yet */
    uint64_t n_documents, n_words, n_entries;
};

static void close_sink(ps_sink_t **self_p)
{
    ps_sink_t *self = *self_p;

    if (self != NULL) {
        ps_spool_done(&self->waiting);
        ps_file_out_close(&self->file);
        ps_buffer_done(&self->text);
        ps_free(self->path);
    }
    ps_free(self);
    *self_p = NULL;
}

static psd_status_t open_sink(const char *path, ps_sink_t **ret_sink, psd_error_t *err)
{
    PSD_AUTO(close_sink) ps_sink_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self != NULL) {
        self->waiting.fd = -1;
        self->path = ps_strdup(path);
    }
    if (self == NULL || self->path == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to write %s", path);
    }
    rc = ps_file_out_open(path, 0666, &self->file, err);
    if (rc == PSD_OK) {
        rc = ps_spool_open(&self->waiting, self->path, err);
    }
    if (rc == PSD_OK) {
        *ret_sink = self;
        self = NULL;
    }
    return rc;
}

static psd_status_t check(const psd_samples_t *samples, size_t first, size_t end, psd_error_t *err)
{
    for (size_t e = first; e < end; e++) {
        if (!ps_sample_is_count(samples->values[e])) {
            return ps_sample_refuse_count(samples->values[e], err);
        }
        if (samples->keys[e] == UINT64_MAX) {
            return psd_error_set(err, PSD_INVALID, "key 2^64 - 1; words count from 1");
        }
    }
    return PSD_OK;
}

static psd_status_t flush(ps_sink_t *self, psd_error_t *err)
{
    psd_status_t rc = ps_spool_write(&self->waiting, self->text.data, self->text.size, err);

    self->text.size = 0;
    return rc;
}

static psd_status_t write_sample(ps_sink_t *self, const psd_samples_t *samples, size_t i,
                                 psd_error_t *err)
{
    size_t first = samples->starts[samples->groups[i]];
    size_t end = samples->starts[samples->groups[i + 1]];
    psd_status_t rc = check(samples, first, end, err);

    for (size_t e = first; rc == PSD_OK && e < end; e++) {
        uint64_t key = samples->keys[e];

        if (!ps_buffer_print(&self->text, "%" PRIu64 " %" PRIu64 " %" PRIu32 "\n",
                             self->n_documents + 1, key + 1, (uint32_t)samples->values[e])) {
            return ps_sample_no_memory(LINE_SIZE, err);
        }
        self->n_words = key + 1 > self->n_words ? key + 1 : self->n_words;
        self->n_entries++;
        rc = self->text.size >= FLUSH_BYTES ? flush(self, err) : PSD_OK;
    }
    self->n_documents += rc == PSD_OK ? 1 : 0;
    return rc;
}

static psd_status_t commit(ps_sink_t *self, psd_error_t *err)
{
    psd_status_t rc = flush(self, err);

    if (rc == PSD_OK && !ps_buffer_print(&self->text, "%" PRIu64 "\n%" PRIu64 "\n%" PRIu64 "\n",
                                         self->n_documents, self->n_words, self->n_entries)) {
        rc = ps_sample_no_memory(LINE_SIZE, err);
    }
    if (rc == PSD_OK) {
        rc = ps_file_out_write(self->file, self->text.data, self->text.size, err);
    }
    if (rc == PSD_OK) {
        rc = ps_spool_copy(&self->waiting, self->file, err);
    }
    return rc == PSD_OK ? ps_file_out_commit(self->file, err) : rc;
}

const ps_sink_kind_t ps_sink_uci = {
    .open = open_sink,
    .write = write_sample,
    .commit = commit,
    .close = close_sink,
};
