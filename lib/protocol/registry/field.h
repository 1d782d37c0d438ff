/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_field - one field of a value: its type and offset
 *
 * What     registry_fields.def and node_fields.def as tables, for the code that
 *          reads and writes values: bytes of commands and of the messages
 *          between nodes, columns of SQLite.
 * Shape    of bytes, little-endian: U32, I32 4; U64 8; BOOL and words 1; ID 16;
 *          TEXT u16 size and text; BYTES and a spelling u32 size and bytes;
 *          a list u32 count and its values, field after field
 * Threads  any; nothing is kept between calls
 */
#ifndef PS_PROTOCOL_FIELD_H
#define PS_PROTOCOL_FIELD_H

#include "base/cursor.h"

typedef enum ps_field_type {
    PS_AS_U32,
    PS_AS_U64,
    PS_AS_I32,
    PS_AS_BOOL,
    PS_AS_TEXT, /* char[size] */
    PS_AS_ID,
    PS_AS_BYTES, /* a ps_buffer_t that the value owns */
    PS_AS_LIST,  /* a pointer to `count` owned values */
    PS_AS_ARRAY, /* `count` values in place */
    /* words: an enum, a byte, a word in SQLite */
    PS_AS_TYPE,
    PS_AS_ROW_FORMAT,
    PS_AS_KEYS,
    PS_AS_ACK,
    PS_AS_COMBINE,
    PS_AS_COPY_STATE,
    PS_AS_WORKER_STATE,
    PS_AS_NODE_STATE, /* a bool: draining */
    PS_AS_REPORT_KIND,
    PS_AS_STATUS,
    PS_AS_WORK_KIND,
    PS_AS_ROLE,
    /* spellings: text everywhere */
    PS_AS_UPDATER,
    PS_AS_INIT,
    PS_AS_PARTITION_BY, /* of a ps_table_spec_t … */
    PS_AS_FILTER        /* … as well */
} ps_field_type_t;

#define PS_FIELD_WORD_MAX 32 /* bytes of a word */

typedef struct ps_field_shape ps_field_shape_t;

typedef struct ps_field {
    const char *name;
    ps_field_type_t type;
    size_t at;   /* of the member */
    size_t size; /* of the member */
    /* of LIST and ARRAY only */
    const ps_field_shape_t *of; /* each value */
    size_t count_at;            /* of the member with the count … */
    size_t count_size;          /* … which is a uint32_t or a size_t */
    uint32_t max;               /* values */
} ps_field_t;

/* The shape of a value: its fields. */
struct ps_field_shape {
    const ps_field_t *fields;
    size_t n;
    size_t size; /* of a value in memory */
};

/* A member of another width than its type does not compile. */
#define PS_FITS_U32(size) ((size) == sizeof(uint32_t))
#define PS_FITS_U64(size) ((size) == sizeof(uint64_t))
#define PS_FITS_I32(size) ((size) == sizeof(int32_t))
#define PS_FITS_BOOL(size) ((size) == sizeof(bool))
#define PS_FITS_ID(size) ((size) == sizeof(ps_id_t))
#define PS_FITS_TEXT(size) true
#define PS_FITS_BYTES(size) ((size) == sizeof(ps_buffer_t))
#define PS_FITS_TYPE(size) ((size) == sizeof(int))
#define PS_FITS_ROW_FORMAT(size) ((size) == sizeof(int))
#define PS_FITS_KEYS(size) ((size) == sizeof(int))
#define PS_FITS_ACK(size) ((size) == sizeof(int))
#define PS_FITS_COMBINE(size) ((size) == sizeof(int))
#define PS_FITS_COPY_STATE(size) ((size) == sizeof(int))
#define PS_FITS_WORKER_STATE(size) ((size) == sizeof(int))
#define PS_FITS_NODE_STATE(size) ((size) == sizeof(bool))
#define PS_FITS_REPORT_KIND(size) ((size) == sizeof(int))
#define PS_FITS_STATUS(size) ((size) == sizeof(int))
#define PS_FITS_WORK_KIND(size) ((size) == sizeof(int))
#define PS_FITS_ROLE(size) ((size) == sizeof(int))
#define PS_FITS_UPDATER(size) true
#define PS_FITS_INIT(size) true
#define PS_FITS_PARTITION_BY(size) true
#define PS_FITS_FILTER(size) true
#define PS_FIELD_SIZE(S, kind, member) \
    (sizeof(((S *)NULL)->member) *     \
     sizeof(char[PS_FITS_##kind(sizeof(((S *)NULL)->member)) ? 1 : -1]))

/* Rows of tables: as the lists of registry_fields.def want their F, L and A. */
#define PS_FIELD_ROW(S, kind, column, member) \
    {.name = #column,                         \
     .type = PS_AS_##kind,                    \
     .at = offsetof(S, member),               \
     .size = PS_FIELD_SIZE(S, kind, member)},
#define PS_LIST_ROW_OF(S, kind, shape, list, member, counter, most) \
    {.name = #list,                                                 \
     .type = PS_AS_##kind,                                          \
     .at = offsetof(S, member),                                     \
     .size = sizeof(((S *)NULL)->member),                           \
     .of = &shape##_shape,                                          \
     .count_at = offsetof(S, counter),                              \
     .count_size = sizeof(((S *)NULL)->counter),                    \
     .max = most},
#define PS_LIST_ROW(S, shape, list, member, counter, most) \
    PS_LIST_ROW_OF(S, LIST, shape, list, member, counter, most)
#define PS_ARRAY_ROW(S, shape, list, member, counter, most) \
    PS_LIST_ROW_OF(S, ARRAY, shape, list, member, counter, most)

/* A shape from its table of fields, NAME_fields; type: of the value. */
#define PS_FIELD_SHAPE(name, type)                                            \
    static const ps_field_shape_t name##_shape = {.fields = name##_fields,    \
                                                  .n = sizeof name##_fields / \
                                                       sizeof *name##_fields, \
                                                  .size = sizeof(type)};

/* The word for a value of a word type; "?" when unknown. */
const char *ps_field_word(const ps_field_t *self, const void *value);
/* Sets the value of the word. false: unknown word. */
PSD_MUST_CHECK bool ps_field_set_word(const ps_field_t *self, void *value, const char *word);
bool ps_field_is_word(const ps_field_t *self);
bool ps_field_is_spelling(const ps_field_t *self);
/* Appends the spelling, without a terminator. false: no memory. */
PSD_MUST_CHECK bool ps_field_spell(const ps_field_t *self, const void *value, ps_buffer_t *text);
/* Bytes of the longest spelling. */
size_t ps_field_spelling_max(const ps_field_t *self);
/* Reads a spelling. Errors: PSD_INVALID, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_field_read_spelling(const ps_field_t *self, void *value,
                                                   const char *text, psd_error_t *err);

/* Appends the bytes of a value. false: no memory. */
PSD_MUST_CHECK bool ps_shape_encode(const ps_field_shape_t *self, const void *value,
                                    ps_buffer_t *buffer);
/* Reads them into a zeroed value. Also on an error the caller frees what the
 * value owns by then. Errors: PSD_PROTO naming the field; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_shape_decode(const ps_field_shape_t *self, ps_cursor_t *cursor,
                                            void *value, psd_error_t *err);
#endif
