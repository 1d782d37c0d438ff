/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are kept, beside a table that is simple enough to be right: they
 * are never too old, never lack an own push that a pull would show, are not
 * asked for again while they may be read, and take no more than they may. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "support/fail_alloc.h"
#include "train/values/kept.h"

#define ROWS 40
#define STEPS 20000
#define OTHERS INT64_C(1000000) /* a push of others; own ones are of 1 */
#define CLOCKS_MAX 4000

/* What the server has, and when it had it. */
typedef struct server {
    int64_t own[ROWS];  /* pulls show it */
    int64_t open[ROWS]; /* bsp: pushed in this clock */
    int64_t others[ROWS];
    int64_t others_at[CLOCKS_MAX][ROWS]; /* as the clock began */
} server_t;

/* A pull under way. */
typedef struct pull {
    bool under_way;
    uint64_t number;
    size_t n;
    uint64_t rows[ROWS];
    int64_t early[ROWS]; /* as it was handed over */
} pull_t;

typedef struct world {
    ps_kept_t kept;
    server_t server;
    pull_t pulls[2];
    ps_rng_t rng;
    uint64_t block;
    uint64_t n_reads;
    uint64_t n_hits;
} world_t;

static const ps_shape_t shape = {
    .n_rows = ROWS, .n_cols = 1, .type = PS_TYPE_I64, .value_size = sizeof(int64_t), .adds = true};

static ps_kept_key_t key_of(uint64_t row)
{
    return (ps_kept_key_t){.row = row};
}

static uint64_t choose(world_t *world, uint64_t n)
{
    return ps_rng_u64(&world->rng) % n;
}

/* Nothing kept is more than it may be. */
static void check_size(const world_t *world)
{
    const ps_kept_row_t *entry = NULL;
    uint64_t n_bytes = 0;

    TAILQ_FOREACH(entry, &world->kept.unused, in_list)
    {
        n_bytes += entry->n_bytes;
    }
    cr_assert_eq(n_bytes, world->kept.n_unused);
    TAILQ_FOREACH(entry, &world->kept.intended, in_list)
    {
        n_bytes += entry->n_bytes;
    }
    cr_assert_eq(n_bytes, world->kept.n_bytes);
    cr_assert_leq(n_bytes, world->kept.rule.max_bytes);
}

static void push_own(world_t *world)
{
    uint64_t rows[ROWS];
    uint32_t counts[ROWS];
    uint32_t cols[ROWS];
    int64_t values[ROWS];
    ps_sheaf_t sheaf = {.rows = rows, .counts = counts, .cols = cols, .values = values};

    for (uint64_t row = 0; row < ROWS; row++) {
        if (choose(world, 8) == 0) {
            rows[sheaf.n_rows] = row;
            counts[sheaf.n_rows] = 1;
            cols[sheaf.n_rows] = 0;
            values[sheaf.n_rows++] = 1;
            (world->kept.rule.bsp ? world->server.open : world->server.own)[row]++;
        }
    }
    sheaf.n_values = sheaf.n_rows;
    cr_assert_eq(ps_kept_push(&world->kept, 0, &sheaf, NULL), PSD_OK);
}

static void end_clock(world_t *world)
{
    server_t *server = &world->server;

    cr_assert_eq(ps_kept_mark(&world->kept, NULL), PSD_OK);
    cr_assert_lt(world->kept.clock, CLOCKS_MAX);
    for (uint64_t row = 0; row < ROWS; row++) {
        server->own[row] += server->open[row];
        server->open[row] = 0;
    }
    memcpy(server->others_at[world->kept.clock], server->others, sizeof server->others);
}

/* What was kept, held against what the server has and had. */
static void check_read(const world_t *world, uint64_t row, int64_t value, uint64_t clock)
{
    uint64_t staleness = (uint64_t)world->kept.rule.staleness;
    uint64_t oldest = clock > staleness ? clock - staleness : 1;

    cr_assert_eq(value % OTHERS, world->server.own[row],
                 "row %" PRIu64 " shows %" PRId64 " own pushes of %" PRId64, row, value % OTHERS,
                 world->server.own[row]);
    if (world->kept.rule.n_blocks == 1) {
        cr_assert_leq(oldest, world->kept.clock);
        cr_assert_geq(value / OTHERS, world->server.others_at[oldest][row]);
    }
}

