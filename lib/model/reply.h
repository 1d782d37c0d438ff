/* SPDX-License-Identifier: Apache-2.0 */
/* ps_reply - the one block of a reply, keys, index and values, and the parts of
 * gathering that dense and sparse replies share */
#ifndef PS_MODEL_REPLY_H
#define PS_MODEL_REPLY_H

#include "model/store_impl.h"

/* Rows whose memory is asked for before it is used. */
#define PS_REPLY_AHEAD 16
#define PS_KEY_BYTES 8
#define PS_COUNT_BYTES 4 /* of a sparse row */
#define PS_COLUMN_BYTES 4

typedef struct ps_reply {
    uint8_t *block; /* owned until it goes into a payload */
    uint8_t *keys;  /* in the block, as the others */
    uint8_t *index;
    uint8_t *values; /* aligned to 8 */
    size_t keys_size;
    size_t index_size; /* a multiple of 4 */
    size_t values_size;
} ps_reply_t;

/* Takes memory for the three sizes that are set. false: there is none. */
PSD_MUST_CHECK bool ps_reply_init(ps_reply_t *self);
void ps_reply_done(ps_reply_t *self);
/* The payload, which takes the block; NULL: no memory. */
PSD_MUST_CHECK ps_payload_t *ps_reply_finish(ps_reply_t *self);
/* PSD_NOMEM for a reply of so many rows. */
psd_status_t ps_reply_no_memory(uint64_t n_rows, psd_error_t *err);

/* Asks the processor for the rows i, i + 1 … of a slice, below n_rows, when i
 * is the first of a group. */
void ps_store_prefetch(const ps_store_t *self,
                       const ps_slice_t *want,
                       const ps_payload_t *rows,
                       uint64_t i,
                       uint64_t n_rows);

/* ps_store_gather for rows that are named one by one or a range in a store that
 * is not scattered; want is SPARSE and has the table's type. */
PSD_MUST_CHECK psd_status_t ps_store_gather_sparse(ps_store_t *self,
                                                   const ps_slice_t *want,
                                                   const ps_payload_t *rows,
                                                   size_t max_bytes,
                                                   ps_slice_t *ret_slice,
                                                   ps_payload_t **ret_payload,
                                                   psd_error_t *err);
#endif
