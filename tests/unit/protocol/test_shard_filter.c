/* SPDX-License-Identifier: Apache-2.0 */
/* A shard and messages that came through filters: what becomes of them, of
 * lists that were kept, and of what was not offered. */
#include "protocol/shard/shard_state.h"
#include "shard_bench.h"

#include "base/hash.h"
#include "support/fail_alloc.h"
#include "wire/filters/filter_code.h"

#define N_LIST 8

static bench_t bench;
static ps_coder_t *coder;
static uint64_t keys[N_LIST];
static float deltas[N_LIST];

static void setup(void)
{
    ps_msg_hello_t offered = good_hello;

    offered.filters = PS_FILTER_BITS_ALL;
    cr_assert_eq(open_bench(&bench), PSD_OK);
    cr_assert_eq(hello(&bench, &offered), PSD_OK);
    coder = ps_coder_new(1);
    for (size_t i = 0; i < N_LIST; i++) {
        keys[i] = i / 2;
        deltas[i] = (float)i;
    }
}

static void teardown(void)
{
    close_bench(&bench);
    ps_coder_destroy(&coder);
}

TestSuite(shard_filter, .init = setup, .fini = teardown);

static ps_filter_t filter_of(const char *text)
{
    ps_filter_t filter = {0};

    cr_assert_eq(ps_filter_parse(text, &filter, NULL), PSD_OK);
    return filter;
}

static ps_message_t list_push(uint64_t seq)
{
    ps_message_t message = push_message(seq);

    message.push.n_rows = N_LIST;
    message.push.n_values = N_LIST;
    return message;
}

static ps_message_t list_pull(void)
{
    return (ps_message_t){.kind = PS_KIND_PULL,
                          .pull = {.request = 1000,
                                   .table = 1,
                                   .epoch = 4,
                                   .type = PS_TYPE_F32,
                                   .n_rows = N_LIST,
                                   .n_cols = 1}};
}

static ps_payload_t *body(bool with_values)
{
    return ps_payload_copy((ps_bytes_t){(const uint8_t *)keys, sizeof keys}, (ps_bytes_t){0},
                           (ps_bytes_t){(const uint8_t *)deltas, with_values ? sizeof deltas : 0});
}

/* The hash of the list in its place. */
static ps_payload_t *named_body(bool with_values)
{
    ps_id_t hash = {{0}};

    ps_hash_id(keys, sizeof keys, &hash);
    return ps_payload_copy((ps_bytes_t){hash.bytes, sizeof hash.bytes}, (ps_bytes_t){0},
                           (ps_bytes_t){(const uint8_t *)deltas, with_values ? sizeof deltas : 0});
}

static void say_taking(const ps_message_t *message, ps_payload_t *payload)
{
    cr_assert_not_null(payload);
    cr_assert_eq(say(&bench, message, payload), PSD_OK);
    ps_payload_destroy(&payload);
}

/* Sends it through a filter, which must write it anew. */
static void say_coded(const char *text, ps_message_t message, ps_payload_t *payload)
{
    ps_filter_t filter = filter_of(text);
    ps_payload_t *coded = NULL;

    cr_assert_eq(ps_coder_encode(coder, &filter, &message, payload, &coded, NULL), PSD_OK);
    ps_payload_destroy(&payload);
    say_taking(&message, coded);
}

static void expect_ack(void)
{
    cr_assert_eq(said(&bench)->kind, PS_KIND_ACK, "%s",
                 said(&bench)->kind == PS_KIND_REFUSED ? said(&bench)->refused.text
                                                       : ps_kind_name(said(&bench)->kind));
}

Test(shard_filter, welcome_offers_what_both_speak)
{
    ps_msg_hello_t offered = good_hello;

    offered.filters = 0xFFFFFF00U | PS_FILTER_BIT_LZ4;
    cr_assert_eq(hello(&bench, &offered), PSD_OK);
    cr_assert_eq(said(&bench)->welcome.filters & ~PS_SPEAKS_BUNDLES,
                 PS_FILTER_BIT_LZ4 | PS_SPEAKS_TIMES);
}

/* A bundle goes to copies as one record. */
Test(shard_filter, large_bundles_are_taken_where_a_record_has_room)
{
    static const struct {
        uint64_t record_bytes;
        uint32_t filters;
    } ROWS[] = {{PS_BUNDLE_BYTES - 1, 0}, {PS_BUNDLE_BYTES, PS_SPEAKS_BUNDLES}};

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        ps_msg_hello_t offered = good_hello;

        bench.shard->step.args.record_bytes = ROWS[i].record_bytes;
        offered.filters = PS_SPEAKS_BUNDLES;
        cr_assert_eq(hello(&bench, &offered), PSD_OK);
        cr_expect_eq(said(&bench)->welcome.filters, ROWS[i].filters, "row %zu", i);
    }
}

