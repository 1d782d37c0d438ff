/* SPDX-License-Identifier: Apache-2.0 */
/* wire/messages/message.h: keys, index and values, to the byte. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "base/cursor.h"
#include "support/message_sample.h"
#include "support/parcel.h"

static void assert_says(const ps_message_t *message, const ps_body_t *body, size_t n_frames,
                        psd_status_t status, const char *text)
{
    PSD_AUTO(parcel_done) parcel_t parcel = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_message_t got;
    ps_body_t got_body = {0};

    parcel_pack(&parcel, message, body, n_frames);
    cr_assert_eq(ps_message_decode(parcel.frames, parcel.n_frames, &got, &got_body, err), status,
                 "%s, not: %s", psd_error_text(err), text);
    cr_assert_str_eq(psd_error_text(err), text);
}

/* ---- frames ------------------------------------------------------------ */

Test(message_body, kinds_without_a_body_have_one_frame)
{
    for (size_t i = 0; i < N_SAMPLE_KINDS; i++) {
        ps_message_t message;
        ps_body_t body = {0};
        char text[64];

        message_sample(SAMPLE_KINDS[i], &message, &body);
        if (body.keys.size + body.index.size + body.values.size > 0) {
            continue;
        }
        (void)snprintf(text, sizeof text, "%s has 2 frames; allowed: 1",
                       ps_kind_name(message.kind));
        assert_says(&message, &body, 2, PSD_PROTO, text);
    }
}

Test(message_body, bytes_behind_a_header_without_body_are_refused)
{
    static const uint8_t rest[3] = {0};
    ps_message_t message;
    ps_body_t body = {0};

    message_sample(PS_KIND_BYE, &message, &body);
    body.keys = (ps_bytes_t){rest, 3};
    assert_says(&message, &body, 1, PSD_PROTO, "BYE header is 19 bytes; its fields need 16");
}

/* Decodes the message with `part` behind its header and in a frame beside it.
 */
static void assert_one_part(const ps_message_t *message, ps_bytes_t part)
{
    for (int n_frames = 1; n_frames <= 2; n_frames++) {
        PSD_AUTO(parcel_done) parcel_t parcel = {0};
        uint8_t header[PS_HEADER_MAX];
        size_t size = ps_message_encode(message, header);
        ps_message_t got;
        ps_body_t body = {0};

        if (n_frames == 1) {
            parcel_add2(&parcel, (ps_bytes_t){header, size}, part);
        } else {
            parcel_add(&parcel, (ps_bytes_t){header, size});
            parcel_add(&parcel, part);
        }
        cr_assert_eq(ps_message_decode(parcel.frames, (size_t)n_frames, &got, &body, NULL), PSD_OK);
        cr_assert_eq(body.keys.size + body.index.size, 0);
        cr_assert_eq(body.values.size, part.size);
        cr_assert_arr_eq(body.values.data, part.data, part.size);
    }
}

Test(message_body, single_part_has_one_frame)
{
    ps_message_t message;
    ps_body_t body = {0};

    message_sample(PS_KIND_MOVED, &message, &body);
    assert_says(&message, &body, 3, PSD_PROTO, "MOVED has 3 frames; allowed: 1..2");
}

/* What a filter wrote is one part of any length. */
Test(message_body, coded_body_is_one_part)
{
    static const uint8_t bytes[5] = {1, 2, 3, 4, 5};
    ps_message_t message;
    ps_body_t body = {0};

    message_sample(PS_KIND_PUSH, &message, &body);
    message.flags = PS_FLAG_CODED;
    assert_says(&message, &body, 3, PSD_PROTO, "PUSH has 3 frames; allowed: 1..2");
    assert_one_part(&message, (ps_bytes_t){bytes, sizeof bytes});
}

