/* SPDX-License-Identifier: Apache-2.0 */
/* wire/records/record.h: what is written comes back, and nothing else is believed. */
#include "wire/records/record.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "support/record_sample.h"

/* Where fields lie, in the order of the list. */
#define AT_KIND 16
#define AT_STATUS 18
#define AT_ROWS 20
#define AT_TYPE 23
#define AT_LSN 24
#define AT_N_ROWS 72
#define AT_N_VALUES 88
#define AT_VALUES_SIZE 132

static ps_bytes_t write_sample(size_t i)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_record_t record;
    ps_bytes_t bytes = {NULL, 0};
    uint8_t *to = NULL;

    record_sample(i, &record, &payload);
    bytes.size = ps_record_size(&record, payload);
    to = malloc(bytes.size);
    cr_assert_not_null(to);
    memset(to, 0xAA, bytes.size);
    ps_record_write(&record, payload, to);
    bytes.data = to;
    return bytes;
}

static void drop(ps_bytes_t bytes)
{
    uint8_t *block = NULL;

    memcpy(&block, &bytes.data, sizeof block);
    free(block);
}

static void assert_same(const ps_record_t *a, const ps_record_t *b)
{
    cr_assert_eq(a->kind, b->kind);
    cr_assert_eq(a->table, b->table);
    cr_assert_eq(a->partition, b->partition);
    cr_assert_eq(a->lsn, b->lsn);
    cr_assert_eq(a->epoch, b->epoch);
    cr_assert_eq(a->session, b->session);
    cr_assert_eq(a->seq, b->seq);
    cr_assert_eq(a->status, b->status);
    cr_assert_eq(a->job, b->job);
    cr_assert_eq(a->worker, b->worker);
    cr_assert_eq(a->member, b->member);
    cr_assert_eq(a->joins, b->joins);
    cr_assert_eq(a->clock, b->clock);
    cr_assert_eq(a->op.op, b->op.op);
    cr_assert_eq(a->op.other, b->op.other);
    cr_assert_eq(a->op.operand, b->op.operand);
    cr_assert_eq(a->slice.rows, b->slice.rows);
    cr_assert_eq(a->slice.layout, b->slice.layout);
    cr_assert_eq(a->slice.cols, b->slice.cols);
    cr_assert_eq(a->slice.type, b->slice.type);
    cr_assert_eq(a->slice.n_rows, b->slice.n_rows);
    cr_assert_eq(a->slice.first_row, b->slice.first_row);
    cr_assert_eq(a->slice.first_col, b->slice.first_col);
    cr_assert_eq(a->slice.n_cols, b->slice.n_cols);
    cr_assert_eq(a->slice.n_values, b->slice.n_values);
}

static void assert_part(ps_bytes_t part, ps_bytes_t wanted, const uint8_t *base)
{
    cr_assert_eq(part.size, wanted.size);
    if (part.size > 0) {
        cr_assert_arr_eq(part.data, wanted.data, part.size);
        cr_assert_eq((size_t)(part.data - base) % PS_RECORD_ALIGN, 0);
    }
}

Test(record, every_kind_comes_back)
{
    for (size_t i = 0; i < N_SAMPLE_RECORDS; i++) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
        PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
        const ps_bytes_t none = {NULL, 0};
        ps_bytes_t bytes = write_sample(i);
        ps_record_t record;
        ps_record_t got;
        ps_body_t body = {0};
        size_t size = 0;

        record_sample(i, &record, &payload);
        cr_assert_eq(bytes.size % PS_RECORD_ALIGN, 0);
        cr_assert_eq(ps_record_claims(bytes), bytes.size);
        cr_assert_eq(ps_record_read(bytes, &size, &got, &body, err), PSD_OK, "%s",
                     psd_error_text(err));
        cr_assert_eq(size, bytes.size);
        assert_same(&got, &record);
        assert_part(body.keys, payload != NULL ? payload->keys : none, bytes.data);
        assert_part(body.index, payload != NULL ? payload->index : none, bytes.data);
        assert_part(body.values, payload != NULL ? payload->span : none, bytes.data);
        drop(bytes);
    }
}

