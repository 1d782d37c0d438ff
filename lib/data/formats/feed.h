/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_feed - the samples of one input that has no lines of samples
 *
 * What     Functions of a format whose samples are records, images, or parts of
 *          several files: they open an input, or one worker's share of it, and
 *          give one sample after another.
 * Owner    a feed belongs to the caller that opened it
 * Threads  a feed is confined to one thread
 * Errors   as ps_source, and PSD_INVALID
 */
#ifndef PS_DATA_FEED_H
#define PS_DATA_FEED_H

#include "data/formats/format.h"

typedef struct ps_feed ps_feed_t; /* each format has its own */

struct ps_feed_kind {
    bool has_rows;         /* samples can be found by their number */
    bool needs_no_parsing; /* a cache would be no faster */
    /* Is the input of that name, which begins with these bytes (unpacked, up to
     * PS_FEED_HEAD), of this format? */
    bool (*knows)(const char *path, const uint8_t *head, size_t size);
    /* Sets the parser up by the first input; NULL: nothing to do. */
    psd_status_t (*look)(ps_parser_t *parser, const char *path, psd_error_t *err);
    /* The parser is borrowed until the feed is closed. */
    psd_status_t (*open)(const ps_parser_t *parser, const char *path, ps_share_t share,
                         ps_feed_t **ret_feed, psd_error_t *err);
    /*
     * Adds the next sample; none at the end. PSD_INVALID: it is bad, and err
     * says where and why; the caller removes the part that was added, and the
     * next call continues after it. Any other error ends the feed.
     */
    psd_status_t (*next)(ps_feed_t *self, psd_samples_t *samples, psd_error_t *err);
    /* Bytes taken of the input as it lies there. */
    uint64_t (*taken)(const ps_feed_t *self);
    /* Takes NULL, nulls it. */
    void (*close)(ps_feed_t **self_p);
};

#define PS_FEED_HEAD ((size_t)256)

/* Samples [first, end) of an input. */
typedef struct ps_rows {
    uint64_t first, end;
} ps_rows_t;

/* Those of n samples that the parser wants, and of them the share's. */
ps_rows_t ps_rows_of(const ps_parser_t *parser, ps_share_t share, uint64_t n);
#endif