Test(shard_filter, coded_requests_are_plain_ones)
{
    enum { N = 40 };
    uint64_t many[N];
    float ones[N];
    ps_message_t message = push_message(1);
    ps_payload_t *payload = NULL;

    for (size_t i = 0; i < N; i++) {
        many[i] = i / 10;
        ones[i] = 1;
    }
    message.push.n_rows = N;
    message.push.n_values = N;
    payload = ps_payload_copy((ps_bytes_t){(uint8_t *)many, sizeof many}, (ps_bytes_t){0},
                              (ps_bytes_t){(uint8_t *)ones, sizeof ones});
    say_coded("delta+lz4+bf16", message, payload);
    expect_ack();
    cr_assert_eq(pull(&bench, 3), 10.0F);
    say_coded("lz4+delta", list_pull(), body(false));
    cr_assert_eq(said(&bench)->kind, PS_KIND_VALUES);
    cr_assert_eq(said(&bench)->values.n_rows, N_LIST);
}

Test(shard_filter, kept_list_is_found_again)
{
    ps_message_t message = list_push(1);

    message.flags = PS_FLAG_KEEP;
    say_taking(&message, body(true));
    expect_ack();
    message = list_push(2);
    message.push.rows = PS_ROWS_CACHED;
    say_taking(&message, named_body(true));
    expect_ack();
    cr_assert_eq(pull(&bench, 3), 2 * (6.0F + 7.0F));
    message = list_pull();
    message.pull.rows = PS_ROWS_CACHED;
    say_taking(&message, named_body(false));
    cr_assert_eq(said(&bench)->kind, PS_KIND_VALUES);
    cr_assert_eq(said(&bench)->values.n_rows, N_LIST);
}

Test(shard_filter, unknown_list_is_asked_for_and_consumes_nothing)
{
    ps_message_t message = list_push(1);

    message.push.rows = PS_ROWS_CACHED;
    say_taking(&message, named_body(true));
    expect_refused(&bench, PSD_KEYS, "the list of 8 keys is not cached here, or no longer");
    cr_assert_eq(said(&bench)->refused.request, 1);
    message = list_push(1);
    say_taking(&message, body(true));
    expect_ack();
}

/* The hash is right, the number of rows is not. */
Test(shard_filter, list_of_another_length_is_asked_for)
{
    ps_message_t message = list_push(1);

    message.flags = PS_FLAG_KEEP;
    say_taking(&message, body(true));
    message = list_pull();
    message.pull.rows = PS_ROWS_CACHED;
    message.pull.n_rows = N_LIST - 1;
    say_taking(&message, named_body(false));
    expect_refused(&bench, PSD_KEYS, "the list of 7 keys is not cached here, or no longer");
}

Test(shard_filter, lists_go_with_their_connection)
{
    ps_msg_hello_t offered = good_hello;
    ps_message_t message = list_push(1);

    offered.filters = PS_FILTER_BITS_ALL;
    message.flags = PS_FLAG_KEEP;
    say_taking(&message, body(true));
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_GONE, .conn = CONN}), PSD_OK);
    cr_assert_eq(hello(&bench, &offered), PSD_OK);
    message = list_push(2);
    message.push.rows = PS_ROWS_CACHED;
    say_taking(&message, named_body(true));
    expect_refused(&bench, PSD_KEYS, "the list of 8 keys is not cached here, or no longer");
}

/* A second HELLO on the connection is the first one again. */
Test(shard_filter, lists_outlive_a_repeated_hello)
{
    ps_msg_hello_t offered = good_hello;
    ps_message_t message = list_push(1);

    offered.filters = PS_FILTER_BITS_ALL;
    message.flags = PS_FLAG_KEEP;
    say_taking(&message, body(true));
    cr_assert_eq(hello(&bench, &offered), PSD_OK);
    message = list_push(2);
    message.push.rows = PS_ROWS_CACHED;
    say_taking(&message, named_body(true));
    expect_ack();
}

Test(shard_filter, what_was_not_offered_is_refused)
{
    ps_msg_hello_t plain = good_hello;
    ps_message_t message = list_push(1);

    plain.filters = PS_FILTER_BIT_DELTA;
    cr_assert_eq(hello(&bench, &plain), PSD_OK);
    message.flags = PS_FLAG_KEEP;
    say_taking(&message, body(true));
    expect_refused(&bench, PSD_PROTO, "PUSH uses the filters 0x1; offered: 0x2");
    say_coded("zstd+delta+bf16", list_pull(), body(false));
    expect_refused(&bench, PSD_PROTO, "PULL uses the filters 0x2a; offered: 0x2");
}

