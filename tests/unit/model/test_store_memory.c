/* SPDX-License-Identifier: Apache-2.0 */
/* model/store/store.h: out of memory at every place where it can happen. */
#include "unit/model/store_kit.h"

#include "support/fail_alloc.h"

#define N_PUSHES 12
#define N_ROWS 40
#define N_COLS 30

typedef struct fixture {
    ps_table_spec_t spec;
    kit_push_t pushes[N_PUSHES]; /* made once: the kit allocates too */
    kit_push_t pull;
    double sums[N_ROWS][N_COLS]; /* after the pushes that were applied */
} fixture_t;

static void make_push(kit_push_t *push, ps_rng_t *rng, int number)
{
    push->slice = (ps_slice_t){.type = PS_TYPE_F64, .n_cols = N_COLS};
    if (number % 2 == 0) {
        push->slice.layout = PS_LAYOUT_SPARSE;
        push->slice.n_cols = 0;
    }
    for (int i = 0; i < 8; i++) {
        kit_push_key(push, ps_rng_below(rng, N_ROWS));
    }
    for (int i = 0; number % 2 == 0 && i < 8; i++) {
        kit_push_u32(push, 4);
    }
    for (uint32_t i = 0; number % 2 == 0 && i < 32; i++) {
        kit_push_u32(push, 7 * (i % 4) + (uint32_t)ps_rng_below(rng, 7));
    }
    for (int i = 0; i < (number % 2 == 0 ? 32 : 8 * N_COLS); i++) {
        kit_push_value(push, ps_rng_below(rng, 3) == 0 ? 1 : 0);
    }
    kit_push_close(push, rng);
}

static void add_sums(fixture_t *self, const kit_push_t *push)
{
    bool is_sparse = push->slice.layout == PS_LAYOUT_SPARSE;
    const uint8_t *value = push->values.data;

    for (uint64_t i = 0; i < 8; i++) {
        uint64_t row = ps_slice_row(&push->slice, push->payload, i);

        for (uint64_t j = 0; j < (is_sparse ? 4 : N_COLS); j++, value += 8) {
            uint64_t col = j;

            if (is_sparse) {
                col = ps_load_u32(push->index.data + 4 * (8 + 4 * i + j));
            }
            self->sums[row][col] += ps_load_f64(value);
        }
    }
}

/* All rows, all columns; every value is what the applied pushes add up to. */
static psd_status_t check_sums(const fixture_t *self, ps_store_t *store)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *reply = NULL;
    ps_slice_t got;
    uint64_t n_done = 0;
    psd_status_t rc = ps_store_gather(store, &self->pull.slice, self->pull.payload, SIZE_MAX,
                                      (ps_room_t){0}, &got, &reply, &n_done, NULL);

    if (rc != PSD_OK) {
        return rc;
    }
    for (size_t i = 0; i < N_ROWS * N_COLS; i++) {
        cr_assert_eq(ps_load_f64(reply->spans[0].data + 8 * i), self->sums[i / N_COLS][i % N_COLS]);
    }
    return PSD_OK;
}

static psd_status_t gather_present(ps_store_t *store, ps_layout_t layout)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *reply = NULL;
    ps_slice_t want = {.rows = PS_ROWS_RANGE,
                       .layout = layout,
                       .type = PS_TYPE_F64,
                       .n_rows = N_ROWS,
                       .n_cols = layout == PS_LAYOUT_DENSE ? N_COLS : 0};
    ps_payload_t no_rows = {.keys = {NULL, 0}};
    ps_slice_t got;
    uint64_t n_done = 0;

    return ps_store_gather(store, &want, &no_rows, SIZE_MAX, (ps_room_t){0}, &got, &reply, &n_done,
                           NULL);
}

