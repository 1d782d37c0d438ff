/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/facts/shard_answer.h: what a copy's shard says is found. */
#include "protocol/facts/shard_answer.h"

#include <criterion/criterion.h>

Test(shard_answer, partitions_and_lags_are_found_in_any_order_of_coming)
{
    ps_partition_info_t first[] = {{.table = 2, .partition = 1, .pushes = 21},
                                   {.table = 1, .partition = 7, .pushes = 17},
                                   {.table = 2, .partition = 0, .pushes = 20}};
    ps_partition_info_t second[] = {{.table = 1, .partition = 7, .pushes = 99}};
    ps_lag_info_t lags[] = {
        {.table = 2, .partition = 1, .incarnation = 9, .shard = 1, .records = 4},
        {.table = 2, .partition = 1, .incarnation = 9, .shard = 0, .records = 3},
        {.table = 2, .partition = 1, .incarnation = 8, .shard = 1, .records = 2},
        {.table = 1, .partition = 9, .incarnation = 9, .shard = 1, .records = 1}};
    ps_shard_answer_t at[] = {
        {.incarnation = 5, .shard = 0},
        {.incarnation = 5, .shard = 1, .partitions = first, .n_partitions = 3},
        {.incarnation = 6, .shard = 1, .partitions = second, .n_partitions = 1},
    };
    ps_answers_t answers = {.at = at, .n = 3};
    const ps_lag_info_t none = {.table = 2, .partition = 1, .incarnation = 7, .shard = 1};

    at[2].lags = lags;
    at[2].n_lags = 4;
    ps_answers_sort(&answers);
    cr_assert_eq(ps_answers_partition(&answers, 5, 1, 2, 0)->pushes, 20);
    cr_assert_eq(ps_answers_partition(&answers, 5, 1, 2, 1)->pushes, 21);
    cr_assert_eq(ps_answers_partition(&answers, 5, 1, 1, 7)->pushes, 17);
    cr_assert_eq(ps_answers_partition(&answers, 6, 1, 1, 7)->pushes, 99);
    cr_assert_null(ps_answers_partition(&answers, 5, 0, 1, 7));
    cr_assert_null(ps_answers_partition(&answers, 5, 1, 1, 6));
    cr_assert_null(ps_answers_partition(&answers, 7, 1, 1, 7));
    for (size_t i = 0; i < 4; i++) {
        const ps_lag_info_t of = {.table = lags[i].table,
                                  .partition = lags[i].partition,
                                  .incarnation = lags[i].incarnation,
                                  .shard = lags[i].shard};

        cr_assert_eq(ps_answers_lag(&answers, &of), &lags[i]);
        cr_assert_eq(lags[i].records, i + 1, "by table, partition, node and shard");
    }
    cr_assert_null(ps_answers_lag(&answers, &none));
}
