/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/wire/records: a change of a partition as bytes
 *
 * It is       One record: its kinds, its fields, its checksum. Copies, logs and
 *             checkpoints carry the same bytes.
 * It uses     messages (a PUSH record allows what a PUSH message allows),
 *             lib/base.
 * It ignores  What a record does to rows (lib/protocol/partition), and the files
 *             that hold it (lib/storage/log).
 * Start at    record.h for kinds and fields, record_read.c for what is checked.
 */
/*
 * ps_record - one numbered change of a partition, and its bytes
 *
 * What     A partition's state is its first state with all records applied in
 *          order; nothing else changes it. Replication, the log on disk and
 *          checkpoints carry the same bytes, with one checksum from the primary
 *          to the last reader.
 * Shape    a head of PS_RECORD_HEAD bytes, little-endian: size u32, magic u32,
 *          checksum u64, then the fields in list order, without padding; then
 *          keys, index and values, each beginning at a multiple of 8, with
 *          zeros between. The size counts all of it and is a multiple of 8.
 *          The checksum is XXH3-64 of all bytes, with zeros in its own place.
 *          PUSH carries keys, index and values as its slice says; REFUSAL its
 *          text, JOB the job, ROWS the rows and BUNDLE the bundle, as values; the
 *          others carry nothing.
 * Threads  any; nothing is kept between calls
 */
#ifndef PS_WIRE_RECORD_H
#define PS_WIRE_RECORD_H

#include "wire/messages/message.h"
#include "wire/messages/row_op.h"

#define PS_RECORD_MAGIC UINT32_C(0x01527370) /* "psR", version 1 */
#define PS_RECORD_MAX (UINT32_MAX - 7)       /* bytes of the largest record */

typedef enum ps_record_kind {
    PS_RECORD_PUSH = 1,    /* slice and payload; applied now or when the clock
                              closes */
    PS_RECORD_REFUSAL = 2, /* seq was consumed by a refusal of `status` */
    PS_RECORD_MARK = 3,    /* a member finished `clock` */
    PS_RECORD_JOB = 4,     /* the job's current state, its version in seq; without values: the job
                              is forgotten */
    PS_RECORD_FORGET = 5,  /* from an older psd: `session` is forgotten; from now on, unknown
                              sessions below seq are refused */
    PS_RECORD_EPOCH = 6,   /* a new primary serves under `epoch` */
    PS_RECORD_ANEW = 7,    /* in logs only: this copy has discarded its state and starts from the
                              state after record lsn, which was made under `epoch` (0 and 0: it
                              starts empty); seq: the number of this life of the copy */
    PS_RECORD_ROWS = 8,    /* rows of a checkpoint (model/store/store_image.h); seq 1, from an older
                              psd: more rows follow, and requests wait */
    PS_RECORD_LEAVE = 9,   /* in logs only: the copy has left this shard; seq: the life that ended,
                              lsn: its last record */
    PS_RECORD_AHEAD = 10,  /* never in logs: stands for a PUSH of n_rows rows, first_row the lowest,
                              for a copy that does not store these rows yet; they arrive later with
                              the change applied */
    PS_RECORD_RETIRE = 11, /* `session` has sent BYE or was replaced: its window is freed, and its
                              requests are refused from now on */
    PS_RECORD_SET = 12,    /* from now on the pushes of a clock become what seq says, a ps_combine_t
                              (model/tables/table.h); at first: each */
    PS_RECORD_BUNDLE = 13  /* pushes and marks of several clients, taken as one (bundle.h); `worker`
                              counts its contributors, `member` its spans, `session` is who brought
                              it. In a state: one span of an open clock */
} ps_record_kind_t;