/* A block: what it cannot read is asked for. */
static void read_block(world_t *world)
{
    ps_kept_time_t now = {.clock = world->kept.clock + choose(world, 2), .block = ++world->block};
    ps_kept_time_t asked = {.clock = world->kept.clock, .block = now.block};
    pull_t *pull = &world->pulls[choose(world, 2)];

    if (!pull->under_way) {
        pull->number = ps_kept_pull(&world->kept);
    }
    for (uint64_t row = choose(world, 3); row < ROWS; row += 1 + choose(world, 4)) {
        const int64_t *value = ps_kept_read(&world->kept, key_of(row), now);

        world->n_reads++;
        if (value != NULL) {
            world->n_hits++;
            check_read(world, row, *value, now.clock);
        } else if (!ps_kept_is_coming(&world->kept, key_of(row)) && !pull->under_way) {
            (void)ps_kept_ask(&world->kept, key_of(row), pull->number, asked,
                              choose(world, 4) == 0 ? asked.clock + 2 : 0);
            pull->early[pull->n] = world->server.others[row] * OTHERS + world->server.own[row];
            pull->rows[pull->n++] = row;
        }
    }
    pull->under_way = pull->n > 0;
}

/* Each row is as the server had it at some time since it was asked. */
static void take(world_t *world)
{
    pull_t *pull = &world->pulls[choose(world, 2)];

    for (size_t i = 0; i < pull->n; i++) {
        uint64_t row = pull->rows[i];
        int64_t late = world->server.others[row] * OTHERS + world->server.own[row];

        ps_kept_take(&world->kept, key_of(row), pull->number,
                     choose(world, 2) == 0 ? &late : &pull->early[i]);
    }
    *pull = (pull_t){.n = 0};
}

static world_t *live(uint64_t seed, const ps_kept_rule_t *rule)
{
    world_t *world = calloc(1, sizeof *world);

    world->rng.state = seed;
    cr_assert_eq(ps_kept_init(&world->kept, rule, &shape, 1, NULL), PSD_OK);
    for (int i = 0; i < STEPS; i++) {
        switch (choose(world, 12)) {
        case 0:
            end_clock(world);
            break;
        case 1:
            push_own(world);
            break;
        case 2:
        case 3:
            world->server.others[choose(world, ROWS)]++;
            break;
        case 4:
        case 5:
        case 6:
        case 7:
            take(world);
            break;
        default:
            read_block(world);
            break;
        }
        check_size(world);
    }
    cr_assert_gt(world->n_hits, world->n_reads / 50, "%" PRIu64 " of %" PRIu64, world->n_hits,
                 world->n_reads);
    return world;
}

static void finish(world_t *world)
{
    ps_kept_done(&world->kept);
    free(world);
}

Test(kept, are_never_too_old_and_never_lack_own_pushes)
{
    const int64_t stalenesses[] = {0, 1, 3};
    const uint64_t limits[] = {UINT64_MAX, 2000, 1 << 20};

    for (uint64_t seed = 0; seed < 18; seed++) {
        const ps_kept_rule_t rule = {.n_blocks = 1,
                                     .staleness = stalenesses[seed % 3],
                                     .max_bytes = limits[seed / 3 % 3],
                                     .bsp = seed >= 9};

        finish(live(seed, &rule));
    }
}

Test(kept, are_read_by_so_many_blocks)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        const ps_kept_rule_t rule = {.n_blocks = 2 + seed,
                                     .staleness = PS_KEPT_NEVER,
                                     .max_bytes = 1 << 20,
                                     .bsp = seed % 2 == 0};

        finish(live(100 + seed, &rule));
    }
}

static bool is_kept(ps_kept_t *kept, uint64_t row, ps_kept_time_t now)
{
    return ps_kept_read(kept, key_of(row), now) != NULL;
}

static void fetch(ps_kept_t *kept, uint64_t row, ps_kept_time_t now, uint64_t until)
{
    const int64_t value = 7;

    uint64_t pull = ps_kept_pull(kept);

    (void)ps_kept_ask(kept, key_of(row), pull, now, until);
    ps_kept_take(kept, key_of(row), pull, &value);
}

