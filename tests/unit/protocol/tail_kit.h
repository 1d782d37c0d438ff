/* SPDX-License-Identifier: Apache-2.0 */
/* A tail of records that are so many bytes of their lsn each. */
#ifndef PS_TESTS_TAIL_KIT_H
#define PS_TESTS_TAIL_KIT_H

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/replica/tail.h"

/* Adds the next record. false: no memory, nothing changed. */
static inline bool tail_put(ps_tail_t *tail, uint64_t epoch, size_t size)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    uint8_t *bytes = NULL;

    if (!ps_tail_reserve(tail)) {
        return false;
    }
    payload = ps_payload_room(0, 0, size, &bytes);
    if (payload == NULL) {
        return false;
    }
    memset(bytes, (int)(uint8_t)(ps_tail_last(tail) + 1), size);
    ps_tail_add(tail, epoch, payload->spans[0], payload);
    return true;
}
#endif
