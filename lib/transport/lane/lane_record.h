/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_lane_record - the format of a message in a ring
 *
 * Shape    INLINE   8 bytes of head, header and body as in one frame
 *          PART     8 bytes of head, bytes of keys and index; more follow
 *          MESSAGE  64 bytes of head, header, and those of keys, index and
 *                   values that are inline; values may lie in the arena
 *          each padded to a multiple of 8 bytes
 */
#ifndef PS_TRANSPORT_LANE_RECORD_H
#define PS_TRANSPORT_LANE_RECORD_H

#include <stddef.h>
#include <stdint.h>

typedef enum ps_lane_record_kind {
    PS_LANE_RECORD_INLINE = 1,
    PS_LANE_RECORD_PART = 2,
    PS_LANE_RECORD_MESSAGE = 3
} ps_lane_record_kind_t;

#define PS_LANE_RECORD_HEAD 8  /* bytes of the first word */
#define PS_LANE_RECORD_WORDS 8 /* of a MESSAGE's head */
#define PS_LANE_RECORD_FULL_HEAD ((uint64_t)PS_LANE_RECORD_WORDS * 8)
#define PS_LANE_RECORD_INLINE_VALUES UINT64_MAX /* values_at: after the header */

#define PS_LANE_RECORD_FINITE                          \
    1 /* flag of a MESSAGE: its writer saw that all of \
         its values are finite */

/* The first word: the record's size without padding, the size of the header
 * in it, and the kind. */
static inline uint64_t ps_record_word(uint32_t size, uint16_t header, ps_lane_record_kind_t kind)
{
    return (uint64_t)size | (uint64_t)header << 32 | (uint64_t)kind << 48;
}

static inline uint64_t ps_record_flags(uint8_t flags)
{
    return (uint64_t)flags << 56;
}

typedef struct ps_record_head {
    uint32_t size;        /* bytes used, head included */
    uint16_t header_size; /* bytes of the message's header */
    uint8_t kind;
    uint8_t flags;
    uint64_t keys_size; /* MESSAGE only, as what follows */
    uint64_t index_size;
    uint64_t parts_size; /* of the two, what came in PARTs; the rest inline */
    uint64_t values_at;
    uint64_t values_size;
    uint64_t room_at;
    uint64_t room_size;
} ps_record_head_t;

/* What a record takes in the ring. */
static inline uint64_t ps_record_room(uint64_t size)
{
    return (size + 7) / 8 * 8;
}

/* Loads each word of a head once: its writer may still be writing. */
static inline uint64_t ps_record_load(const uint8_t *at)
{
    return __atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_RELAXED);
}
#endif
