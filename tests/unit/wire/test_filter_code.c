/* SPDX-License-Identifier: Apache-2.0 */
/* wire/filters/filter_code.h: bodies through filters and back. What bytes from outside
 * may do is in test_filter_hostile.c. */
#include "unit/wire/filter_kit.h"

#include <math.h>

#include "support/fail_alloc.h"

#define N_ROWS 700
#define NO_LIMIT UINT64_MAX

static const char *const FILTERS[] = {
    "delta",
    "lz4",
    "zstd",
    "f16",
    "bf16",
    "fixed1",
    "fixed2",
    "fixed3",
    "fixed4",
    "delta+lz4",
    "delta+zstd+fixed1",
    "delta+lz4+bf16",
    "zstd+f16",
};
#define N_FILTERS (sizeof FILTERS / sizeof FILTERS[0])

static ps_filter_t filter_of(const char *text)
{
    ps_filter_t filter = {0};

    cr_assert_eq(ps_filter_parse(text, &filter, NULL), PSD_OK);
    return filter;
}

/* The coded body; NULL: the message goes plain. */
static ps_payload_t *encode(const ps_filter_t *filter, kit_parcel_t *parcel)
{
    PSD_AUTO(ps_coder_destroy) ps_coder_t *coder = ps_coder_new(1);
    ps_payload_t *coded = NULL;

    cr_assert_eq(ps_coder_encode(coder, filter, &parcel->message, parcel->payload, &coded, NULL),
                 PSD_OK);
    cr_assert_eq(coded != NULL, (parcel->message.flags & PS_FLAG_CODED) != 0);
    return coded;
}