/* The header says where the body starts, so it cannot be in both places. */
Test(message_body, body_is_in_one_place)
{
    PSD_AUTO(parcel_done) parcel_t parcel = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    static const uint8_t one = 1;
    ps_message_t message;
    ps_body_t body = {0};
    uint8_t header[PS_HEADER_MAX];
    size_t size = 0;

    message_sample(PS_KIND_PUSH, &message, &body);
    size = ps_message_encode(&message, header);
    parcel_add2(&parcel, (ps_bytes_t){header, size}, (ps_bytes_t){&one, 1});
    parcel_add(&parcel, body.keys);
    parcel_add(&parcel, body.index);
    parcel_add(&parcel, body.values);
    cr_assert_eq(ps_message_decode(parcel.frames, 4, &message, &body, err), PSD_PROTO);
    cr_assert_str_eq(psd_error_text(err), "PUSH header is 120 bytes; its fields need 119");
}

Test(message_body, frames_that_would_be_empty_may_be_left_out)
{
    ps_message_t message;
    ps_body_t body = {0};

    message_sample(PS_KIND_PULL, &message, &body);
    assert_says(&message, &body, 3, PSD_OK, "");
    message.pull.cols = PS_COLS_ALL;
    body.index.size = 0;
    assert_says(&message, &body, 2, PSD_OK, "");
}

/* Larger than what shares the header's frame by rule; it is safe to read. */
Test(message_body, large_body_may_lie_in_the_headers_frame)
{
    static const uint8_t zeroes[8192] = {0};
    ps_message_t message;
    ps_body_t body = {0};

    message_sample(PS_KIND_PUSH, &message, &body);
    message.push.n_rows = 256;
    message.push.n_values = 512;
    body.keys = (ps_bytes_t){zeroes, 2048};
    body.values = (ps_bytes_t){zeroes, 2048};
    assert_says(&message, &body, 1, PSD_OK, "");
    assert_says(&message, &body, 4, PSD_OK, "");
}

/* ---- lengths ----------------------------------------------------------- */

Test(message_body, keys_are_as_long_as_the_rows_need)
{
    ps_message_t message;
    ps_body_t body = {0};

    message_sample(PS_KIND_PUSH, &message, &body);
    body.keys.size = 16;
    assert_says(&message, &body, 4, PSD_PROTO, "PUSH keys are 16 bytes; 3 rows need 24");
    message_sample(PS_KIND_PUSH, &message, &body);
    message.push.rows = PS_ROWS_RANGE;
    assert_says(&message, &body, 4, PSD_PROTO,
                "PUSH keys are 24 bytes; allowed: 0 as rows is RANGE");
}

Test(message_body, index_is_as_long_as_the_slice_needs)
{
    ps_message_t message;
    ps_body_t body = {0};

    message_sample(PS_KIND_PULL, &message, &body);
    body.index.size = 8;
    assert_says(&message, &body, 1, PSD_PROTO, "PULL index is 8 bytes; the slice needs 12");
    message_sample(PS_KIND_VALUES, &message, &body);
    body.index.size = 20;
    assert_says(&message, &body, 4, PSD_PROTO, "VALUES index is 20 bytes; the slice needs 24");
}

Test(message_body, sparse_pull_has_no_index)
{
    static const uint8_t index[8] = {0};
    ps_message_t message;
    ps_body_t body = {0};

    message_sample(PS_KIND_PULL, &message, &body);
    message.pull.layout = PS_LAYOUT_SPARSE;
    message.pull.cols = PS_COLS_ALL;
    message.pull.n_cols = 0;
    body.index = (ps_bytes_t){0};
    assert_says(&message, &body, 1, PSD_OK, "");
    assert_says(&message, &body, 4, PSD_OK, "");
    body.index = (ps_bytes_t){index, sizeof index};
    assert_says(&message, &body, 4, PSD_PROTO, "PULL index is 8 bytes; the slice needs 0");
}

Test(message_body, values_are_as_long_as_their_number_needs)
{
    static const uint8_t zeroes[32] = {0};
    ps_message_t message;
    ps_body_t body = {0};

    message_sample(PS_KIND_PUSH, &message, &body);
    body.values.size = 20;
    assert_says(&message, &body, 1, PSD_PROTO, "PUSH values are 20 bytes; 6 values need 24");
    body.values = (ps_bytes_t){zeroes, 25};
    assert_says(&message, &body, 1, PSD_PROTO, "PUSH values are 25 bytes; 6 values need 24");
    message_sample(PS_KIND_PULL, &message, &body);
    body.values = (ps_bytes_t){zeroes, 4};
    assert_says(&message, &body, 4, PSD_PROTO, "PULL values are 4 bytes; 0 values need 0");
}

