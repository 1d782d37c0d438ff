/* SPDX-License-Identifier: Apache-2.0 */
/* wire/messages/message.h: fields and bytes. What fields may say is
 * test_message_check.c, what stands behind them test_message_body.c. */
#include "wire/messages/message.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/cursor.h"
#include "base/rng.h"
#include "support/message_sample.h"
#include "support/parcel.h"

static psd_status_t decode(const parcel_t *parcel, ps_message_t *ret_message, ps_body_t *ret_body,
                           psd_error_t *err)
{
    return ps_message_decode(parcel->frames, parcel->n_frames, ret_message, ret_body, err);
}

static void assert_refused(const parcel_t *parcel, psd_status_t status, const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_message_t message = {.kind = PS_KIND_BYE, .flags = 77};
    ps_body_t body = {.keys = {.size = 78}};

    cr_assert_eq(decode(parcel, &message, &body, err), status);
    cr_assert_str_eq(psd_error_text(err), text);
    cr_assert(message.flags == 77 && body.keys.size == 78, "outputs are set on success only");
    cr_assert_eq(decode(parcel, &message, &body, NULL), status);
}

static size_t frames_of(const ps_message_t *message)
{
    if (message->kind == PS_KIND_MOVED || ps_message_is_one_part(message)) {
        return 2;
    }
    return message->kind == PS_KIND_PUSH || message->kind == PS_KIND_PULL ||
                   message->kind == PS_KIND_VALUES
               ? 4
               : 1;
}

/* Packs, decodes and compares. */
static void assert_round_trip(const ps_message_t *message, const ps_body_t *body, size_t n_frames)
{
    PSD_AUTO(parcel_done) parcel_t parcel = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_message_t got;
    ps_body_t got_body = {0};

    parcel_pack(&parcel, message, body, n_frames);
    cr_assert_eq(decode(&parcel, &got, &got_body, err), PSD_OK, "%s: %s",
                 ps_kind_name(message->kind), psd_error_text(err));
    cr_assert_eq(got.kind, message->kind);
    cr_assert_eq(got.flags, message->flags);
    cr_assert(parcel_same_message(&got, message));
    cr_assert(parcel_same_body(&got_body, body));
}

Test(message, times_of_an_answer_come_whole_or_are_refused)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_message_t message;
    ps_message_t got;
    ps_body_t body = {0};
    uint8_t header[PS_HEADER_MAX];
    size_t size = 0;

    message_sample(PS_KIND_ACK, &message, &body);
    size = ps_message_encode(&message, header);
    message.flags = PS_FLAG_TIMES;
    message.times = (ps_times_t){1, 2, 3, 4, UINT64_MAX};
    cr_assert_eq(ps_message_encode(&message, header), size + 5 * sizeof(uint64_t));
    for (size_t cut = 0; cut <= 5 * sizeof(uint64_t); cut++) {
        const ps_bytes_t frame = {header, size + cut};
        psd_status_t rc = ps_message_decode(&frame, 1, &got, &body, err);

        cr_assert_eq(rc, cut == 5 * sizeof(uint64_t) ? PSD_OK : PSD_PROTO);
    }
    cr_assert(got.times.queue_us == 1 && got.times.gate_us == 2 && got.times.work_us == 3 &&
              got.times.copies_us == 4 && got.times.flush_us == UINT64_MAX);
}

Test(message, kinds_have_names)
{
    cr_assert_str_eq(ps_kind_name(PS_KIND_HELLO), "HELLO");
    cr_assert_str_eq(ps_kind_name(PS_KIND_BYE), "BYE");
    cr_assert_str_eq(ps_kind_name((ps_kind_t)0), "?");
    cr_assert_str_eq(ps_kind_name((ps_kind_t)14), "?");
}

Test(message, header_is_head_and_fields_without_padding)
{
    static const uint8_t wanted[] = {'p', 's', 'd', '1', 1, 0, 12, 0,  /* head */
                                     45,  0,   0,   0,   0, 0, 0,  0,  /* request */
                                     46,  0,   0,   0,   0, 0, 0,  0}; /* offset */
    ps_message_t message;
    ps_body_t body = {0};
    uint8_t header[PS_HEADER_MAX];

    message_sample(PS_KIND_CHUNK, &message, &body);
    cr_assert_eq(ps_message_encode(&message, header), sizeof wanted);
    cr_assert_arr_eq(header, wanted, sizeof wanted);
}

Test(message, every_kind_comes_back_in_one_frame_and_in_many)
{
    for (size_t i = 0; i < N_SAMPLE_KINDS; i++) {
        ps_message_t message;
        ps_body_t body = {0};

        message_sample(SAMPLE_KINDS[i], &message, &body);
        assert_round_trip(&message, &body, 1);
        assert_round_trip(&message, &body, frames_of(&message));
    }
}