/* By block and by clock, to the last one that may. */
Test(kept, age)
{
    ps_kept_rule_t rule = {.n_blocks = 3, .staleness = PS_KEPT_NEVER, .max_bytes = 1 << 20};
    ps_kept_t kept;

    cr_assert_eq(ps_kept_init(&kept, &rule, &shape, 1, NULL), PSD_OK);
    fetch(&kept, 1, (ps_kept_time_t){.clock = 1, .block = 5}, 0);
    cr_assert(is_kept(&kept, 1, (ps_kept_time_t){.clock = 9, .block = 7}));
    cr_assert_not(is_kept(&kept, 1, (ps_kept_time_t){.clock = 1, .block = 8}));
    ps_kept_done(&kept);
    rule.n_blocks = 1;
    rule.staleness = 2;
    cr_assert_eq(ps_kept_init(&kept, &rule, &shape, 1, NULL), PSD_OK);
    fetch(&kept, 1, (ps_kept_time_t){.clock = 4, .block = 5}, 0);
    cr_assert(is_kept(&kept, 1, (ps_kept_time_t){.clock = 6, .block = 99}));
    cr_assert_not(is_kept(&kept, 1, (ps_kept_time_t){.clock = 7, .block = 6}));
    cr_assert_not(is_kept(&kept, 2, (ps_kept_time_t){.clock = 4, .block = 5}));
    ps_kept_done(&kept);
}

/* No clock from `fetched` to `over` has the row's turn. */
static bool is_unpushed(const ps_kept_rule_t *rule, uint64_t row, uint64_t fetched, uint64_t over)
{
    for (uint64_t clock = fetched; clock <= over; clock++) {
        if ((rule->turn + clock - 1) % rule->n_parts == row % rule->n_parts) {
            return false;
        }
    }
    return true;
}

static void expect_parts(const ps_kept_rule_t *rule)
{
    ps_kept_t kept;

    cr_assert_eq(ps_kept_init(&kept, rule, &shape, 1, NULL), PSD_OK);
    for (uint64_t row = 0; row < 6; row++) {
        for (uint64_t fetched = 1; fetched < 8; fetched++) {
            fetch(&kept, row, (ps_kept_time_t){.clock = fetched, .block = 1}, 0);
            for (uint64_t clock = fetched; clock < 20; clock++) {
                for (uint32_t inner = 0; inner < 4; inner++) {
                    const ps_kept_time_t now = {.clock = clock, .block = 99, .inner = inner};
                    uint64_t late = inner < rule->overlap && clock > 1 ? 1 : 0;

                    cr_assert_eq(is_kept(&kept, row, now),
                                 is_unpushed(rule, row, fetched, clock - 1 - late));
                }
            }
        }
    }
    ps_kept_done(&kept);
}

/* In parts: until the clock of the row's turn has ended, and the overlap after. */
Test(kept, until_their_part_is_pushed)
{
    for (uint64_t n_parts = 1; n_parts < 5; n_parts++) {
        for (uint64_t turn = 0; turn < 3; turn++) {
            for (uint32_t overlap = 0; overlap < 3; overlap++) {
                const ps_kept_rule_t rule = {.n_blocks = 1,
                                             .staleness = PS_KEPT_NEVER,
                                             .max_bytes = 1 << 20,
                                             .bsp = true,
                                             .n_parts = n_parts,
                                             .turn = turn,
                                             .overlap = overlap};

                expect_parts(&rule);
            }
        }
    }
}

