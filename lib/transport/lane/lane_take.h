/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the lane: one record out of the ring, checked and copied. */
#ifndef PS_TRANSPORT_LANE_TAKE_H
#define PS_TRANSPORT_LANE_TAKE_H

#include "transport/lane/lane.h"
#include "transport/lane/lane_record.h"

typedef struct ps_taken {
    ps_record_head_t head;
    uint64_t position; /* of the record */
    uint8_t *block;    /* owned: keys, index and what values are inline */
    uint8_t header[PS_HEADER_MAX + PS_INLINE_MAX];
} ps_taken_t;

void ps_taken_done(ps_taken_t *self);

static inline bool ps_values_are_inline(const ps_record_head_t *head)
{
    return head->values_at == PS_LANE_RECORD_INLINE_VALUES;
}

static inline bool ps_values_are_placed(const ps_record_head_t *head)
{
    return head->kind == PS_LANE_RECORD_MESSAGE && head->values_size > 0 &&
           !ps_values_are_inline(head);
}

/* Takes the next record, which is there. Errors: PSD_PROTO: it cannot be, and
 * the lane is closed; PSD_NOMEM: it is lost. */
PSD_MUST_CHECK psd_status_t ps_lane_take(ps_lane_t *self, ps_taken_t *taken, psd_error_t *err);
#endif
