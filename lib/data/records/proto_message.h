/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_proto_message - samples as messages of parameter_server's three schemas
 *
 * What     lib/data/proto has the schemas. PS_PROTO_INPUT: a label and groups;
 *          PS_PROTO_INSTANCE: a label and the entries of all groups, which
 *          ranges of ids tell apart, that the first record has;
 *          PS_PROTO_EXAMPLE: slots, of which 0 is the label.
 * Threads  confined to one thread
 */
#ifndef PS_DATA_PROTO_MESSAGE_H
#define PS_DATA_PROTO_MESSAGE_H

#include "base/bytes.h"
#include "data/streams/samples.h"

typedef enum ps_proto_schema {
    PS_PROTO_INPUT,
    PS_PROTO_INSTANCE,
    PS_PROTO_EXAMPLE
} ps_proto_schema_t;

#define PS_PROTO_RANGES_MAX 4096 /* groups that a file's ranges tell apart */

/* A group whose ids lie in [begin, end). */
typedef struct ps_proto_range {
    int64_t group;
    uint64_t begin, end;
    uint64_t n_entries;
} ps_proto_range_t;

/* What a file's messages have in common. */
typedef struct ps_proto_info {
    ps_proto_schema_t schema;
    bool is_info; /* the message that was looked at is none of a sample */
    psd_entries_t entries;
    bool has_entries;         /* it says what they are */
    ps_proto_range_t *ranges; /* owned, n of them; of PS_PROTO_INSTANCE */
    size_t n, capacity;
} ps_proto_info_t;

/* Frees what is inside and zeroes it; fits PSD_AUTO. */
void ps_proto_info_done(ps_proto_info_t *self);
/* What the first message of a file says about all of them. Errors: PSD_INVALID
 * it fits none of the schemas, has more than PS_PROTO_RANGES_MAX ranges, or
 * takes more memory than ps_proto_message_parse allows; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_proto_info_look(ps_proto_info_t *ret_info, ps_bytes_t message,
                                               psd_error_t *err);
/* Adds a message's sample; after an error the caller removes the part that was
 * added. PSD_INVALID it is no such message, has values that a sample cannot
 * have, or takes more than 40 times its size + 64 KiB of memory, or 256 MiB;
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_proto_message_parse(const ps_proto_info_t *info, ps_bytes_t message,
                                                   psd_samples_t *samples, psd_error_t *err);
/* Appends sample i as a message; PS_PROTO_INSTANCE says nothing of its groups.
 * false: no memory. */
PSD_MUST_CHECK bool ps_proto_message_print(ps_proto_schema_t schema, const psd_samples_t *samples,
                                           size_t i, ps_buffer_t *out);
/* Appends the first record of a file of PS_PROTO_INSTANCE. false: no memory. */
PSD_MUST_CHECK bool ps_proto_info_print(const ps_proto_info_t *info, psd_labels_t labels,
                                        uint64_t n_samples, ps_buffer_t *out);
#endif