typedef struct ps_record {
    ps_record_kind_t kind;
    uint32_t table;
    uint32_t partition;
    uint64_t lsn;   /* 1, 2, 3, … in each partition; may be 0 for ANEW and LEAVE */
    uint64_t epoch; /* the primary's epoch when it made the record */
    uint64_t session;
    uint64_t seq;
    psd_status_t status; /* REFUSAL only, else PSD_OK */
    bool marks;          /* PUSH, REFUSAL, AHEAD: also a MARK of `clock` + 1 */
    uint32_t job;
    uint32_t worker;
    uint32_t member;
    uint32_t joins;
    uint64_t clock;
    ps_row_op_t op;   /* PUSH only; the others encode zeros */
    ps_slice_t slice; /* PUSH, its rows LIST or RANGE; AHEAD: n_rows and
                         first_row */
} ps_record_t;

#define PS_RECORD_MARKS 0x80 /* bit of the kind: the record also marks */

/* The fields after the checksum. values_size: bytes of the values part. */
#define PS_RECORD_FIELDS(X) \
    X(u8, kind)             \
    X(u8, op)               \
    X(u16, status)          \
    X(u8, rows)             \
    X(u8, layout)           \
    X(u8, cols)             \
    X(u8, type)             \
    X(u64, lsn)             \
    X(u64, epoch)           \
    X(u64, session)         \
    X(u64, seq)             \
    X(u64, clock)           \
    X(u64, operand)         \
    X(u64, n_rows)          \
    X(u64, first_row)       \
    X(u64, n_values)        \
    X(u32, table)           \
    X(u32, partition)       \
    X(u32, job)             \
    X(u32, worker)          \
    X(u32, member)          \
    X(u32, joins)           \
    X(u32, other)           \
    X(u32, first_col)       \
    X(u32, n_cols)          \
    X(u32, values_size)

/* "PUSH" …; "?" when the number is not a kind. */
const char *ps_record_kind_name(ps_record_kind_t kind);

/* Bytes of the record with this payload (NULL: none). 0: more than
 * PS_RECORD_MAX. The payload of a PUSH must match its slice. */
PSD_MUST_CHECK size_t ps_record_size(const ps_record_t *self, const ps_payload_t *payload);

/* Writes all ps_record_size bytes (not 0) to `to`. Reads each byte that another
 * process may change only once, so the checksum matches the written bytes. */
void ps_record_write(const ps_record_t *self, const ps_payload_t *payload, uint8_t *to);

/* Spans that ps_record_head_write needs in addition to payload->n_spans. */
#define PS_RECORD_SPANS 6

/* Like ps_record_write, without copying the payload, which must not be
 * `shared`. Writes the head, and lists head, parts and the zeros between them
 * as spans to send in this order. All spans but the head are borrowed from
 * payload. Returns the number of spans. */
size_t ps_record_head_write(const ps_record_t *self, const ps_payload_t *payload,
                            uint8_t ret_head[PS_RECORD_HEAD], ps_bytes_t *ret_spans);

/* The size that the record at the front of bytes claims; 0 when there are fewer
 * than 8 bytes or they are not a record. Tells a reader how much to read.
 * Checks only magic and alignment. */
size_t ps_record_claims(ps_bytes_t bytes);

/*
 * Reads the record at the front of bytes.
 *
 * ret_size    its size in bytes; the next record begins after it
 * ret_record  the fields
 * ret_body    keys, index and values, borrowed from bytes
 *
 * Checks size, magic, checksum and every enum number; that each part has
 * exactly the length that the fields require; that sparse counts add up; that
 * unused fields and the bytes between the parts are zero. The values of
 * REFUSAL, JOB, ROWS and BUNDLE may be any bytes: psd made the text and
 * sanitizes it when sending, and the decoders of the others check them. So every valid record
 * that ps_record_write wrote can be read. Errors: PSD_DAMAGED, naming the byte
 * within the record, the value and what is allowed.
 */
PSD_MUST_CHECK psd_status_t ps_record_read(ps_bytes_t bytes, size_t *ret_size,
                                           ps_record_t *ret_record, ps_body_t *ret_body,
                                           psd_error_t *err);
#endif
