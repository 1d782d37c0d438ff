/* SPDX-License-Identifier: Apache-2.0 */
/* wire/filters/filter_code.h: coded bodies that a peer made up. */
#include "unit/wire/filter_kit.h"

#include "support/fail_alloc.h"

#define N_ROWS 100

/* A good body and its message, to be bent. */
typedef struct bent {
    kit_parcel_t parcel;
    uint8_t *body;
    size_t size;
} bent_t;

static bent_t bent_new(const char *text, ps_type_t type, ps_rows_kind_t rows)
{
    PSD_AUTO(ps_coder_destroy) ps_coder_t *coder = ps_coder_new(1);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *coded = NULL;
    kit_shape_t shape = {.kind = PS_KIND_PUSH, .rows = rows, .type = type, .ascending = true};
    bent_t self = {.parcel = kit_parcel_new(&shape, N_ROWS)};
    ps_filter_t filter = {0};

    cr_assert_eq(ps_filter_parse(text, &filter, NULL), PSD_OK);
    cr_assert_eq(
        ps_coder_encode(coder, &filter, &self.parcel.message, self.parcel.payload, &coded, NULL),
        PSD_OK);
    self.size = kit_values(coded).size;
    self.body = ps_alloc_raw(self.size, 1);
    memcpy(self.body, kit_values(coded).data, self.size);
    return self;
}

static void bent_done(bent_t *self)
{
    kit_parcel_done(&self->parcel);
    ps_free(self->body);
}

/* Reads it, from memory of exactly its size, under a limit. */
static psd_status_t read_within(bent_t *self, uint64_t limit_bytes, psd_error_t *err)
{
    PSD_AUTO(ps_coder_destroy) ps_coder_t *coder = ps_coder_new(1);
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *coded =
        ps_payload_copy((ps_bytes_t){0}, (ps_bytes_t){0}, (ps_bytes_t){self->body, self->size});
    ps_payload_t *plain = NULL;
    ps_filter_t filter = {0};
    psd_status_t rc =
        ps_coder_decode(coder, &self->parcel.message, coded, limit_bytes, &filter, &plain, err);

    cr_assert_eq(plain != NULL, rc == PSD_OK);
    cr_assert_eq(self->parcel.message.flags, rc == PSD_OK ? 0 : PS_FLAG_CODED);
    self->parcel.message.flags = PS_FLAG_CODED;
    ps_payload_destroy(&plain);
    return rc;
}

static void assert_refused(bent_t *self, const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    cr_assert_eq(read_within(self, UINT64_MAX, err), PSD_PROTO);
    cr_assert_str_eq(psd_error_text(err), text);
}

Test(filter_hostile, head_is_checked_field_by_field)
{
    static const struct {
        size_t at;
        uint8_t value;
        const char *text;
    } bends[] = {
        {0, 2, "coded body's keys_as is 2; allowed: 0..1"},
        {1, 7, "coded body's values_as is 7; allowed: 0..6"},
        {2, 3, "coded body's pack is 3; allowed: 0..2"},
        {3, 1, "coded body's packed is 1; allowed: 0..0"},
        {7, 1, "coded body's bytes 4..7 are not zero"},
        {15, 0x80, "coded body is 1392 bytes; its head says 9223372036854777200"},
    };

    for (size_t i = 0; i < sizeof bends / sizeof bends[0]; i++) {
        bent_t bent = bent_new("delta+f16", PS_TYPE_F32, PS_ROWS_LIST);

        bent.body[bends[i].at] = bends[i].value;
        assert_refused(&bent, bends[i].text);
        bent_done(&bent);
    }
}

Test(filter_hostile, sizes_that_cannot_be_counted_are_refused)
{
    bent_t bent = bent_new("delta+f16", PS_TYPE_F32, PS_ROWS_LIST);

    ps_store_u64(bent.body + 8, UINT64_MAX - 39);
    ps_store_u64(bent.body + 16, 1);
    assert_refused(&bent, "coded body's index are 1 bytes; they cannot be "
                          "counted");
    ps_store_u64(bent.body + 8, UINT64_MAX);
    assert_refused(&bent, "coded body's keys are 18446744073709551615 bytes; "
                          "they cannot be counted");
    bent_done(&bent);
}

Test(filter_hostile, body_without_a_head_is_refused)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_coder_destroy) ps_coder_t *coder = ps_coder_new(1);
    bent_t bent = bent_new("f16", PS_TYPE_F32, PS_ROWS_RANGE);
    ps_payload_t *plain = NULL;
    ps_filter_t filter = {0};
    uint64_t size = 0;

    cr_assert_eq(ps_coder_decode(coder, &bent.parcel.message, NULL, 1000, &filter, &plain, err),
                 PSD_PROTO);
    cr_assert_str_eq(psd_error_text(err), "coded body is 0 bytes; its head needs 32");
    bent.size = 31;
    assert_refused(&bent, "coded body is 31 bytes; its head needs 32");
    cr_assert_eq(ps_coded_size((ps_bytes_t){bent.body, bent.size}, &size, NULL), PSD_PROTO);
    bent_done(&bent);
}

Test(filter_hostile, padding_is_zero)
{
    bent_t bent = bent_new("fixed1", PS_TYPE_F32, PS_ROWS_RANGE);

    cr_assert_eq(bent.size, 32 + 16 + 600);
    bent_done(&bent);
    bent = bent_new("delta+fixed1", PS_TYPE_F32, PS_ROWS_LIST);
    cr_assert_neq(ps_load_u64(bent.body + 8) % 8, 0);
    bent.body[bent.size - 1] = 1;
    assert_refused(&bent, "coded body is not padded with zeros");
    bent_done(&bent);
}

