/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/wire: the offsets of a record's fields. */
#ifndef PS_WIRE_RECORD_FIELDS_H
#define PS_WIRE_RECORD_FIELDS_H

#include <assert.h>

#include "wire/records/record.h"

#define PS_RECORD_AT_MAGIC 4
#define PS_RECORD_AT_CHECKSUM 8
#define PS_RECORD_AT_FIELDS 16

/* The fields in their byte layout. */
#define PS_RECORD_TYPE_u8 uint8_t
#define PS_RECORD_TYPE_u16 uint16_t
#define PS_RECORD_TYPE_u32 uint32_t
#define PS_RECORD_TYPE_u64 uint64_t
#define PS_RECORD_MEMBER(type, name) PS_RECORD_TYPE_##type name;
typedef struct ps_record_fields {
    PS_RECORD_FIELDS(PS_RECORD_MEMBER)
} ps_record_fields_t;

/* The offset of each field: a struct of bytes has no padding. */
#define PS_RECORD_PLACE(type, name) uint8_t name[sizeof(PS_RECORD_TYPE_##type)];
typedef struct ps_record_places {
    uint8_t before[PS_RECORD_AT_FIELDS];
    PS_RECORD_FIELDS(PS_RECORD_PLACE)
} ps_record_places_t;
static_assert(sizeof(ps_record_places_t) == PS_RECORD_HEAD, "PS_RECORD_HEAD is wrong");
#define PS_RECORD_PLACE_OF(name) offsetof(ps_record_places_t, name)

/* Zero bytes after a part of size bytes. */
static inline size_t ps_record_padding(size_t size)
{
    return (PS_RECORD_ALIGN - size % PS_RECORD_ALIGN) % PS_RECORD_ALIGN;
}
#endif
