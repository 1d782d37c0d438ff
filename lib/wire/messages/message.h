/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/wire/messages: messages and documents as bytes
 *
 * It is       The data messages and their bodies, batches of small ones, routes,
 *             JSON documents of the control port, the numbers of formats.
 * It uses     lib/base; jansson in doc.c and its parts.
 * It ignores  Records, filters, sockets, and what a message does to its
 *             receiver.
 * Start at    message.h for the lists of fields, message_check.c and
 *             message_body.c for what is accepted, doc.h for documents.
 */
/*
 * ps_message - the data messages between a client and a shard, or two shards
 *
 * What     One X-macro list per message makes struct, size, encode and decode.
 *          docs/protocol.md says what each message means and in which order
 *          messages may come; this file defines their bytes.
 * Shape    header frame: 8 bytes of head, then the fields in list order,
 *          little-endian, no padding; for the body see docs/protocol.md,
 *          "Frames".
 * Threads  any; nothing is kept between calls
 */
#ifndef PS_WIRE_MESSAGE_H
#define PS_WIRE_MESSAGE_H

#include "base/slice.h"

#define PS_SIGNATURE UINT32_C(0x31647370) /* "psd1" in memory order */
#define PS_VERSION 1                      /* the version of this build */
#define PS_VERSION_MIN 1                  /* the oldest supported version */
/* Session numbers from here on are those of guests: clients that met nodes without a
 * registry, chose a number themselves, and only read. A registry gives out lower ones. */
#define PS_GUEST_FIRST (UINT64_C(1) << 63)
#define PS_HEAD_SIZE                                                  \
    8                                  /* signature u32, version u16, \
                                          kind u8, flags u8 */
#define PS_INLINE_MAX 1024             /* up to this, bodies share the header's frame */
#define PS_BULK_MIN ((size_t)16 << 10) /* larger bodies use the bulk connection, if any */
#define PS_TEXT_MAX 400                /* bytes of a refusal's text, '\0' not counted */
#define PS_FRAMES_MAX 4                /* of one message: header, keys, index, values */

typedef enum ps_change_op {
    PS_CHANGE_UPDATE = 0, /* the table's updater applies the deltas */
    PS_CHANGE_SCALE = 1,  /* value *= operand */
    PS_CHANGE_FILL = 2,   /* value = operand */
    PS_CHANGE_AXPY = 3    /* value += operand * other's value */
} ps_change_op_t;

typedef enum ps_read_op {
    PS_READ_VALUES = 0,
    PS_READ_SUM = 1,      /* one f64 */
    PS_READ_SQUARES = 2,  /* the sum of squares, one f64 */
    PS_READ_NONZEROS = 3, /* the number of nonzeros, one i64 */
    PS_READ_DOT = 4,      /* with `other`, one f64 */
    PS_READ_TOP = 5,      /* the `operand` largest values, SPARSE */
    PS_READ_DIGEST = 6    /* XXH3-128 of the values' bytes that VALUES has, two i64 */
} ps_read_op_t;

/* flags of the head */
#define PS_FLAG_MORE 0x01 /* values go on in CHUNK messages of this request */
#define PS_FLAG_CODED                                     \
    0x02 /* the body is one part, in the place of values, \
            that a filter wrote: keys, index and values */
#define PS_FLAG_KEEP                                           \
    0x04 /* of a request: the receiver keeps its list of keys, \
            so that the next one may name it CACHED */
#define PS_FLAG_MARK                                     \
    0x08 /* of a PUSH of a worker: it is the last one of \
            its clock here, and a MARK of `clock` + 1 as \
            well, also when it is refused itself */

#define PS_FLAG_TIMES                                           \
    0x10 /* of a PUSH or PULL: its ACK or VALUES says where its \
            time went; of these two: ps_times_t follow the      \
            fields */

/* Among the filters of HELLO and WELCOME: both ends know PS_FLAG_TIMES. */
#define PS_SPEAKS_TIMES UINT32_C(0x80000000)
/* The shard takes a BUNDLE of PS_BUNDLE_BYTES in one frame, though its chunk_bytes are fewer. */
#define PS_SPEAKS_BUNDLES UINT32_C(0x40000000)
#define PS_BUNDLE_BYTES ((UINT32_C(4) << 20) - (UINT32_C(64) << 10))