/* In parts: of any updater, and pushes change nothing; a move does. */
Test(kept, move_in_parts_of_any_updater)
{
    const ps_kept_rule_t rule = {
        .n_blocks = 1, .staleness = PS_KEPT_NEVER, .max_bytes = 1 << 20, .bsp = true, .n_parts = 2};
    const ps_kept_time_t now = {.clock = 1, .block = 1};
    const ps_shape_t other = {.n_rows = ROWS, .n_cols = 1, .type = PS_TYPE_I64, .value_size = 8};
    uint64_t row = 3;
    uint32_t count = 1;
    uint32_t col = 0;
    int64_t delta = 5;
    const ps_sheaf_t sheaf = {
        .rows = &row, .counts = &count, .cols = &col, .values = &delta, .n_rows = 1, .n_values = 1};
    const int64_t *value = NULL;
    ps_kept_t kept;

    cr_assert_eq(ps_kept_init(&kept, &rule, &other, 1, NULL), PSD_OK);
    fetch(&kept, row, now, 0);
    cr_assert_eq(ps_kept_turn(&kept), 0);
    cr_assert_eq(ps_kept_push(&kept, 0, &sheaf, NULL), PSD_OK);
    cr_assert_eq(ps_kept_mark(&kept, NULL), PSD_OK);
    value = ps_kept_read(&kept, key_of(row), (ps_kept_time_t){.clock = 2, .block = 2});
    cr_assert(value != NULL && *value == 7);
    cr_assert_eq(ps_kept_turn(&kept), 1);
    ps_kept_move(&kept, 0, &sheaf);
    value = ps_kept_read(&kept, key_of(row), (ps_kept_time_t){.clock = 2, .block = 2});
    cr_assert(value != NULL && *value == 12);
    ps_kept_done(&kept);
}

/* Whatever is here, on its way, or pushed in a clock that has not ended. */
Test(kept, are_forgotten_when_clocks_went_by)
{
    const ps_kept_rule_t rule = {.n_blocks = 9, .staleness = 9, .max_bytes = 1 << 20, .bsp = true};
    const ps_kept_time_t now = {.clock = 1, .block = 1};
    const int64_t value = 7;
    uint64_t pull = 0;
    ps_kept_t kept;

    cr_assert_eq(ps_kept_init(&kept, &rule, &shape, 1, NULL), PSD_OK);
    fetch(&kept, 1, now, 0);
    fetch(&kept, 2, now, 5);
    pull = ps_kept_pull(&kept);
    cr_assert(ps_kept_ask(&kept, key_of(3), pull, now, 0));
    cr_assert(is_kept(&kept, 1, now) && is_kept(&kept, 2, now));
    ps_kept_forget(&kept);
    ps_kept_take(&kept, key_of(3), pull, &value);
    for (uint64_t row = 1; row <= 3; row++) {
        cr_assert_not(is_kept(&kept, row, now));
    }
    fetch(&kept, 1, now, 0);
    cr_assert(is_kept(&kept, 1, now));
    ps_kept_done(&kept);
}

/* What was read last stays longest; what is intended stays until its clock has
 * ended. */
Test(kept, go_when_there_is_no_room)
{
    uint64_t each = ps_kept_row_bytes(&shape);
    const ps_kept_rule_t rule = {.n_blocks = 1, .staleness = 100, .max_bytes = 3 * each};
    const ps_kept_time_t now = {.clock = 1, .block = 1};
    ps_kept_t kept;

    cr_assert_eq(ps_kept_init(&kept, &rule, &shape, 1, NULL), PSD_OK);
    for (uint64_t row = 0; row < 3; row++) {
        fetch(&kept, row, now, 0);
    }
    cr_assert(is_kept(&kept, 0, now)); /* read last */
    fetch(&kept, 3, now, 0);
    cr_assert(is_kept(&kept, 0, now) && !is_kept(&kept, 1, now));
    cr_assert_not(ps_kept_reserve(&kept, 4 * each));
    cr_assert(ps_kept_reserve(&kept, 2 * each));
    cr_assert_eq(kept.n_bytes, each, "the others have one place left");
    fetch(&kept, 10, now, 1);
    fetch(&kept, 11, now, 2);
    for (uint64_t row = 20; row < 30; row++) {
        fetch(&kept, row, now, 0);
        cr_assert(is_kept(&kept, row, now));
    }
    cr_assert(is_kept(&kept, 10, now) && is_kept(&kept, 11, now));
    cr_assert_eq(ps_kept_mark(&kept, NULL), PSD_OK);
    cr_assert_not(is_kept(&kept, 29, now), "the oldest one made room for 10");
    fetch(&kept, 30, now, 0);
    cr_assert_not(is_kept(&kept, 10, now));
    cr_assert(is_kept(&kept, 11, now));
    cr_assert_eq(ps_kept_mark(&kept, NULL), PSD_OK);
    ps_kept_release(&kept, 2 * each);
    for (uint64_t row = 40; row < 43; row++) {
        fetch(&kept, row, now, 0);
    }
    cr_assert_not(is_kept(&kept, 11, now));
    ps_kept_done(&kept);
}