static ps_payload_t *decode(kit_parcel_t *parcel, ps_payload_t *coded, ps_filter_t *ret_filter)
{
    PSD_AUTO(ps_coder_destroy) ps_coder_t *coder = ps_coder_new(1);
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_payload_t *plain = NULL;

    cr_assert_eq(ps_coder_decode(coder, &parcel->message, coded, NO_LIMIT, ret_filter, &plain, err),
                 PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(parcel->message.flags, 0);
    return plain;
}

static void assert_same_bytes(ps_bytes_t got, ps_bytes_t wanted)
{
    cr_assert_eq(got.size, wanted.size);
    if (got.size > 0) {
        cr_assert_arr_eq(got.data, wanted.data, got.size);
    }
}

/* |error| of values between -50/7 and 51/7. */
static double bound_of(ps_values_as_t as)
{
    switch (as) {
    case PS_VALUES_F16:
        return 8 * 0x1p-10;
    case PS_VALUES_BF16:
        return 8 * 0x1p-7;
    case PS_VALUES_FIXED1:
    case PS_VALUES_FIXED2:
    case PS_VALUES_FIXED3:
    case PS_VALUES_FIXED4:
        return 15 / (ldexp(1, 8 * ((int)as - PS_VALUES_F16 - 1)) - 2) + 0x1p-21;
    case PS_VALUES_RAW:
        break;
    }
    return 0;
}

static void assert_close(ps_type_t type, ps_bytes_t got, ps_bytes_t wanted, double bound)
{
    size_t width = ps_type_size(type);

    cr_assert_eq(got.size, wanted.size);
    for (size_t at = 0; at < got.size; at += width) {
        double a =
            type == PS_TYPE_F32 ? (double)ps_load_f32(got.data + at) : ps_load_f64(got.data + at);
        double b = type == PS_TYPE_F32 ? (double)ps_load_f32(wanted.data + at)
                                       : ps_load_f64(wanted.data + at);

        cr_assert_leq(fabs(a - b), bound);
    }
}

static void assert_comes_back(const char *text, const kit_shape_t *shape, uint64_t n)
{
    ps_filter_t filter = filter_of(text);
    ps_filter_t used = {0};
    kit_parcel_t parcel = kit_parcel_new(shape, n);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *coded = encode(&filter, &parcel);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *plain = NULL;

    if (coded == NULL) {
        kit_parcel_done(&parcel);
        return;
    }
    plain = decode(&parcel, coded, &used);
    cr_assert_eq(plain == NULL, parcel.payload == NULL);
    if (plain != NULL) {
        assert_same_bytes(plain->keys, parcel.payload->keys);
        assert_same_bytes(plain->index, parcel.payload->index);
        if (used.values_as == PS_VALUES_RAW) {
            assert_same_bytes(kit_values(plain), kit_values(parcel.payload));
        } else {
            assert_close(shape->type, kit_values(plain), kit_values(parcel.payload),
                         bound_of(used.values_as));
        }
    }
    if (shape->kind != PS_KIND_PULL) {
        cr_assert_lt(ps_payload_size(coded), ps_payload_size(parcel.payload));
    }
    cr_assert(used.pack == filter.pack);
    cr_assert(used.values_as == filter.values_as || used.values_as == PS_VALUES_RAW);
    kit_parcel_done(&parcel);
}

Test(filter_code, every_shape_comes_back_through_every_filter)
{
    kit_shape_t shape = {.kind = PS_KIND_PUSH};

    for (size_t i = 0; i < N_FILTERS; i++) {
        KIT_FOR_EACH_SHAPE(shape)
        {
            assert_comes_back(FILTERS[i], &shape, N_ROWS);
            assert_comes_back(FILTERS[i], &shape, 1);
            assert_comes_back(FILTERS[i], &shape, 0);
        }
    }
}

#define PUSH_F32 ((kit_shape_t){.kind = PS_KIND_PUSH, .type = PS_TYPE_F32, .ascending = true})

/* Bytes of a push of N_ROWS rows x 6 f32 through a filter. */
static size_t coded_bytes(const char *text)
{
    kit_shape_t shape = PUSH_F32;
    ps_filter_t filter = filter_of(text);
    kit_parcel_t parcel = kit_parcel_new(&shape, N_ROWS);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *coded = encode(&filter, &parcel);
    size_t size = ps_payload_size(coded);

    kit_parcel_done(&parcel);
    return size;
}

Test(filter_code, sizes_are_those_of_the_parts)
{
    size_t values = N_ROWS * KIT_COLS;

    cr_assert_eq(coded_bytes("f16"), 32 + N_ROWS * 8 + values * 2);
    /* five blocks; up to a multiple of eight */
    cr_assert_eq(coded_bytes("fixed1"), 32 + N_ROWS * 8 + values + 80);
    cr_assert_lt(coded_bytes("delta"), 32 + N_ROWS * 2 + values * 4);
    cr_assert_lt(coded_bytes("delta+f16"), 32 + N_ROWS * 2 + values * 2);
}

Test(filter_code, what_does_not_get_smaller_goes_plain)
{
    kit_shape_t small = PUSH_F32;
    kit_shape_t unsorted = {.kind = PS_KIND_PUSH, .type = PS_TYPE_I64};
    ps_filter_t f16 = filter_of("f16");
    ps_filter_t delta = filter_of("delta");
    ps_filter_t cache = filter_of("cache");
    kit_parcel_t one = kit_parcel_new(&small, 1);
    kit_parcel_t list = kit_parcel_new(&unsorted, N_ROWS);

    cr_assert_null(encode(&f16, &one));
    cr_assert_null(encode(&delta, &list));
    cr_assert_null(encode(&f16, &list));   /* integers */
    cr_assert_null(encode(&cache, &list)); /* is no work of this one */
    kit_parcel_done(&one);
    kit_parcel_done(&list);
}

Test(filter_code, value_that_cannot_be_written_keeps_all_as_they_are)
{
    kit_shape_t shape = PUSH_F32;
    ps_filter_t filter = filter_of("delta+f16");
    ps_filter_t used = {0};
    kit_parcel_t parcel = kit_parcel_new(&shape, N_ROWS);
    uint8_t *values = (uint8_t *)(uintptr_t)parcel.payload->spans[0].data;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *coded = NULL;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *plain = NULL;

    ps_store_f32(values + 4 * 1111, INFINITY);
    coded = encode(&filter, &parcel);
    plain = decode(&parcel, coded, &used);
    cr_assert_eq(used.values_as, PS_VALUES_RAW);
    assert_same_bytes(kit_values(plain), kit_values(parcel.payload));
    kit_parcel_done(&parcel);
}

Test(filter_code, pull_says_how_it_wants_to_be_answered)
{
    static const char *const wishes[] = {"delta", "lz4", "bf16", "delta+zstd+fixed2"};
    kit_shape_t shape = {.kind = PS_KIND_PULL, .rows = PS_ROWS_RANGE, .type = PS_TYPE_F32};

    for (size_t i = 0; i < 4; i++) {
        ps_filter_t filter = filter_of(wishes[i]);
        ps_filter_t used = {0};
        kit_parcel_t parcel = kit_parcel_new(&shape, UINT32_MAX);
        PSD_AUTO(ps_payload_destroy)
        ps_payload_t *coded = encode(&filter, &parcel);

        cr_assert_not_null(coded);
        cr_assert_eq(ps_payload_size(coded), 32);
        cr_assert_null(decode(&parcel, coded, &used));
        cr_assert_eq(used.delta, filter.delta);
        cr_assert_eq(used.pack, filter.pack);
        cr_assert_eq(used.values_as, filter.values_as);
    }
}

/* The format does not drift: a pull of three keys that wants its answer packed
 * by LZ4 and in 16-bit floats, and a push of 40 values in two bytes each. */
Test(filter_code, bytes_are_those_of_the_protocol)
{
    static const uint64_t keys[] = {5, 6, 300};
    static const uint8_t wanted[] = {1, 1, 1, 0, 0,    0,    0,    0,    4, 0, 0, 0, 0, 0,
                                     0, 0, 0, 0, 0,    0,    0,    0,    0, 0, 0, 0, 0, 0,
                                     0, 0, 0, 0, 0x05, 0x01, 0xA6, 0x02, 0, 0, 0, 0};
    kit_shape_t shape = {.kind = PS_KIND_PULL, .type = PS_TYPE_F32};
    ps_filter_t filter = filter_of("delta+lz4+f16");
    kit_parcel_t pull = kit_parcel_new(&shape, 3);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *coded = NULL;

    ps_payload_destroy(&pull.payload);
    pull.payload = ps_payload_copy((ps_bytes_t){(const uint8_t *)keys, sizeof keys},
                                   (ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0});
    coded = encode(&filter, &pull);
    assert_same_bytes(kit_values(coded), (ps_bytes_t){wanted, sizeof wanted});
    kit_parcel_done(&pull);
}

Test(filter_code, fixed_point_is_that_of_the_protocol)
{
    static const float values[] = {-1, 0, 0.5F, 1};
    /* steps of 2 / 254, rounded up to 21 bits; the first is 127 below 0 */
    static const uint8_t codes[] = {127, 190, 254};
    uint8_t coded[16 + 4];
    float back[4];

    cr_assert(ps_quant_encode(PS_VALUES_FIXED1, PS_TYPE_F32, (const uint8_t *)values, 4, 1, coded));
    cr_assert_eq(ps_load_f64(coded + 8), 0x1.02041p-7);
    cr_assert_eq(ps_load_f64(coded), -127 * 0x1.02041p-7);
    cr_assert_eq(coded[16], 0);
    cr_assert_eq(coded[17], codes[0]);
    cr_assert(coded[18] == codes[1] || coded[18] == codes[1] + 1);
    cr_assert(coded[19] == codes[2] || coded[19] == codes[2] - 1);
    cr_assert_eq(ps_quant_decode(PS_VALUES_FIXED1, PS_TYPE_F32, (ps_bytes_t){coded, sizeof coded},
                                 4, (uint8_t *)back, NULL),
                 PSD_OK);
    cr_assert_eq(back[1], 0);
}

/* Not pieces of the answer: the body is what came, where it came. */
Test(filter_code, raw_values_are_not_copied_on_their_way_in)
{
    kit_shape_t shape = PUSH_F32;
    ps_filter_t filter = filter_of("delta");
    ps_filter_t used = {0};
    kit_parcel_t parcel = kit_parcel_new(&shape, N_ROWS);
    ps_payload_t *coded = encode(&filter, &parcel);
    ps_bytes_t body = kit_values(coded);
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *plain = decode(&parcel, coded, &used);
    ps_bytes_t values = kit_values(plain);

    cr_assert(values.data > body.data && values.data + values.size <= body.data + body.size);
    ps_payload_destroy(&coded); /* the plain one holds it */
    assert_same_bytes(values, kit_values(parcel.payload));
    kit_parcel_done(&parcel);
}

/* A payload over two spans of the same bytes. */
static ps_payload_t *in_two_spans(ps_bytes_t bytes, size_t first)
{
    ps_payload_t *payload = ps_payload_copy((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0}, bytes);

    payload->spans = ps_alloc(2, sizeof *payload->spans);
    payload->spans[0] = (ps_bytes_t){payload->span.data, first};
    payload->spans[1] = (ps_bytes_t){payload->span.data + first, bytes.size - first};
    payload->n_spans = 2;
    return payload;
}

Test(filter_code, bodies_in_pieces_are_read_and_written)
{
    kit_shape_t shape = PUSH_F32;
    ps_filter_t filter = filter_of("delta+zstd+fixed2");
    ps_filter_t used = {0};
    kit_parcel_t parcel = kit_parcel_new(&shape, N_ROWS);
    kit_parcel_t pieces = parcel;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *coded = NULL;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *coded_pieces = NULL;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *plain = NULL;
    ps_bytes_t body;
    uint64_t size = 0;

    pieces.payload = in_two_spans(kit_values(parcel.payload), 4 * 99);
    pieces.payload->keys = parcel.payload->keys;
    coded = encode(&filter, &parcel);
    pieces.message.flags = 0;
    coded_pieces = encode(&filter, &pieces);
    body = kit_values(coded);
    assert_same_bytes(kit_values(coded_pieces), body);

    ps_payload_destroy(&coded_pieces);
    coded_pieces = in_two_spans(body, 64);
    cr_assert_eq(ps_coded_size(coded_pieces->spans[0], &size, NULL), PSD_OK);
    cr_assert_eq(size, body.size);
    cr_assert_eq(size % 8, 0);
    plain = decode(&parcel, coded_pieces, &used);
    ps_payload_destroy(&coded_pieces);
    assert_same_bytes(plain->keys, parcel.payload->keys);
    assert_close(PS_TYPE_F32, kit_values(plain), kit_values(parcel.payload),
                 bound_of(PS_VALUES_FIXED2));
    kit_parcel_done(&pieces);
    kit_parcel_done(&parcel);
}

/* Another process may change shared bytes at any time: they are copied first,
 * and what was checked is what is read. */
Test(filter_code, shared_bodies_are_copied_first)
{
    kit_shape_t shape = PUSH_F32;
    ps_filter_t filter = filter_of("delta");
    ps_filter_t used = {0};
    kit_parcel_t parcel = kit_parcel_new(&shape, N_ROWS);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *coded = encode(&filter, &parcel);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *plain = NULL;

    coded->shared = true;
    plain = decode(&parcel, coded, &used);
    memset((uint8_t *)(uintptr_t)coded->spans[0].data, 0xFF, coded->spans[0].size);
    assert_same_bytes(plain->keys, parcel.payload->keys);
    assert_same_bytes(kit_values(plain), kit_values(parcel.payload));
    kit_parcel_done(&parcel);
}

Test(filter_code, coders_of_one_seed_write_the_same)
{
    kit_shape_t shape = PUSH_F32;
    ps_filter_t filter = filter_of("bf16");
    kit_parcel_t parcel = kit_parcel_new(&shape, N_ROWS);
    PSD_AUTO(ps_coder_destroy) ps_coder_t *coder = ps_coder_new(1);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *one = encode(&filter, &parcel);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *same = encode(&filter, &parcel);
    ps_payload_t *later = NULL;

    assert_same_bytes(kit_values(same), kit_values(one));
    for (int i = 0; i < 2; i++) {
        ps_payload_destroy(&later);
        cr_assert_eq(ps_coder_encode(coder, &filter, &parcel.message, parcel.payload, &later, NULL),
                     PSD_OK);
    }
    cr_assert_neq(memcmp(kit_values(later).data, kit_values(one).data, kit_values(one).size), 0);
    ps_payload_destroy(&later);
    kit_parcel_done(&parcel);
}

/* A worker's push through a coder of some seed. */
static ps_payload_t *worker_push(uint64_t coder_seed, uint64_t seq, uint32_t worker)
{
    kit_shape_t shape = PUSH_F32;
    ps_filter_t filter = filter_of("fixed1");
    kit_parcel_t parcel = kit_parcel_new(&shape, N_ROWS);
    PSD_AUTO(ps_coder_destroy) ps_coder_t *coder = ps_coder_new(coder_seed);
    ps_payload_t *coded = NULL;

    parcel.message.push.job = 3;
    parcel.message.push.seq = seq;
    parcel.message.push.worker = worker;
    cr_assert_eq(ps_coder_encode(coder, &filter, &parcel.message, parcel.payload, &coded, NULL),
                 PSD_OK);
    kit_parcel_done(&parcel);
    return coded;
}

/* A job that runs again ends with the same bits. */
Test(filter_code, workers_are_rounded_by_what_they_push)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *one = worker_push(1, 7, 0);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *again = worker_push(2, 7, 0);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *next = worker_push(1, 8, 0);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *other = worker_push(1, 7, 1);
    ps_bytes_t bytes = kit_values(one);

    assert_same_bytes(kit_values(again), bytes);
    cr_assert_neq(memcmp(kit_values(next).data, bytes.data, bytes.size), 0);
    cr_assert_neq(memcmp(kit_values(other).data, bytes.data, bytes.size), 0);
}