Test(message_body, lengths_that_overflow_are_refused)
{
    ps_message_t message;
    ps_body_t body = {0};

    message_sample(PS_KIND_PULL, &message, &body);
    message.pull.n_rows = UINT64_MAX / 8 + 1;
    assert_says(&message, &body, 1, PSD_PROTO,
                "PULL.n_rows is 2305843009213693952 and n_values 0; their "
                "bytes cannot be counted");
    message_sample(PS_KIND_VALUES, &message, &body);
    message.values.n_values = UINT64_MAX / 4;
    assert_says(&message, &body, 1, PSD_PROTO,
                "VALUES.n_rows is 3 and n_values 4611686018427387903; their "
                "bytes cannot be counted");
}

/* Asking for all rows of a hash table with 64 columns was refused: the values
 * that it might bring could not be counted. */
Test(message_body, a_pull_may_name_every_row_there_can_be)
{
    ps_message_t message = {.kind = PS_KIND_PULL,
                            .pull = {.table = 1,
                                     .rows = PS_ROWS_RANGE,
                                     .type = PS_TYPE_F64,
                                     .n_rows = UINT64_MAX,
                                     .n_cols = 64}};
    ps_body_t body = {0};

    assert_says(&message, &body, 1, PSD_OK, "");
    message.pull.layout = PS_LAYOUT_SPARSE;
    message.pull.n_cols = 0;
    assert_says(&message, &body, 1, PSD_OK, "");
}

Test(message_body, sparse_counts_add_up)
{
    ps_message_t message;
    ps_body_t body = {0};
    uint8_t index[24];

    message_sample(PS_KIND_VALUES, &message, &body);
    memcpy(index, body.index.data, sizeof index);
    ps_store_u32(index, 2);
    body.index.data = index;
    assert_says(&message, &body, 1, PSD_PROTO, "VALUES counts add up to 4; n_values is 3");
    ps_store_u32(index, UINT32_MAX);
    ps_store_u32(index + 4, UINT32_MAX);
    assert_says(&message, &body, 1, PSD_PROTO, "VALUES counts add up to 8589934592; n_values is 3");
    ps_store_u32(index, 0);
    ps_store_u32(index + 4, 1);
    assert_says(&message, &body, 1, PSD_OK, "");
}

Test(message_body, sparse_push_is_checked_likewise)
{
    static const uint8_t index[16] = {1, 0, 0, 0, 1, 0, 0, 0};
    static const uint8_t values[16] = {0};
    ps_message_t message;
    ps_body_t body = {0};

    message_sample(PS_KIND_PUSH, &message, &body);
    message.push.layout = PS_LAYOUT_SPARSE;
    message.push.cols = PS_COLS_ALL;
    message.push.first_col = 0;
    message.push.n_cols = 0;
    message.push.n_rows = 2;
    message.push.n_values = 2;
    body.keys.size = 16;
    body.index = (ps_bytes_t){index, 16};
    body.values = (ps_bytes_t){values, 8};
    assert_says(&message, &body, 1, PSD_OK, "");
    message.push.n_values = 1;
    body.index.size = 12;
    body.values.size = 4;
    assert_says(&message, &body, 1, PSD_PROTO, "PUSH counts add up to 2; n_values is 1");
}

Test(message_body, sparse_answer_may_be_of_empty_rows)
{
    static const uint8_t index[12] = {0};
    ps_message_t message;
    ps_body_t body = {0};

    message_sample(PS_KIND_VALUES, &message, &body);
    message.values.n_values = 0;
    body.index = (ps_bytes_t){index, sizeof index};
    body.values = (ps_bytes_t){0};
    assert_says(&message, &body, 1, PSD_OK, "");
}

/* ---- pieces ------------------------------------------------------------ */