/* Field types: u8 u16 u32 u64 as they are; id: ps_id_t, 16 bytes.
 * SLICE(X) are the fields of a ps_slice_t (member `slice`). */
#define PS_SLICE_FIELDS(X) \
    X(u8, rows)            \
    X(u8, layout)          \
    X(u8, cols)            \
    X(u8, type)            \
    X(u64, n_rows)         \
    X(u64, first_row)      \
    X(u32, first_col)      \
    X(u32, n_cols)         \
    X(u64, n_values)

/* Identifies the client. The registry assigned session. */
#define PS_HELLO_FIELDS(X)                                   \
    X(u16, version_min)                                      \
    X(u16, version_max)                                      \
    X(id, cluster)                                           \
    X(id, client)                                            \
    X(u64, incarnation) /* of the receiving node */          \
    X(u64, session)                                          \
    X(u32, filters) /* that the client speaks, a bit each */ \
    X(u8, bulk)     /* 1: a second connection, for large bodies */

/* Grants credits: what the client may have in flight on this connection. */
#define PS_WELCOME_FIELDS(X)                                               \
    X(u16, version)                                                        \
    X(id, cluster)                                                         \
    X(u64, incarnation)                                                    \
    X(u32, shard)                                                          \
    X(u32, credit_requests)                                                \
    X(u64, credit_bytes)                                                   \
    X(u32, chunk_bytes) /* largest piece of values in one message */       \
    X(u64, slice_bytes) /* largest body of one push or answer to a pull */ \
    X(u32, filters)     /* those of HELLO that the shard speaks too */

/* Where a request goes. request names it on this connection, for its answers;
 * a resend keeps it. */
#define PS_ADDRESS_FIELDS(X) \
    X(u64, request)          \
    X(u32, table)            \
    X(u32, partition)        \
    X(u64, epoch) /* of the partition's place in the sender's map */

/* The worker: job 0 means no job; clock counts finished periods. */
#define PS_WORKER_FIELDS(X)                                                     \
    X(u32, job)                                                                 \
    X(u32, worker)                                                              \
    X(u32, member) /* number of the client within its worker, from 0 */         \
    X(u32, joins)  /* the number of this life of the rank; from the registry */ \
    X(u64, clock)

/* An operation on the slice's rows in the server, other than pushing and
 * pulling. operand: the bits of an f64, or for TOP the number wanted. other:
 * the second table of DOT and AXPY, of the same shape and partitions. */
#define PS_OP_FIELDS(X) \
    X(u8, op)           \
    X(u32, other)       \
    X(u64, operand)

#define PS_PUSH_FIELDS(X)                                                     \
    PS_ADDRESS_FIELDS(X)                                                      \
    X(u64, seq)                                                               \
    PS_WORKER_FIELDS(X)                                                       \
    X(u32, timeout_ms) /* when to answer PARKED if it still waits; 0 never */ \
    X(u8, ack)         /* ps_ack_t of model/tables/table.h */                 \
    X(u8, pull)        /* 1: answer with the rows' values (pushpull) */       \
    PS_OP_FIELDS(X)    /* ps_change_op_t; 0: the table's updater */           \
    PS_SLICE_FIELDS(X)

#define PS_PULL_FIELDS(X)                                                 \
    PS_ADDRESS_FIELDS(X)                                                  \
    X(u64, after) /* serve after this seq of the client; 0: at once */    \
    PS_WORKER_FIELDS(X)                                                   \
    X(u32, timeout_ms) /* when to answer DEADLINE if it still waits */    \
    PS_OP_FIELDS(X)    /* ps_read_op_t; 0: the values themselves */       \
    X(u64, since)      /* only rows changed after this version; 0: all */ \
    PS_SLICE_FIELDS(X)

/* The flush marker: the worker has finished `clock` clocks. */
#define PS_MARK_FIELDS(X) \
    PS_ADDRESS_FIELDS(X)  \
    X(u64, seq)           \
    PS_WORKER_FIELDS(X)   \
    X(u32, timeout_ms)

/* Asks for the outcome of seq. Answered by ACK, REFUSED, PARKED or GAP. */
#define PS_PROBE_FIELDS(X)          \
    PS_ADDRESS_FIELDS(X)            \
    X(u64, seq)                     \
    X(u8, ack)  /* as the PUSH's */ \
    X(u8, mark) /* seq is a MARK's */