Test(message, each_field_comes_back_where_it_was)
{
    PSD_AUTO(parcel_done) parcel_t parcel = {0};
    ps_message_t message;
    ps_message_t got = {0};
    ps_body_t body = {0};

    message_sample(PS_KIND_PUSH, &message, &body);
    parcel_pack(&parcel, &message, &body, 1);
    cr_assert_eq(decode(&parcel, &got, &body, NULL), PSD_OK);
    cr_assert_eq(got.push.request, message.push.request);
    cr_assert_eq(got.push.table, message.push.table);
    cr_assert_eq(got.push.partition, message.push.partition);
    cr_assert_eq(got.push.epoch, message.push.epoch);
    cr_assert_eq(got.push.seq, 41);
    cr_assert_eq(got.push.job, 31);
    cr_assert_eq(got.push.worker, 32);
    cr_assert_eq(got.push.member, 33);
    cr_assert_eq(got.push.clock, 34);
    cr_assert_eq(got.push.timeout_ms, 42);
    cr_assert_eq(got.push.ack, 2);
    cr_assert_eq(got.push.pull, 1);
    cr_assert_eq(got.push.first_col, 43);
    cr_assert_eq(got.push.n_values, 6);
}

Test(message, body_is_borrowed_from_the_frames)
{
    PSD_AUTO(parcel_done) parcel_t parcel = {0};
    ps_message_t message;
    ps_body_t body = {0};

    message_sample(PS_KIND_PUSH, &message, &body);
    parcel_pack(&parcel, &message, &body, 4);
    cr_assert_eq(decode(&parcel, &message, &body, NULL), PSD_OK);
    cr_assert_eq(body.keys.data, parcel.frames[1].data);
    cr_assert_eq(body.values.data, parcel.frames[3].data);
}

Test(message, slice_goes_in_and_out)
{
    static const ps_kind_t kinds[] = {PS_KIND_PUSH, PS_KIND_PULL, PS_KIND_VALUES};
    const ps_slice_t slice = {.rows = PS_ROWS_RANGE,
                              .layout = PS_LAYOUT_DENSE,
                              .cols = PS_COLS_RANGE,
                              .type = PS_TYPE_F64,
                              .n_rows = 2,
                              .first_row = 3,
                              .first_col = 4,
                              .n_cols = 5,
                              .n_values = 10};

    for (size_t i = 0; i < 3; i++) {
        ps_message_t message = {.kind = kinds[i]};
        ps_slice_t got = {0};

        ps_message_set_slice(&message, &slice);
        ps_message_slice(&message, &got);
        cr_assert(got.rows == slice.rows && got.layout == slice.layout && got.cols == slice.cols &&
                  got.type == slice.type && got.n_rows == 2 && got.first_row == 3 &&
                  got.first_col == 4 && got.n_cols == 5 && got.n_values == 10);
    }
}

/* ---- head -------------------------------------------------------------- */

Test(message, head_is_checked)
{
    PSD_AUTO(parcel_done) parcel_t parcel = {0};
    ps_message_t message;
    ps_body_t body = {0};
    uint8_t header[PS_HEADER_MAX];
    ps_bytes_t frame = {header, 0};

    message_sample(PS_KIND_BYE, &message, &body);
    frame.size = ps_message_encode(&message, header);
    header[0] = 'q';
    parcel_add(&parcel, frame);
    assert_refused(&parcel, PSD_PROTO, "signature is 0x31647371; allowed: 0x31647370");
    parcel_done(&parcel);
    header[0] = 'p';
    header[4] = 2;
    parcel_add(&parcel, frame);
    assert_refused(&parcel, PSD_VERSION, "version is 2; allowed: 1..1");
    parcel_done(&parcel);
    header[4] = 0;
    parcel_add(&parcel, frame);
    assert_refused(&parcel, PSD_VERSION, "version is 0; allowed: 1..1");
    parcel_done(&parcel);
    header[4] = 1;
    header[6] = 14;
    parcel_add(&parcel, frame);
    assert_refused(&parcel, PSD_PROTO, "kind is 14; allowed: 1..13 and 15..24");
    parcel_done(&parcel);
    header[6] = 0;
    parcel_add(&parcel, frame);
    assert_refused(&parcel, PSD_PROTO, "kind is 0; allowed: 1..13 and 15..24");
}

