/* SPDX-License-Identifier: Apache-2.0 */
/* ps_reply - the parts of a reply, and what dense and sparse replies share */
#ifndef PS_MODEL_REPLY_H
#define PS_MODEL_REPLY_H

#include "model/rows/row_walk.h"
#include "model/store/store_impl.h"

#define PS_KEY_BYTES 8
#define PS_COUNT_BYTES 4 /* of a sparse row */
#define PS_COLUMN_BYTES 4

typedef struct ps_reply {
    ps_payload_t *payload; /* owned until handed out */
    uint8_t *keys;         /* in the payload, as the others */
    uint8_t *index;
    uint8_t *values; /* any alignment */
    size_t keys_size;
    size_t index_size; /* a multiple of 4 */
    size_t values_size;
} ps_reply_t;

/* Allocates memory for the three sizes that are set; values go to the room if
 * they fit there. false: no memory. */
PSD_MUST_CHECK bool ps_reply_init(ps_reply_t *self, ps_room_t room);
void ps_reply_done(ps_reply_t *self);
/* PSD_NOMEM for a reply of n_rows rows. */
psd_status_t ps_reply_no_memory(uint64_t n_rows, psd_error_t *err);

/* What to gather, and how: the arguments of ps_store_gather. */
typedef struct ps_gather {
    ps_slice_t want; /* rows LIST, or RANGE if they are not scattered */
    const ps_payload_t *rows;
    size_t max_bytes;
    ps_room_t room;
    bool with_keys;        /* rows LIST: the reply names them */
    const uint64_t *since; /* only rows of later versions; NULL: all */
} ps_gather_t;

/* Gathers a SPARSE reply; want has the table's type. */
PSD_MUST_CHECK psd_status_t ps_store_gather_sparse(ps_store_t *self, const ps_gather_t *gather,
                                                   ps_slice_t *ret_slice,
                                                   ps_payload_t **ret_payload, psd_error_t *err);
/* Writes the first n_rows rows of a DENSE want, one after the other. */
void ps_store_read_rows(ps_store_t *self, const ps_slice_t *want, const ps_payload_t *rows,
                        uint64_t n_rows, uint8_t *ret_values);
#endif
