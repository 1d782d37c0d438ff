/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_indexed_rows - rows that are found by their key
 *
 * What     A slab of rows, each after its key, and an index from key to place.
 *          In a DENSE table an item holds the row itself. In SPARSE and AUTO
 *          tables it holds a head, which points to a sparse row or to a dense
 *          row in another slab. The first push to a row creates it. If that
 *          push then fails, its head is *absent*: it reads as first values, and
 *          ranges skip it. Dense rows are never absent, because all allocations
 *          come before the first row is created. A hash partition of a
 *          RANGE-keys table is stored here too, because its rows are scattered.
 *          Its rows that were never pushed read as their first values, so all
 *          of them are present without being stored.
 * Shape    row: u64 key, a u64 version if the table has versions, then values
 *          and states, or a head
 */
#ifndef PS_MODEL_INDEXED_ROWS_H
#define PS_MODEL_INDEXED_ROWS_H

#include "model/rows/row_index.h"
#include "model/rows/slab.h"
#include "model/rows/sparse_row.h"

#define PS_ROW_VERSION_AT 8 /* bytes of a row before its version */

typedef struct ps_indexed_rows {
    ps_row_shape_t shape;
    uint32_t values_at;      /* bytes of a row before its values or head */
    ps_slab_t rows;          /* of all keys, in insertion order */
    ps_row_index_t index;    /* over rows, so the struct must not move */
    ps_slab_t dense;         /* SPARSE and AUTO tables: dense rows with state */
    uint64_t n_absent;       /* heads to which no push was applied */
    uint64_t sparse_entries; /* of all sparse rows */
    uint64_t sparse_bytes;   /* allocated for them */
} ps_indexed_rows_t;

/* A found row: sparse if `sparse` is not NULL, else dense. */
typedef struct ps_row {
    ps_sparse_row_t *sparse;
    ps_dense_row_t dense;
} ps_row_t;

void ps_indexed_rows_init(ps_indexed_rows_t *self, const ps_row_shape_t *shape);
void ps_indexed_rows_done(ps_indexed_rows_t *self);

/* As ps_store_push. false: no memory; no value has changed. */
PSD_MUST_CHECK bool ps_indexed_rows_push(ps_indexed_rows_t *self, const ps_slice_t *slice,
                                         const ps_payload_t *payload);

/* The row that `at`, an item of `rows`, holds or points to. */
ps_row_t ps_indexed_row_at(const ps_indexed_rows_t *self, uint8_t *at);
/* True when a push was applied to that row. */
bool ps_indexed_row_is_present(const ps_indexed_rows_t *self, const uint8_t *at);
/* Marks that row as changed. */
static inline void ps_indexed_row_stamp(const ps_indexed_rows_t *self, uint8_t *at)
{
    if (self->shape.version != NULL) {
        ps_store_u64(at + PS_ROW_VERSION_AT, *self->shape.version);
    }
}
/* Version of that row; 0 when the table has none. */
uint64_t ps_indexed_row_version(const ps_indexed_rows_t *self, const uint8_t *at);
/* Finds or creates the row of the key for a change. Only in DENSE tables, with
 * room for it in rows and index. */
uint8_t *ps_indexed_rows_make(ps_indexed_rows_t *self, uint64_t key);
/* Rows to which a push was applied. */
uint64_t ps_indexed_rows_present(const ps_indexed_rows_t *self);

/* Bytes of the values of all rows; the state is n_states times that. */
uint64_t ps_indexed_rows_value_bytes(const ps_indexed_rows_t *self);
/* Bytes of everything, unused capacity included. */
uint64_t ps_indexed_rows_bytes(const ps_indexed_rows_t *self);

static inline bool ps_rows_are_mixed(const ps_indexed_rows_t *self)
{
    return self->shape.spec->row_format != PS_ROW_DENSE;
}
#endif
