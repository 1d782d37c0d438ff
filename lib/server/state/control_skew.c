/* SPDX-License-Identifier: Apache-2.0 */
/* Tables whose rows are unevenly distributed over their partitions. */
#include "server/state/control_inner.h"

#include <inttypes.h>

#include "model/tables/skew.h"

/* Rows of the primaries of one table's partitions. */
typedef struct sizes {
    uint64_t *rows;  /* n */
    uint64_t *bytes; /* n */
    uint32_t n;
    uint32_t n_heard; /* of them; a share is known when all are */
} sizes_t;

static void hear(const ps_table_t *table, const ps_shard_answer_t *call, sizes_t *sizes)
{
    for (size_t i = 0; i < call->n_partitions; i++) {
        const ps_partition_info_t *info = &call->partitions[i];
        const ps_copy_t *primary = NULL;

        if (info->table != table->id || info->partition >= sizes->n) {
            continue;
        }
        primary = ps_copies_primary(&table->copies[info->partition]);
        if (primary == NULL || primary->incarnation != call->incarnation ||
            primary->shard != call->shard) {
            continue;
        }
        sizes->rows[info->partition] = info->bytes.rows_present;
        sizes->bytes[info->partition] = info->bytes.values + info->bytes.state + info->bytes.index;
        sizes->n_heard++;
    }
}

/* The advice that would even it out. */
static const char *advice(const ps_table_spec_t *spec)
{
    if (spec->partition_by == PS_PARTITION_BY_LIST) {
        return "other boundaries (--partition-by list:ROW,…) would balance them";
    }
    if (spec->partition_by == PS_PARTITION_BY_RANGE && spec->keys == PS_KEYS_HASH) {
        return "its keys are not evenly spread over 0 .. 2^64 - 1, and it is partitioned by range; "
               "a table that is made with --partition-by hash balances them";
    }
    return "more partitions may balance them";
}

static bool warn(const ps_table_t *table, const char *what, const uint64_t *sizes, size_t part,
                 uint64_t sum, ps_doc_t *array)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    double share = (double)sum / table->spec.n_partitions;

    return ps_buffer_print(&text,
                           "table \"%s\": partition %zu has %" PRIu64 " of %" PRIu64
                           " %s, %.1f times its share; %s",
                           table->spec.name, part, sizes[part], sum, what,
                           (double)sizes[part] / share, advice(&table->spec)) &&
           ps_doc_append_text(array, (const char *)text.data);
}

bool ps_control_add_skew(const ps_table_t *table, const ps_answers_t *answers, ps_doc_t *array)
{
    PSD_AUTO(ps_free_at) uint64_t *numbers = NULL;
    sizes_t sizes = {.n = table->spec.n_partitions};
    uint64_t sum = 0;
    size_t part = 0;

    if (sizes.n <= PS_SKEW_FACTOR) {
        return true;
    }
    numbers = ps_alloc(2 * (size_t)sizes.n, sizeof *numbers);
    if (numbers == NULL) {
        return false;
    }
    sizes.rows = numbers;
    sizes.bytes = numbers + sizes.n;
    for (uint32_t i = 0; i < answers->n; i++) {
        hear(table, &answers->at[i], &sizes);
    }
    if (sizes.n_heard != sizes.n) {
        return true;
    }
    if (ps_skew_find(sizes.rows, sizes.n, PS_SKEW_ROWS_MIN, &part, &sum)) {
        return warn(table, "rows", sizes.rows, part, sum, array);
    }
    return !ps_skew_find(sizes.bytes, sizes.n, PS_SKEW_BYTES_MIN, &part, &sum) ||
           warn(table, "bytes", sizes.bytes, part, sum, array);
}

bool ps_control_add_warnings(const ps_control_t *self, const ps_answers_t *answers, ps_doc_t *reply)
{
    const ps_registry_t *registry = self->is.registry;
    ps_doc_t *array = ps_doc_add_array(reply, "warnings");
    bool done = array != NULL && ps_control_add_lonely(self, array) &&
                ps_control_add_memory(self, answers, array);

    for (size_t i = 0; done && i < ps_registry_n_tables(registry); i++) {
        done = ps_control_add_skew(ps_registry_table_at(registry, i), answers, array);
    }
    return done;
}