Test(message, number_of_frames_is_bounded)
{
    PSD_AUTO(parcel_done) parcel_t parcel = {0};

    assert_refused(&parcel, PSD_PROTO, "message has 0 frames; allowed: 1..4");
    for (int i = 0; i < 5; i++) {
        parcel_add(&parcel, (ps_bytes_t){0});
    }
    assert_refused(&parcel, PSD_PROTO, "message has 5 frames; allowed: 1..4");
}

Test(message, header_that_is_cut_off_names_the_field)
{
    PSD_AUTO(parcel_done) parcel_t parcel = {0};
    ps_message_t message;
    ps_body_t body = {0};
    uint8_t header[PS_HEADER_MAX];

    message_sample(PS_KIND_ACK, &message, &body);
    (void)ps_message_encode(&message, header);
    parcel_add(&parcel, (ps_bytes_t){NULL, 0});
    assert_refused(&parcel, PSD_PROTO, "header is 0 bytes; its head needs 8");
    parcel_done(&parcel);
    parcel_add(&parcel, (ps_bytes_t){header, 7});
    assert_refused(&parcel, PSD_PROTO, "header is 7 bytes; its head needs 8");
    parcel_done(&parcel);
    parcel_add(&parcel, (ps_bytes_t){header, 8});
    assert_refused(&parcel, PSD_PROTO, "ACK.request is cut off; the header is 8 bytes");
    parcel_done(&parcel);
    parcel_add(&parcel, (ps_bytes_t){header, 40});
    assert_refused(&parcel, PSD_PROTO, "ACK.level is cut off; the header is 40 bytes");
}

Test(message, id_that_is_cut_off_names_the_field)
{
    PSD_AUTO(parcel_done) parcel_t parcel = {0};
    ps_message_t message;
    ps_body_t body = {0};
    uint8_t header[PS_HEADER_MAX];

    message_sample(PS_KIND_HELLO, &message, &body);
    (void)ps_message_encode(&message, header);
    parcel_add(&parcel, (ps_bytes_t){header, 30});
    assert_refused(&parcel, PSD_PROTO, "HELLO.client is cut off; the header is 30 bytes");
}

/* ---- text -------------------------------------------------------------- */

#define PARKED_TEXT_AT 40 /* of the u16 length: head, address, seq */

/* A PARKED whose text has this length field and these bytes. */
static void pack_parked(parcel_t *parcel, uint16_t length, const char *text, size_t size)
{
    ps_message_t message;
    ps_body_t body = {0};
    uint8_t header[PS_HEADER_MAX];

    message_sample(PS_KIND_PARKED, &message, &body);
    (void)ps_message_encode(&message, header);
    ps_store_u16(header + PARKED_TEXT_AT, length);
    parcel_done(parcel);
    parcel_add2(parcel, (ps_bytes_t){header, PARKED_TEXT_AT + 2},
                (ps_bytes_t){(const uint8_t *)text, size});
}

Test(message, text_is_checked)
{
    static const char long_text[PS_TEXT_MAX + 1] = {0};
    PSD_AUTO(parcel_done) parcel_t parcel = {0};

    pack_parked(&parcel, 401, long_text, 401);
    assert_refused(&parcel, PSD_PROTO, "PARKED.text is 401 bytes; allowed: 0..400");
    pack_parked(&parcel, 4, "abc", 3);
    assert_refused(&parcel, PSD_PROTO, "PARKED.text is cut off; the header is 45 bytes");
    pack_parked(&parcel, 3, "a\0b", 3);
    assert_refused(&parcel, PSD_PROTO, "PARKED.text holds a 0 byte");
    pack_parked(&parcel, 3, "a\xC3.", 3);
    assert_refused(&parcel, PSD_PROTO, "PARKED.text is not UTF-8");
    pack_parked(&parcel, 2, "a\xC3", 2);
    assert_refused(&parcel, PSD_PROTO, "PARKED.text is not UTF-8");
    pack_parked(&parcel, 2, "abc", 3);
    assert_refused(&parcel, PSD_PROTO, "PARKED header is 45 bytes; its fields need 44");
}

Test(message, text_may_be_empty_or_full)
{
    PSD_AUTO(parcel_done) parcel_t parcel = {0};
    char full[PS_TEXT_MAX];
    ps_message_t message;
    ps_body_t body = {0};

    pack_parked(&parcel, 0, "", 0);
    cr_assert_eq(decode(&parcel, &message, &body, NULL), PSD_OK);
    cr_assert_str_eq(message.parked.text, "");
    memset(full, 'x', sizeof full);
    pack_parked(&parcel, PS_TEXT_MAX, full, sizeof full);
    cr_assert_eq(decode(&parcel, &message, &body, NULL), PSD_OK);
    cr_assert_eq(strlen(message.parked.text), PS_TEXT_MAX);
}

