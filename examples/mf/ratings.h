/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mf_ratings - ratings: user, item, value
 *
 * Shape    n ratings in the order of the file; users and items by their ids in
 *          the file, which are whole numbers up to MF_ID_MAX
 * Owner    the caller; mf_ratings_done
 */
#ifndef MF_RATINGS_H
#define MF_RATINGS_H

#include <stddef.h>
#include <stdint.h>

#include "psd_data.h"

#define MF_ID_MAX 16777215 /* a float distinguishes them all */

typedef struct mf_ratings {
    size_t n, room;
    uint64_t *users;
    uint64_t *items;
    float *ratings;
} mf_ratings_t;

/* Errors: those of psd_reader_open and psd_reader_next; PSD_INVALID a line
 * without three columns, a bad id, no ratings at all. */
PSD_MUST_CHECK psd_status_t mf_ratings_load(mf_ratings_t *ret_ratings, const char *path,
                                            psd_error_t *err);
void mf_ratings_done(mf_ratings_t *self);
#endif