#define PS_ACK_FIELDS(X) \
    PS_ADDRESS_FIELDS(X) \
    X(u64, seq)          \
    X(u8, level) /* reached */

#define PS_VALUES_FIELDS(X)                                                         \
    PS_ADDRESS_FIELDS(X)                                                            \
    X(u64, seq)     /* of the push it answers too; 0 for a pull */                  \
    X(u8, level)    /* reached by that push; 0 for a pull */                        \
    X(u64, n_done)  /* rows of the request that are done; ask again for the rest */ \
    X(u64, version) /* of the partition, for `since` of a later pull */             \
    PS_SLICE_FIELDS(X)

/* Where the time of a request went at its shard: it was held, for slower workers (gate) or for
 * something else (queue); the shard worked on it; its answer waited for copies, or for the disk. */
#define PS_TIMES_FIELDS(X) \
    X(u64, queue_us)       \
    X(u64, gate_us)        \
    X(u64, work_us)        \
    X(u64, copies_us)      \
    X(u64, flush_us)

/* status: a number of PSD_STATUS_MAP. detail: GAP the expected seq, else 0. */
#define PS_REFUSED_FIELDS(X) \
    PS_ADDRESS_FIELDS(X)     \
    X(u64, seq)              \
    X(u16, status)           \
    X(u64, detail)           \
    X(text, text)

/* The request is still queued; this is not its final answer. text names whom it
 * waits for. */
#define PS_PARKED_FIELDS(X) \
    PS_ADDRESS_FIELDS(X)    \
    X(u64, seq)             \
    X(text, text)

/* The partition lives elsewhere; the keys part holds ps_route entries. */
#define PS_MOVED_FIELDS(X) \
    PS_ADDRESS_FIELDS(X)   \
    X(u64, seq)            \
    X(u32, n_routes)

/* A further piece of the values of a message with PS_FLAG_MORE. */
#define PS_CHUNK_FIELDS(X) \
    X(u64, request)        \
    X(u64, offset) /* bytes of values before this piece */

/* The client leaves; the server may forget the connection. */
#define PS_BYE_FIELDS(X) X(u64, session)

/* ---- of the overlay: workers that add up each other's deltas ---- */

/* A worker names itself to another one's relay, and both prove that they know the job's key:
 * ASK with its nonce; ANSWER with the other's nonce and proof; PROOF with the asker's. */
#define PS_MEET_FIELDS(X)                                       \
    X(u16, version_min)                                         \
    X(u16, version_max)                                         \
    X(id, cluster)                                              \
    X(u32, job)                                                 \
    X(u32, worker) /* of the sender */                          \
    X(u32, joins)                                               \
    X(u8, step)  /* ps_meet_step_t */                           \
    X(id, nonce) /* of the sender, the same in ASK and PROOF */ \
    X(id, proof) /* keyed digest of both nonces; zeros in ASK */

typedef enum ps_meet_step { PS_MEET_ASK = 1, PS_MEET_ANSWER = 2, PS_MEET_PROOF = 3 } ps_meet_step_t;

#define PS_BUNDLE_FROM 40 /* bytes of a contributor … */
#define PS_BUNDLE_SPAN 48 /* … and of a span, in the body */
#define PS_BUNDLE_FROM_MAX 4096
#define PS_BUNDLE_SPANS_MAX 64
#define PS_BUNDLE_POSITIONS 4096 /* a position is below */

/* Pushes and marks of several clients at one partition, made when their workers had finished
 * `clock` clocks; wire/records/bundle.h has the body. The worker is who sends it. Answered by
 * ACK, REFUSED or PARKED, or RELAYED when a relay gets it; each contributor gets an ACK of its
 * own, with request 0. */
#define PS_BUNDLE_FIELDS(X)                                                   \
    PS_ADDRESS_FIELDS(X)                                                      \
    PS_WORKER_FIELDS(X)                                                       \
    X(u64, plan)       /* the version that the sender goes by; 0: none */     \
    X(u32, timeout_ms) /* when to answer PARKED if it still waits; 0 never */ \
    X(u8, urgent)      /* 1: a caller waits for it within its clock */        \
    X(u16, n_from)     /* contributors */                                     \
    X(u16, n_spans)