/* The receiver refuses bytes that are no UTF-8, and with them the reason. */
Test(message, encoder_mends_text_that_is_not_utf8)
{
    PSD_AUTO(parcel_done) parcel_t parcel = {0};
    ps_message_t message;
    ps_message_t got = {0};
    ps_body_t body = {0};

    message_sample(PS_KIND_REFUSED, &message, &body);
    memcpy(message.refused.text, "\xFFgr\xC3\xBC\xC3", sizeof "\xFFgr\xC3\xBC\xC3");
    parcel_pack(&parcel, &message, &body, 1);
    cr_assert_eq(decode(&parcel, &got, &body, NULL), PSD_OK);
    cr_assert_str_eq(got.refused.text, "?gr\xC3\xBC?");
}

Test(message, longest_header_fits)
{
    ps_message_t message;
    ps_body_t body = {0};
    uint8_t header[PS_HEADER_MAX];

    message_sample(PS_KIND_REFUSED, &message, &body);
    memset(message.refused.text, 'x', PS_TEXT_MAX);
    message.refused.text[PS_TEXT_MAX] = '\0';
    cr_assert_leq(ps_message_encode(&message, header), PS_HEADER_MAX);
    assert_round_trip(&message, &body, 1);
}

/* ---- properties -------------------------------------------------------- */

#define BODY_MAX 65536

static uint64_t wide(ps_rng_t *rng)
{
    return ps_rng_u64(rng) >> ps_rng_below(rng, 64);
}

/* A slice and its body, valid for the kind. */
static void random_slice(ps_rng_t *rng, ps_kind_t kind, uint8_t *block, ps_slice_t *slice,
                         ps_body_t *body)
{
    uint64_t rows_min = kind == PS_KIND_VALUES ? 0 : 1;
    bool sparse = ps_rng_below(rng, 2) == 1;
    size_t at = 0;

    *slice = (ps_slice_t){.rows = (ps_rows_kind_t)ps_rng_below(rng, 2),
                          .layout = sparse ? PS_LAYOUT_SPARSE : PS_LAYOUT_DENSE,
                          .cols = sparse ? PS_COLS_ALL : (ps_cols_kind_t)ps_rng_below(rng, 3),
                          .type = (ps_type_t)(1 + ps_rng_below(rng, 4)),
                          .n_rows = rows_min + ps_rng_below(rng, 20)};
    if (slice->rows == PS_ROWS_RANGE) {
        slice->first_row = UINT64_MAX - 19 - wide(rng) / 2;
    }
    if (slice->cols == PS_COLS_RANGE) {
        slice->first_col = UINT32_MAX - 19 - (uint32_t)ps_rng_below(rng, 1000);
    }
    if (!sparse) {
        slice->n_cols = (uint32_t)(1 + ps_rng_below(rng, 20));
    }
    *body = (ps_body_t){0};
    if (slice->rows == PS_ROWS_LIST) {
        body->keys = (ps_bytes_t){block, slice->n_rows * 8};
        at += body->keys.size;
    }
    if (sparse && kind != PS_KIND_PULL) {
        for (uint64_t i = 0; i < slice->n_rows; i++) {
            uint32_t count = (uint32_t)ps_rng_below(rng, 9);

            ps_store_u32(block + at + 4 * i, count);
            slice->n_values += count;
        }
        body->index = (ps_bytes_t){block + at, 4 * (slice->n_rows + slice->n_values)};
    } else if (slice->cols == PS_COLS_LIST) {
        body->index = (ps_bytes_t){block + at, slice->n_cols * 4U};
    }
    at += body->index.size;
    if (kind != PS_KIND_PULL) {
        slice->n_values += slice->n_rows * slice->n_cols;
        body->values = (ps_bytes_t){block + at, slice->n_values * ps_type_size(slice->type)};
    }
    cr_assert_leq(at + body->values.size, BODY_MAX);
}

static void random_message(ps_rng_t *rng, uint8_t *block, ps_message_t *message, ps_body_t *body)
{
    ps_slice_t slice = {0};

    message_sample(SAMPLE_KINDS[ps_rng_below(rng, N_SAMPLE_KINDS)], message, body);
    if (frames_of(message) < 4) {
        return;
    }
    for (size_t i = 0; i < BODY_MAX; i += 8) {
        ps_store_u64(block + i, ps_rng_u64(rng));
    }
    random_slice(rng, message->kind, block, &slice, body);
    if (message->kind == PS_KIND_PUSH) {
        message->push.request = wide(rng);
        message->push.seq = 1 + wide(rng) / 2;
        message->push.clock = wide(rng);
    } else if (message->kind == PS_KIND_VALUES) {
        message->values.n_done = wide(rng);
        message->values.level = (uint8_t)ps_rng_below(rng, 4);
    }
    ps_message_set_slice(message, &slice);
    if (message->kind != PS_KIND_PULL && slice.n_values > 1 && ps_rng_below(rng, 2) == 1) {
        message->flags = PS_FLAG_MORE;
        body->values.size = ps_type_size(slice.type) * (1 + ps_rng_below(rng, slice.n_values - 1));
    }
}

