/* SPDX-License-Identifier: Apache-2.0 */
/* A table as pscli shows it: spec, sizes, places, counts. */
#include "server/state/control_inner.h"

#include <stdio.h>

#include "model/tables/partition.h"
#include "protocol/facts/table_doc.h"

/* What the shard of one copy reports; NULL: it has not answered. */
static const ps_partition_info_t *find_info(const ps_answers_t *answers, const ps_copy_t *copy,
                                            uint32_t table, uint32_t partition)
{
    return ps_answers_partition(answers, copy->incarnation, copy->shard, table, partition);
}

static void add_memory(ps_partition_info_t *sum, const ps_partition_info_t *info)
{
    sum->bytes.values += info->bytes.values;
    sum->bytes.state += info->bytes.state;
    sum->bytes.index += info->bytes.index;
    sum->held_bytes += info->held_bytes;
    sum->queue_bytes += info->queue_bytes;
}

/* Sums over all partitions of one table: the bytes of all copies, and the
 * counts of the primaries. */
static ps_partition_info_t sum_of(const ps_answers_t *answers, const ps_table_t *table)
{
    ps_partition_info_t sum = {.table = table->id};

    for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
        const ps_copies_t *copies = &table->copies[i];

        for (uint32_t k = 0; k < copies->n; k++) {
            const ps_partition_info_t *info = find_info(answers, &copies->at[k], table->id, i);

            if (info == NULL) {
                continue;
            }
            add_memory(&sum, info);
            if (k == 0) {
                sum.bytes.rows_present += info->bytes.rows_present;
                sum.pushes += info->pushes;
                sum.pulls += info->pulls;
                sum.rows_pushed += info->rows_pushed;
                sum.rows_pulled += info->rows_pulled;
            }
        }
    }
    return sum;
}

static bool add_bytes(ps_doc_t *doc, const ps_partition_info_t *sum)
{
    ps_doc_t *bytes = ps_doc_add_object(doc, "bytes");

    return bytes != NULL && ps_doc_set_u64(bytes, "values", sum->bytes.values) &&
           ps_doc_set_u64(bytes, "state", sum->bytes.state) &&
           ps_doc_set_u64(bytes, "index", sum->bytes.index) &&
           ps_doc_set_u64(bytes, "log", sum->held_bytes) &&
           ps_doc_set_u64(bytes, "queues", sum->queue_bytes);
}

/* "node/shard" */
static void print_place(const ps_control_t *self, const ps_copy_t *copy, char *ret_text,
                        size_t size)
{
    const ps_node_t *node = ps_registry_node_by_incarnation(self->is.registry, copy->incarnation);

    (void)snprintf(ret_text, size, "%s/%u", node == NULL ? "?" : node->name, copy->shard);
}

/* Places of the copies that are whole, or of those that are not. */
static bool add_whole(const ps_control_t *self, const ps_copies_t *copies, bool whole,
                      ps_doc_t *array)
{
    bool done = array != NULL;

    for (uint32_t i = 0; done && i < copies->n; i++) {
        char place[PS_NAME_MAX + 16];

        if (ps_copy_is_whole(&copies->at[i]) == whole) {
            print_place(self, &copies->at[i], place, sizeof place);
            done = ps_doc_append_text(array, place);
        }
    }
    return done;
}

/* What the primary knows of another copy; NULL: nothing. */
static const ps_lag_info_t *find_lag(const ps_answers_t *answers, const ps_copy_t *copy,
                                     uint32_t table, uint32_t partition)
{
    const ps_lag_info_t of = {.table = table,
                              .partition = partition,
                              .incarnation = copy->incarnation,
                              .shard = copy->shard};

    return ps_answers_lag(answers, &of);
}

/* The copy's lag: the records that the primary does not know it to have,
 * their bytes, and the age of the oldest. lag NULL: it is the primary, or
 * the primary has not answered. */
static bool add_lag(const ps_lag_info_t *lag, bool is_primary, ps_doc_t *item)
{
    uint64_t now_ms = ps_now_ms();
    uint64_t since_ms =
        lag != NULL && lag->behind && lag->level_ms < now_ms ? now_ms - lag->level_ms : 0;

    if (lag == NULL && !is_primary) {
        return true; /* unknown */
    }
    return ps_doc_set_u64(item, "lag_records", lag == NULL ? 0 : lag->records) &&
           ps_doc_set_u64(item, "lag_bytes", lag == NULL ? 0 : lag->bytes) &&
           ps_doc_set_f64(item, "lag_s", (double)since_ms / 1000.0);
}

/* What its shard reports of a copy. */
static bool add_size(const ps_partition_info_t *info, ps_doc_t *item)
{
    return ps_doc_set_u64(item, "lsn", info->lsn) &&
           ps_doc_set_u64(item, "rows_present", info->bytes.rows_present) &&
           ps_doc_set_u64(item, "bytes", info->come_bytes);
}

