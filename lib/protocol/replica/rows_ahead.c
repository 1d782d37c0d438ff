/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes to rows that a new copy does not have yet: the primary only announces
 * them, because the rows arrive later with the change applied. */
#include "protocol/partition/replay.h"
#include "protocol/replica/replicas.h"

/* The lowest row of the slice, none of whose places is below that one. */
static bool lies_behind(const ps_store_t *store, uint64_t least, const ps_slice_t *slice,
                        const ps_payload_t *payload, uint64_t *ret_row)
{
    bool is_range = slice->rows == PS_ROWS_RANGE && slice->n_rows > 0;
    uint64_t n = is_range ? 1 : slice->n_rows; /* places rise with rows */

    *ret_row = UINT64_MAX;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t row = ps_slice_row(slice, payload, i);
        uint64_t place = 0;

        if (!ps_store_place_of(store, row, &place) || place < least) {
            return false;
        }
        *ret_row = row < *ret_row ? row : *ret_row;
    }
    return n > 0;
}

bool ps_rows_lie_ahead(const ps_partition_t *self, uint32_t job, const ps_row_op_t *op,
                       const ps_slice_t *slice, const ps_payload_t *payload, uint64_t *ret_row)
{
    const ps_replicas_t *replicas = self->replicas;
    uint64_t sent = 0;

    return replicas != NULL && self->spec->ack != PS_ACK_DISK && op->op == PS_CHANGE_UPDATE &&
           ps_rows_all_lack(replicas, &sent) && ps_partition_applies_at_once(self, job) &&
           lies_behind(self->store, sent, slice, payload, ret_row);
}
