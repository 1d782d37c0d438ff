/* SPDX-License-Identifier: Apache-2.0 */
/* model/store/store.h: rows of one value, which a rule gets many at a time, come to
 * the bits that they come to one after the other. */
#include "unit/model/store_kit.h"

#include "model/updaters/row_loops.h"

#define N_ROWS 150
#define N_LIST 101 /* rows of a push: groups, and some more */
#define N_PUSHES 4 /* so that states count, too */

typedef enum order {
    ASCENDING, /* each once */
    SHUFFLED,  /* likewise */
    REPEATED,  /* some twice in a row, some far behind, one all the time */
    N_ORDERS,
} order_t;

static const char *const RULES[] = {"assign",
                                    "min",
                                    "max",
                                    "sgd",
                                    "sgd:alpha=0.1,l1=0.01,l2=0.1",
                                    "momentum",
                                    "nesterov",
                                    "adagrad",
                                    "adam",
                                    "adamw",
                                    "rmsprop",
                                    "ftrl:l1=0.01",
                                    "dcasgd:workers=2",
                                    "dcasgd:workers=5"};
#define N_RULES (sizeof RULES / sizeof *RULES)

static const uint32_t WIDTHS[] = {1, 2, 32};
#define N_WIDTHS (sizeof WIDTHS / sizeof *WIDTHS)

static void fill_list(ps_rng_t *rng, order_t order, uint64_t keys[N_LIST])
{
    uint64_t all[N_ROWS];

    for (uint64_t i = 0; i < N_ROWS; i++) {
        all[i] = i;
    }
    for (size_t i = N_ROWS - 1; order != ASCENDING && i > 0; i--) {
        size_t j = ps_rng_below(rng, i + 1);
        uint64_t other = all[j];

        all[j] = all[i];
        all[i] = other;
    }
    memcpy(keys, all, N_LIST * sizeof *keys);
    for (size_t i = 3; order == REPEATED && i < N_LIST; i += 5) {
        keys[i] = i % 2 == 0 ? keys[i - 1] : keys[ps_rng_below(rng, i)];
        keys[i - 2] = keys[0];
    }
}

/* Rows from .. until - 1 of a list, with their deltas. shared: as from a lane,
 * where the other side may write meanwhile. rng: cut somewhere, at odd places;
 * or NULL. */
static void push_part(ps_store_t *store, const ps_table_spec_t *spec, const uint64_t *keys,
                      const double *deltas, size_t from, size_t until, bool shared, ps_rng_t *rng)
{
    kit_push_t push = {.slice = {.type = spec->type, .n_cols = spec->n_cols}};

    for (size_t i = from; i < until; i++) {
        kit_push_key(&push, keys[i]);
    }
    for (size_t i = from * spec->n_cols; i < until * spec->n_cols; i++) {
        kit_push_value(&push, deltas[i]);
    }
    kit_push_close(&push, rng);
    push.payload->shared = shared;
    kit_apply(store, push);
}

static void check_same(ps_store_t *one, ps_store_t *other, const ps_table_spec_t *spec)
{
    for (uint64_t row = 0; row < N_ROWS; row++) {
        for (uint32_t col = 0; col < spec->n_cols; col += 1 + col % 3) {
            double x = kit_value(one, spec->type, row, col);
            double y = kit_value(other, spec->type, row, col);

            cr_assert_arr_eq(&x, &y, sizeof x, "row %u column %u: %a, not %a", (unsigned)row,
                             (unsigned)col, x, y);
        }
    }
}

