/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_reader_options - how to read, as callers have set it
 *
 * Owner    the struct owns its texts
 * Threads  confined to one thread
 */
#ifndef PS_DATA_READER_OPTIONS_H
#define PS_DATA_READER_OPTIONS_H

#include "data/formats/format.h"
#include "psd_data.h"

struct psd_reader_options {
    const ps_sample_format_t *format; /* NULL: auto */
    ps_share_t share;
    ps_parser_t parser;    /* its labels_path is owned */
    uint64_t max_lines;    /* of each input; 0: all */
    char *cache_directory; /* owned; NULL: nothing is kept */
    bool strict;
    bool merge;
};

/* A copy, of the defaults where options is NULL. false: no memory. */
PSD_MUST_CHECK bool ps_reader_options_copy(const psd_reader_options_t *options,
                                           psd_reader_options_t *ret_options);
/* Frees what is inside and zeroes it. */
void ps_reader_options_done(psd_reader_options_t *self);
#endif