Test(message, random_messages_come_back)
{
    ps_rng_t rng = {.state = 20};
    PSD_AUTO(ps_free_at) uint8_t *block = ps_alloc(BODY_MAX, 1);

    cr_assert_not_null(block);
    for (int i = 0; i < 3000; i++) {
        ps_message_t message;
        ps_body_t body = {0};

        random_message(&rng, block, &message, &body);
        assert_round_trip(&message, &body, 1);
        assert_round_trip(&message, &body, frames_of(&message));
    }
}

/* Nobody knows how a cut or changed message reads; it must only be safe. What
 * is accepted has to be what was sent, to the byte. */
static void assert_safe(const parcel_t *parcel)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_message_t message;
    ps_body_t body = {0};
    psd_status_t rc = decode(parcel, &message, &body, err);

    if (rc == PSD_OK) {
        PSD_AUTO(parcel_done) parcel_t again = {0};

        parcel_pack(&again, &message, &body, parcel->n_frames);
        cr_assert_eq(again.n_frames, parcel->n_frames);
        for (size_t i = 0; i < again.n_frames; i++) {
            cr_assert(parcel_same_bytes(again.frames[i], parcel->frames[i]));
        }
        return;
    }
    cr_assert(rc == PSD_PROTO || rc == PSD_VERSION);
    cr_assert_str_not_empty(psd_error_text(err));
}

/* A copy in which frame f has `size` bytes and byte `at` is xored. */
static void bend(parcel_t *ret, const parcel_t *from, size_t f, size_t size, size_t at,
                 uint8_t mask)
{
    for (size_t i = 0; i < from->n_frames; i++) {
        ps_bytes_t frame = from->frames[i];
        uint8_t *block = NULL;

        frame.size = i == f ? size : frame.size;
        parcel_add(ret, frame);
        memcpy(&block, &ret->frames[i].data, sizeof block);
        if (i == f && mask != 0) {
            block[at] ^= mask;
        }
    }
}

static void bend_everywhere(const parcel_t *parcel)
{
    for (size_t f = 0; f < parcel->n_frames; f++) {
        size_t size = parcel->frames[f].size;

        for (size_t at = 0; at < size; at++) {
            PSD_AUTO(parcel_done) parcel_t cut = {0};

            bend(&cut, parcel, f, at, 0, 0);
            assert_safe(&cut);
            for (int mask = 1; mask < 256; mask++) {
                PSD_AUTO(parcel_done) parcel_t bent = {0};

                bend(&bent, parcel, f, size, at, (uint8_t)mask);
                assert_safe(&bent);
            }
        }
    }
}

Test(message, every_cut_and_every_changed_byte_is_safe)
{
    for (size_t i = 0; i < N_SAMPLE_KINDS; i++) {
        PSD_AUTO(parcel_done) parcel_t one = {0};
        PSD_AUTO(parcel_done) parcel_t many = {0};
        ps_message_t message;
        ps_body_t body = {0};

        message_sample(SAMPLE_KINDS[i], &message, &body);
        parcel_pack(&one, &message, &body, 1);
        bend_everywhere(&one);
        parcel_pack(&many, &message, &body, frames_of(&message));
        bend_everywhere(&many);
    }
}

/* A shorter CHUNK is a CHUNK, and routes are not read here. */
Test(message, every_cut_of_one_frame_is_refused)
{
    for (size_t i = 0; i < N_SAMPLE_KINDS; i++) {
        PSD_AUTO(parcel_done) parcel_t whole = {0};
        ps_message_t message;
        ps_body_t body = {0};

        message_sample(SAMPLE_KINDS[i], &message, &body);
        if (frames_of(&message) == 2) {
            continue;
        }
        parcel_pack(&whole, &message, &body, 1);
        for (size_t size = 0; size < whole.frames[0].size; size++) {
            PSD_AUTO(parcel_done) parcel_t cut = {0};

            bend(&cut, &whole, 0, size, 0, 0);
            cr_assert_eq(decode(&cut, &message, &body, NULL), PSD_PROTO);
        }
    }
}