static psd_status_t go_through(void *fixture)
{
    ps_filter_t filter = filter_of("delta+lz4+fixed2");
    kit_parcel_t *parcel = fixture;
    ps_filter_t used = {0};
    PSD_AUTO(ps_coder_destroy) ps_coder_t *coder = ps_coder_new(1);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *coded = NULL;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *plain = NULL;
    psd_status_t rc = PSD_OK;

    if (coder == NULL) {
        return PSD_NOMEM;
    }
    parcel->message.flags = 0;
    rc = ps_coder_encode(coder, &filter, &parcel->message, parcel->payload, &coded, NULL);
    cr_assert_eq(parcel->message.flags, rc == PSD_OK ? PS_FLAG_CODED : 0);
    if (rc == PSD_OK) {
        rc = ps_coder_decode(coder, &parcel->message, coded, NO_LIMIT, &used, &plain, NULL);
        cr_assert_eq(parcel->message.flags, rc == PSD_OK ? 0 : PS_FLAG_CODED);
    }
    cr_assert_eq(plain != NULL, rc == PSD_OK);
    return rc;
}

Test(filter_code, no_memory_leaves_the_message_as_it_was)
{
    kit_shape_t shape = PUSH_F32;
    kit_parcel_t parcel = kit_parcel_new(&shape, N_ROWS);

    cr_assert_null(fail_alloc_sweep(go_through, &parcel));
    kit_parcel_done(&parcel);
}
