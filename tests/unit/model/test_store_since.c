/* SPDX-License-Identifier: Apache-2.0 */
/* model/store/store_ops.h: versions of rows, and pulls of what has changed. */
#include "unit/model/store_kit.h"

#include "model/store/store_ops.h"
#include "support/fail_alloc.h"

#define N_ROWS 300
#define N_STEPS 40

typedef struct layout {
    ps_keys_t keys;
    ps_row_format_t format;
    ps_partition_by_t by;
} layout_t;

/* Every way in which rows can lie. */
static const layout_t LAYOUTS[] = {
    {PS_KEYS_RANGE, PS_ROW_DENSE, PS_PARTITION_BY_RANGE},
    {PS_KEYS_RANGE, PS_ROW_DENSE, PS_PARTITION_BY_HASH},
    {PS_KEYS_RANGE, PS_ROW_SPARSE, PS_PARTITION_BY_RANGE},
    {PS_KEYS_HASH, PS_ROW_DENSE, PS_PARTITION_BY_RANGE},
    {PS_KEYS_HASH, PS_ROW_SPARSE, PS_PARTITION_BY_RANGE},
    {PS_KEYS_HASH, PS_ROW_AUTO, PS_PARTITION_BY_RANGE},
};
#define N_LAYOUTS (sizeof LAYOUTS / sizeof LAYOUTS[0])

static ps_store_t *new_store(const layout_t *layout)
{
    ps_table_spec_t spec = kit_spec(layout->keys, layout->format, PS_TYPE_F32,
                                    layout->keys == PS_KEYS_RANGE ? N_ROWS : 0, 2);

    spec.versions = true;
    spec.partition_by = layout->by;
    spec.n_partitions = layout->by == PS_PARTITION_BY_HASH ? 2 : 1;
    return kit_store(&spec, 0);
}

/* Pushes the rows `step`, 2 step … that lie here under the version `step`, now
 * whole, now one column of them, now as a range of three. */
static void push_step(ps_store_t *store, uint64_t step, uint64_t versions[N_ROWS])
{
    kit_push_t push = {.slice = {.type = PS_TYPE_F32, .n_cols = 2}};
    uint64_t row = step;

    if (step % 3 == 1) {
        push.slice.cols = PS_COLS_RANGE;
        push.slice.n_cols = 1;
    }
    for (; row < N_ROWS; row += step) {
        if (!ps_extent_has_row(ps_store_extent(store), row)) {
            continue;
        }
        kit_push_key(&push, row);
        versions[row] = step;
        for (uint32_t i = 0; i < push.slice.n_cols; i++) {
            kit_push_value(&push, 1);
        }
    }
    kit_push_close(&push, NULL);
    ps_store_stamp(store, step);
    kit_apply(store, push);
}

/* Pulls page by page what has changed since; every row of a later version comes
 * once, in order, and no other. */
static void check_since(ps_store_t *store, const kit_push_t *pull, uint64_t since,
                        const uint64_t versions[N_ROWS])
{
    uint64_t done = 0;
    uint64_t next = 0;

    while (done < N_ROWS) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *reply = NULL;
        ps_slice_t want = pull->slice;
        ps_payload_t rows = *pull->payload;
        ps_slice_t got = {0};
        uint64_t n_done = 0;

        want.n_rows -= done;
        if (want.rows == PS_ROWS_RANGE) {
            want.first_row += done;
        } else {
            rows.keys.data += 8 * done;
            rows.keys.size -= 8 * done;
        }
        cr_assert_eq(
            ps_store_gather_since(store, &want, &rows, since, 200, &got, &reply, &n_done, NULL),
            PSD_OK);
        cr_assert_gt(n_done, 0);
        cr_assert_eq(got.rows, PS_ROWS_LIST);
        for (uint64_t i = 0; i < got.n_rows; i++) {
            while (next < N_ROWS && versions[next] <= since) {
                next++;
            }
            cr_assert_eq(ps_slice_row(&got, reply, i), next);
            next++;
        }
        done += n_done;
    }
    while (next < N_ROWS && versions[next] <= since) {
        next++;
    }
    cr_assert_eq(next, N_ROWS, "row %lu is missing", (unsigned long)next);
}

static void check_layout(const layout_t *layout)
{
    ps_store_t *store = new_store(layout);
    uint64_t versions[N_ROWS] = {0};
    kit_push_t list = {.slice = {.type = PS_TYPE_F32, .n_cols = 2}};
    kit_push_t range = {
        .slice = {.rows = PS_ROWS_RANGE, .type = PS_TYPE_F32, .n_rows = N_ROWS, .n_cols = 2}};

    for (uint64_t row = 0; row < N_ROWS; row++) {
        kit_push_key(&list, row);
    }
    kit_push_close(&list, NULL);
    kit_push_close(&range, NULL);
    cr_assert(ps_store_has_versions(store));
    for (uint64_t step = 1; step <= N_STEPS; step++) {
        push_step(store, step, versions);
        for (uint64_t since = 0; since <= step; since += 1 + step / 4) {
            check_since(store, &range, since, versions);
            if (layout->by != PS_PARTITION_BY_HASH) {
                check_since(store, &list, since, versions);
            }
        }
    }
    kit_push_done(&list);
    kit_push_done(&range);
    ps_store_destroy(&store);
}

Test(store_since, only_rows_of_later_versions_come)
{
    for (size_t i = 0; i < N_LAYOUTS; i++) {
        check_layout(&LAYOUTS[i]);
    }
}

/* Eight bytes a row, and nothing where the table has none. */
Test(store_since, versions_cost_what_they_say)
{
    for (size_t i = 0; i < N_LAYOUTS; i++) {
        layout_t layout = LAYOUTS[i];
        ps_table_spec_t spec = kit_spec(layout.keys, layout.format, PS_TYPE_F32,
                                        layout.keys == PS_KEYS_RANGE ? N_ROWS : 0, 2);
        ps_store_t *plain = kit_store(&spec, 0);

        cr_assert_not(ps_store_has_versions(plain));
        ps_store_destroy(&plain);
    }
    for (int has = 0; has < 2; has++) {
        ps_table_spec_t spec = kit_spec(PS_KEYS_RANGE, PS_ROW_DENSE, PS_TYPE_F32, N_ROWS, 2);
        ps_store_t *store = NULL;

        spec.versions = has == 1;
        store = kit_store(&spec, 0);
        cr_assert_eq(ps_store_bytes(store).index, has == 1 ? N_ROWS * 8 : 0);
        ps_store_destroy(&store);
    }
}

static psd_status_t gather_or_fail(void *fixture)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *reply = NULL;
    kit_push_t *pull = ((kit_push_t **)fixture)[0];
    ps_store_t *store = ((ps_store_t **)fixture)[1];
    ps_slice_t got;
    uint64_t n_done = 0;

    return ps_store_gather_since(store, &pull->slice, pull->payload, 0, SIZE_MAX, &got, &reply,
                                 &n_done, NULL);
}

Test(store_since, no_memory_is_said)
{
    ps_store_t *store = new_store(&LAYOUTS[3]);
    uint64_t versions[N_ROWS] = {0};
    kit_push_t pull = {.slice = {.type = PS_TYPE_F32, .n_cols = 2}};
    void *fixture[2] = {&pull, store};

    push_step(store, 1, versions);
    for (uint64_t row = 0; row < N_ROWS; row++) {
        kit_push_key(&pull, row);
    }
    kit_push_close(&pull, NULL);
    cr_assert_null(fail_alloc_sweep(gather_or_fail, fixture));
    kit_push_done(&pull);
    ps_store_destroy(&store);
}