Test(message_body, first_piece_is_some_whole_values_but_not_all)
{
    static const char text[] = "PUSH values are %zu bytes; allowed with MORE: whole values of 4 "
                               "bytes, fewer than all 24 bytes";

    for (size_t size = 0; size <= 24; size++) {
        ps_message_t message;
        ps_body_t body = {0};
        char wanted[128] = "";
        bool good = size > 0 && size < 24 && size % 4 == 0;

        message_sample(PS_KIND_PUSH, &message, &body);
        message.flags = PS_FLAG_MORE;
        body.values.size = size;
        if (!good) {
            (void)snprintf(wanted, sizeof wanted, text, size);
        }
        assert_says(&message, &body, 1, good ? PSD_OK : PSD_PROTO, wanted);
        assert_says(&message, &body, 4, good ? PSD_OK : PSD_PROTO, wanted);
    }
}

Test(message_body, index_comes_whole_with_the_first_piece)
{
    ps_message_t message;
    ps_body_t body = {0};

    message_sample(PS_KIND_VALUES, &message, &body);
    message.flags = PS_FLAG_MORE;
    body.values.size = 8;
    assert_says(&message, &body, 4, PSD_OK, "");
    body.index.size = 20;
    assert_says(&message, &body, 4, PSD_PROTO, "VALUES index is 20 bytes; the slice needs 24");
}

Test(message_body, chunk_is_of_whole_values)
{
    ps_message_t message;
    ps_body_t body = {0};

    message_sample(PS_KIND_CHUNK, &message, &body);
    body.values.size = 0;
    assert_says(&message, &body, 1, PSD_PROTO,
                "CHUNK values are 0 bytes; allowed: whole values, at least "
                "one");
    body.values.size = 5;
    assert_says(&message, &body, 2, PSD_PROTO,
                "CHUNK values are 5 bytes; allowed: whole values, at least "
                "one");
    body.values.size = 4;
    assert_says(&message, &body, 2, PSD_OK, "");
    message.chunk.offset = UINT64_MAX - 3;
    assert_says(&message, &body, 2, PSD_PROTO,
                "CHUNK.offset is 18446744073709551612; 4 bytes after it cannot be counted");
}

Test(message_body, routes_have_at_least_their_numbers)
{
    ps_message_t message;
    ps_body_t body = {0};

    message_sample(PS_KIND_MOVED, &message, &body);
    message.moved.n_routes = 2;
    assert_says(&message, &body, 1, PSD_PROTO, "MOVED keys are 35 bytes; 2 routes need 52..1072");
    message.moved.n_routes = 0;
    assert_says(&message, &body, 2, PSD_PROTO, "MOVED keys are 35 bytes; 0 routes need 0..0");
    body.keys.size = 0;
    assert_says(&message, &body, 1, PSD_OK, "");
}

/* ---- ps_slice_sizes ---------------------------------------------------- */

static bool sizes_are(const ps_slice_t *slice, uint64_t keys, uint64_t index, uint64_t values)
{
    uint64_t got[3] = {0};

    return ps_slice_sizes(slice, &got[0], &got[1], &got[2]) && got[0] == keys && got[1] == index &&
           got[2] == values;
}

Test(message_body, slice_sizes_of_dense)
{
    ps_slice_t slice = {.type = PS_TYPE_F32, .n_rows = 3, .n_cols = 2, .n_values = 6};

    cr_assert(sizes_are(&slice, 24, 0, 24));
    slice.type = PS_TYPE_F64;
    cr_assert(sizes_are(&slice, 24, 0, 48));
    slice.rows = PS_ROWS_RANGE;
    cr_assert(sizes_are(&slice, 0, 0, 48));
    slice.cols = PS_COLS_RANGE;
    cr_assert(sizes_are(&slice, 0, 0, 48));
    slice.cols = PS_COLS_LIST;
    cr_assert(sizes_are(&slice, 0, 8, 48));
    slice.n_values = 0; /* a pull */
    cr_assert(sizes_are(&slice, 0, 8, 0));
}