Test(filter_hostile, parts_are_as_long_as_the_message_calls_for)
{
    bent_t bent = bent_new("delta+f16", PS_TYPE_F32, PS_ROWS_LIST);

    bent.parcel.message.push.n_cols++;
    bent.parcel.message.push.n_values += N_ROWS;
    assert_refused(&bent, "coded values: 1200 bytes; the slice needs 2800, "
                          "written as it says");
    bent.parcel.message.push.n_cols--;
    bent.parcel.message.push.n_values = 0;
    assert_refused(&bent, "coded values: 1200 bytes; the slice needs 0, "
                          "written as it says");
    bent_done(&bent);
    bent = bent_new("f16", PS_TYPE_F32, PS_ROWS_LIST);
    bent.parcel.message.push.rows = PS_ROWS_RANGE;
    assert_refused(&bent, "coded keys: 800 bytes; the slice needs 0, written "
                          "as it says");
    bent_done(&bent);
}

Test(filter_hostile, keys_within_are_checked)
{
    bent_t bent = bent_new("delta+f16", PS_TYPE_F32, PS_ROWS_LIST);
    size_t n = (size_t)ps_load_u64(bent.body + 8);

    bent.body[32 + n - 1] |= 0x80;
    assert_refused(&bent, "coded keys: key 99 of 100 is cut off");
    bent_done(&bent);
}

Test(filter_hostile, integers_are_never_rounded)
{
    bent_t bent = bent_new("lz4", PS_TYPE_F32, PS_ROWS_RANGE);

    ps_payload_destroy(&bent.parcel.payload);
    bent.parcel.message.push.type = PS_TYPE_I32;
    bent.parcel.message.push.n_values = 0;
    memset(bent.body, 0, 32);
    bent.size = 32;
    bent.body[1] = PS_VALUES_F16;
    assert_refused(&bent, "coded body's values_as is 1; allowed for i32: 0");
    bent_done(&bent);
}

Test(filter_hostile, sparse_counts_add_up)
{
    PSD_AUTO(ps_coder_destroy) ps_coder_t *coder = ps_coder_new(1);
    kit_shape_t shape = {.kind = PS_KIND_PUSH,
                         .layout = PS_LAYOUT_SPARSE,
                         .rows = PS_ROWS_RANGE,
                         .type = PS_TYPE_F64};
    ps_filter_t filter = {.values_as = PS_VALUES_BF16};
    bent_t bent = {.parcel = kit_parcel_new(&shape, N_ROWS)};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *coded = NULL;

    cr_assert_eq(
        ps_coder_encode(coder, &filter, &bent.parcel.message, bent.parcel.payload, &coded, NULL),
        PSD_OK);
    bent.size = kit_values(coded).size;
    bent.body = ps_alloc_raw(bent.size, 1);
    memcpy(bent.body, kit_values(coded).data, bent.size);
    bent.body[32]++;
    assert_refused(&bent, "PUSH counts add up to 100; n_values is 99");
    bent_done(&bent);
}

/* A few bytes may announce as much as they like: what is too much is refused
 * before a byte of it is made room for. */
Test(filter_hostile, announced_sizes_are_refused_before_they_cost_anything)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    bent_t bent = bent_new("zstd+delta", PS_TYPE_F32, PS_ROWS_LIST);
    size_t before = 0;

    cr_assert_eq(read_within(&bent, N_ROWS * 8 + N_ROWS * 6 * 4, NULL), PSD_OK);
    cr_assert_eq(read_within(&bent, N_ROWS * 8 + N_ROWS * 6 * 4 - 1, err), PSD_LIMIT);
    cr_assert_str_eq(psd_error_text(err), "coded values of 2400 bytes; a body may have 3199");

    /* What it takes to look at a body at all: the coder, its packer, a copy. */
    fail_alloc_off();
    before = fail_alloc_calls();
    bent.parcel.message.push.n_rows = UINT64_C(1) << 40;
    bent.parcel.message.push.n_values = UINT64_C(6) << 40;
    cr_assert_eq(read_within(&bent, UINT64_C(1) << 60, NULL), PSD_PROTO);
    cr_assert_eq(fail_alloc_calls() - before, 3);
    fail_alloc_off();
    bent_done(&bent);
}

Test(filter_hostile, packed_sizes_are_compared_with_the_message)
{
    bent_t bent = bent_new("zstd", PS_TYPE_F32, PS_ROWS_RANGE);

    cr_assert_eq(bent.body[3], 4);
    ps_store_u64(bent.body + 32, UINT64_C(1) << 40);
    assert_refused(&bent, "coded values: 1099511627776 bytes; the slice needs "
                          "2400, written as it says");
    bent.body[3] = 5; /* keys of 0 bytes, packed */
    assert_refused(&bent, "coded keys: packed part is 0 bytes; allowed: more "
                          "than 8");
    bent_done(&bent);
}

/* Every byte of good bodies, bent in every bit: an error or other values, never
 * harm. */
Test(filter_hostile, bent_bodies_do_no_harm)
{
    static const char *const texts[] = {"delta+f16", "zstd+delta+fixed2", "lz4+delta", "fixed3"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bent_t bent = bent_new(texts[i], PS_TYPE_F32, PS_ROWS_LIST);

        for (size_t at = 0; at < bent.size; at++) {
            for (int bit = 0; bit < 8; bit++) {
                psd_status_t rc = PSD_OK;

                bent.body[at] ^= (uint8_t)(1 << bit);
                rc = read_within(&bent, 1 << 20, NULL);
                cr_assert(rc == PSD_OK || rc == PSD_PROTO);
                bent.body[at] ^= (uint8_t)(1 << bit);
            }
        }
        while (bent.size > 0) {
            bent.size--;
            cr_assert_eq(read_within(&bent, 1 << 20, NULL), PSD_PROTO);
        }
        bent_done(&bent);
    }
}
