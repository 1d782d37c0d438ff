/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ex_outer - when which fragment of local parameters goes to the table
 *
 * What     Each worker trains a copy of its own (inner steps). The parameters
 *          are cut into fragments that take turns: after every `every` inner
 *          steps the worker pushes start - local of one of them, pulls it, and
 *          `overlap` inner steps later mixes it in: the local change that was
 *          made meanwhile is kept. No I/O: the caller pushes and pulls.
 * Owner    the caller; ex_outer_done
 * Source   Douillard et al., DiLoCo, 2023, algorithm 1. Fragments and overlap
 *          after Streaming DiLoCo, 2025, sections 2.2 and 2.3, but each fragment
 *          goes every `every` x `fragments` steps, and the mix is our own: what
 *          comes, plus all of the local change.
 */
#ifndef EX_OUTER_H
#define EX_OUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd.h"

typedef struct ex_outer_rule {
    uint32_t every;     /* inner steps from a push to the next, 1 .. */
    uint32_t fragments; /* 1 .. */
    uint32_t overlap;   /* inner steps from a push to its pull, 0 .. every - 1 */
} ex_outer_rule_t;

typedef struct ex_outer {
    ex_outer_rule_t rule;
    size_t n;        /* parameters */
    float *start;    /* what the table had, as this worker last saw it */
    float *sent;     /* local values of the fragment as it was pushed */
    uint64_t steps;  /* inner ones */
    uint64_t pushes; /* made */
    uint64_t pulls;
} ex_outer_t;

/* Errors: PSD_INVALID overlap is not less than every, or more fragments than
 * parameters; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ex_outer_init(ex_outer_t *self, const ex_outer_rule_t *rule, size_t n,
                                          const float *parameters, psd_error_t *err);
void ex_outer_done(ex_outer_t *self);
/* An inner step has been made: is a push due now? */
bool ex_outer_step(ex_outer_t *self);
/* Is the pull of the last push due? Asked after each step, and its push. */
bool ex_outer_pulls(const ex_outer_t *self);
/* The parameters first .. first + n - 1 of the last or next push: the next one
 * until ex_outer_push, and from then until ex_outer_mix that one. */
void ex_outer_fragment(const ex_outer_t *self, size_t *ret_first, size_t *ret_n);
/* How many fragments, in turn, have had inner steps since their last push. */
uint32_t ex_outer_left(const ex_outer_t *self);
/* Fills ret_deltas, as many as the fragment has, with start - local. */
void ex_outer_push(ex_outer_t *self, const float *local, float *ret_deltas);
/* Takes the fragment's values of the table: local becomes them plus what has
 * changed since the push. */
void ex_outer_mix(ex_outer_t *self, const float *pulled, float *local);
#endif
