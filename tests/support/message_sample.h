/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message_sample - one fixed, valid message of every kind
 *
 * What     The content of the golden files, which the codec's tests corrupt. No
 *          two fields of a message have the same value.
 * Owner    The bodies borrow constant bytes.
 */
#ifndef PS_TESTS_MESSAGE_SAMPLE_H
#define PS_TESTS_MESSAGE_SAMPLE_H

#include <string.h>

#include "wire/messages/message.h"

#define SAMPLE_BYTES(name, ...) static const uint8_t name[] = {__VA_ARGS__}
#define SAMPLE_PART(name) ((ps_bytes_t){.data = (name), .size = sizeof(name)})

#define SAMPLE_ADDRESS                                                                     \
    .request = UINT64_C(0x1122334455667788), .table = 0x01020304, .partition = 0x05060708, \
    .epoch = UINT64_C(0x1A1B1C1D1E1F2021)
#define SAMPLE_WORKER .job = 31, .worker = 32, .member = 33, .joins = 35, .clock = 34
#define SAMPLE_ID(first)                                                                           \
    {                                                                                              \
        {                                                                                          \
            (first), (first) + 1, (first) + 2, (first) + 3, (first) + 4, (first) + 5, (first) + 6, \
                (first) + 7, (first) + 8, (first) + 9, (first) + 10, (first) + 11, (first) + 12,   \
                (first) + 13, (first) + 14, (first) + 15                                           \
        }                                                                                          \
    }

/* Three rows by key, two columns of each, f32 1 .. 6. */
static inline void sample_push(ps_message_t *ret, ps_body_t *ret_body)
{
    SAMPLE_BYTES(keys, 7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0x80, 7, 0, 0, 0, 0, 0, 0, 0);
    SAMPLE_BYTES(values, 0, 0, 0x80, 0x3F, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40, 0, 0, 0x80, 0x40, 0, 0,
                 0xA0, 0x40, 0, 0, 0xC0, 0x40);

    ret->push = (ps_msg_push_t){SAMPLE_ADDRESS,
                                .seq = 41,
                                SAMPLE_WORKER,
                                .timeout_ms = 42,
                                .ack = 2,
                                .pull = 1,
                                .rows = PS_ROWS_LIST,
                                .layout = PS_LAYOUT_DENSE,
                                .cols = PS_COLS_RANGE,
                                .type = PS_TYPE_F32,
                                .n_rows = 3,
                                .first_col = 43,
                                .n_cols = 2,
                                .n_values = 6};
    ret_body->keys = SAMPLE_PART(keys);
    ret_body->values = SAMPLE_PART(values);
}

