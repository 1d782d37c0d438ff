/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples as messages in record files (data/proto has their schemas). Files of
 * PServerInput have the long heads and packed messages of their time, others
 * short ones. The first record of a file of Instance says what all have, so its
 * samples wait in a file without a name until the last of them is known.
 */
#include "data/sinks/sink.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "data/streams/file_out.h"
#include "data/records/proto_message.h"
#include "data/records/records.h"
#include "data/sinks/spool.h"

#define FLUSH_BYTES ((size_t)256 << 10)
#define MERGED_GROUP (-1)

struct ps_sink {
    ps_proto_schema_t schema;
    char *path;           /* owned */
    ps_file_out_t *file;  /* owned */
    ps_spool_t waiting;   /* not open: records are not kept */
    ps_buffer_t message;  /* the last one */
    ps_buffer_t records;  /* not written yet */
    ps_proto_info_t info; /* of what was written, its ranges in any order */
    psd_labels_t labels;
    uint64_t n_samples;
};

static void close_sink(ps_sink_t **self_p)
{
    ps_sink_t *self = *self_p;

    if (self != NULL) {
        ps_spool_done(&self->waiting);
        ps_file_out_close(&self->file);
        ps_buffer_done(&self->message);
        ps_buffer_done(&self->records);
        ps_proto_info_done(&self->info);
        ps_free(self->path);
    }
    ps_free(self);
    *self_p = NULL;
}

static psd_status_t open_sink(const char *path, ps_proto_schema_t schema, ps_sink_t **ret_sink,
                              psd_error_t *err)
{
    PSD_AUTO(close_sink) ps_sink_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self != NULL) {
        self->waiting.fd = -1;
        self->schema = schema;
        self->path = ps_strdup(path);
    }
    if (self == NULL || self->path == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to write %s", path);
    }
    rc = ps_file_out_open(path, 0666, &self->file, err);
    if (rc == PSD_OK && schema == PS_PROTO_INSTANCE) {
        rc = ps_spool_open(&self->waiting, self->path, err);
    }
    if (rc == PSD_OK) {
        *ret_sink = self;
        self = NULL;
    }
    return rc;
}

static psd_status_t open_example(const char *path, ps_sink_t **ret_sink, psd_error_t *err)
{
    return open_sink(path, PS_PROTO_EXAMPLE, ret_sink, err);
}

static psd_status_t open_instance(const char *path, ps_sink_t **ret_sink, psd_error_t *err)
{
    return open_sink(path, PS_PROTO_INSTANCE, ret_sink, err);
}

static psd_status_t open_input(const char *path, ps_sink_t **ret_sink, psd_error_t *err)
{
    return open_sink(path, PS_PROTO_INPUT, ret_sink, err);
}

/* ---- what can be held ---- */

static psd_status_t check(const ps_sink_t *self, const psd_samples_t *samples, size_t i,
                          psd_error_t *err)
{
    size_t first = samples->groups[i];
    size_t n = samples->groups[i + 1] - first;

    if (self->n_samples > 0 && samples->entries != self->info.entries) {
        return psd_error_set(err, PSD_INVALID,
                             "its entries are of another kind than those "
                             "before");
    }
    for (size_t g = first; g < first + n; g++) {
        int64_t id = samples->group_ids[g];

        if (id < INT32_MIN || id > INT32_MAX) {
            return psd_error_set(err, PSD_INVALID, "group %" PRId64 "; ids have 32 bits", id);
        }
        if (id == MERGED_GROUP && self->schema == PS_PROTO_INSTANCE) {
            return psd_error_set(err, PSD_INVALID,
                                 "group %" PRId64 ", which is all groups, "
                                 "merged, in messages InstanceInfo",
                                 id);
        }
    }
    if (self->schema == PS_PROTO_INSTANCE && samples->entries == PSD_ENTRIES_DENSE && n > 1) {
        return psd_error_set(
            err, PSD_INVALID,
            "%zu dense groups, which messages Instance cannot tell apart: they can be merged", n);
    }
    return PSD_OK;
}

static psd_status_t find_range(ps_proto_info_t *info, int64_t id, ps_proto_range_t **ret_range,
                               psd_error_t *err)
{
    for (size_t r = 0; r < info->n; r++) {
        if (info->ranges[r].group == id) {
            *ret_range = &info->ranges[r];
            return PSD_OK;
        }
    }
    if (info->n == PS_PROTO_RANGES_MAX) {
        return psd_error_set(err, PSD_INVALID, "more than %d groups", PS_PROTO_RANGES_MAX);
    }
    if (!ps_grow(&info->ranges, &info->capacity, info->n + 1, sizeof *info->ranges)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a group");
    }
    info->ranges[info->n] = (ps_proto_range_t){.group = id, .begin = UINT64_MAX};
    *ret_range = &info->ranges[info->n++];
    return PSD_OK;
}

/* Makes room for the sample's groups, before anything of it is written. */
static psd_status_t add_ranges(ps_sink_t *self, const psd_samples_t *samples, size_t i,
                               psd_error_t *err)
{
    ps_proto_range_t *range = NULL;
    psd_status_t rc = PSD_OK;

    for (size_t g = samples->groups[i]; rc == PSD_OK && g < samples->groups[i + 1]; g++) {
        rc = find_range(&self->info, samples->group_ids[g], &range, err);
    }
    return rc;
}

