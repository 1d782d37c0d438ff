/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_inputs - the files that a list of paths, directories and patterns names
 *
 * What     A directory stands for its files but hidden ones (not for those of
 *          its directories), a pattern of glob(7) for what it matches, each in
 *          the order of names; "-" is standard input. A path that exists is no
 *          pattern, whatever characters it has.
 * Owner    the caller owns the struct
 * Threads  confined to one thread
 */
#ifndef PS_DATA_INPUTS_H
#define PS_DATA_INPUTS_H

#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

typedef struct ps_inputs {
    char **paths; /* owned */
    size_t n, capacity;
    uint64_t bytes; /* of all files that have a size */
} ps_inputs_t;

/* Errors: PSD_INVALID a pattern that matches nothing, a directory without
 * files; PSD_IO a path that cannot be opened, also as nothing is there;
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_inputs_find(ps_inputs_t *ret_inputs, const char *const *paths,
                                           size_t n_paths, psd_error_t *err);
/* Frees what is inside and zeroes it; fits PSD_AUTO. */
void ps_inputs_done(ps_inputs_t *self);
#endif