Test(record, more_bytes_behind_it_are_the_next_ones)
{
    ps_bytes_t bytes = write_sample(2);
    uint8_t two[2 * PS_RECORD_HEAD + 3] = {0};
    ps_record_t record;
    ps_body_t body = {0};
    size_t size = 0;

    cr_assert_eq(bytes.size, PS_RECORD_HEAD);
    memcpy(two, bytes.data, bytes.size);
    memcpy(two + bytes.size, bytes.data, bytes.size);
    cr_assert_eq(ps_record_read((ps_bytes_t){two, sizeof two}, &size, &record, &body, NULL),
                 PSD_OK);
    cr_assert_eq(size, PS_RECORD_HEAD);
    drop(bytes);
}

/* A PUSH whose values lie in n spans of 8 bytes gives the bytes of one. */
Test(record, spans_one_behind_the_other_are_the_same_bytes)
{
    for (size_t i = 0; i < N_SAMPLE_RECORDS; i++) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
        ps_bytes_t wanted = write_sample(i);
        ps_bytes_t cut[5];
        ps_bytes_t spans[PS_RECORD_SPANS + 5];
        uint8_t head[PS_RECORD_HEAD];
        ps_record_t record;
        size_t n = 0;
        size_t at = 0;

        record_sample(i, &record, &payload);
        if (i == 6 && payload != NULL) {
            for (size_t k = 0; k < 5; k++) {
                cut[k] = (ps_bytes_t){payload->span.data + 8 * k, 8};
            }
            payload->spans = cut;
            payload->n_spans = 5;
        }
        n = ps_record_head_write(&record, payload, head, spans);
        cr_assert_leq(n, PS_RECORD_SPANS + (payload != NULL ? payload->n_spans : 0));
        for (size_t k = 0; k < n; k++) {
            cr_assert_leq(spans[k].size, wanted.size - at);
            cr_assert_arr_eq(spans[k].data, wanted.data + at, spans[k].size);
            at += spans[k].size;
        }
        cr_assert_eq(at, wanted.size);
        if (i == 6 && payload != NULL) {
            uint8_t again[PS_RECORD_HEAD + 40];

            ps_record_write(&record, payload, again);
            cr_assert_arr_eq(again, wanted.data, sizeof again);
            payload->spans = &payload->span;
            payload->n_spans = 1;
        }
        drop(wanted);
    }
}

Test(record, every_flipped_bit_is_found)
{
    for (size_t i = 0; i < N_SAMPLE_RECORDS; i++) {
        ps_bytes_t bytes = write_sample(i);
        uint8_t *bent = malloc(bytes.size);

        cr_assert_not_null(bent);
        for (size_t bit = 0; bit < 8 * bytes.size; bit++) {
            PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
            ps_record_t record;
            ps_body_t body = {0};
            size_t size = 0;

            memcpy(bent, bytes.data, bytes.size);
            bent[bit / 8] ^= (uint8_t)(1U << bit % 8);
            cr_assert_eq(ps_record_read((ps_bytes_t){bent, bytes.size}, &size, &record, &body, err),
                         PSD_DAMAGED);
            cr_assert_eq(strncmp(psd_error_text(err), "byte ", 5), 0);
        }
        free(bent);
        drop(bytes);
    }
}

Test(record, every_truncation_is_found)
{
    ps_bytes_t bytes = write_sample(0);

    for (size_t size = 0; size < bytes.size; size++) {
        PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
        uint8_t *exact = malloc(size + 1);
        ps_record_t record;
        ps_body_t body = {0};
        size_t got = 0;

        cr_assert_not_null(exact);
        memcpy(exact, bytes.data, size);
        exact = realloc(exact, size > 0 ? size : 1);
        cr_assert_eq(ps_record_read((ps_bytes_t){exact, size}, &got, &record, &body, err),
                     PSD_DAMAGED);
        cr_assert_not_null(strstr(psd_error_text(err), "the bytes end"));
        free(exact);
    }
    drop(bytes);
}