static void check(ps_keys_t keys, ps_type_t type, const char *rule, uint32_t width)
{
    ps_table_spec_t spec =
        kit_spec(keys, PS_ROW_DENSE, type, keys == PS_KEYS_RANGE ? N_ROWS : 0, width);
    ps_rng_t rng = {width};

    cr_assert_eq(ps_updater_spec_parse(rule, &spec.updater, NULL), PSD_OK);
    if (spec.updater.kind == PS_UPDATER_DCASGD) { /* a backup of each worker */
        spec.init = (ps_init_spec_t){PS_INIT_UNIFORM, -1, 1};
    }
    for (order_t order = ASCENDING; order < N_ORDERS; order++) {
        ps_store_t *together = kit_store(&spec, 0);
        ps_store_t *apart = kit_store(&spec, 0);

        for (int push = 0; push < N_PUSHES; push++) {
            static double deltas[N_LIST * 32];
            uint64_t list[N_LIST];

            fill_list(&rng, order, list);
            for (size_t i = 0; i < (size_t)N_LIST * width; i++) {
                deltas[i] = ps_rng_below(&rng, 5) == 0 ? 0 : 2 * ps_rng_f64(&rng) - 1;
            }
            ps_store_set_worker(together, (uint32_t)push % 2);
            ps_store_set_worker(apart, (uint32_t)push % 2);
            push_part(together, &spec, list, deltas, 0, N_LIST, push % 2 == 0,
                      push < 2 ? &rng : NULL);
            for (size_t i = 0; i < N_LIST; i++) {
                push_part(apart, &spec, list, deltas, i, i + 1, false, NULL);
            }
        }
        check_same(together, apart, &spec);
        ps_store_destroy(&together);
        ps_store_destroy(&apart);
    }
}

Test(store_narrow, rows_that_go_together_come_to_the_same_bits)
{
    for (size_t rule = 0; rule < N_RULES; rule++) {
        for (size_t i = 0; i < N_WIDTHS; i++) {
            check(PS_KEYS_RANGE, PS_TYPE_F32, RULES[rule], WIDTHS[i]);
        }
        check(PS_KEYS_RANGE, PS_TYPE_F64, RULES[rule], 1);
        check(PS_KEYS_HASH, PS_TYPE_F32, RULES[rule], 1);
        check(PS_KEYS_HASH, PS_TYPE_F64, RULES[rule], 3);
    }
}

Test(store_narrow, integers_come_to_the_same_bits)
{
    for (size_t rule = 0; rule < 3; rule++) { /* those for integers */
        check(PS_KEYS_RANGE, PS_TYPE_I32, RULES[rule], 1);
        check(PS_KEYS_HASH, PS_TYPE_I64, RULES[rule], 2);
    }
}

/* Every pair of places of a group. */
Test(store_narrow, a_row_that_is_there_twice_is_found)
{
    enum { APART = 4096 };
    static _Alignas(64) uint8_t memory[PS_ROWS_GROUP * APART];
    uint8_t *rows[PS_ROWS_GROUP];

    for (size_t step = 4; step <= APART; step *= 2) {
        for (size_t i = 0; i < PS_ROWS_GROUP; i++) {
            rows[i] = memory + (PS_ROWS_GROUP - 1 - i) * step;
        }
        for (size_t n = 0; n <= PS_ROWS_GROUP; n++) {
            cr_assert(ps_rows_differ(rows, n));
        }
        for (size_t i = 0; i < PS_ROWS_GROUP; i++) {
            for (size_t j = 0; j < PS_ROWS_GROUP; j++) {
                uint8_t *own = rows[i];

                rows[i] = rows[j];
                cr_assert_eq(ps_rows_differ(rows, PS_ROWS_GROUP), i == j);
                rows[i] = own;
            }
        }
    }
}

/* Of so many groups at random places hundreds have two rows that meet where
 * ps_rows_differ looks first; with one row more they have one twice. */
Test(store_narrow, rows_that_only_meet_differ)
{
    enum { BYTES = 1 << 22, PART = BYTES / (PS_ROWS_GROUP - 1), GROUPS = 5000 };
    static _Alignas(64) uint8_t memory[BYTES];
    ps_rng_t rng = {7};

    for (int group = 0; group < GROUPS; group++) {
        uint8_t *rows[PS_ROWS_GROUP];
        size_t n = PS_ROWS_GROUP - 1;

        for (size_t i = 0; i < n; i++) { /* from the last part to the first */
            rows[i] = memory + (n - 1 - i) * PART + 4 * ps_rng_below(&rng, PART / 4);
        }
        cr_assert(ps_rows_differ(rows, n));
        rows[n] = rows[ps_rng_below(&rng, n)];
        cr_assert_not(ps_rows_differ(rows, n + 1));
    }
}
