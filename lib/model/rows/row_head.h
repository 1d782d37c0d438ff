/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_row_head - the tagged pointer to a row of a SPARSE or AUTO table
 *
 * Shape    the address of a sparse row, or of a dense row plus 1; plus 2 while
 *          the row is absent. Rows are aligned to 4.
 */
#ifndef PS_MODEL_ROW_HEAD_H
#define PS_MODEL_ROW_HEAD_H

#include "model/rows/indexed_rows.h"

#define PS_HEAD_DENSE 1
#define PS_HEAD_ABSENT 2

typedef uint8_t *ps_row_head_t;

static inline uint32_t ps_row_head_flags(ps_row_head_t head)
{
    return (uint32_t)((uintptr_t)head & 3);
}

static inline bool ps_row_head_is_dense(ps_row_head_t head)
{
    return (ps_row_head_flags(head) & PS_HEAD_DENSE) != 0;
}

/* The address without its flags. */
static inline uint8_t *ps_row_head_target(ps_row_head_t head)
{
    return head - ps_row_head_flags(head);
}

/* The head is sparse. */
static inline ps_sparse_row_t *ps_row_head_sparse(ps_row_head_t head)
{
    return (void *)ps_row_head_target(head);
}

/* Head of the row at `at`. */
static inline ps_row_head_t *ps_row_head_at(const ps_indexed_rows_t *self, uint8_t *at)
{
    return (void *)(at + self->values_at);
}

/* Creates the rows of a push to a SPARSE or AUTO table and reserves room for
 * its entries. Several pushes to one row may be reserved before the first is
 * applied. false: no memory; nothing stays reserved, new rows stay absent. */
PSD_MUST_CHECK bool ps_row_heads_reserve(ps_indexed_rows_t *self, const ps_slice_t *slice,
                                         const ps_payload_t *payload);
/* Call when a push was applied to a sparse row or given up. After the last
 * pending push it drops the row's zero entries, and shrinks the row if most of
 * its room is free. */
void ps_row_head_settle(ps_indexed_rows_t *self, ps_row_head_t *head);
/* The most room that a sparse row of n entries has while no push is pending. */
uint32_t ps_row_head_room(uint32_t n);
#endif
