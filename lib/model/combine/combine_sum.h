/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/model/combine: adds values along the tree. */
#ifndef PS_MODEL_COMBINE_SUM_H
#define PS_MODEL_COMBINE_SUM_H

#include "model/combine/combine_tree.h"
#include "model/updaters/loops.h"

#define PS_SUM_BLOCK ((size_t)4096) /* bytes; all open sums fit into the L2 cache */

/* Neighbouring values of a part. */
typedef struct ps_leaf {
    uint32_t position;
    const uint8_t *values; /* at any address */
} ps_leaf_t;

/* What all sums of one call share. */
typedef struct ps_sum {
    ps_loop_t *add; /* values += others, of the type */
    size_t value_size;
    uint8_t *open;     /* owned; PS_TREE_DEPTH blocks: the sums that are open, but for the first */
    ps_leaf_t *leaves; /* owned */
    size_t n_leaves;
    size_t capacity;
} ps_sum_t;

/* A payload and where to write its parts. */
typedef struct ps_sum_room {
    ps_payload_t *payload; /* the caller's */
    uint8_t *keys;
    uint8_t *index;
    uint8_t *values; /* aligned to every type */
} ps_sum_room_t;

/* Errors: PSD_NOMEM. ps_sum_done also after an error. */
PSD_MUST_CHECK psd_status_t ps_sum_begin(ps_sum_t *self, ps_type_t type, psd_error_t *err);
void ps_sum_done(ps_sum_t *self);
/* Adds a leaf; positions ascend. false: no memory. */
PSD_MUST_CHECK bool ps_sum_leaf(ps_sum_t *self, uint32_t position, const uint8_t *values);
/* The sum of the leaves, n values each, into `to`, which is aligned to the type.
 * Then there are no leaves. */
void ps_sum_make(ps_sum_t *self, uint8_t *to, size_t n);
/* Room for a sum. false: no memory. */
PSD_MUST_CHECK bool ps_sum_room(size_t keys_size, size_t index_size, size_t values_size,
                                ps_sum_room_t *ret_room);
/* Divides all n values, and gives every NaN the same bits. Aligned to the type.
 */
void ps_sum_finish(ps_type_t type, uint32_t divisor, uint8_t *values, size_t n);
#endif
