/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto - parameter_server's messages in record files
 *
 * The first record shows which of three schemas a file has, and whether that
 * record is a sample or describes all samples; so one reader reads them all.
 * The first record with entries shows their kind. Records are distributed to
 * shares in blocks; a reader skips blocks of other shares, without reading them
 * if the file can seek.
 */
#include "data/formats/feed.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "data/records/proto_message.h"
#include "data/records/records.h"
#include "data/sinks/sink.h"

#define BLOCK 64 /* records */
#define LOOK_RECORDS 100

struct ps_feed {
    const ps_parser_t *parser;
    ps_records_t records;
    ps_proto_info_t info;
    ps_share_t share;
    uint64_t n_taken; /* samples of all shares */
};

static bool knows(const char *path, const uint8_t *head, size_t size)
{
    (void)path;
    return ps_records_know(head, size);
}

/* Needs to open the input again after a look at its beginning: with a pipe,
 * that beginning would be lost. */
static psd_status_t check_plain(const char *path, psd_error_t *err)
{
    struct stat about;
    bool plain = strcmp(path, "-") != 0 &&
                 (stat(path, &about) != 0 || S_ISREG(about.st_mode) || S_ISDIR(about.st_mode));

    return plain ? PSD_OK
                 : psd_error_set(err, PSD_INVALID,
                                 "%s is not a regular file: records are read twice, and a pipe can "
                                 "be read only once; write it to a file",
                                 path);
}

/* What the first records of a file say; of a file without any, nothing. */
static psd_status_t look_at_records(const char *path, ps_proto_info_t *ret_info, psd_error_t *err)
{
    PSD_AUTO(ps_records_done) ps_records_t records = {0};
    psd_status_t rc = check_plain(path, err);

    if (rc != PSD_OK) {
        return rc;
    }
    rc = ps_records_open(&records, path, err);
    for (int i = 0; rc == PSD_OK && i < LOOK_RECORDS; i++) {
        ps_proto_info_t next = {0};
        ps_bytes_t message = {0};

        rc = ps_records_next(&records, &message, err);
        if (rc != PSD_OK || message.data == NULL) {
            break;
        }
        rc = ps_proto_info_look(i == 0 ? ret_info : &next, message, err);
        if (i > 0 && rc == PSD_OK && next.has_entries && next.schema == ret_info->schema) {
            ret_info->entries = next.entries;
            ret_info->has_entries = true;
        }
        ps_proto_info_done(&next);
        if (i > 0 && rc == PSD_INVALID) {
            psd_error_clear(err);
            rc = PSD_OK; /* a bad record, which reading will count */
        }
        if (ret_info->has_entries) {
            break;
        }
    }
    return rc == PSD_INVALID || rc == PSD_DAMAGED ? psd_error_wrap(err, rc, "%s", path) : rc;
}

static psd_status_t look(ps_parser_t *parser, const char *path, psd_error_t *err)
{
    PSD_AUTO(ps_proto_info_done) ps_proto_info_t info = {0};
    psd_status_t rc = look_at_records(path, &info, err);

    if (rc == PSD_OK && info.has_entries) {
        parser->entries = info.entries;
    }
    return rc;
}

static void close_feed(ps_feed_t **self_p)
{
    ps_feed_t *self = *self_p;

    if (self != NULL) {
        ps_records_done(&self->records);
        ps_proto_info_done(&self->info);
    }
    ps_free(self);
    *self_p = NULL;
}

static psd_status_t open_feed(const ps_parser_t *parser, const char *path, ps_share_t share,
                              ps_feed_t **ret_feed, psd_error_t *err)
{
    PSD_AUTO(close_feed) ps_feed_t *self = ps_alloc(1, sizeof *self);
    bool ended = false;
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to read %s", path);
    }
    self->parser = parser;
    self->share = share;
    rc = look_at_records(path, &self->info, err);
    /* The first input says it for all. */
    self->info.entries = parser->entries;
    if (rc == PSD_OK) {
        rc = ps_records_open(&self->records, path, err);
    }
    if (rc == PSD_OK && self->info.is_info) {
        rc = ps_records_skip(&self->records, &ended, err);
    }
    if (rc == PSD_OK) {
        *ret_feed = self;
        self = NULL;
    }
    return rc;
}

static bool is_ours(const ps_feed_t *self)
{
    return self->n_taken / BLOCK % self->share.n_parts == self->share.part;
}

static psd_status_t next_sample(ps_feed_t *self, psd_samples_t *samples, psd_error_t *err)
{
    ps_bytes_t message = {0};
    bool ended = false;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && !ended && !is_ours(self)) {
        rc = ps_records_skip(&self->records, &ended, err);
        self->n_taken++;
    }
    if (rc != PSD_OK || ended) {
        return rc;
    }
    self->n_taken++;
    rc = ps_records_next(&self->records, &message, err);
    if (rc != PSD_OK || message.data == NULL) {
        return rc;
    }
    rc = ps_proto_message_parse(&self->info, message, samples, err);
    return rc == PSD_INVALID
               ? psd_error_wrap(err, rc, "%s: byte %" PRIu64,
                                ps_source_path(self->records.window.source), self->records.given)
               : rc;
}

static uint64_t taken(const ps_feed_t *self)
{
    return ps_source_taken(self->records.window.source);
}

static const ps_feed_kind_t FEED = {
    .knows = knows,
    .look = look,
    .open = open_feed,
    .next = next_sample,
    .taken = taken,
    .close = close_feed,
};

const ps_sample_format_t ps_sample_format_proto = {
    .name = "proto",
    .about = "records of messages Example   (slots)",
    .entries = PSD_ENTRIES_SPARSE,
    .feed = &FEED,
    .sink = &ps_sink_proto,
    .holds_groups = true,
};

const ps_sample_format_t ps_sample_format_proto_instance = {
    .name = "proto-instance",
    .about = "records of messages InstanceInfo, Instance",
    .entries = PSD_ENTRIES_SPARSE,
    .feed = &FEED,
    .sink = &ps_sink_proto_instance,
    .holds_groups = true,
};

const ps_sample_format_t ps_sample_format_proto_input = {
    .name = "proto-input",
    .about = "records of messages PServerInput",
    .entries = PSD_ENTRIES_SPARSE,
    .feed = &FEED,
    .sink = &ps_sink_proto_input,
    .holds_groups = true,
};
