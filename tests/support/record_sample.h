/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_sample - one fixed, valid record of every kind
 *
 * What     The content of the golden files, which tests of the codec, the log
 *          and the simulator corrupt. No two numbers of a record are equal.
 * Owner    The payload is the caller's (ps_payload_destroy).
 */
#ifndef PS_TESTS_RECORD_SAMPLE_H
#define PS_TESTS_RECORD_SAMPLE_H

#include <assert.h>
#include <string.h>

#include "base/cursor.h"
#include "wire/records/record.h"

#define N_SAMPLE_RECORDS 10

static inline ps_bytes_t record_sample_text(const char *text)
{
    return (ps_bytes_t){(const uint8_t *)text, strlen(text)};
}

/* Three rows by key, 3 sparse values; the index is 24 bytes, the values 12. */
static inline void record_sample_sparse(ps_record_t *ret, ps_payload_t **ret_payload)
{
    static const uint8_t keys[24] = {7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0x80, 7};
    static const uint8_t index[24] = {1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0,
                                      9, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0};
    static const uint8_t values[12] = {0, 0, 0x80, 0x3F, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40};

    ret->slice = (ps_slice_t){.rows = PS_ROWS_LIST,
                              .layout = PS_LAYOUT_SPARSE,
                              .cols = PS_COLS_ALL,
                              .type = PS_TYPE_F32,
                              .n_rows = 3,
                              .n_values = 3};
    *ret_payload =
        ps_payload_copy((ps_bytes_t){keys, sizeof keys}, (ps_bytes_t){index, sizeof index},
                        (ps_bytes_t){values, sizeof values});
}

/* A range of five rows, one column, i64. */
static inline void record_sample_range(ps_record_t *ret, ps_payload_t **ret_payload)
{
    static const uint8_t values[40] = {1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0};

    ret->slice = (ps_slice_t){.rows = PS_ROWS_RANGE,
                              .layout = PS_LAYOUT_DENSE,
                              .cols = PS_COLS_RANGE,
                              .type = PS_TYPE_I64,
                              .n_rows = 5,
                              .first_row = 70,
                              .first_col = 6,
                              .n_cols = 1,
                              .n_values = 5};
    *ret_payload = ps_payload_copy((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                                   (ps_bytes_t){values, sizeof values});
}

/* Record i < N_SAMPLE_RECORDS: one of each kind, and a second PUSH. */
static inline void record_sample(size_t i, ps_record_t *ret, ps_payload_t **ret_payload)
{
    static const ps_record_kind_t kinds[N_SAMPLE_RECORDS] = {
        PS_RECORD_PUSH,  PS_RECORD_REFUSAL, PS_RECORD_MARK,   PS_RECORD_JOB, PS_RECORD_FORGET,
        PS_RECORD_EPOCH, PS_RECORD_PUSH,    PS_RECORD_RETIRE, PS_RECORD_SET, PS_RECORD_BUNDLE};
    const ps_bytes_t none = {NULL, 0};

    assert(i < N_SAMPLE_RECORDS);
    memset(ret, 0, sizeof *ret);
    *ret = (ps_record_t){.kind = kinds[i],
                         .table = 0x01020304,
                         .partition = 0x05060708,
                         .lsn = UINT64_C(0x1122334455667788),
                         .epoch = UINT64_C(0x1A1B1C1D1E1F2021),
                         .session = 41,
                         .seq = 42,
                         .job = 43,
                         .worker = 44,
                         .member = 45,
                         .joins = 46,
                         .clock = 47};
    *ret_payload = NULL;
    if (i == 0) {
        record_sample_sparse(ret, ret_payload);
    } else if (i == 6) {
        record_sample_range(ret, ret_payload);
    } else if (kinds[i] == PS_RECORD_REFUSAL) {
        ret->status = PSD_NOT_FINITE;
        *ret_payload = ps_payload_copy(none, none, record_sample_text("row 7, column 1: NaN"));
    } else if (kinds[i] == PS_RECORD_JOB) {
        *ret_payload = ps_payload_copy(none, none, record_sample_text("\1bytes of a job"));
    } else if (kinds[i] == PS_RECORD_BUNDLE) {
        *ret_payload = ps_payload_copy(none, none, record_sample_text("bytes of a bundle"));
    }
    assert(*ret_payload != NULL || i == 2 || i > 3);
}
#endif