/* What became of a bundle that a relay was given. TAKEN and WAITS are signs of life; DONE and
 * RETURNED end it. */
#define PS_RELAYED_FIELDS(X)                                                 \
    X(u64, request) /* of the BUNDLE */                                      \
    X(u32, table)                                                            \
    X(u32, partition)                                                        \
    X(u8, news)       /* ps_relayed_t */                                     \
    X(u32, waits_for) /* WAITS: a worker, or one of the two below; else 0 */ \
    X(text, text)     /* RETURNED: why */

typedef enum ps_relayed {
    PS_RELAYED_TAKEN = 1,
    PS_RELAYED_WAITS = 2,
    PS_RELAYED_DONE = 3, /* the server has it */
    PS_RELAYED_RETURNED = 4
} ps_relayed_t;

#define PS_RELAYED_NODES UINT32_MAX        /* waits_for: the nodes */
#define PS_RELAYED_NOBODY (UINT32_MAX - 1) /* waits_for: time alone */

/* Asks another worker's relay for rows that this worker asks a shard for as well, when its job
 * has finished `clock` clocks. Answered by ROWS_ON, or by nothing once wait_ms have passed. */
#define PS_WANT_FIELDS(X)                            \
    X(u64, request) /* names it on its connection */ \
    X(u32, table)                                    \
    X(u32, partition)                                \
    X(u64, clock)                                    \
    X(u64, first_row)                                \
    X(u64, n_rows)                                   \
    X(u32, wait_ms)

/* The rows of a WANT, as they came from a shard: the body is their values, all columns, row by
 * row. They count only if their digest is the one that the shard itself says. */
#define PS_ROWS_ON_FIELDS(X) \
    X(u64, request)          \
    X(u32, table)            \
    X(u32, partition)        \
    X(u64, clock)            \
    X(u8, has) /* 0: they are not to be had there, and there is no body */

/* ---- between shards that hold copies of one partition ---- */

/* Names the sending and the receiving shard. Answered by WELCOME. */
#define PS_PEER_FIELDS(X)                                           \
    X(u16, version_min)                                             \
    X(u16, version_max)                                             \
    X(id, cluster)                                                  \
    X(u64, incarnation)      /* of the receiving node */            \
    X(u32, shard)            /* the receiving shard of that node */ \
    X(u64, from_incarnation) /* of the sending node … */          \
    X(u32, from_shard)       /* … and its shard */

/* Of every record (wire/records/record.h): its size is a multiple of ALIGN, and
 * HEAD at least. */
#define PS_RECORD_HEAD 136
#define PS_RECORD_ALIGN 8

/* The primary's records, in order. Without records, it asks whether the copy is
 * complete. The body holds them one after the other, as wire/records/record.h
 * says. */
#define PS_APPEND_FIELDS(X)                                                             \
    PS_ADDRESS_FIELDS(X)                                                                \
    X(u64, first_lsn)  /* of the first record, or of the next one */                    \
    X(u64, prev_epoch) /* of the record before it; 0: there is none */                  \
    X(u32, n_records)                                                                   \
    X(u64, in_sync_lsn) /* every in-sync copy has this one */                           \
    X(u64, sent_ms)     /* by the primary's clock */                                    \
    X(u32, lease_ms)    /* wanted: the receiver does not take over before it expires */ \
    X(u8, flush)        /* 1: flush the log soon */                                     \
    X(u8, release)      /* 1: the sender is no longer primary; its lease ends */

/* The state of another copy. */
#define PS_APPENDED_FIELDS(X)                                             \
    PS_ADDRESS_FIELDS(X)                                                  \
    X(u64, lsn)         /* up to it the records match the primary's */    \
    X(u64, flushed_lsn) /* up to it the records are in the log on disk */ \
    X(u64, sent_ms)     /* of the APPEND */                               \
    X(u16, status)      /* ps_appended_status_t */                        \
    X(u64, detail)      /* EPOCH: the newer one; else 0 */

