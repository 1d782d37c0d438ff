/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what a new copy of a partition takes: the first byte chooses the
 * table, the second whether a state or pieces follow, each piece behind its u16
 * size. What is accepted can be pushed to and read, and another copy takes it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "protocol/partition/partition_copy.h"
#include "protocol/shard/shard_state.h"

#define TABLE 7
#define N_COLS 5
#define N_ROWS 3000
#define N_TABLES 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

static ps_table_spec_t spec_of(uint8_t number)
{
    static const struct {
        ps_keys_t keys;
        ps_row_format_t format;
        ps_updater_kind_t updater;
        ps_init_kind_t init;
        bool versions;
    } tables[N_TABLES] = {
        {PS_KEYS_RANGE, PS_ROW_DENSE, PS_UPDATER_ADD, PS_INIT_ZERO, true},
        {PS_KEYS_RANGE, PS_ROW_DENSE, PS_UPDATER_MIN, PS_INIT_CONSTANT, true},
        {PS_KEYS_HASH, PS_ROW_DENSE, PS_UPDATER_ADD, PS_INIT_ZERO, true},
        {PS_KEYS_HASH, PS_ROW_SPARSE, PS_UPDATER_ADD, PS_INIT_ZERO, true},
        {PS_KEYS_HASH, PS_ROW_AUTO, PS_UPDATER_ADAM, PS_INIT_ZERO, false},
        {PS_KEYS_RANGE, PS_ROW_SPARSE, PS_UPDATER_MAX, PS_INIT_ZERO, false},
    };
    ps_table_spec_t spec;

    ps_table_spec_init(&spec);
    memcpy(spec.name, "t", 2);
    number %= N_TABLES;
    spec.keys = tables[number].keys;
    spec.row_format = tables[number].format;
    spec.updater.kind = tables[number].updater;
    spec.updater.alpha = 0.5;
    spec.updater.beta1 = 0.5;
    spec.updater.beta2 = 0.5;
    spec.updater.eps = 0.5;
    spec.init.kind = tables[number].init;
    spec.init.a = tables[number].init == PS_INIT_ZERO ? 0 : 3;
    spec.versions = tables[number].versions;
    spec.n_rows = spec.keys == PS_KEYS_RANGE ? N_ROWS : 0;
    spec.n_cols = N_COLS;
    spec.n_partitions = 1;
    spec.n_col_slices = 1;
    check(ps_table_spec_check(&spec, NULL) == PSD_OK);
    return spec;
}

/* Bytes in a block of their own, so that a read beyond them is seen; freed with
 * ps_free. */
static uint8_t *exactly(ps_bytes_t bytes)
{
    uint8_t *exact = ps_alloc_raw(bytes.size, 1);

    check(exact != NULL);
    if (bytes.size > 0) {
        memcpy(exact, bytes.data, bytes.size);
    }
    return exact;
}

static void check_refusal(psd_status_t rc, const psd_error_t *err)
{
    check(rc == PSD_OK || rc == PSD_PROTO || rc == PSD_NOMEM);
    check(rc == PSD_OK || psd_error_text(err)[0] != '\0');
}

/* One row of ones, and what can be read. */
static void use(ps_partition_t *partition)
{
    static const float ones[N_COLS] = {1, 1, 1, 1, 1};
    const uint64_t key = 3;
    const ps_slice_t push = {
        .type = PS_TYPE_F32, .n_rows = 1, .n_cols = N_COLS, .n_values = N_COLS};
    const ps_slice_t all = {
        .type = PS_TYPE_F32, .rows = PS_ROWS_RANGE, .n_rows = N_ROWS, .n_cols = N_COLS};
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload =
        ps_payload_copy((ps_bytes_t){(const uint8_t *)&key, sizeof key}, (ps_bytes_t){NULL, 0},
                        (ps_bytes_t){(const uint8_t *)ones, sizeof ones});
    PSD_AUTO(ps_payload_destroy) ps_payload_t *values = NULL;
    ps_slice_t got;
    uint64_t n_done = 0;

    check(payload != NULL);
    check(ps_store_push(partition->store, &push, payload, NULL) == PSD_OK);
    ps_store_set_partial(partition->store, false);
    check(ps_store_push(partition->store, &push, payload, NULL) == PSD_OK);
    check(ps_store_gather(partition->store, &all, NULL, 1 << 20, (ps_room_t){NULL, 0}, &got,
                          &values, &n_done, NULL) == PSD_OK);
}

/* What was taken is handed out, and taken by a third one. */
static void pass_on(ps_shard_t *shard, ps_partition_t *from, ps_partition_t *to)
{
    ps_store_cursor_t cursor = {0};
    bool is_done = false;

    ps_store_set_partial(to->store, true);
    while (!is_done) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *piece = NULL;

        check(ps_partition_give_rows(&shard->step, from, &cursor, 500, &piece, &is_done, NULL) ==
              PSD_OK);
        check(ps_partition_take_rows(&shard->step, to, piece->span, is_done, NULL) == PSD_OK);
    }
}

static psd_status_t take_pieces(ps_shard_t *shard, ps_partition_t *partition, ps_bytes_t bytes)
{
    ps_cursor_t cursor = ps_cursor_over(bytes);
    psd_status_t rc = PSD_OK;

    ps_store_set_partial(partition->store, true);
    while (rc == PSD_OK && cursor.rest.size > 2) {
        PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
        size_t size = ps_cursor_u16(&cursor);
        uint8_t *exact = NULL;

        size = size > cursor.rest.size ? cursor.rest.size : size;
        exact = exactly(ps_cursor_take(&cursor, size));
        rc = ps_partition_take_rows(&shard->step, partition, (ps_bytes_t){exact, size}, false, err);
        ps_free(exact);
        check_refusal(rc, err);
    }
    return rc;
}

static psd_status_t take_state(ps_shard_t *shard, ps_partition_t *partition, ps_bytes_t bytes)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_payload_destroy) ps_payload_t *again = NULL;
    uint8_t *exact = exactly(bytes);
    psd_status_t rc =
        ps_partition_take_state(&shard->step, partition, (ps_bytes_t){exact, bytes.size}, err);

    check_refusal(rc, err);
    if (rc == PSD_OK) {
        again = ps_partition_give_state(partition);
        check(again != NULL);
    }
    ps_free(exact);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ps_shard_args_t args = {.credit_requests = 1, .sessions_max = 4};
    PSD_AUTO(ps_shard_destroy) ps_shard_t *shard = NULL;
    PSD_AUTO(ps_partition_destroy) ps_partition_t *partition = NULL;
    PSD_AUTO(ps_partition_destroy) ps_partition_t *third = NULL;
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};
    ps_table_use_t use_of = {0};
    ps_table_spec_t spec;
    psd_status_t rc = PSD_OK;

    if (size < 2) {
        return 0;
    }
    spec = spec_of(data[0]);
    check(ps_shard_new(&args, &shard, NULL) == PSD_OK);
    shard->step.outbox = &outbox;
    check(ps_partition_new(&spec, &use_of, TABLE, 0, 1, &partition, NULL) == PSD_OK);
    check(ps_partition_new(&spec, &use_of, TABLE, 0, 1, &third, NULL) == PSD_OK);
    if (data[1] % 2 == 0) {
        rc = take_pieces(shard, partition, (ps_bytes_t){data + 2, size - 2});
    } else {
        rc = take_state(shard, partition, (ps_bytes_t){data + 2, size - 2});
    }
    if (rc == PSD_OK) {
        pass_on(shard, partition, third);
    }
    use(partition);
    return 0;
}