/* What somebody wrote with a right checksum is not believed either. */
static void assert_refused(size_t sample, size_t at, uint64_t value, size_t width, const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_bytes_t bytes = write_sample(sample);
    uint8_t *bent = malloc(bytes.size);
    ps_record_t record;
    ps_body_t body = {0};
    size_t size = 0;

    cr_assert_not_null(bent);
    memcpy(bent, bytes.data, bytes.size);
    memcpy(bent + at, &value, width);
    memset(bent + 8, 0, 8);
    ps_store_u64(bent + 8, ps_hash_bytes(bent, bytes.size, 0));
    cr_assert_eq(ps_record_read((ps_bytes_t){bent, bytes.size}, &size, &record, &body, err),
                 PSD_DAMAGED);
    cr_assert_str_eq(psd_error_text(err), text);
    free(bent);
    drop(bytes);
}

Test(record, fields_are_checked)
{
    assert_refused(2, AT_KIND, 0, 1, "byte 16: kind is 0; allowed: 1..13");
    assert_refused(2, AT_KIND, 14, 1, "byte 16: kind is 14; allowed: 1..13");
    assert_refused(2, AT_N_ROWS, 6, 8, "byte 72: n_rows is 6; allowed: 0 as kind is not PUSH");
    assert_refused(1, AT_STATUS, 0, 2,
                   "byte 18: status is 0; allowed: the numbers of the status "
                   "list but 0");
    assert_refused(1, AT_STATUS, 999, 2,
                   "byte 18: status is 999; allowed: the numbers of the status "
                   "list but 0");
    assert_refused(2, AT_STATUS, 20, 2, "byte 18: status is 20; allowed: 0 as kind is not REFUSAL");
    assert_refused(0, AT_LSN, 0, 8, "byte 24: lsn is 0; allowed: 1 and more");
    assert_refused(2, AT_TYPE, 3, 1, "byte 23: type is 3; allowed: 0 as kind is not PUSH");
    assert_refused(0, AT_ROWS, PS_ROWS_CACHED, 1, "byte 20: rows is 3; allowed: 0..1");
    assert_refused(0, AT_TYPE, 9, 1, "byte 16: PUSH.type is 9; allowed: 1..4");
    assert_refused(6, AT_N_ROWS, 6, 8, "byte 16: PUSH.n_values is 5; 6 rows of 1 columns need 6");
    assert_refused(0, AT_N_VALUES, 4, 8, "byte 16: byte 132: values_size is 12; PUSH needs 16");
    assert_refused(2, AT_VALUES_SIZE, 1, 4, "byte 132: values_size is 1; MARK needs 0");
    assert_refused(1, AT_VALUES_SIZE, 100, 4,
                   "byte 136: the parts are not 0, 0 and 100 bytes with zeros "
                   "between");
}

Test(record, parts_are_checked)
{
    /* The first count of the sparse index; the zeros behind 12 bytes. */
    assert_refused(0, 160, 2, 4, "byte 16: PUSH counts add up to 4; n_values is 3");
    assert_refused(0, 196, 1, 1,
                   "byte 16: byte 136: the parts are not 24, 24 and 12 bytes "
                   "with zeros between");
}

/* A reason may be longer than a message's text, and cut within a character:
 * the log that holds it is read nevertheless. */