Test(message_body, slice_sizes_of_sparse)
{
    ps_slice_t slice = {
        .layout = PS_LAYOUT_SPARSE, .type = PS_TYPE_I64, .n_rows = 3, .n_values = 5};

    cr_assert(sizes_are(&slice, 24, 32, 40));
    slice.n_values = 0;
    cr_assert(sizes_are(&slice, 24, 12, 0));
}

Test(message_body, slice_sizes_refuse_contradictions)
{
    ps_slice_t slice = {.type = PS_TYPE_F32, .n_rows = 3, .n_cols = 2, .n_values = 5};

    cr_assert_not(sizes_are(&slice, 24, 0, 20));
    slice.layout = PS_LAYOUT_SPARSE;
    cr_assert_not(sizes_are(&slice, 24, 32, 20), "columns of a sparse row");
    slice.n_cols = 0;
    cr_assert(sizes_are(&slice, 24, 32, 20));
    slice.cols = PS_COLS_LIST;
    cr_assert_not(sizes_are(&slice, 24, 32, 20), "sparse takes all columns");
    slice.cols = PS_COLS_ALL;
    slice.type = (ps_type_t)5;
    cr_assert_not(sizes_are(&slice, 24, 32, 20), "no such type");
}

Test(message_body, slice_sizes_do_not_overflow)
{
    ps_slice_t slice = {.type = PS_TYPE_F32, .n_cols = 1};
    uint64_t got[3] = {1, 2, 3};

    slice.n_rows = UINT64_MAX / 8;
    cr_assert(sizes_are(&slice, UINT64_MAX - 7, 0, 0));
    slice.n_rows++;
    cr_assert_not(ps_slice_sizes(&slice, &got[0], &got[1], &got[2]));
    slice.rows = PS_ROWS_RANGE;
    slice.n_cols = 16;
    cr_assert_not(ps_slice_sizes(&slice, &got[0], &got[1], &got[2]));
    slice.n_cols = 2;
    slice.n_values = 2 * slice.n_rows;
    cr_assert_not(ps_slice_sizes(&slice, &got[0], &got[1], &got[2]));
    slice = (ps_slice_t){.rows = PS_ROWS_RANGE,
                         .layout = PS_LAYOUT_SPARSE,
                         .type = PS_TYPE_F32,
                         .n_rows = UINT64_MAX,
                         .n_values = 1};
    cr_assert_not(ps_slice_sizes(&slice, &got[0], &got[1], &got[2]));
    slice.n_rows = UINT64_MAX / 4;
    cr_assert_not(ps_slice_sizes(&slice, &got[0], &got[1], &got[2]));
    cr_assert(got[0] == 1 && got[1] == 2 && got[2] == 3);
}

Test(message_body, appended_records_have_their_heads_and_whole_words)
{
    ps_message_t message;
    ps_body_t body = {0};

    message_sample(PS_KIND_APPEND, &message, &body);
    body.values.size = 128;
    assert_says(&message, &body, 2, PSD_PROTO,
                "APPEND values are 128 bytes; 1 records need at least 136, in "
                "words of 8");
    body.values.size = 132;
    assert_says(&message, &body, 1, PSD_PROTO,
                "APPEND values are 132 bytes; 1 records need at least 136, in "
                "words of 8");
    body.values.size = 136;
    message.append.n_records = 0;
    message.append.first_lsn = 62;
    assert_says(&message, &body, 1, PSD_PROTO,
                "APPEND values are 136 bytes; 0 records need 0, in words of 8");
    body.values.size = 0;
    assert_says(&message, &body, 1, PSD_OK, "");
}

Test(message_body, parts_of_rows_end_with_what_they_are_of)
{
    ps_message_t message;
    ps_body_t body = {0};

    message_sample(PS_KIND_ROWS, &message, &body);
    assert_says(&message, &body, 2, PSD_OK, "");
    message.rows.size = 70;
    assert_says(&message, &body, 1, PSD_PROTO,
                "ROWS values are 5 bytes; allowed: 1..4 as size is 70 and "
                "offset 66");
    body.values.size = 0;
    assert_says(&message, &body, 1, PSD_PROTO,
                "ROWS values are 0 bytes; allowed: 1..4 as size is 70 and "
                "offset 66");
}
