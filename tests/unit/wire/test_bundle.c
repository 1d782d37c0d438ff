/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles come back from their bytes; nothing else does. */
#include <criterion/criterion.h>

#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "support/fail_alloc.h"
#include "wire/records/bundle.h"

#define BYTES_MAX 1024

/* Workers 0 (two members), 1 and 6 brought rows, worker 2 only its mark. */
static const ps_bundle_from_t FROM[] = {
    {.session = 9,
     .first_seq = 4,
     .last_seq = 6,
     .worker = 0,
     .member = 0,
     .joins = 1,
     .marks = true},
    {.session = 3,
     .first_seq = 1,
     .last_seq = 1,
     .worker = 0,
     .member = 1,
     .joins = 1,
     .marks = true},
    {.session = 12, .first_seq = 8, .last_seq = 9, .worker = 1, .joins = 2, .marks = true},
    {.session = 5, .first_seq = 7, .last_seq = 9, .worker = 2, .joins = 1, .marks = 3},
    {.session = 6, .first_seq = 2, .last_seq = 2, .worker = 6, .joins = 1},
};

static const uint8_t KEYS[16] = {1, 0, 0, 0, 0, 0, 0, 0, 7};
static const uint8_t INDEX[20] = {2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 2};
static const uint8_t VALUES[20] = {0, 0, 0x80, 0x3F, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static ps_bundle_span_t spans[2];
static uint8_t bytes[BYTES_MAX];
static size_t size;

static ps_bundle_t sample(void)
{
    spans[0] =
        (ps_bundle_span_t){.first = 0,
                           .n = 2,
                           .from = 0,
                           .n_from = 3,
                           .slice = {.rows = PS_ROWS_LIST,
                                     .layout = PS_LAYOUT_SPARSE,
                                     .cols = PS_COLS_ALL,
                                     .type = PS_TYPE_F32,
                                     .n_rows = 2,
                                     .n_values = 3},
                           .body = {{KEYS, sizeof KEYS}, {INDEX, sizeof INDEX}, {VALUES, 12}}};
    spans[1] = (ps_bundle_span_t){.first = 6,
                                  .n = 1,
                                  .from = 4,
                                  .n_from = 1,
                                  .slice = {.rows = PS_ROWS_RANGE,
                                            .layout = PS_LAYOUT_DENSE,
                                            .cols = PS_COLS_RANGE,
                                            .type = PS_TYPE_F32,
                                            .n_rows = 5,
                                            .first_row = 70,
                                            .first_col = 3,
                                            .n_cols = 1,
                                            .n_values = 5},
                                  .body = {{NULL, 0}, {NULL, 0}, {VALUES, 20}}};
    return (ps_bundle_t){.from = (ps_bundle_from_t *)(uintptr_t)FROM,
                         .spans = spans,
                         .n_from = sizeof FROM / sizeof *FROM,
                         .n_spans = 2};
}

static void setup(void)
{
    ps_bundle_t bundle = sample();

    cr_assert(ps_bundle_size(&bundle, &size));
    cr_assert_leq(size, sizeof bytes);
    memset(bytes, 0xEE, sizeof bytes);
    ps_bundle_write(&bundle, bytes);
    cr_assert_eq(bytes[size], 0xEE);
}

TestSuite(bundle, .init = setup);

static psd_status_t read_as(uint16_t n_from, uint16_t n_spans, size_t n_bytes)
{
    PSD_AUTO(ps_bundle_done) ps_bundle_t got = {.from = NULL};

    return ps_bundle_read((ps_bytes_t){bytes, n_bytes}, n_from, n_spans, &got, NULL);
}

Test(bundle, what_was_written_is_read)
{
    PSD_AUTO(ps_bundle_done) ps_bundle_t got = {.from = NULL};
    uint8_t again[BYTES_MAX] = {0};
    size_t n = 0;

    cr_assert_eq(ps_bundle_read((ps_bytes_t){bytes, size}, 5, 2, &got, NULL), PSD_OK);
    cr_assert(got.n_from == 5 && got.n_spans == 2);
    cr_assert(got.from[0].session == 9 && got.from[0].first_seq == 4 && got.from[0].last_seq == 6);
    cr_assert(got.from[1].member == 1 && got.from[2].joins == 2 && got.from[4].worker == 6);
    cr_assert(got.from[3].marks == 3 && got.from[4].marks == 0);
    cr_assert(got.spans[1].first == 6 && got.spans[1].slice.first_row == 70);
    cr_assert_eq(got.spans[0].body.index.size, sizeof INDEX);
    cr_assert(ps_bundle_size(&got, &n) && n == size);
    ps_bundle_write(&got, again);
    cr_assert_arr_eq(again, bytes, size);
}

Test(bundle, marks_alone_are_a_bundle)
{
    ps_bundle_t bundle = sample();

    bundle.n_spans = 0;
    cr_assert(ps_bundle_size(&bundle, &size) && size == 5 * PS_BUNDLE_FROM);
    ps_bundle_write(&bundle, bytes);
    cr_assert_eq(read_as(5, 0, size), PSD_OK);
    cr_assert_eq(read_as(5, 0, size - 1), PSD_PROTO);
}

Test(bundle, it_has_contributors_and_limits)
{
    cr_assert_eq(read_as(0, 0, 0), PSD_PROTO);
    cr_assert_eq(read_as(PS_BUNDLE_FROM_MAX + 1, 0, size), PSD_PROTO);
    cr_assert_eq(read_as(5, PS_BUNDLE_SPANS_MAX + 1, size), PSD_PROTO);
    cr_assert_eq(read_as(4, 2, size), PSD_PROTO);
    cr_assert_eq(read_as(5, 1, size), PSD_PROTO);
    for (size_t n = 0; n < size; n++) {
        cr_assert_eq(read_as(5, 2, n), PSD_PROTO, "%zu bytes", n);
    }
    cr_assert_eq(read_as(5, 2, size + 8), PSD_PROTO);
}

/* One byte of the sample is another one: the text that says so. */
static const struct {
    size_t at;
    uint8_t value;
    const char *text;
} BENT[] = {
    {0, 0, "contributor 0: session is 0"},
    {0, 3, "session 3 contributes twice"},
    {8, 0, "contributor 0: first_seq is 0"},
    {16, 3, "contributor 0: last_seq is 3"},
    {24, 7, "contributor 1: member is 1; allowed: contributors ascend"},
    {25, 16, "contributor 0: worker is 4096"},
    {36, 4, "contributor 0: marks is 4; allowed: one for each seq at most"},
    {37, 3, "contributor 0: tail is 3; allowed: 0..2"},
    {4 * PS_BUNDLE_FROM + 37, 2, "contributor 4: tail is 2"}, /* it ends no clock */
    {PS_BUNDLE_FROM + 28, 0, "contributor 1: member is 0"},
    {2 * PS_BUNDLE_FROM + 24, 2, "contributor 3: member is 0"}, /* worker 2 twice */
    {3 * PS_BUNDLE_FROM + 24, 1, "contributor 3: member is 0"},
    {4 * PS_BUNDLE_FROM + 24, 7, "span 1: from is 4"},
    {5 * PS_BUNDLE_FROM, 1, "span 0: first is 1"},
    {5 * PS_BUNDLE_FROM + 4, 3, "span 0: n is 3"},
    {5 * PS_BUNDLE_FROM + 4, 0, "span 0: n is 0"},
    {5 * PS_BUNDLE_FROM + 4, 4, "span 0: from is 0"}, /* worker 2 is in it then */
    {5 * PS_BUNDLE_FROM + 10, 0, "span 0: n_from is 0"},
    {5 * PS_BUNDLE_FROM + 10, 9, "span 0: n_from is 9"},
    {5 * PS_BUNDLE_FROM + 12, 2, "span 0: rows is 2"},
    {5 * PS_BUNDLE_FROM + 13, 2, "span 0: layout is 2"},
    {5 * PS_BUNDLE_FROM + 14, 3, "span 0: cols is 3"},
    {5 * PS_BUNDLE_FROM + 15, 0, "span 0: type is 0"},
    {5 * PS_BUNDLE_FROM + 16, 0, "span 0: n_rows is 0"},
    {5 * PS_BUNDLE_FROM + 24, 1, "span 0: first_row is 1"},
    {5 * PS_BUNDLE_FROM + 32, 4, "span 0: n_values is 4"},
    {5 * PS_BUNDLE_FROM + 40, 1, "span 0: first_col is 1"},
    {5 * PS_BUNDLE_FROM + 44, 1, "span 0: n_values is 3"},
    {5 * PS_BUNDLE_FROM + PS_BUNDLE_SPAN, 1, "span 1: first is 1"}, /* meets span 0 */
    {5 * PS_BUNDLE_FROM + PS_BUNDLE_SPAN + 32, 0, "span 1: n_values is 0"},
    {5 * PS_BUNDLE_FROM + PS_BUNDLE_SPAN + 32, 4, "span 1: n_values is 4"},
    {5 * PS_BUNDLE_FROM + 2 * PS_BUNDLE_SPAN + 16, 1, "span 0: n_values is 3"}, /* a count */
    {5 * PS_BUNDLE_FROM + 2 * PS_BUNDLE_SPAN + 36, 1, "the bytes end"},         /* between parts */
};

Test(bundle, each_rule_is_checked_and_named)
{
    for (size_t i = 0; i < sizeof BENT / sizeof *BENT; i++) {
        PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
        PSD_AUTO(ps_bundle_done) ps_bundle_t got = {.from = NULL};
        uint8_t was = bytes[BENT[i].at];

        bytes[BENT[i].at] = BENT[i].value;
        cr_expect_eq(ps_bundle_read((ps_bytes_t){bytes, size}, 5, 2, &got, err), PSD_PROTO,
                     "case %zu", i);
        cr_expect(strstr(psd_error_text(err), BENT[i].text) != NULL, "case %zu: %s, not %s", i,
                  psd_error_text(err), BENT[i].text);
        bytes[BENT[i].at] = was;
    }
}

/* Whatever byte is bent: it is refused, or is a bundle that writes these bytes. */
Test(bundle, no_byte_is_read_and_lost)
{
    for (size_t i = 0; i < size; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            PSD_AUTO(ps_bundle_done) ps_bundle_t got = {.from = NULL};
            uint8_t again[BYTES_MAX] = {0};
            size_t n = 0;

            bytes[i] ^= (uint8_t)(1U << bit);
            if (ps_bundle_read((ps_bytes_t){bytes, size}, 5, 2, &got, NULL) == PSD_OK) {
                cr_assert(ps_bundle_size(&got, &n) && n == size);
                ps_bundle_write(&got, again);
                cr_assert_arr_eq(again, bytes, size, "byte %zu", i);
            }
            bytes[i] ^= (uint8_t)(1U << bit);
        }
    }
}