/* Two rows by key, three columns by number. */
static inline void sample_pull(ps_message_t *ret, ps_body_t *ret_body)
{
    SAMPLE_BYTES(keys, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    SAMPLE_BYTES(index, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x80);

    ret->pull = (ps_msg_pull_t){SAMPLE_ADDRESS,
                                .after = 40,
                                SAMPLE_WORKER,
                                .timeout_ms = 42,
                                .since = 54,
                                .rows = PS_ROWS_LIST,
                                .layout = PS_LAYOUT_DENSE,
                                .cols = PS_COLS_LIST,
                                .type = PS_TYPE_I64,
                                .n_rows = 2,
                                .n_cols = 3};
    ret_body->keys = SAMPLE_PART(keys);
    ret_body->index = SAMPLE_PART(index);
}

/* Rows 10 .. 12, sparse, with 1, 0 and 2 values, f64 1 .. 3. */
static inline void sample_values(ps_message_t *ret, ps_body_t *ret_body)
{
    SAMPLE_BYTES(index, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0);
    SAMPLE_BYTES(values, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0,
                 8, 0x40);

    ret->values = (ps_msg_values_t){SAMPLE_ADDRESS,
                                    .seq = 41,
                                    .level = 3,
                                    .n_done = 44,
                                    .version = 51,
                                    .rows = PS_ROWS_RANGE,
                                    .layout = PS_LAYOUT_SPARSE,
                                    .cols = PS_COLS_ALL,
                                    .type = PS_TYPE_F64,
                                    .n_rows = 3,
                                    .first_row = 10,
                                    .n_values = 3};
    ret_body->index = SAMPLE_PART(index);
    ret_body->values = SAMPLE_PART(values);
}

/* One route: tcp "tcp://h:1", ipc "". */
static inline void sample_moved(ps_message_t *ret, ps_body_t *ret_body)
{
    SAMPLE_BYTES(keys, 8, 7, 6, 5, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0x80, 3, 0, 0, 0, 9,
                 't', 'c', 'p', ':', '/', '/', 'h', ':', '1', 0);

    ret->moved = (ps_msg_moved_t){SAMPLE_ADDRESS, .seq = 41, .n_routes = 1};
    ret_body->keys = SAMPLE_PART(keys);
}

static inline void sample_chunk(ps_message_t *ret, ps_body_t *ret_body)
{
    SAMPLE_BYTES(values, 1, 2, 3, 4, 5, 6, 7, 8);

    ret->chunk = (ps_msg_chunk_t){.request = 45, .offset = 46};
    ret_body->values = SAMPLE_PART(values);
}

/* One record's bytes: a head, of which nothing is looked at here. */
static inline void sample_append(ps_message_t *ret, ps_body_t *ret_body)
{
    static const uint8_t values[136] = {1, 2, 3, 4, 5, 6, 7, 8};

    ret->append =
        (ps_msg_append_t){SAMPLE_ADDRESS,    .first_lsn = 61, .prev_epoch = 60, .n_records = 1,
                          .in_sync_lsn = 59, .sent_ms = 58,   .lease_ms = 300,  .flush = 1};
    ret_body->values = SAMPLE_PART(values);
}

static inline void sample_rows(ps_message_t *ret, ps_body_t *ret_body)
{
    SAMPLE_BYTES(values, 1, 2, 3, 4, 5);

    ret->rows = (ps_msg_rows_t){
        SAMPLE_ADDRESS, .transfer = 64, .lsn = 62,  .lsn_epoch = 60, .kind = PS_GIVEN_PIECE,
        .last = 1,      .place = 65,    .size = 71, .offset = 66};
    ret_body->values = SAMPLE_PART(values);
}

/* One contributor that only marks. */
static inline void sample_bundle(ps_message_t *ret, ps_body_t *ret_body)
{
    SAMPLE_BYTES(values, 48, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0,
                 32, 0, 0, 0, 33, 0, 0, 0, 35, 0, 0, 0, 1, 0, 0, 0);

    ret->bundle = (ps_msg_bundle_t){SAMPLE_ADDRESS, SAMPLE_WORKER, .plan = 67,  .timeout_ms = 42,
                                    .urgent = 1,    .n_from = 1,   .n_spans = 0};
    ret_body->values = SAMPLE_PART(values);
}

/* Two values of 4 bytes. */
static inline void sample_rows_on(ps_message_t *ret, ps_body_t *ret_body)
{
    SAMPLE_BYTES(values, 1, 2, 3, 4, 5, 6, 7, 8);

    ret->rows_on = (ps_msg_rows_on_t){.request = UINT64_C(0x1122334455667788),
                                      .table = 0x01020304,
                                      .partition = 0x05060708,
                                      .clock = 69,
                                      .has = 1};
    ret_body->values = SAMPLE_PART(values);
}

/* The kinds without a body. */
static inline void sample_header(ps_message_t *ret)
{
    if (ret->kind == PS_KIND_HELLO) {
        ret->hello = (ps_msg_hello_t){.version_min = 1,
                                      .version_max = 2,
                                      .cluster = SAMPLE_ID(0xA0),
                                      .client = SAMPLE_ID(0xB0),
                                      .incarnation = 47,
                                      .session = 48,
                                      .filters = 52,
                                      .bulk = 1};
    } else if (ret->kind == PS_KIND_WELCOME) {
        ret->welcome = (ps_msg_welcome_t){.version = 1,
                                          .cluster = SAMPLE_ID(0xA0),
                                          .incarnation = 47,
                                          .shard = 49,
                                          .credit_requests = 64,
                                          .credit_bytes = 65536,
                                          .chunk_bytes = 4096,
                                          .slice_bytes = 32768,
                                          .filters = 53};
    } else if (ret->kind == PS_KIND_MARK) {
        ret->mark = (ps_msg_mark_t){SAMPLE_ADDRESS, .seq = 41, SAMPLE_WORKER, .timeout_ms = 42};
    } else if (ret->kind == PS_KIND_PROBE) {
        ret->probe = (ps_msg_probe_t){SAMPLE_ADDRESS, .seq = 41, .ack = 3, .mark = 1};
    } else if (ret->kind == PS_KIND_ACK) {
        ret->ack = (ps_msg_ack_t){SAMPLE_ADDRESS, .seq = 41, .level = 3};
    } else if (ret->kind == PS_KIND_REFUSED) {
        ret->refused =
            (ps_msg_refused_t){SAMPLE_ADDRESS, .seq = 41, .status = PSD_GAP, .detail = 50,
                               .text = "l\xC3\xBC"
                                       "cke"};
    } else if (ret->kind == PS_KIND_PARKED) {
        ret->parked = (ps_msg_parked_t){SAMPLE_ADDRESS, .seq = 41, .text = "worker 3"};
    } else if (ret->kind == PS_KIND_BYE) {
        ret->bye = (ps_msg_bye_t){.session = 48};
    } else if (ret->kind == PS_KIND_PEER) {
        ret->peer = (ps_msg_peer_t){.version_min = 1,
                                    .version_max = 2,
                                    .cluster = SAMPLE_ID(0xA0),
                                    .incarnation = 47,
                                    .shard = 49,
                                    .from_incarnation = 56,
                                    .from_shard = 57};
    } else if (ret->kind == PS_KIND_APPENDED) {
        ret->appended = (ps_msg_appended_t){SAMPLE_ADDRESS,
                                            .lsn = 62,
                                            .flushed_lsn = 55,
                                            .sent_ms = 58,
                                            .status = PS_APPENDED_EPOCH,
                                            .detail = 63};
    } else if (ret->kind == PS_KIND_TAKEN) {
        ret->taken = (ps_msg_taken_t){SAMPLE_ADDRESS,           .transfer = 64, .lsn = 62,
                                      .wants = PS_TAKEN_ROWS,   .place = 65,    .offset = 66,
                                      .status = PS_TAKEN_EPOCH, .detail = 63};
    } else if (ret->kind == PS_KIND_MEET) {
        ret->meet = (ps_msg_meet_t){.version_min = 1,
                                    .version_max = 2,
                                    .cluster = SAMPLE_ID(0xA0),
                                    .job = 31,
                                    .worker = 32,
                                    .joins = 35,
                                    .step = PS_MEET_ANSWER,
                                    .nonce = SAMPLE_ID(0xC0),
                                    .proof = SAMPLE_ID(0xD0)};
    } else if (ret->kind == PS_KIND_RELAYED) {
        ret->relayed = (ps_msg_relayed_t){.request = UINT64_C(0x1122334455667788),
                                          .table = 0x01020304,
                                          .partition = 0x05060708,
                                          .news = PS_RELAYED_WAITS,
                                          .waits_for = 68,
                                          .text = "why"};
    } else if (ret->kind == PS_KIND_WANT) {
        ret->want = (ps_msg_want_t){.request = UINT64_C(0x1122334455667788),
                                    .table = 0x01020304,
                                    .partition = 0x05060708,
                                    .clock = 69,
                                    .first_row = 70,
                                    .n_rows = 71,
                                    .wait_ms = 72};
    }
}

static inline void message_sample(ps_kind_t kind, ps_message_t *ret, ps_body_t *ret_body)
{
    memset(ret, 0, sizeof *ret);
    memset(ret_body, 0, sizeof *ret_body);
    ret->kind = kind;
    if (kind == PS_KIND_PUSH) {
        sample_push(ret, ret_body);
    } else if (kind == PS_KIND_PULL) {
        sample_pull(ret, ret_body);
    } else if (kind == PS_KIND_VALUES) {
        sample_values(ret, ret_body);
    } else if (kind == PS_KIND_MOVED) {
        sample_moved(ret, ret_body);
    } else if (kind == PS_KIND_CHUNK) {
        sample_chunk(ret, ret_body);
    } else if (kind == PS_KIND_APPEND) {
        sample_append(ret, ret_body);
    } else if (kind == PS_KIND_ROWS) {
        sample_rows(ret, ret_body);
    } else if (kind == PS_KIND_BUNDLE) {
        sample_bundle(ret, ret_body);
    } else if (kind == PS_KIND_ROWS_ON) {
        sample_rows_on(ret, ret_body);
    } else {
        sample_header(ret);
    }
}

/* All kinds, for loops. */
#define SAMPLE_KIND(NAME, name, number) PS_KIND_##NAME,
static const ps_kind_t SAMPLE_KINDS[] = {PS_MESSAGE_MAP(SAMPLE_KIND)};
#undef SAMPLE_KIND
#define N_SAMPLE_KINDS (sizeof SAMPLE_KINDS / sizeof SAMPLE_KINDS[0])
#endif