/* A table as one row; of another updater, nothing. */
Test(kept, whole_tables_too)
{
    const ps_kept_rule_t rule = {.n_blocks = 1, .staleness = 1, .max_bytes = 1 << 20};
    const ps_kept_time_t now = {.clock = 1, .block = 1};
    const ps_shape_t shapes[] = {
        {.n_rows = 3, .n_cols = 2, .type = PS_TYPE_F32, .value_size = sizeof(float), .adds = true},
        {.n_rows = 3, .n_cols = 2, .type = PS_TYPE_F32, .value_size = 4}};
    const float values[] = {0, 1, 2, 3, 4, 5};
    uint64_t row = 1;
    uint32_t count = 1;
    uint32_t col = 1;
    float delta = 0.5F;
    const ps_sheaf_t sheaf = {
        .rows = &row, .counts = &count, .cols = &col, .values = &delta, .n_rows = 1, .n_values = 1};
    const float *read = NULL;
    ps_kept_t kept;

    cr_assert_eq(ps_kept_init(&kept, &rule, shapes, 2, NULL), PSD_OK);
    cr_assert(ps_kept_ask(&kept, (ps_kept_key_t){.whole = true}, 1, now, 0));
    ps_kept_take(&kept, (ps_kept_key_t){.whole = true}, 1, values);
    cr_assert_eq(ps_kept_push(&kept, 0, &sheaf, NULL), PSD_OK);
    read = ps_kept_read(&kept, (ps_kept_key_t){.whole = true}, now);
    cr_assert(read != NULL && read[3] == 3.5F && read[4] == 4);
    read = ps_kept_read(&kept, key_of(1), now);
    cr_assert(read != NULL && read[0] == 2 && read[1] == 3.5F);
    cr_assert_not(ps_kept_ask(&kept, (ps_kept_key_t){.table = 1}, 1, now, 0));
    cr_assert_eq(ps_kept_push(&kept, 1, &sheaf, NULL), PSD_OK);
    ps_kept_done(&kept);
}

/* Rows that have all of their columns: what is read has each at its place. */
Test(kept, changes_whole_rows_at_the_mark)
{
    const ps_kept_rule_t rule = {.n_blocks = 1, .staleness = 9, .max_bytes = 1 << 20, .bsp = true};
    const ps_kept_time_t now = {.clock = 1, .block = 1};
    const ps_shape_t three = {
        .n_rows = 3, .n_cols = 3, .type = PS_TYPE_F32, .value_size = sizeof(float), .adds = true};
    const float values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    const float wanted[] = {0, 1, 2, 3.5F, 5, 6.5F, 8, 9.5F, 11};
    uint64_t rows[] = {1, 2};
    uint32_t counts[] = {3, 3};
    float deltas[] = {0.5F, 1, 1.5F, 2, 2.5F, 3};
    const ps_sheaf_t sheaf = {.rows = rows,
                              .counts = counts,
                              .values = deltas,
                              .n_rows = 2,
                              .n_values = 6,
                              .whole = true};
    const float *read = NULL;
    ps_kept_t kept;

    cr_assert_eq(ps_kept_init(&kept, &rule, &three, 1, NULL), PSD_OK);
    cr_assert(ps_kept_ask(&kept, (ps_kept_key_t){.whole = true}, 1, now, 0));
    ps_kept_take(&kept, (ps_kept_key_t){.whole = true}, 1, values);
    cr_assert_eq(ps_kept_push(&kept, 0, &sheaf, NULL), PSD_OK);
    read = ps_kept_read(&kept, (ps_kept_key_t){.whole = true}, now);
    cr_assert(read != NULL && memcmp(read, values, sizeof values) == 0);
    cr_assert_eq(ps_kept_mark(&kept, NULL), PSD_OK);
    read = ps_kept_read(&kept, (ps_kept_key_t){.whole = true}, now);
    cr_assert(read != NULL && memcmp(read, wanted, sizeof wanted) == 0);
    ps_kept_done(&kept);
}

