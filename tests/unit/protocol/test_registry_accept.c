/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/registry/registry_accept.h: a table out of what nodes have of it. */
#include "protocol/registry/registry_accept.h"

#include "support/registry_copies_test.h"

#define TABLE 41

TestSuite(registry_accept, .init = make_three, .fini = drop_registry);

static ps_found_t found(uint32_t partition, uint64_t incarnation, uint64_t lsn_epoch, uint64_t lsn,
                        bool whole)
{
    return (ps_found_t){.partition = partition,
                        .incarnation = incarnation,
                        .shard = 1,
                        .epoch = lsn_epoch,
                        .lsn = lsn,
                        .lsn_epoch = lsn_epoch,
                        .whole = whole};
}

Test(registry_accept, prefers_the_newest_whole_copy)
{
    static const struct {
        uint64_t epoch[3]; /* of the last record of nodes 1, 2, 3; 0: it has no copy */
        uint64_t lsn[3];
        bool whole[3];
        uint64_t best; /* 0: none */
    } rows[] = {
        {{4, 4, 0}, {7, 8, 0}, {true, true, false}, 2},
        {{5, 4, 0}, {7, 8, 0}, {true, true, false}, 1}, /* of the later epoch */
        {{4, 4, 4}, {7, 9, 8}, {true, false, true}, 3}, /* a part of the rows is no copy */
        {{4, 4, 0}, {7, 7, 0}, {true, true, false}, 1}, /* equal: the first */
        {{4, 0, 0}, {7, 0, 0}, {false, false, false}, 0},
        {{0, 0, 0}, {0, 0, 0}, {false, false, false}, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ps_found_t copies[3];
        const ps_found_t *best = NULL;
        size_t n = 0;

        for (uint64_t k = 0; k < 3; k++) {
            if (rows[i].epoch[k] != 0) {
                copies[n++] = found(2, k + 1, rows[i].epoch[k], rows[i].lsn[k], rows[i].whole[k]);
            }
        }
        best = ps_found_best(copies, n, 2);
        cr_expect_eq(best == NULL ? 0 : best->incarnation, rows[i].best, "row %zu", i);
        cr_expect_null(ps_found_best(copies, n, 1), "row %zu", i);
    }
}

Test(registry_accept, makes_the_table_again_above_all_epochs)
{
    const ps_found_t copies[] = {found(0, 1, 70, 5, true), found(0, 2, 70, 6, true),
                                 found(0, 3, 70, 6, false), found(1, 3, 90, 1, true)};
    ps_table_spec_t spec = fixture_spec("w");
    const ps_accept_t accept = {.table = TABLE, .spec = &spec, .found = copies, .n_found = 4};
    const ps_table_t *table = NULL;

    spec.n_partitions = 2;
    spec.n_col_slices = 1;
    spec.replicas = 2;
    do_planned(ps_registry_plan_accept(registry, &accept, 3, &command, err));
    table = ps_registry_table(registry, "w");
    cr_assert_not_null(table);
    cr_assert_eq(table->id, TABLE);
    cr_assert_not(table->rows_lost);
    cr_assert_gt(table->copies[0].epoch, 90);
    cr_assert_not(table->copies[0].fenced);
    cr_assert_eq(table->copies[0].n, 2);
    cr_assert_eq(table->copies[0].at[0].incarnation, 2);
    cr_assert_eq(table->copies[0].at[0].state, PS_COPY_PRIMARY);
    cr_assert_eq(table->copies[0].at[1].incarnation, 1);
    cr_assert_eq(table->copies[0].at[1].state, PS_COPY_CATCHING_UP);
    cr_assert_eq(table->copies[1].n, 1);
    cr_assert_eq(table->copies[1].at[0].incarnation, 3);
    cr_assert_geq(ps_registry_last_table(registry), TABLE);
    cr_assert_eq(ps_registry_plan_accept(registry, &accept, 3, &command, err), PSD_TABLE_EXISTS);
}

Test(registry_accept, gives_up_rows_only_when_told_to)
{
    const ps_found_t copies[] = {found(0, 1, 70, 5, true), found(1, 2, 70, 6, false)};
    ps_table_spec_t spec = fixture_spec("w");
    ps_accept_t accept = {.table = TABLE, .spec = &spec, .found = copies, .n_found = 2};
    const ps_table_t *table = NULL;

    spec.n_partitions = 3;
    spec.n_col_slices = 1;
    cr_assert_eq(ps_registry_plan_accept(registry, &accept, 3, &command, err), PSD_DAMAGED);
    cr_assert_not_null(strstr(psd_error_text(err), "2 of the 3 partitions"));
    cr_assert_not_null(strstr(psd_error_text(err), "the first is partition 1"));
    psd_error_clear(err);
    accept.with_loss = true;
    do_planned(ps_registry_plan_accept(registry, &accept, 3, &command, err));
    table = ps_registry_table(registry, "w");
    cr_assert(table->rows_lost);
    cr_assert_eq(table->copies[0].at[0].incarnation, 1);
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(table->copies[i].epoch, table->copies[0].epoch);
        cr_assert_eq(table->copies[i].n, 1);
    }
}