/* Widens the range of each of the sample's groups, which are all there, to its
 * keys. */
static psd_status_t note_ranges(ps_sink_t *self, const psd_samples_t *samples, size_t i,
                                psd_error_t *err)
{
    for (size_t g = samples->groups[i]; g < samples->groups[i + 1]; g++) {
        ps_proto_range_t *range = NULL;
        psd_status_t rc = find_range(&self->info, samples->group_ids[g], &range, err);

        if (rc != PSD_OK) {
            return rc;
        }
        range->n_entries += samples->starts[g + 1] - samples->starts[g];
        for (size_t e = samples->starts[g]; e < samples->starts[g + 1]; e++) {
            uint64_t key = samples->keys[e];
            uint64_t end = key + (key < UINT64_MAX ? 1 : 0);

            range->begin = key < range->begin ? key : range->begin;
            range->end = end > range->end ? end : range->end;
        }
    }
    return PSD_OK;
}

/* A key in two ranges would be of either group. */
static psd_status_t check_ranges(const ps_sink_t *self, psd_error_t *err)
{
    const ps_proto_info_t *info = &self->info;

    for (size_t a = 0; a < info->n; a++) {
        for (size_t b = 0; b < a; b++) {
            if (info->ranges[a].begin < info->ranges[b].end &&
                info->ranges[b].begin < info->ranges[a].end) {
                return psd_error_set(err, PSD_INVALID,
                                     "%s: keys of the groups %" PRId64 " and %" PRId64
                                     " overlap, but messages Instance tell groups apart by their "
                                     "keys: they can be merged",
                                     self->path, info->ranges[a].group, info->ranges[b].group);
            }
        }
    }
    return PSD_OK;
}

/* ---- writing ---- */

/* To the file that waits, or to the one that was asked for. */
static psd_status_t flush(ps_sink_t *self, psd_error_t *err)
{
    const uint8_t *at = self->records.data;
    size_t left = self->records.size;

    self->records.size = 0;
    if (self->waiting.fd >= 0) {
        return ps_spool_write(&self->waiting, at, left, err);
    }
    return left == 0 ? PSD_OK : ps_file_out_write(self->file, at, left, err);
}

static psd_status_t append(ps_sink_t *self, psd_error_t *err)
{
    if (self->message.size > PS_STRETCH_MAX) {
        return psd_error_set(err, PSD_INVALID, "a message of %zu bytes; records have %zu at most",
                             self->message.size, PS_STRETCH_MAX);
    }
    if (!ps_records_append(&self->records, self->schema == PS_PROTO_INPUT, self->message.data,
                           self->message.size)) {
        return ps_sample_no_memory(self->message.size, err);
    }
    return self->records.size >= FLUSH_BYTES ? flush(self, err) : PSD_OK;
}

static psd_status_t write_sample(ps_sink_t *self, const psd_samples_t *samples, size_t i,
                                 psd_error_t *err)
{
    psd_labels_t kind = ps_sample_label_kind(samples->labels[i]);
    size_t n_ranges = self->info.n;
    psd_status_t rc = check(self, samples, i, err);

    if (rc == PSD_OK && self->schema == PS_PROTO_INSTANCE) {
        rc = add_ranges(self, samples, i, err);
    }
    if (rc == PSD_OK) {
        self->message.size = 0;
        rc = ps_proto_message_print(self->schema, samples, i, &self->message)
                 ? append(self, err)
                 : ps_sample_no_memory(0, err);
    }
    if (rc == PSD_OK && self->schema == PS_PROTO_INSTANCE) {
        rc = note_ranges(self, samples, i, err);
    }
    if (rc != PSD_OK) {
        self->info.n = n_ranges; /* it has none */
    } else {
        self->info.entries = samples->entries;
        self->labels = kind > self->labels ? kind : self->labels;
        self->n_samples++;
    }
    return rc;
}

/* Writes the first record, and after it those that wait. */
static psd_status_t complete(ps_sink_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t head = {0};
    psd_status_t rc = check_ranges(self, err);

    if (rc != PSD_OK) {
        return rc;
    }
    self->message.size = 0;
    if (!ps_proto_info_print(&self->info, self->labels, self->n_samples, &self->message) ||
        !ps_records_append(&head, false, self->message.data, self->message.size)) {
        return ps_sample_no_memory(self->message.size, err);
    }
    rc = ps_file_out_write(self->file, head.data, head.size, err);
    return rc == PSD_OK ? ps_spool_copy(&self->waiting, self->file, err) : rc;
}

static psd_status_t commit(ps_sink_t *self, psd_error_t *err)
{
    psd_status_t rc = flush(self, err);

    if (rc == PSD_OK && self->waiting.fd >= 0) {
        rc = complete(self, err);
    }
    return rc == PSD_OK ? ps_file_out_commit(self->file, err) : rc;
}

const ps_sink_kind_t ps_sink_proto = {
    .open = open_example,
    .write = write_sample,
    .commit = commit,
    .close = close_sink,
};

const ps_sink_kind_t ps_sink_proto_instance = {
    .open = open_instance,
    .write = write_sample,
    .commit = commit,
    .close = close_sink,
};

const ps_sink_kind_t ps_sink_proto_input = {
    .open = open_input,
    .write = write_sample,
    .commit = commit,
    .close = close_sink,
};