/* After the spans, in the order of the contributors; the log gets the bytes before them. */
Test(bundle, checks_are_at_the_end_and_not_in_the_log)
{
    ps_bundle_t bundle = sample();
    ps_bundle_from_t from[5];
    PSD_AUTO(ps_bundle_done) ps_bundle_t got = {.from = NULL};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *part = NULL;
    size_t n = 0;

    memcpy(from, FROM, sizeof from);
    for (size_t i = 0; i < 5; i++) {
        from[i].has_check = i != 2;
        from[i].check = UINT64_C(0xF0E0D0C0B0A09000) + i;
    }
    bundle.from = from;
    cr_assert(ps_bundle_size(&bundle, &n) && n == size, "one has none");
    from[2].has_check = true;
    cr_assert(ps_bundle_size(&bundle, &n) && n == size + 40);
    ps_bundle_write(&bundle, bytes);
    cr_assert_eq(bytes[size + 40], 0xEE);
    for (size_t i = 0; i < 5; i++) {
        cr_assert_eq(ps_load_u64(bytes + size + 8 * i), from[i].check);
    }
    cr_assert_eq(ps_bundle_read((ps_bytes_t){bytes, n - 8}, 5, 2, &got, err), PSD_PROTO);
    cr_assert_str_eq(psd_error_text(err),
                     "BUNDLE: 32 bytes after its end; allowed: 0, or 8 for each of 5 contributors");
    payload = ps_payload_copy((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0}, (ps_bytes_t){bytes, n});
    cr_assert_eq(ps_bundle_open(payload, 5, 2, &got, NULL), PSD_OK);
    cr_assert(ps_bundle_is_checked(got.from, 5));
    cr_assert_eq(got.from[4].check, from[4].check);
    part = ps_bundle_unchecked(&got, payload);
    cr_assert_eq(ps_payload_size(part), size);
    cr_assert_arr_eq(part->spans[0].data, bytes, size);
    ps_payload_destroy(&part);
    got.from[0].has_check = false;
    part = ps_bundle_unchecked(&got, payload);
    cr_assert_eq(part, payload, "as it is");
    cr_assert_not(ps_bundle_is_checked(got.from, 0));
}

static psd_status_t read_sample(void *fixture)
{
    (void)fixture;
    return read_as(5, 2, size);
}

Test(bundle, short_memory)
{
    cr_assert_null(fail_alloc_sweep(read_sample, NULL));
}
