/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_parse_cache - the parsed samples of one input, cached in a file
 *
 * What     A file beside the input, or in a directory for such files, with the
 *          samples of one share of the input under certain settings. If it
 *          exists and fits the input (its size, inode and times), the reader
 *          takes samples from it. Otherwise the reader makes it: it adds
 *          samples as they are parsed, and at the end replaces the old file.
 *          Several readers at once make the same file, and the last one stays.
 * Shape    blocks of samples (data/feed/parse_block.h), and what was bad at the end;
 *          all of it with checksums
 * Owner    the caller closes it
 * Threads  confined to one thread
 * Errors   A cache that cannot be made or read is no reason to fail: `warning`
 *          says why there is none, unless it says something already.
 */
#ifndef PS_DATA_PARSE_CACHE_H
#define PS_DATA_PARSE_CACHE_H

#include <time.h>

#include "data/formats/format.h"

#define PS_PARSE_BAD_KEPT 10

/* What is kept, and where. */
typedef struct ps_parse_what {
    const char *path;          /* the input */
    const char *directory;     /* of caches; PS_PARSE_BESIDE: the input's */
    const ps_parser_t *parser; /* set up */
    ps_share_t share;
    bool merge;
    bool strict;
    struct timespec since; /* CLOCK_REALTIME before any of it was read */
} ps_parse_what_t;

#define PS_PARSE_BESIDE "beside"

typedef struct ps_parse_cache ps_parse_cache_t;

/*
 * Begins to read the cache or, if there is no valid one, to make it.
 *
 * anew       in   make it in any case
 * ret_cache  out  NULL: there is none (the input is no file, or changed after
 *                 `since` or so shortly before it that a change during the read
 *                 may not show in its times; or warning says why)
 *
 * Errors: PSD_NOMEM only.
 */
PSD_MUST_CHECK psd_status_t ps_parse_cache_open(const ps_parse_what_t *what, bool anew,
                                                ps_parse_cache_t **ret_cache, psd_error_t *warning,
                                                psd_error_t *err);
/* Removes a file that was not committed. Takes NULL, nulls it. */
void ps_parse_cache_close(ps_parse_cache_t **self_p);
/* Is it read? Else it is made. */
bool ps_parse_cache_is_read(const ps_parse_cache_t *self);
/*
 * Reading: adds up to max samples (>= 1); none at the end. PSD_DAMAGED: from
 * here on it is broken; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_parse_cache_next(ps_parse_cache_t *self, size_t max,
                                                psd_samples_t *samples, psd_error_t *err);
/* Reading, after the end: the number of bad lines, and what was wrong with
 * number i < PS_PARSE_BAD_KEPT of them; NULL: there is none. Borrowed. */
uint64_t ps_parse_cache_bad_count(const ps_parse_cache_t *self);
const char *ps_parse_cache_bad(const ps_parse_cache_t *self, size_t i);
/* Reading: which part of it has been taken, 0 .. 1. */
double ps_parse_cache_taken(const ps_parse_cache_t *self);
/* Making: adds the last sample of the batch. */
void ps_parse_cache_add(ps_parse_cache_t *self, const psd_samples_t *samples);
/* Making: all of the input was added; bad is what was wrong with the first ones
 * of n_bad, up to PS_PARSE_BAD_KEPT. Puts the file in its place, if nothing
 * went wrong and the input is still the same. */
void ps_parse_cache_keep(ps_parse_cache_t *self, uint64_t n_bad, psd_error_t *const *bad,
                         psd_error_t *warning);
#endif