/* One value to row 0. */
static void push_one(ps_kept_t *kept, uint32_t table, void *delta)
{
    uint64_t row = 0;
    uint32_t count = 1;
    uint32_t col = 0;
    const ps_sheaf_t sheaf = {
        .rows = &row, .counts = &count, .cols = &col, .values = delta, .n_rows = 1, .n_values = 1};

    cr_assert_eq(ps_kept_push(kept, table, &sheaf, NULL), PSD_OK);
}

/* Pushes that are good one by one, and together more than a value holds: what
 * the server makes of them has to be fetched; of other tables nothing. */
Test(kept, not_behind_more_than_a_value_holds)
{
    const ps_kept_rule_t rule = {.n_blocks = 1, .staleness = 9, .max_bytes = 1 << 20, .bsp = true};
    const ps_kept_time_t now = {.clock = 1, .block = 1};
    const ps_shape_t shapes[] = {
        {.n_rows = 3, .n_cols = 1, .type = PS_TYPE_I32, .value_size = 4, .adds = true},
        {.n_rows = 3, .n_cols = 1, .type = PS_TYPE_F32, .value_size = 4, .adds = true},
        shape};
    int32_t i32 = 2000000000;
    float f32 = 2e38F;
    int64_t i64 = 2;
    const int64_t value = 7;
    psd_error_t *err = psd_error_new();
    const int64_t *read = NULL;
    ps_kept_t kept;

    cr_assert_eq(ps_kept_init(&kept, &rule, shapes, 3, NULL), PSD_OK);
    for (uint32_t i = 0; i < 3; i++) {
        ps_kept_key_t here = {.table = i};
        ps_kept_key_t coming = {.table = i, .row = 1};

        cr_assert(ps_kept_ask(&kept, here, 1, now, i));
        ps_kept_take(&kept, here, 1, &value);
        cr_assert(ps_kept_ask(&kept, coming, 2, now, 0));
    }
    for (int i = 0; i < 2; i++) {
        push_one(&kept, 0, &i32);
        push_one(&kept, 1, &f32);
        push_one(&kept, 2, &i64);
    }
    cr_assert_eq(ps_kept_mark(&kept, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert_str_empty(psd_error_text(err));
    cr_assert_eq(kept.clock, 2);
    for (uint32_t i = 0; i < 3; i++) {
        ps_kept_key_t coming = {.table = i, .row = 1};

        cr_assert_eq(ps_kept_read(&kept, (ps_kept_key_t){.table = i}, now) != NULL, i == 2);
        ps_kept_take(&kept, coming, 2, &value);
        cr_assert_eq(ps_kept_read(&kept, coming, now) != NULL, i == 2);
    }
    read = ps_kept_read(&kept, (ps_kept_key_t){.table = 2}, now);
    cr_assert(read != NULL && *read == value + 2 * i64);
    cr_assert_eq(kept.n_bytes, 2 * ps_kept_row_bytes(&shape));
    cr_assert_eq(ps_kept_mark(&kept, err), PSD_OK, "nothing is left open");
    ps_kept_done(&kept);
    psd_error_destroy(&err);
}

static psd_status_t keep_a_little(void *fixture)
{
    const ps_kept_rule_t rule = {.n_blocks = 1, .staleness = 1, .max_bytes = 1 << 20, .bsp = true};
    const ps_kept_time_t now = {.clock = 1, .block = 1};
    uint64_t row = 1;
    uint32_t count = 1;
    uint32_t col = 0;
    int64_t delta = 1;
    ps_sheaf_t sheaf = {
        .rows = &row, .counts = &count, .cols = &col, .values = &delta, .n_rows = 1, .n_values = 1};
    ps_kept_t kept;
    psd_status_t rc = ps_kept_init(&kept, &rule, &shape, 1, NULL);

    (void)fixture;
    if (rc == PSD_OK && !ps_kept_ask(&kept, key_of(1), 1, now, 0)) {
        rc = PSD_NOMEM;
        cr_assert_eq(kept.n_bytes, 0);
    }
    if (rc == PSD_OK) {
        ps_kept_take(&kept, key_of(1), 1, &delta);
        rc = ps_kept_push(&kept, 0, &sheaf, NULL);
    }
    if (rc == PSD_OK) {
        rc = ps_kept_mark(&kept, NULL);
    }
    ps_kept_done(&kept);
    return rc;
}

Test(kept, without_memory)
{
    cr_assert_null(fail_alloc_sweep(keep_a_little, NULL));
}
