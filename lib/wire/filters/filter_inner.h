/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/wire: shared by the encoder and the decoder of coded
 * bodies. */
#ifndef PS_WIRE_FILTER_INNER_H
#define PS_WIRE_FILTER_INNER_H

#include "base/rng.h"
#include "wire/filters/filter_code.h"

typedef enum ps_keys_as { PS_KEYS_RAW = 0, PS_KEYS_DELTA = 1 } ps_keys_as_t;

enum { PS_PART_KEYS, PS_PART_INDEX, PS_PART_VALUES, PS_N_PARTS };

struct ps_coder {
    ps_rng_t rng;                  /* seeds for random rounding */
    ps_packer_t *packer;           /* owned */
    ps_buffer_t whole;             /* owned: a body joined from its spans */
    ps_buffer_t parts[PS_N_PARTS]; /* owned: parts before packing or after unpacking */
    ps_buffer_t packed;            /* owned: packed parts */
};

extern const char *const PS_PART_NAMES[PS_N_PARTS];

#define PS_CODED_UNIT 8 /* bytes; a coded body is a multiple of it */

/* The head of a coded body. */
typedef struct ps_coded_head {
    ps_keys_as_t keys_as;
    ps_values_as_t values_as;
    ps_pack_t pack;
    uint8_t packed;             /* a bit for each part */
    uint64_t sizes[PS_N_PARTS]; /* bytes of each part as stored */
} ps_coded_head_t;

void ps_coded_head_write(const ps_coded_head_t *self, uint8_t ret[PS_CODED_HEAD]);
/* Errors: PSD_PROTO too few bytes, or a field out of range. */
PSD_MUST_CHECK psd_status_t ps_coded_head_read(ps_bytes_t body, ps_coded_head_t *ret_head,
                                               psd_error_t *err);
/* Bytes of head, parts and padding. Errors: PSD_PROTO the sum overflows.
 */
PSD_MUST_CHECK psd_status_t ps_coded_head_size(const ps_coded_head_t *self, uint64_t *ret_size,
                                               psd_error_t *err);

/* Empties the work buffers, and frees large ones. */
void ps_coder_tidy(ps_coder_t *self);
/* The values of a payload, contiguous; copied to `room` if they lie in several
 * spans. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_coder_join(const ps_payload_t *payload, ps_buffer_t *room,
                                          ps_bytes_t *ret_values, psd_error_t *err);
#endif
