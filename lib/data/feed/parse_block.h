/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_parse_block - samples as bytes, as a parse cache keeps them
 *
 * What     A head, followed by the arrays of a batch, except arrays of defaults
 *          (weights that are all 1, values that are all 1, …). When all keys
 *          are below 2^32 they take four bytes each.
 * Shape    The machine's own byte order: no other machine reads them.
 * Threads  any
 */
#ifndef PS_DATA_PARSE_BLOCK_H
#define PS_DATA_PARSE_BLOCK_H

#include "data/streams/samples.h"

typedef struct ps_parse_head {
    uint64_t sum; /* of the rest of the head, and of the body */
    uint64_t body_size;
    uint64_t n_groups, n_entries, n_tag_bytes;
    uint32_t n_samples; /* 0: the last block, of another kind */
    uint32_t flags;
} ps_parse_head_t;

/* Appends head and body of all samples of the batch, at least one. false: no
 * memory, or more of something than a block holds; nothing changed. */
PSD_MUST_CHECK bool ps_parse_block_print(const psd_samples_t *samples, ps_buffer_t *out);
/* The checksum that the head should have. */
uint64_t ps_parse_block_sum(const ps_parse_head_t *head, const void *body);
/* Does the head, of at least one sample, say a size that can be its body's? */
bool ps_parse_head_is_valid(const ps_parse_head_t *head);
/*
 * Adds the samples of a block, whose head is valid. PSD_DAMAGED: they do not
 * hang together; PSD_NOMEM; nothing is changed then.
 */
PSD_MUST_CHECK psd_status_t ps_parse_block_take(const ps_parse_head_t *head, const uint8_t *body,
                                                psd_samples_t *samples);
#endif