typedef enum ps_appended_status {
    PS_APPENDED_OK = 0,
    PS_APPENDED_GAP = 1,      /* records from lsn + 1 on are missing */
    PS_APPENDED_DIVERGED = 2, /* its records differ: it must start again from rows */
    PS_APPENDED_EPOCH = 3,    /* the sender's epoch has ended */
    PS_APPENDED_NOMEM = 4,    /* as GAP, out of memory */
    PS_APPENDED_PARTIAL = 5   /* as OK, but not all of its rows have arrived */
} ps_appended_status_t;

/* A part of a new copy's initial content: of the state, or of a piece of rows
 * (protocol/partition/partition_copy.h). The body is the part. request counts
 * the ROWS of a transfer, from 1. */
#define PS_ROWS_FIELDS(X)                                                          \
    PS_ADDRESS_FIELDS(X)                                                           \
    X(u64, transfer)  /* a later transfer to the same copy has a greater number */ \
    X(u64, lsn)       /* it was read after this record … */                      \
    X(u64, lsn_epoch) /* … which was made under this epoch; 0: no record */      \
    X(u8, kind)       /* ps_given_t */                                             \
    X(u8, last)       /* 1: this is the last piece of rows */                      \
    X(u64, place)     /* of the piece's first row; 0 of the state */               \
    X(u64, size)      /* bytes of the whole state, or piece */                     \
    X(u64, offset)    /* of the part in it */

typedef enum ps_given { PS_GIVEN_STATE = 1, PS_GIVEN_PIECE = 2 } ps_given_t;

#define PS_GIVEN_SIZE_MAX UINT64_C(0x100000000) /* of a state, or a piece */

/* How much of a transfer a new copy has. */
#define PS_TAKEN_FIELDS(X)                                                                         \
    PS_ADDRESS_FIELDS(X) /* of the ROWS */                                                         \
    X(u64, transfer)                                                                               \
    X(u64, lsn)    /* of its last record */                                                        \
    X(u8, wants)   /* ps_taken_wants_t: what comes next */                                         \
    X(u64, place)  /* of the next row */                                                           \
    X(u64, offset) /* bytes received of the state, or piece, in flight */                          \
    X(u16, status) /* ps_taken_status_t */                                                         \
    X(u64, detail) /* EPOCH: the newer one; OK: 1 if clients already ask the receiving shard; else \
                      0 */

typedef enum ps_taken_wants {
    PS_TAKEN_STATE = 1,
    PS_TAKEN_ROWS = 2,
    PS_TAKEN_NOTHING = 3 /* all rows have arrived */
} ps_taken_wants_t;

typedef enum ps_taken_status {
    PS_TAKEN_OK = 0,
    PS_TAKEN_GAP = 1,   /* not the next part, or not after that lsn */
    PS_TAKEN_ANEW = 2,  /* this transfer is of no use to the receiver */
    PS_TAKEN_EPOCH = 3, /* the sender's epoch has ended */
    PS_TAKEN_NOMEM = 4  /* as GAP, out of memory */
} ps_taken_status_t;

/* detail of a REFUSED with CLOSED: the partition did not accept this request,
 * and will accept no PUSH or MARK of its session in that epoch. */
#define PS_CLOSED_NOT_TAKEN 1

#define PS_LEASE_MS_MAX 60000 /* the longest lease that an APPEND may ask for */

/* X(NAME, name, kind number); 14 is the batch, wire/batch.h. */
#define PS_MESSAGE_MAP(X)     \
    X(HELLO, hello, 1)        \
    X(WELCOME, welcome, 2)    \
    X(PUSH, push, 3)          \
    X(PULL, pull, 4)          \
    X(MARK, mark, 5)          \
    X(PROBE, probe, 6)        \
    X(ACK, ack, 7)            \
    X(VALUES, values, 8)      \
    X(REFUSED, refused, 9)    \
    X(PARKED, parked, 10)     \
    X(MOVED, moved, 11)       \
    X(CHUNK, chunk, 12)       \
    X(BYE, bye, 13)           \
    X(PEER, peer, 15)         \
    X(APPEND, append, 16)     \
    X(APPENDED, appended, 17) \
    X(ROWS, rows, 18)         \
    X(TAKEN, taken, 19)       \
    X(MEET, meet, 20)         \
    X(BUNDLE, bundle, 21)     \
    X(RELAYED, relayed, 22)   \
    X(WANT, want, 23)         \
    X(ROWS_ON, rows_on, 24)