Test(record, a_refusals_text_may_be_any_bytes)
{
    static const char text[1023] = {(char)0xC3, 0, (char)0xFF};
    const ps_bytes_t none = {NULL, 0};
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload =
        ps_payload_copy(none, none, (ps_bytes_t){(const uint8_t *)text, sizeof text});
    ps_record_t record = {.kind = PS_RECORD_REFUSAL, .lsn = 1, .status = PSD_RANGE};
    uint8_t bytes[PS_RECORD_HEAD + 1024];
    ps_body_t body = {0};
    size_t size = 0;

    cr_assert_eq(ps_record_size(&record, payload), sizeof bytes);
    ps_record_write(&record, payload, bytes);
    cr_assert_eq(ps_record_read((ps_bytes_t){bytes, sizeof bytes}, &size, &record, &body, NULL),
                 PSD_OK);
    cr_assert_eq(body.values.size, sizeof text);
    cr_assert_arr_eq(body.values.data, text, sizeof text);
}

/* Only REFUSAL has a status; what a MARK's slice says is not written. */
Test(record, what_a_kind_does_not_use_is_not_written)
{
    ps_record_t record = {.kind = PS_RECORD_MARK,
                          .lsn = 1,
                          .op = {1, 2, 3},
                          .slice = {.n_rows = 5, .type = PS_TYPE_F64}};
    uint8_t bytes[PS_RECORD_HEAD];
    ps_record_t got;
    ps_body_t body = {0};
    size_t size = 0;

    ps_record_write(&record, NULL, bytes);
    cr_assert_eq(ps_record_read((ps_bytes_t){bytes, sizeof bytes}, &size, &got, &body, NULL),
                 PSD_OK);
    cr_assert_eq(got.slice.n_rows, 0);
    cr_assert_eq(got.op.operand, 0);
}

/* The one of a push or a refusal, and of nothing else. */
Test(record, a_mark_may_be_part_of_it)
{
    const struct {
        ps_record_t record;
        psd_status_t rc;
    } trials[] = {
        {{.kind = PS_RECORD_REFUSAL, .status = PSD_RANGE}, PSD_OK},
        {{.kind = PS_RECORD_MARK}, PSD_DAMAGED},
        {{.kind = PS_RECORD_JOB}, PSD_DAMAGED},
        {{.kind = PS_RECORD_LEAVE}, PSD_DAMAGED},
    };

    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
        ps_record_t record = trials[i].record;
        uint8_t bytes[PS_RECORD_HEAD];
        ps_record_t got = {.marks = false};
        ps_body_t body = {0};
        size_t size = 0;

        record.lsn = 1;
        record.marks = true;
        ps_record_write(&record, NULL, bytes);
        cr_assert_eq(ps_record_read((ps_bytes_t){bytes, sizeof bytes}, &size, &got, &body, NULL),
                     trials[i].rc);
        cr_assert_eq(got.marks, trials[i].rc == PSD_OK);
        cr_assert(!got.marks || got.kind == record.kind);
    }
}

Test(record, a_push_with_a_mark_is_a_push)
{
    ps_record_t record = {.kind = PS_RECORD_PUSH};
    ps_record_t got = {.marks = false};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    uint8_t bytes[1024];
    ps_body_t body = {0};
    size_t size = 0;

    record_sample(6, &record, &payload);
    record.marks = true;
    cr_assert_leq(ps_record_size(&record, payload), sizeof bytes);
    ps_record_write(&record, payload, bytes);
    cr_assert_eq(ps_record_read((ps_bytes_t){bytes, sizeof bytes}, &size, &got, &body, NULL),
                 PSD_OK);
    cr_assert(got.marks && got.kind == PS_RECORD_PUSH);
    cr_assert_eq(got.slice.n_rows, record.slice.n_rows);
}

Test(record, what_is_too_large_has_no_size)
{
    ps_record_t record = {.kind = PS_RECORD_PUSH, .lsn = 1};
    ps_bytes_t huge = {NULL, UINT32_MAX};
    ps_payload_t payload = {.spans = &huge, .n_spans = 1};

    cr_assert_eq(ps_record_size(&record, &payload), 0);
    huge.size = PS_RECORD_MAX - PS_RECORD_HEAD;
    cr_assert_eq(ps_record_size(&record, &payload), PS_RECORD_MAX);
}

