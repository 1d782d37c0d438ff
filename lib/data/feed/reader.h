/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/data/feed: what a program holds
 *
 * It is       Readers with their inputs, blocks and parse cache; the writer; the
 *             localizer with its sketch, its sort and its threads; summaries.
 * It uses     formats, sinks, text, streams, lib/model/rows/pages.h,
 *             lib/transport/threads, lib/base.
 * It ignores  How any one format looks.
 * Start at    reader.c and writer.c, then localizer.c.
 */
/*
 * psd_reader - what a reader knows, for the files that it is made of
 *
 * Owner    the reader owns what is marked so
 * Threads  confined to one thread
 */
#ifndef PS_DATA_READER_H
#define PS_DATA_READER_H

#include "data/feed/inputs.h"
#include "data/feed/parse_cache.h"
#include "data/feed/reader_options.h"
#include "data/formats/feed.h"

struct psd_reader {
    unsigned n_forks; /* before it was opened */
    ps_inputs_t inputs;
    size_t next; /* input to open */
    bool is_open;
    ps_lines_t lines;           /* of the open one, where the format has lines */
    const ps_feed_kind_t *kind; /* where it has none; else NULL */
    ps_feed_t *feed;            /* owned; of the open one */
    uint64_t n_lines;           /* or samples of it, taken so far */
    psd_reader_options_t options;
    ps_parser_t parser;
    psd_vocabulary_t *vocabulary; /* owned; NULL: none was named */
    psd_labels_t labels;
    uint64_t done_bytes; /* of inputs that are closed */
    uint64_t n_samples;
    uint64_t n_bad;
    psd_error_t *bad[PS_PARSE_BAD_KEPT]; /* owned */
    psd_error_t *why;                    /* owned; what was wrong with a feed's last sample */
    bool looked;                         /* the parser is set up */
    ps_parse_cache_t *cache;             /* owned; of the open input; NULL: none */
    psd_error_t *warning;                /* owned; NULL: no cache is wanted */
    struct timespec since;               /* nothing was read before; for caches */
    uint64_t n_given;                    /* samples of the open input, from its cache */
    uint64_t n_skipped;                  /* of it still to be parsed for nothing, for they
                                            were given before its cache turned out to be
                                            damaged */
    uint64_t bad_before;                 /* n_bad when it was opened */
};

/* Finds the format by the inputs' beginning, where none was named, if it is one
 * without lines. */
PSD_MUST_CHECK psd_status_t ps_reader_look_for_feed(psd_reader_t *self, psd_error_t *err);
/* Sets the parser of a format without lines up by the first input. */
PSD_MUST_CHECK psd_status_t ps_reader_look_at_feed(psd_reader_t *self, psd_error_t *err);
/* Finds the format by the first lines, where none was named, and sets the
 * parser up by them; the first input is open. */
PSD_MUST_CHECK psd_status_t ps_reader_look_at_lines(psd_reader_t *self, psd_error_t *err);
#endif
