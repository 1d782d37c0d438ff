/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_slice, ps_payload - rows and columns sent to or from a partition
 *
 * What     A slice names the rows and columns of a push or pull and the layout
 *          of their values. A payload holds the bytes of keys, index and
 *          values, and knows their owner. `wire` checks a slice against its
 *          bytes; `model` then reads it without further length checks.
 * Shape    rows    LIST: keys holds n_rows u64, any order; duplicates of one
 *                        row are applied one after the other
 *                  RANGE: first_row, first_row + 1, ... n_rows of them
 *                  ASKED: in answers: the first n_rows rows of the request
 *                  CACHED: in requests: keys holds the hash of a list that was
 *                        sent before; it becomes a LIST before the request
 *                        is served
 *          layout  DENSE: n_rows x n_cols values, row by row, over the columns
 *                        that `cols` selects
 *                  SPARSE: index holds u32 counts[n_rows] then u32 column of
 *                        each of the n_values entries; values in that order
 *          cols    ALL: n_cols = all columns of the partition
 *                  RANGE: first_col .. first_col + n_cols - 1
 *                  LIST: index holds u32 columns[n_cols] (DENSE only)
 *          Rows and columns are the table's, not relative to the partition.
 * Units    values are of the table's type, little-endian
 */
#ifndef PS_BASE_SLICE_H
#define PS_BASE_SLICE_H

#include <stdatomic.h>

#include "base/bytes.h"

typedef enum ps_rows_kind {
    PS_ROWS_LIST = 0,
    PS_ROWS_RANGE = 1,
    PS_ROWS_ASKED = 2,
    PS_ROWS_CACHED = 3
} ps_rows_kind_t;
typedef enum ps_layout { PS_LAYOUT_DENSE = 0, PS_LAYOUT_SPARSE = 1 } ps_layout_t;
typedef enum ps_cols_kind { PS_COLS_ALL = 0, PS_COLS_RANGE = 1, PS_COLS_LIST = 2 } ps_cols_kind_t;

#define PS_KEYS_HASH_SIZE 16 /* bytes that name a CACHED list */

/* The value type of a table; the numbers travel on the wire. */
typedef enum ps_type {
    PS_TYPE_I32 = 1,
    PS_TYPE_I64 = 2,
    PS_TYPE_F32 = 3,
    PS_TYPE_F64 = 4
} ps_type_t;

typedef struct ps_slice {
    ps_rows_kind_t rows; /* how rows are named */
    ps_layout_t layout;  /* how values lie */
    ps_cols_kind_t cols; /* how columns are named; ALL when SPARSE */
    ps_type_t type;      /* of every value */
    uint64_t n_rows;     /* rows named */
    uint64_t first_row;  /* RANGE only, else 0 */
    uint32_t first_col;  /* cols RANGE only, else 0 */
    uint32_t n_cols;     /* columns of a DENSE row; 0 when SPARSE */
    uint64_t n_values;   /* values carried; 0 in a pull request */
} ps_slice_t;

/* The bytes of a slice: a reference-counted heap object. Its holders may be on
 * different threads; it is immutable once shared. Values may lie in several
 * spans (a message that came in chunks); each span holds a whole number of
 * values, and no other number is split. */
typedef struct ps_payload {
    ps_bytes_t keys;              /* LIST: n_rows x u64; CACHED: 16 bytes; else empty */
    ps_bytes_t index;             /* see Shape; else empty */
    ps_bytes_t *spans;            /* values in order: &span, or an owned array */
    size_t n_spans;               /* 0 when there are no values */
    ps_bytes_t span;              /* the only one of most payloads */
    void *owner;                  /* the object that `release` frees; may be NULL */
    void (*release)(void *owner); /* frees the bytes; NULL: the payload does not own them */
    atomic_uint n_holders;        /* the last ps_payload_destroy frees it */
    bool shared;                  /* another process may change the values during reads, but never
                                     keys and index; copy the payload before keeping it */
    bool finite;                  /* every value was checked to be finite on arrival */
} ps_payload_t;

/* The requester's memory, to which an answer's values may be written; size 0:
 * none. Aligned to 64 bytes. The requester can change it at any time, so it is
 * never read back. */
typedef struct ps_room {
    uint8_t *data;
    size_t size;
} ps_room_t;

/* A payload that borrows keys, index and one span of values (when its size is
 * not 0) from `owner`, which release frees. On success the payload takes over
 * `owner`; on failure the caller keeps it. NULL when there is no memory. */
PSD_MUST_CHECK ps_payload_t *ps_payload_new(ps_bytes_t keys, ps_bytes_t index, ps_bytes_t values,
                                            void *owner, void (*release)(void *owner));
/* A payload in one block with room for the three parts. They are contiguous,
 * from *ret_bytes on; fill them before you share the payload. NULL when there
 * is no memory. */
PSD_MUST_CHECK ps_payload_t *ps_payload_room(size_t keys_size, size_t index_size,
                                             size_t values_size, uint8_t **ret_bytes);
/* A payload in one block that holds copies of the three parts. NULL when there
 * is no memory. */
PSD_MUST_CHECK ps_payload_t *ps_payload_copy(ps_bytes_t keys, ps_bytes_t index, ps_bytes_t values);
/* Call this to keep a payload beyond the step that it came in. Returns the
 * payload with one more holder or, when it is `shared`, a private copy with its
 * values in one span. NULL: no memory. */
PSD_MUST_CHECK ps_payload_t *ps_payload_own(ps_payload_t *self);
/* A private copy, its values in one span. NULL: no memory.
 */
PSD_MUST_CHECK ps_payload_t *ps_payload_clone(const ps_payload_t *self);
/* Adds a holder; returns self. */
ps_payload_t *ps_payload_keep(ps_payload_t *self);
/* Drops a holder and nulls *self_p; the last holder frees. Takes NULL. */
void ps_payload_destroy(ps_payload_t **self_p);
/* Bytes of keys, index and all spans; 0 for NULL. */
size_t ps_payload_size(const ps_payload_t *self);

/* Key of row i of a slice; i < n_rows; rows LIST or RANGE. */
static inline uint64_t ps_slice_row(const ps_slice_t *self, const ps_payload_t *payload, uint64_t i)
{
    uint64_t key;

    if (self->rows == PS_ROWS_RANGE) {
        return self->first_row + i;
    }
    __builtin_memcpy(&key, payload->keys.data + 8 * i, sizeof key);
    return key;
}

/* Bytes of one value: 4 or 8; 0 when the number is not a type. */
static inline size_t ps_type_size(ps_type_t type)
{
    switch (type) {
    case PS_TYPE_I32:
    case PS_TYPE_F32:
        return 4;
    case PS_TYPE_I64:
    case PS_TYPE_F64:
        return 8;
    default:
        return 0;
    }
}
/* "i32" …; "?" when the number is not a type. */
const char *ps_type_name(ps_type_t type);
/* False when text is not the name of a type. */
PSD_MUST_CHECK bool ps_type_parse(const char *text, ps_type_t *ret_type);
#endif