#define PS_KIND_ENUM(NAME, name, number) PS_KIND_##NAME = number,
typedef enum ps_kind { PS_MESSAGE_MAP(PS_KIND_ENUM) } ps_kind_t;
#undef PS_KIND_ENUM

#define PS_FIELD_u8(name) uint8_t name;
#define PS_FIELD_u16(name) uint16_t name;
#define PS_FIELD_u32(name) uint32_t name;
#define PS_FIELD_u64(name) uint64_t name;
#define PS_FIELD_id(name) ps_id_t name;
#define PS_FIELD_text(name) char name[PS_TEXT_MAX + 1];
#define PS_FIELD(type, name) PS_FIELD_##type(name)
#define PS_STRUCT(NAME, name, number) \
    typedef struct ps_msg_##name {    \
        PS_##NAME##_FIELDS(PS_FIELD)  \
    } ps_msg_##name##_t;
PS_MESSAGE_MAP(PS_STRUCT)
#undef PS_STRUCT

typedef struct ps_times {
    PS_TIMES_FIELDS(PS_FIELD)
} ps_times_t;

typedef struct ps_message {
    ps_kind_t kind;
    uint8_t flags;
    union {
#define PS_MEMBER(NAME, name, number) ps_msg_##name##_t name;
        PS_MESSAGE_MAP(PS_MEMBER)
#undef PS_MEMBER
    };
    ps_times_t times; /* ps_message_has_times */
} ps_message_t;

/* "PUSH" …; "?" when the number is not a kind. */
const char *ps_kind_name(ps_kind_t kind);

/* The body is one part, in the place of values. */
static inline bool ps_message_is_one_part(const ps_message_t *self)
{
    return self->kind == PS_KIND_CHUNK || self->kind == PS_KIND_APPEND ||
           self->kind == PS_KIND_ROWS || self->kind == PS_KIND_BUNDLE ||
           self->kind == PS_KIND_ROWS_ON || (self->flags & PS_FLAG_CODED) != 0;
}

/* It is an answer that says where the request's time went. */
static inline bool ps_message_has_times(const ps_message_t *self)
{
    return (self->flags & PS_FLAG_TIMES) != 0 &&
           (self->kind == PS_KIND_ACK || self->kind == PS_KIND_VALUES);
}

/* The slice of a PUSH, PULL or VALUES message in the form of base/slice.h, and
 * back. The message must be of one of these kinds. */
void ps_message_slice(const ps_message_t *self, ps_slice_t *ret_slice);
void ps_message_set_slice(ps_message_t *self, const ps_slice_t *slice);

/* Bytes of keys / index / values that the slice fields require. false: the
 * numbers contradict each other or overflow. A pull request has no values; one
 * for SPARSE rows has no index either, which the slice alone cannot tell. */
PSD_MUST_CHECK bool ps_slice_sizes(const ps_slice_t *slice, uint64_t *ret_keys, uint64_t *ret_index,
                                   uint64_t *ret_values);

#define PS_HEADER_MAX 512 /* no header frame without inline body is longer */

/* Writes head and fields; returns the number of bytes. */
size_t ps_message_encode(const ps_message_t *self, uint8_t ret_header[PS_HEADER_MAX]);

/*
 * Reads one message.
 *
 * frames   in   1 .. PS_FRAMES_MAX; one frame: header followed by the body;
 *               more: header, then keys, index, values (MOVED: header, keys;
 *               ps_message_is_one_part: header, values)
 * ret_message   the fields
 * ret_body      keys, index and values, borrowed from frames; values is the
 *               first piece when PS_FLAG_MORE is set, or CHUNK's piece
 *
 * Checks signature, version, kind, every enum number, that the body's parts are
 * exactly as long as the slice requires (with PS_FLAG_MORE: values shorter than
 * that, whole values), that sparse counts add up to n_values. Errors:
 * PSD_VERSION, PSD_PROTO, naming field, value and what is allowed.
 */
typedef struct ps_body {
    ps_bytes_t keys;
    ps_bytes_t index;
    ps_bytes_t values;
} ps_body_t;

PSD_MUST_CHECK psd_status_t ps_message_decode(const ps_bytes_t *frames, size_t n_frames,
                                              ps_message_t *ret_message, ps_body_t *ret_body,
                                              psd_error_t *err);
#endif
