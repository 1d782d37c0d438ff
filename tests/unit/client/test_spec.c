/* SPDX-License-Identifier: Apache-2.0 */
/* client/requests/spec.c: how a new table is partitioned, whatever is set first. */
#include "client/requests/spec.h"

#include <criterion/criterion.h>

#include "base/alloc.h"

static ps_partition_by_t partition_by(const char *const pairs[])
{
    PSD_AUTO(psd_spec_destroy) psd_spec_t *spec = psd_spec_new();

    cr_assert_not_null(spec);
    for (size_t i = 0; pairs[i] != NULL; i += 2) {
        cr_assert_eq(psd_spec_set(spec, pairs[i], pairs[i + 1], NULL), PSD_OK);
    }
    return spec->spec.partition_by;
}

#define BY(...) partition_by((const char *const[]){__VA_ARGS__, NULL})

Test(spec, hash_keys_are_partitioned_by_hash)
{
    cr_expect_eq(BY("keys", "hash"), PS_PARTITION_BY_HASH);
    cr_expect_eq(BY("rows", "9"), PS_PARTITION_BY_RANGE);
    cr_expect_eq(BY("keys", "hash", "keys", "range"), PS_PARTITION_BY_RANGE);
}

Test(spec, what_is_said_stays_whatever_the_order)
{
    cr_expect_eq(BY("keys", "hash", "partition-by", "range"), PS_PARTITION_BY_RANGE);
    cr_expect_eq(BY("partition-by", "range", "keys", "hash"), PS_PARTITION_BY_RANGE);
    cr_expect_eq(BY("partition-by", "list:5", "keys", "hash"), PS_PARTITION_BY_LIST);
    cr_expect_eq(BY("partition-by", "hash", "keys", "range"), PS_PARTITION_BY_HASH);
}

Test(spec, what_is_refused_changes_nothing)
{
    PSD_AUTO(psd_spec_destroy) psd_spec_t *spec = psd_spec_new();

    cr_assert_not_null(spec);
    cr_expect_eq(psd_spec_set(spec, "partition-by", "luck", NULL), PSD_INVALID);
    cr_expect_eq(psd_spec_set(spec, "keys", "hash", NULL), PSD_OK);
    cr_expect_eq(spec->spec.partition_by, PS_PARTITION_BY_HASH);
}
