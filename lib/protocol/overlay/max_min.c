/* SPDX-License-Identifier: Apache-2.0 */
/* Augmenting paths, and a binary search for the least weight. */
#include "protocol/overlay/max_min.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define NONE UINT32_MAX

typedef struct matching {
    const double *weights;
    uint32_t n_left;
    uint32_t n_right;
    double least;     /* lighter links do not count */
    uint32_t *lefts;  /* [right]: matched with, or NONE */
    uint32_t *rights; /* [left] */
    uint32_t *queue;  /* [left]: search, breadth first */
    uint32_t *from;   /* [right]: reached from this left end, or NONE */
} matching_t;

static void matching_done(matching_t *self)
{
    ps_free(self->lefts);
    ps_free(self->rights);
    ps_free(self->queue);
    ps_free(self->from);
}

static bool matching_init(matching_t *self, const double *weights, uint32_t n_left,
                          uint32_t n_right)
{
    *self = (matching_t){.weights = weights,
                         .n_left = n_left,
                         .n_right = n_right,
                         .lefts = ps_alloc(n_right, sizeof *self->lefts),
                         .rights = ps_alloc(n_left, sizeof *self->rights),
                         .queue = ps_alloc(n_left, sizeof *self->queue),
                         .from = ps_alloc(n_right, sizeof *self->from)};
    return self->lefts != NULL && self->rights != NULL && self->queue != NULL && self->from != NULL;
}

/* Turns the path that ends at this right end. */
static void augment(matching_t *self, uint32_t right)
{
    while (right != NONE) {
        uint32_t left = self->from[right];
        uint32_t next = self->rights[left];

        self->lefts[right] = left;
        self->rights[left] = right;
        right = next;
    }
}

/* A path from a left end without a partner to a right end without one. */
static bool find_path(matching_t *self, uint32_t first)
{
    uint32_t n = 0;

    memset(self->from, 0xff, self->n_right * sizeof *self->from);
    self->queue[n++] = first;
    for (uint32_t i = 0; i < n; i++) {
        const double *row = &self->weights[(size_t)self->queue[i] * self->n_right];

        for (uint32_t right = 0; right < self->n_right; right++) {
            if (row[right] < self->least || row[right] <= 0 || self->from[right] != NONE) {
                continue;
            }
            self->from[right] = self->queue[i];
            if (self->lefts[right] == NONE) {
                augment(self, right);
                return true;
            }
            self->queue[n++] = self->lefts[right];
        }
    }
    return false;
}

/* The most pairs whose weight is at least that. */
static uint32_t match_above(matching_t *self, double least)
{
    uint32_t n = 0;

    self->least = least;
    memset(self->lefts, 0xff, self->n_right * sizeof *self->lefts);
    memset(self->rights, 0xff, self->n_left * sizeof *self->rights);
    for (uint32_t left = 0; left < self->n_left; left++) {
        n += find_path(self, left) ? 1 : 0;
    }
    return n;
}

static int compare_weights(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;

    return (*a > *b) - (*a < *b);
}

psd_status_t ps_max_min(const double *weights, uint32_t n_left, uint32_t n_right,
                        uint32_t *ret_right, psd_error_t *err)
{
    size_t n_all = (size_t)n_left * n_right;

    for (uint32_t i = 0; i < n_left; i++) {
        ret_right[i] = NONE;
    }
    if (n_all == 0) {
        return PSD_OK;
    }
    PSD_AUTO(matching_done) matching_t matching = {.lefts = NULL};
    PSD_AUTO(ps_free_at) double *sorted = ps_alloc(n_all, sizeof *sorted);

    if (!matching_init(&matching, weights, n_left, n_right) || sorted == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to match %" PRIu32 " with %" PRIu32, n_left,
                             n_right);
    }
    memcpy(sorted, weights, n_all * sizeof *sorted);
    qsort(sorted, n_all, sizeof *sorted, compare_weights);

    uint32_t most = match_above(&matching, 0);
    size_t good = 0;    /* with this least weight as many are matched */
    size_t bad = n_all; /* with this one fewer are */

    while (most > 0 && bad - good > 1) {
        size_t middle = good + (bad - good) / 2;

        if (match_above(&matching, sorted[middle]) == most) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    (void)match_above(&matching, most > 0 ? sorted[good] : 0);
    memcpy(ret_right, matching.rights, n_left * sizeof *ret_right);
    return PSD_OK;
}
