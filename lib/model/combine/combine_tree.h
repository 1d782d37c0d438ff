/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/model/combine: the fixed order of additions. */
#ifndef PS_MODEL_COMBINE_TREE_H
#define PS_MODEL_COMBINE_TREE_H

#include "model/combine/combine.h"

#define PS_TREE_DEPTH 14 /* sums that are open at a time: one a level, and one more */

/*
 * ps_tree - which sum is added to which, as leaves come in ascending order
 *
 * What     A leaf becomes the top of a stack of sums, or is added to the top
 *          when it is of the same position. Two sums at the top become one when
 *          the next leaf is outside of the interval that both are in.
 */
typedef struct ps_tree {
    uint32_t n;                     /* sums that are open */
    uint32_t last;                  /* position of the last leaf */
    uint8_t between[PS_TREE_DEPTH]; /* [i]: level of the interval of sums i and i + 1 */
} ps_tree_t;

/* Levels of the smallest aligned interval that has both positions; 0: equal. */
static inline uint8_t ps_tree_level(uint32_t a, uint32_t b)
{
    return a == b ? 0 : (uint8_t)(32 - __builtin_clz(a ^ b));
}

/* True when the leaf at `position` is added to the top; else it becomes a new
 * one. Before: merge while ps_tree_merges. */
static inline bool ps_tree_folds(const ps_tree_t *self, uint32_t position)
{
    return self->n > 0 && self->last == position;
}

/* True when the top is to be added to the sum below it before a leaf at
 * `position` comes (PS_COMBINE_POSITIONS: none comes); takes it off the
 * stack. */
static inline bool ps_tree_merges(ps_tree_t *self, uint32_t position)
{
    if (self->n < 2 || self->between[self->n - 2] >= ps_tree_level(self->last, position)) {
        return false;
    }
    self->n--;
    return true;
}

/* The leaf is the new top. */
static inline void ps_tree_push(ps_tree_t *self, uint32_t position)
{
    if (self->n > 0) {
        self->between[self->n - 1] = ps_tree_level(self->last, position);
    }
    self->last = position;
    self->n++;
}
#endif