/* Each copy: its place, state, position, and lag. */
static bool add_copies(const ps_control_t *self, const ps_table_t *table, uint32_t partition,
                       const ps_answers_t *answers, ps_doc_t *array)
{
    const ps_copies_t *copies = &table->copies[partition];
    bool done = array != NULL;

    for (uint32_t i = 0; done && i < copies->n; i++) {
        const ps_copy_t *copy = &copies->at[i];
        const ps_partition_info_t *info = find_info(answers, copy, table->id, partition);
        const ps_lag_info_t *lag = find_lag(answers, copy, table->id, partition);
        ps_doc_t *item = ps_doc_append_object(array);
        char place[PS_NAME_MAX + 16];

        print_place(self, copy, place, sizeof place);
        done = item != NULL && ps_doc_set_text(item, "place", place) &&
               ps_doc_set_text(item, "state", ps_copy_state_name(copy->state)) &&
               ps_doc_set_bool(item, "leaving", copy->leaving) &&
               ps_doc_set_bool(item, "answers", info != NULL);
        done = done && (info == NULL || add_size(info, item)) &&
               add_lag(lag, copy->state == PS_COPY_PRIMARY, item);
    }
    return done;
}

/* The primary is "" while the partition is fenced. */
static bool add_places(const ps_control_t *self, const ps_copies_t *copies, ps_doc_t *doc)
{
    const ps_copy_t *primary = ps_copies_primary(copies);
    char place[PS_NAME_MAX + 16] = "";

    if (primary != NULL) {
        print_place(self, primary, place, sizeof place);
    }
    return ps_doc_set_text(doc, "primary", place) &&
           add_whole(self, copies, true, ps_doc_add_array(doc, "in_sync")) &&
           add_whole(self, copies, false, ps_doc_add_array(doc, "catching_up"));
}

/* {"pushes":…} as the primary of a partition, or all of a table, counted them. */
static bool add_stats(const ps_partition_info_t *sum, ps_doc_t *doc)
{
    ps_doc_t *stats = ps_doc_add_object(doc, "stats");

    return stats != NULL && ps_doc_set_u64(stats, "pushes", sum->pushes) &&
           ps_doc_set_u64(stats, "pulls", sum->pulls) &&
           ps_doc_set_u64(stats, "rows_pushed", sum->rows_pushed) &&
           ps_doc_set_u64(stats, "rows_pulled", sum->rows_pulled);
}

static bool add_partition(const ps_control_t *self, const ps_table_t *table, uint32_t partition,
                          const ps_answers_t *answers, ps_doc_t *doc)
{
    ps_extent_t extent = ps_extent_of(&table->spec, partition);
    const ps_partition_info_t *info =
        find_info(answers, &table->copies[partition].at[0], table->id, partition);

    return ps_doc_set_u64(doc, "id", partition) &&
           ps_doc_set_u64(doc, "first_row", extent.first_row) &&
           ps_doc_set_u64(doc, "last_row", extent.last_row) &&
           ps_doc_set_u64(doc, "first_col", extent.first_col) &&
           ps_doc_set_u64(doc, "last_col", extent.last_col) &&
           add_places(self, &table->copies[partition], doc) &&
           add_copies(self, table, partition, answers, ps_doc_add_array(doc, "copies")) &&
           ps_doc_set_u64(doc, "epoch", table->routes[partition].epoch) &&
           ps_doc_set_u64(doc, "lsn", info == NULL ? 0 : info->lsn) &&
           ps_doc_set_u64(doc, "rows_present", info == NULL ? 0 : info->bytes.rows_present) &&
           (info == NULL || add_stats(info, doc));
}

static bool add_partitions(const ps_control_t *self, const ps_table_t *table,
                           const ps_answers_t *answers, ps_doc_t *doc)
{
    ps_doc_t *array = ps_doc_add_array(doc, "partitions");

    for (uint32_t i = 0; array != NULL && i < table->spec.n_partitions; i++) {
        ps_doc_t *item = ps_doc_append_object(array);

        if (item == NULL || !add_partition(self, table, i, answers, item)) {
            return false;
        }
    }
    return array != NULL;
}

/* A row that is split by columns counts once in each of its slices. */
static uint64_t whole_rows(const ps_table_t *table, uint64_t n)
{
    return table->spec.n_col_slices > 1 ? n / table->spec.n_col_slices : n;
}

bool ps_control_table_doc(const ps_control_t *self, const ps_table_t *table,
                          const ps_answers_t *answers, bool with_partitions, ps_doc_t *doc)
{
    ps_partition_info_t sum = sum_of(answers, table);

    if (!ps_table_spec_to_doc(&table->spec, doc) || !ps_doc_set_u64(doc, "id", table->id) ||
        !ps_doc_set_u64(doc, "created_unix_ms", table->created_unix_ms) ||
        !ps_doc_set_u64(doc, "rows_present", whole_rows(table, sum.bytes.rows_present)) ||
        !add_bytes(doc, &sum) ||
        !ps_doc_set_u64(doc, "limit_bytes", self->is.config->limits.table_bytes) ||
        !ps_doc_set_bool(doc, "rows_lost", table->rows_lost) ||
        !ps_doc_set_bool(doc, "loss_acked", table->loss_acked)) {
        return false;
    }
    if (table->rows_lost && !table->loss_acked &&
        !ps_doc_set_text(doc, "hint",
                         "the node was restarted and the rows restart at their initial values; "
                         "\"pscli table ack\" accepts the loss and keeps the rows that came since, "
                         "or drop and create the table")) {
        return false;
    }
    return !with_partitions || add_partitions(self, table, answers, doc);
}

bool ps_control_stats_doc(const ps_table_t *table, const ps_answers_t *answers, ps_doc_t *doc)
{
    ps_partition_info_t sum = sum_of(answers, table);

    return add_stats(&sum, doc);
}
