/* SPDX-License-Identifier: Apache-2.0 */
/*
 * victim - a file of a node that has ended, about to be damaged
 *
 * What     One of a kind, drawn among those that count: a psd that starts reads
 *          all of it. A snapshot beside a newer one of its partition does not,
 *          nor does one of a life that the log says is over: the kill came
 *          before it was removed.
 * Owner    The caller; victim_done.
 * Threads  Confined to one.
 */
#ifndef PS_TESTS_VICTIM_H
#define PS_TESTS_VICTIM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

typedef struct victim {
    char path[PATH_MAX]; /* "": there was none */
    char name[NAME_MAX + 1];
    uint8_t *bytes; /* as they were found; owned */
    size_t size;
    bool is_listed; /* a sound inventory says that it is to be there */
} victim_t;

/* A file of the directory whose name begins with `kind`, if one counts. false:
 * it cannot be read; why is on stderr. */
bool victim_find(victim_t *self, const char *dir, const char *kind, ps_rng_t *rng);
void victim_done(victim_t *self);

/* The file has the first `size` of the bytes from here on. false: why is on
 * stderr. */
bool victim_write(const victim_t *self, size_t size);
#endif
