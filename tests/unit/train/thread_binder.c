/* SPDX-License-Identifier: Apache-2.0 */
/* What several trainers have summed up becomes one push with the bits that
 * adding one after the other has, whoever does it: of tables of every kind, and
 * of many slots by several threads. */
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "support/check.h"
#include "train/values/binder.h"

#define TRAINERS 5
#define FEW 300
#define MANY 12000 /* of each trainer: more than one thread takes */

typedef struct kind {
    const char *name;
    ps_shape_t shape;
    uint64_t first_row; /* others lie behind it */
    uint64_t n_rows;    /* that are added to */
} kind_t;

static const kind_t kinds[] = {
    {"a number a row", {0, 1, PS_TYPE_F32, 4, true, false}, 0, 30000},
    {"of all trainers", {0, 1, PS_TYPE_F64, 8, true, false}, 0, 10000},
    {"the greatest keys", {0, 1, PS_TYPE_I64, 8, true, false}, UINT64_MAX - 29999, 30000},
    {"rows of four slots", {0, 200, PS_TYPE_F64, 8, true, false}, 0, 9000},
    {"too many keys for one number",
     {0, 200, PS_TYPE_F64, 8, true, false},
     UINT64_MAX - 8999,
     9000},
    {"one long row", {0, 1U << 20, PS_TYPE_F32, 4, true, true}, 7, 1},
    {"a large range", {1U << 30, 3, PS_TYPE_I32, 4, true, false}, 5, 20000},
    {"a small range", {1000, 100, PS_TYPE_F32, 4, true, false}, 0, 1000},
    {"a small range, seldom", {200000, 1, PS_TYPE_F64, 8, true, false}, 0, 9},
};

/* Scattered cells, some of them of several trainers. Fractions, so that the
 * order of adding shows in the bits. */
static bool scatter(ps_sums_t *sums, const kind_t *kind, size_t n, uint64_t seed)
{
    ps_rng_t rng = {.state = seed};

    for (size_t i = 0; i < n; i++) {
        uint64_t row = kind->first_row + ps_rng_below(&rng, kind->n_rows);
        uint32_t col = (uint32_t)ps_rng_below(&rng, kind->shape.n_cols);
        ps_number_t *cell = ps_sums_at(sums, row, col);

        CHECK(cell != NULL);
        if (ps_type_is_float(kind->shape.type)) {
            cell->f64 += 1.0 / (double)(1 + ps_rng_below(&rng, 1000));
        } else {
            cell->i64 += (int64_t)ps_rng_below(&rng, 1000) - 500;
        }
    }
    return true;
}

static bool are_alike(const ps_sheaf_t *a, const ps_sheaf_t *b, size_t value_size)
{
    CHECK(a->n_rows == b->n_rows && a->n_values == b->n_values);
    CHECK(a->whole == b->whole);
    CHECK(memcmp(a->rows, b->rows, a->n_rows * sizeof *a->rows) == 0);
    CHECK(memcmp(a->counts, b->counts, a->n_rows * sizeof *a->counts) == 0);
    CHECK(memcmp(a->cols, b->cols, a->n_values * sizeof *a->cols) == 0);
    CHECK(memcmp(a->values, b->values, a->n_values * value_size) == 0);
    return true;
}

static bool compare(ps_binder_t *binder, const kind_t *kind, size_t n)
{
    ps_sums_t sums[TRAINERS];
    ps_sums_t merged = {.width = 0};
    const ps_sums_t *all[TRAINERS];
    const ps_sums_t *one = &merged;
    ps_sheaf_t want = {.n_rows = 0};
    ps_sheaf_t got = {.n_rows = 0};
    bool ok = false;

    CHECK(ps_sums_init(&merged, &kind->shape, NULL) == PSD_OK);
    for (uint32_t k = 0; k < TRAINERS; k++) {
        all[k] = &sums[k];
        CHECK(ps_sums_init(&sums[k], &kind->shape, NULL) == PSD_OK);
        CHECK(scatter(&sums[k], kind, n, k + 1));
        CHECK(ps_sums_merge(&merged, &sums[k], NULL) == PSD_OK);
    }
    CHECK(ps_sums_bind(&merged, &want, NULL) == PSD_OK);
    CHECK(ps_binder_bind(binder, merged.direct ? &one : all, merged.direct ? 1 : TRAINERS, &got,
                         NULL) == PSD_OK);
    ok = are_alike(&got, &want, kind->shape.value_size);
    ps_sheaf_done(&want);
    ps_sheaf_done(&got);
    ps_sums_done(&merged);
    for (uint32_t k = 0; k < TRAINERS; k++) {
        ps_sums_done(&sums[k]);
    }
    return ok;
}

/* What is wrong in a part that another thread makes is said; of several the
 * one of the first row. */
static bool refuse(ps_binder_t *binder)
{
    psd_error_t *err = psd_error_new();
    const kind_t *kind = &kinds[0];
    ps_sums_t sums = {.width = 0};
    const ps_sums_t *one = &sums;
    ps_sheaf_t sheaf = {.n_rows = 77};

    CHECK(ps_sums_init(&sums, &kind->shape, err) == PSD_OK);
    for (uint64_t row = 0; row < 100000; row++) {
        ps_number_t *cell = ps_sums_at(&sums, row, 0);

        CHECK(cell != NULL);
        cell->f64 = row == 70000 || row == 99000 ? 1e300 : 1;
    }
    CHECK_ERROR(ps_binder_bind(binder, &one, 1, &sheaf, err), PSD_NOT_FINITE,
                "row 70000: the sum of deltas is 1e+300", err);
    CHECK(sheaf.n_rows == 77);
    ps_sums_done(&sums);
    psd_error_destroy(&err);
    return true;
}

int main(void)
{
    bool ok = true;

    for (uint32_t n_members = 1; ok && n_members <= 4; n_members++) {
        ps_binder_t binder = {.crew = NULL};

        ok = ps_binder_init(&binder, n_members, NULL) == PSD_OK;
        for (size_t i = 0; ok && i < sizeof kinds / sizeof *kinds; i++) {
            ok = compare(&binder, &kinds[i], FEW) && compare(&binder, &kinds[i], MANY);
            if (!ok) {
                (void)fprintf(stderr, "%s, %u threads\n", kinds[i].name, n_members);
            }
        }
        ok = ok && refuse(&binder);
        ps_binder_done(&binder);
    }
    return ok ? 0 : 1;
}