/* A body is not worked on for who may not send it: what is wrong with it does
 * not come out. */
Test(shard_filter, what_was_not_offered_is_not_read)
{
    ps_msg_hello_t plain = good_hello;
    ps_message_t message = list_push(1);
    uint8_t rubbish[64] = {0, 0, 2 /* zstd */, 4 /* of the values */};

    cr_assert_eq(hello(&bench, &plain), PSD_OK);
    message.flags = PS_FLAG_CODED;
    say_taking(&message,
               ps_payload_copy((ps_bytes_t){0}, (ps_bytes_t){0}, (ps_bytes_t){rubbish, 64}));
    expect_refused(&bench, PSD_PROTO, "PUSH uses the filters 0x8; offered: 0x0");
}

Test(shard_filter, damaged_body_is_refused)
{
    ps_message_t message = list_push(1);

    message.flags = PS_FLAG_CODED;
    say_taking(&message, ps_payload_copy((ps_bytes_t){0}, (ps_bytes_t){0},
                                         (ps_bytes_t){(uint8_t *)deltas, 8}));
    expect_refused(&bench, PSD_PROTO, "coded body is 8 bytes; its head needs 32");
}

/* One coded pull of 2000 rows; its answer comes the same way. */
Test(shard_filter, answers_go_through_the_filter_of_the_request)
{
    enum { N = 2000 };
    ps_filter_t filter = filter_of("f16");
    ps_filter_t used = {0};
    ps_message_t message = {.kind = PS_KIND_PULL,
                            .pull = {.request = 1000,
                                     .table = 1,
                                     .epoch = 4,
                                     .type = PS_TYPE_F32,
                                     .n_rows = N,
                                     .n_cols = 1}};
    PSD_AUTO(ps_free_at) uint64_t *many = ps_alloc(N, sizeof *many);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *plain = NULL;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *back = NULL;
    ps_message_t answered;
    ps_payload_t *coded = NULL;

    cr_assert_eq(push(&bench, 1, 2, 1.5F), PSD_OK);
    for (size_t i = 0; i < N; i++) {
        many[i] = i % 4;
    }
    plain = ps_payload_copy((ps_bytes_t){(uint8_t *)many, N * sizeof *many}, (ps_bytes_t){0},
                            (ps_bytes_t){0});
    cr_assert_eq(ps_coder_encode(coder, &filter, &message, plain, &coded, NULL), PSD_OK);
    say_taking(&message, coded);
    cr_assert_eq(said(&bench)->kind, PS_KIND_VALUES);
    cr_assert_eq(said(&bench)->flags, PS_FLAG_CODED);
    answered = *said(&bench);
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        if (bench.outbox.effects[i].kind == PS_EFFECT_SEND) {
            coded = bench.outbox.effects[i].payload;
        }
    }
    cr_assert_eq(ps_coder_decode(coder, &answered, coded, UINT64_MAX, &used, &back, NULL), PSD_OK);
    cr_assert_eq(used.values_as, PS_VALUES_F16);
    for (size_t i = 0; i < N; i++) {
        float value = 0;

        memcpy(&value, back->spans[0].data + i * sizeof value, sizeof value);
        cr_assert_eq(value, i % 4 == 2 ? 1.5F : 0);
    }
}

/* Without memory the request was not seen; the shard goes on. */
Test(shard_filter, no_memory_consumes_nothing)
{
    ps_message_t message = list_push(1);
    psd_status_t status = PSD_NOMEM;

    message.flags = PS_FLAG_KEEP;
    say_taking(&message, body(true));
    expect_ack();
    message = list_push(2);
    message.push.rows = PS_ROWS_CACHED;
    for (size_t at = 0; at < 1000 && status != PSD_OK; at++) {
        ps_payload_t *payload = named_body(true);
        psd_status_t rc = PSD_OK;

        fail_alloc_at(at);
        rc = say(&bench, &message, payload);
        status = fail_alloc_happened() ? PSD_NOMEM : PSD_OK;
        fail_alloc_off();
        ps_payload_destroy(&payload);
        cr_assert(rc == PSD_OK || rc == PSD_NOMEM);
    }
    cr_assert_eq(status, PSD_OK);
    cr_assert_eq(pull(&bench, 3), 2 * (6.0F + 7.0F), "applied once");
}