/* Makes a store and pushes everything; what fails is as if it had not been. */
static psd_status_t push_everything(void *arg)
{
    fixture_t *self = arg;
    PSD_AUTO(ps_store_destroy) ps_store_t *store = NULL;
    psd_status_t rc = ps_store_new(&self->spec, 0, &store, NULL);

    memset(self->sums, 0, sizeof self->sums);
    for (int i = 0; i < N_PUSHES && rc == PSD_OK; i++) {
        const kit_push_t *push = &self->pushes[i];
        uint64_t before = ps_store_bytes(store).values;

        rc = ps_store_push(store, &push->slice, push->payload, NULL);
        if (rc == PSD_OK) {
            add_sums(self, push);
        } else if (self->spec.row_format == PS_ROW_SPARSE) {
            cr_assert_eq(ps_store_bytes(store).values, before);
        }
    }
    if (store == NULL) {
        return rc;
    }
    if (rc == PSD_OK) {
        rc = gather_present(store, PS_LAYOUT_DENSE);
    }
    if (rc == PSD_OK) {
        rc = gather_present(store, PS_LAYOUT_SPARSE);
    }
    if (rc != PSD_OK) {
        cr_assert_eq(check_sums(self, store), PSD_OK);
        return rc;
    }
    return check_sums(self, store);
}

static void sweep(ps_keys_t keys, ps_row_format_t format, ps_partition_by_t by)
{
    uint64_t boundary = N_ROWS - 1;
    fixture_t fixture = {
        .spec = kit_spec(keys, format, PS_TYPE_F64, keys == PS_KEYS_RANGE ? N_ROWS : 0, N_COLS)};
    ps_rng_t rng = {11};

    fixture.spec.partition_by = by;
    if (by == PS_PARTITION_BY_LIST) { /* boundaries are copied, too */
        fixture.spec.keys = PS_KEYS_HASH;
        fixture.spec.n_rows = 0;
        fixture.spec.boundaries = &boundary;
        boundary = UINT64_MAX;
        fixture.spec.n_boundaries = 1;
        fixture.spec.n_partitions = 2;
    }
    for (int i = 0; i < N_PUSHES; i++) {
        make_push(&fixture.pushes[i], &rng, i);
    }
    fixture.pull.slice = (ps_slice_t){.type = PS_TYPE_F64, .n_cols = N_COLS};
    for (uint64_t row = 0; row < N_ROWS; row++) {
        kit_push_key(&fixture.pull, row);
    }
    kit_push_close(&fixture.pull, NULL);
    cr_assert_null(fail_alloc_sweep(push_everything, &fixture));
    for (int i = 0; i < N_PUSHES; i++) {
        kit_push_done(&fixture.pushes[i]);
    }
    kit_push_done(&fixture.pull);
}

Test(store_memory, array)
{
    sweep(PS_KEYS_RANGE, PS_ROW_DENSE, PS_PARTITION_BY_RANGE);
}

Test(store_memory, indexed_dense_rows)
{
    sweep(PS_KEYS_HASH, PS_ROW_DENSE, PS_PARTITION_BY_LIST);
    sweep(PS_KEYS_RANGE, PS_ROW_DENSE, PS_PARTITION_BY_HASH);
}

Test(store_memory, sparse_rows)
{
    sweep(PS_KEYS_HASH, PS_ROW_SPARSE, PS_PARTITION_BY_RANGE);
    sweep(PS_KEYS_RANGE, PS_ROW_SPARSE, PS_PARTITION_BY_RANGE);
}

Test(store_memory, auto_rows)
{
    sweep(PS_KEYS_HASH, PS_ROW_AUTO, PS_PARTITION_BY_LIST);
}

Test(store_memory, refusals_have_text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_table_spec_t spec = kit_spec(PS_KEYS_HASH, PS_ROW_DENSE, PS_TYPE_I64, 0, 1);
    ps_store_t *store = NULL;
    uint64_t key = 1;
    double value = 1;
    kit_push_t push = kit_dense(PS_TYPE_I64, 1, &key, 1, &value);

    fail_alloc_at(0);
    cr_assert_eq(ps_store_new(&spec, 0, &store, err), PSD_NOMEM);
    fail_alloc_off();
    cr_assert_str_eq(psd_error_text(err), "no memory for a partition");
    psd_error_clear(err);
    store = kit_store(&spec, 0);
    fail_alloc_at(0);
    cr_assert_eq(ps_store_push(store, &push.slice, push.payload, err), PSD_NOMEM);
    fail_alloc_off();
    cr_assert_str_eq(psd_error_text(err), "no memory for the rows of a push of 1 rows");
    kit_push_done(&push);
    ps_store_destroy(&store);
}
