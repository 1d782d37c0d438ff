/* SPDX-License-Identifier: Apache-2.0 */
/* wire/messages/message.h: what the fields of a message may say. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "support/message_sample.h"
#include "support/parcel.h"

/* A sample to bend, and what its decoding must say. */
typedef struct trial {
    ps_message_t message;
    ps_body_t body;
} trial_t;

static trial_t sample(ps_kind_t kind)
{
    trial_t trial;

    message_sample(kind, &trial.message, &trial.body);
    return trial;
}

static void assert_says(const trial_t *trial, psd_status_t status, const char *text)
{
    PSD_AUTO(parcel_done) parcel_t parcel = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_message_t got;
    ps_body_t body = {0};

    parcel_pack(&parcel, &trial->message, &trial->body, 1);
    cr_assert_eq(ps_message_decode(parcel.frames, parcel.n_frames, &got, &body, err), status,
                 "%s, not: %s", psd_error_text(err), text);
    cr_assert_str_eq(psd_error_text(err), text);
}

/* One field of one sample set to `value`. */
#define REFUSED(NAME, name, field, value, text)                      \
    do {                                                             \
        trial_t bent = sample(PS_KIND_##NAME);                       \
        bent.message.name.field = (value);                           \
        assert_says(&bent, PSD_PROTO, #NAME "." #field " is " text); \
    } while (0)
#define ACCEPTED(NAME, name, field, value)     \
    do {                                       \
        trial_t bent = sample(PS_KIND_##NAME); \
        bent.message.name.field = (value);     \
        assert_says(&bent, PSD_OK, "");        \
    } while (0)

Test(message_check, only_push_and_values_may_have_more)
{
    for (size_t i = 0; i < N_SAMPLE_KINDS; i++) {
        trial_t trial = sample(SAMPLE_KINDS[i]);
        char text[64];

        if (trial.message.kind == PS_KIND_PUSH || trial.message.kind == PS_KIND_VALUES) {
            continue;
        }
        trial.message.flags = PS_FLAG_MORE;
        (void)snprintf(text, sizeof text, "%s.flags is 1; allowed: the bits of %d",
                       ps_kind_name(trial.message.kind),
                       trial.message.kind == PS_KIND_PULL  ? 22
                       : trial.message.kind == PS_KIND_ACK ? 16
                                                           : 0);
        assert_says(&trial, PSD_PROTO, text);
    }
}

Test(message_check, unknown_flags_are_refused)
{
    trial_t trial = sample(PS_KIND_PUSH);

    trial.message.flags = 32;
    assert_says(&trial, PSD_PROTO, "PUSH.flags is 32; allowed: the bits of 31");
    trial.message.flags = 0x81;
    assert_says(&trial, PSD_PROTO, "PUSH.flags is 129; allowed: the bits of 31");
    trial = sample(PS_KIND_VALUES);
    trial.message.flags = PS_FLAG_KEEP;
    assert_says(&trial, PSD_PROTO, "VALUES.flags is 4; allowed: the bits of 19");
    trial = sample(PS_KIND_MARK);
    trial.message.flags = PS_FLAG_TIMES;
    assert_says(&trial, PSD_PROTO, "MARK.flags is 16; allowed: the bits of 0");
}

Test(message_check, only_a_plain_push_of_a_worker_marks)
{
    trial_t trial = sample(PS_KIND_PUSH);

    trial.message.flags = PS_FLAG_MARK;
    trial.message.push.pull = 0;
    assert_says(&trial, PSD_OK, "");
    trial.message.push.pull = 1;
    assert_says(&trial, PSD_PROTO, "PUSH.pull is 1; allowed: 0 as it marks");
    trial.message.push.pull = 0;
    trial.message.push.clock = UINT64_MAX;
    assert_says(&trial, PSD_PROTO,
                "PUSH.clock is 18446744073709551615; allowed: "
                "0..18446744073709551614 as it marks");
    trial.message.push.clock = UINT64_MAX - 1;
    assert_says(&trial, PSD_OK, "");
    trial.message.push.job = 0;
    assert_says(&trial, PSD_PROTO, "PUSH.job is 0; allowed: 1..4294967295 as it marks");
    trial = sample(PS_KIND_MARK);
    trial.message.flags = PS_FLAG_MARK;
    assert_says(&trial, PSD_PROTO, "MARK.flags is 8; allowed: the bits of 0");
}

Test(message_check, push)
{
    REFUSED(PUSH, push, seq, 0, "0; allowed: 1..18446744073709551615");
    REFUSED(PUSH, push, ack, 4, "4; allowed: 0..3");
    REFUSED(PUSH, push, pull, 2, "2; allowed: 0..1");
    ACCEPTED(PUSH, push, seq, UINT64_MAX);
    ACCEPTED(PUSH, push, ack, 0);
    ACCEPTED(PUSH, push, ack, 3);
    ACCEPTED(PUSH, push, pull, 0);
}

Test(message_check, ops)
{
    trial_t trial = sample(PS_KIND_PUSH);

    trial.message.push.pull = 0;
    trial.message.push.op = 4;
    assert_says(&trial, PSD_PROTO, "PUSH.op is 4; allowed: 0..3");
    REFUSED(PUSH, push, other, 1, "1; allowed: 0 as op is not AXPY");
    REFUSED(PUSH, push, operand, 1, "1; allowed: 0 as op is UPDATE");
    REFUSED(PULL, pull, op, 7, "7; allowed: 0..6");
    REFUSED(PULL, pull, other, 1, "1; allowed: 0 as op is not DOT");
    REFUSED(PULL, pull, operand, 1, "1; allowed: 0 as op is not TOP");
    REFUSED(HELLO, hello, bulk, 2, "2; allowed: 0..1");
}

Test(message_check, mark_and_ack)
{
    REFUSED(MARK, mark, seq, 0, "0; allowed: 1..18446744073709551615");
    REFUSED(ACK, ack, level, 0, "0; allowed: 1..3");
    REFUSED(ACK, ack, level, 4, "4; allowed: 1..3");
    ACCEPTED(ACK, ack, level, 1);
}

Test(message_check, level_of_values_may_be_none)
{
    REFUSED(VALUES, values, level, 4, "4; allowed: 0..3");
    ACCEPTED(VALUES, values, level, 0);
}

Test(message_check, refusal_has_a_known_status_that_is_not_ok)
{
    REFUSED(REFUSED, refused, status, 0, "0; allowed: the numbers of the status list but 0");
    REFUSED(REFUSED, refused, status, 8, "8; allowed: the numbers of the status list but 0");
    REFUSED(REFUSED, refused, status, 65535,
            "65535; allowed: the numbers of the status list but 0");
    ACCEPTED(REFUSED, refused, status, PSD_FAILED);
    ACCEPTED(REFUSED, refused, status, PSD_INTERRUPTED);
}

Test(message_check, chunk_is_behind_the_first_piece)
{
    REFUSED(CHUNK, chunk, offset, 0, "0; allowed: 4..18446744073709551615");
    ACCEPTED(CHUNK, chunk, offset, 4);
}

/* ---- slice ------------------------------------------------------------- */

Test(message_check, append)
{
    ACCEPTED(APPEND, append, in_sync_lsn, 61);
    REFUSED(APPEND, append, in_sync_lsn, 62, "62; allowed: 0..61 as that is the last record");
    REFUSED(APPEND, append, first_lsn, 0, "0; allowed: 1..18446744073709551614");
    ACCEPTED(APPEND, append, lease_ms, PS_LEASE_MS_MAX);
    REFUSED(APPEND, append, lease_ms, 60001, "60001; allowed: 0..60000");
    REFUSED(APPEND, append, flush, 2, "2; allowed: 0..1");
    REFUSED(APPEND, append, release, 2, "2; allowed: 0..1");
}

Test(message_check, release_brings_no_records)
{
    trial_t trial = sample(PS_KIND_APPEND);

    trial.message.append.release = 1;
    assert_says(&trial, PSD_PROTO, "APPEND.n_records is 1; allowed: 0 as release is 1");
}

Test(message_check, appended)
{
    trial_t trial = sample(PS_KIND_APPENDED);

    REFUSED(APPENDED, appended, status, 6, "6; allowed: 0..5");
    ACCEPTED(APPENDED, appended, flushed_lsn, 62);
    REFUSED(APPENDED, appended, flushed_lsn, 63, "63; allowed: 0..62 as lsn is no greater");
    trial.message.appended.status = PS_APPENDED_GAP;
    assert_says(&trial, PSD_PROTO, "APPENDED.detail is 63; allowed: 0 as status is not EPOCH");
}

Test(message_check, rows)
{
    trial_t trial = sample(PS_KIND_ROWS);

    REFUSED(ROWS, rows, transfer, 0, "0; allowed: 1..18446744073709551615");
    REFUSED(ROWS, rows, kind, 0, "0; allowed: 1..2");
    REFUSED(ROWS, rows, kind, 3, "3; allowed: 1..2");
    REFUSED(ROWS, rows, last, 2, "2; allowed: 0..1");
    ACCEPTED(ROWS, rows, size, PS_GIVEN_SIZE_MAX);
    REFUSED(ROWS, rows, size, PS_GIVEN_SIZE_MAX + 1, "4294967297; allowed: 1..4294967296");
    REFUSED(ROWS, rows, size, 0, "0; allowed: 1..4294967296");
    REFUSED(ROWS, rows, offset, 71, "71; allowed: 0..70 as size is no greater");
    trial.message.rows.kind = PS_GIVEN_STATE;
    assert_says(&trial, PSD_PROTO, "ROWS.last is 1; allowed: 0 as kind is STATE");
    trial.message.rows.last = 0;
    assert_says(&trial, PSD_PROTO, "ROWS.place is 65; allowed: 0 as kind is STATE");
}

Test(message_check, taken)
{
    trial_t trial = sample(PS_KIND_TAKEN);

    REFUSED(TAKEN, taken, transfer, 0, "0; allowed: 1..18446744073709551615");
    REFUSED(TAKEN, taken, request, 0, "0; allowed: 1..18446744073709551615");
    REFUSED(TAKEN, taken, wants, 0, "0; allowed: 1..3");
    REFUSED(TAKEN, taken, wants, 4, "4; allowed: 1..3");
    REFUSED(TAKEN, taken, status, 5, "5; allowed: 0..4");
    trial.message.taken.status = PS_TAKEN_OK;
    assert_says(&trial, PSD_PROTO, "TAKEN.detail is 63; allowed: 0..1");
    trial.message.taken.status = PS_TAKEN_GAP;
    assert_says(&trial, PSD_PROTO,
                "TAKEN.detail is 63; allowed: 0 as status is neither OK nor "
                "EPOCH");
}

Test(message_check, meet)
{
    trial_t trial = sample(PS_KIND_MEET);

    REFUSED(MEET, meet, step, 0, "0; allowed: 1..3");
    REFUSED(MEET, meet, step, 4, "4; allowed: 1..3");
    REFUSED(MEET, meet, job, 0, "0; allowed: 1..4294967295");
    REFUSED(MEET, meet, worker, 4096, "4096; allowed: 0..4095");
    trial.message.meet.step = PS_MEET_ASK;
    assert_says(&trial, PSD_PROTO, "MEET.proof is 1; allowed: 0 as step is ASK");
}

Test(message_check, bundle)
{
    trial_t trial = sample(PS_KIND_BUNDLE);

    REFUSED(BUNDLE, bundle, job, 0, "0; allowed: 1..4294967295");
    REFUSED(BUNDLE, bundle, clock, UINT64_MAX,
            "18446744073709551615; allowed: "
            "0..18446744073709551614");
    REFUSED(BUNDLE, bundle, urgent, 2, "2; allowed: 0..1");
    REFUSED(BUNDLE, bundle, n_from, 0, "0; allowed: 1..4096");
    REFUSED(BUNDLE, bundle, n_from, 4097, "4097; allowed: 1..4096");
    REFUSED(BUNDLE, bundle, n_spans, 65, "65; allowed: 0..64");
    trial.message.bundle.n_from = 2;
    assert_says(&trial, PSD_PROTO,
                "BUNDLE values are 40 bytes; 2 contributors and 0 spans need 80");
}

Test(message_check, relayed)
{
    trial_t trial = sample(PS_KIND_RELAYED);

    REFUSED(RELAYED, relayed, news, 0, "0; allowed: 1..4");
    REFUSED(RELAYED, relayed, news, 5, "5; allowed: 1..4");
    trial.message.relayed.news = PS_RELAYED_DONE;
    assert_says(&trial, PSD_PROTO, "RELAYED.waits_for is 68; allowed: 0 as news is not WAITS");
}

Test(message_check, want_and_rows_on)
{
    trial_t trial = sample(PS_KIND_WANT);

    REFUSED(WANT, want, request, 0, "0; allowed: 1..18446744073709551615");
    REFUSED(WANT, want, n_rows, 0, "0; allowed: 1..18446744073709551615");
    trial.message.want.first_row = UINT64_MAX;
    assert_says(&trial, PSD_PROTO, "WANT.n_rows is 71; allowed: 1 as first_row is no smaller");
    REFUSED(ROWS_ON, rows_on, request, 0, "0; allowed: 1..18446744073709551615");
    REFUSED(ROWS_ON, rows_on, has, 2, "2; allowed: 0..1");
    trial = sample(PS_KIND_ROWS_ON);
    trial.message.rows_on.has = 0;
    assert_says(&trial, PSD_PROTO, "ROWS_ON values are 8 bytes; allowed: 0 as has is 0");
    trial.message.rows_on.has = 1;
    trial.body.values.size = 6;
    assert_says(&trial, PSD_PROTO,
                "ROWS_ON values are 6 bytes; allowed: whole values, at least one as has is 1");
    trial.body.values.size = 0;
    assert_says(&trial, PSD_PROTO,
                "ROWS_ON values are 0 bytes; allowed: whole values, at least one as has is 1");
}

Test(message_check, numbers_of_the_slice_are_known)
{
    REFUSED(PUSH, push, rows, 2, "2; allowed: 0..1 as it asks");
    REFUSED(PUSH, push, rows, 4, "4; allowed: 0..3");
    REFUSED(VALUES, values, rows, 3, "3; allowed: 0..2");
    REFUSED(PUSH, push, layout, 7, "7; allowed: 0..1");
    REFUSED(PUSH, push, cols, 3, "3; allowed: 0..2");
    REFUSED(PUSH, push, type, 0, "0; allowed: 1..4");
    REFUSED(PUSH, push, type, 5, "5; allowed: 1..4");
    REFUSED(PULL, pull, rows, 255, "255; allowed: 0..3");
    REFUSED(VALUES, values, layout, 2, "2; allowed: 0..1");
}

Test(message_check, only_values_may_be_of_no_rows)
{
    trial_t trial = sample(PS_KIND_VALUES);

    REFUSED(PUSH, push, n_rows, 0, "0; allowed: 1..18446744073709551615");
    REFUSED(PULL, pull, n_rows, 0, "0; allowed: 1..18446744073709551615");
    trial.message.values.n_rows = 0;
    trial.message.values.n_values = 0;
    trial.body = (ps_body_t){0};
    assert_says(&trial, PSD_OK, "");
    trial.message.values.layout = PS_LAYOUT_DENSE;
    assert_says(&trial, PSD_OK, "");
    trial.message.values.n_values = 1;
    assert_says(&trial, PSD_PROTO, "VALUES.n_values is 1; 0 rows of 0 columns need 0");
}

Test(message_check, rows_end_with_the_last_number)
{
    trial_t trial = sample(PS_KIND_VALUES);

    trial.message.values.first_row = UINT64_MAX - 2;
    assert_says(&trial, PSD_OK, "");
    trial.message.values.first_row = UINT64_MAX - 1;
    assert_says(&trial, PSD_PROTO, "VALUES.n_rows is 3; allowed: 0..2 as first_row is no smaller");
    trial = sample(PS_KIND_PULL);
    trial.message.pull.rows = PS_ROWS_RANGE;
    trial.message.pull.n_rows = UINT64_MAX;
    trial.message.pull.cols = PS_COLS_ALL;
    trial.message.pull.n_cols = 1;
    trial.body = (ps_body_t){0};
    assert_says(&trial, PSD_OK, "");
    trial.message.pull.first_row = 1;
    assert_says(&trial, PSD_OK, "");
    trial.message.pull.first_row = 2;
    assert_says(&trial, PSD_PROTO,
                "PULL.n_rows is 18446744073709551615; allowed: "
                "0..18446744073709551614 as first_row is no smaller");
}

Test(message_check, columns_end_with_the_last_number)
{
    trial_t trial = sample(PS_KIND_PUSH);

    trial.message.push.first_col = UINT32_MAX - 1;
    assert_says(&trial, PSD_OK, "");
    trial.message.push.first_col = UINT32_MAX;
    assert_says(&trial, PSD_PROTO, "PUSH.n_cols is 2; allowed: 0..1 as first_col is no smaller");
}

Test(message_check, what_does_not_count_is_zero)
{
    REFUSED(PUSH, push, first_row, 1, "1; allowed: 0 as rows is not RANGE");
    REFUSED(PULL, pull, first_col, 1, "1; allowed: 0 as cols is not RANGE");
    REFUSED(VALUES, values, n_cols, 1, "1; allowed: 0 as layout is SPARSE");
    REFUSED(VALUES, values, cols, 1, "1; allowed: 0 as layout is SPARSE");
    REFUSED(VALUES, values, cols, 2, "2; allowed: 0 as layout is SPARSE");
    REFUSED(PULL, pull, n_values, 1, "1; allowed: 0");
}

/* Else a short message could name 2^64 rows that have no bytes. */
Test(message_check, dense_row_has_a_column)
{
    REFUSED(PULL, pull, n_cols, 0, "0; allowed: 1..4294967295 as layout is DENSE");
    REFUSED(PUSH, push, n_cols, 0, "0; allowed: 1..4294967295 as layout is DENSE");
}

Test(message_check, dense_values_are_rows_times_columns)
{
    trial_t trial = sample(PS_KIND_PUSH);

    REFUSED(PUSH, push, n_values, 5, "5; 3 rows of 2 columns need 6");
    REFUSED(PUSH, push, n_values, 0, "0; 3 rows of 2 columns need 6");
    trial.message.push.n_rows = UINT64_MAX / 2 + 2;
    assert_says(&trial, PSD_PROTO,
                "PUSH.n_rows is 9223372036854775809; 2 columns of that many "
                "rows cannot be counted");
}