Test(record, claims_nothing_of_foreign_bytes)
{
    ps_bytes_t bytes = write_sample(2);
    uint8_t bent[8];

    cr_assert_eq(ps_record_claims((ps_bytes_t){bytes.data, 7}), 0);
    cr_assert_eq(ps_record_claims((ps_bytes_t){bytes.data, 8}), PS_RECORD_HEAD);
    memcpy(bent, bytes.data, 8);
    bent[7] = 2;
    cr_assert_eq(ps_record_claims((ps_bytes_t){bent, 8}), 0);
    memcpy(bent, bytes.data, 8);
    bent[0]++;
    cr_assert_eq(ps_record_claims((ps_bytes_t){bent, 8}), 0);
    drop(bytes);
}

Test(record, kinds_have_names)
{
    cr_assert_str_eq(ps_record_kind_name(PS_RECORD_PUSH), "PUSH");
    cr_assert_str_eq(ps_record_kind_name(PS_RECORD_EPOCH), "EPOCH");
    cr_assert_str_eq(ps_record_kind_name(PS_RECORD_SET), "SET");
    cr_assert_str_eq(ps_record_kind_name(PS_RECORD_BUNDLE), "BUNDLE");
    cr_assert_str_eq(ps_record_kind_name(PS_RECORD_ANEW), "ANEW");
    cr_assert_str_eq(ps_record_kind_name(PS_RECORD_ROWS), "ROWS");
    cr_assert_str_eq(ps_record_kind_name(PS_RECORD_LEAVE), "LEAVE");
    cr_assert_str_eq(ps_record_kind_name(PS_RECORD_AHEAD), "AHEAD");
    cr_assert_str_eq(ps_record_kind_name(PS_RECORD_RETIRE), "RETIRE");
    cr_assert_str_eq(ps_record_kind_name((ps_record_kind_t)14), "?");
}

Test(record, rows_of_a_checkpoint_come_back_as_they_were)
{
    static const uint8_t ROWS[] = {1, 2, 3, 4, 5};
    const ps_bytes_t none = {NULL, 0};
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *rows = ps_payload_copy(none, none, (ps_bytes_t){ROWS, sizeof ROWS});
    const ps_record_t record = {.kind = PS_RECORD_ROWS, .table = 1, .lsn = 2, .seq = 1};
    uint8_t bytes[PS_RECORD_HEAD + 8];
    ps_record_t read = {0};
    ps_body_t body = {0};
    size_t size = 0;

    cr_assert_eq(ps_record_size(&record, rows), sizeof bytes);
    ps_record_write(&record, rows, bytes);
    cr_assert_eq(ps_record_read((ps_bytes_t){bytes, sizeof bytes}, &size, &read, &body, NULL),
                 PSD_OK);
    cr_expect_eq(read.kind, PS_RECORD_ROWS);
    cr_expect_eq(read.seq, 1);
    cr_assert_eq(body.values.size, sizeof ROWS);
    cr_expect_arr_eq(body.values.data, ROWS, sizeof ROWS);
}

Test(record, a_push_whose_rows_come_later_is_its_head_only)
{
    const ps_record_t record = {.kind = PS_RECORD_AHEAD,
                                .table = 1,
                                .lsn = 2,
                                .session = 3,
                                .seq = 4,
                                .marks = true,
                                .slice = {.n_rows = 5, .first_row = 6}};
    uint8_t bytes[PS_RECORD_HEAD];
    ps_record_t read = {0};
    ps_body_t body = {0};
    size_t size = 0;

    cr_assert_eq(ps_record_size(&record, NULL), sizeof bytes);
    ps_record_write(&record, NULL, bytes);
    cr_assert_eq(ps_record_read((ps_bytes_t){bytes, sizeof bytes}, &size, &read, &body, NULL),
                 PSD_OK);
    assert_same(&read, &record);
    cr_expect_eq(body.values.size, 0);
}
