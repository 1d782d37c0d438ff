/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that the registry does not know: their rows stay, and nobody is served. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/facts/table_doc.h"
#include "protocol/shard/shard_state.h"

void ps_shard_step_aside(ps_shard_t *self, const ps_event_t *event)
{
    ps_local_table_t *table = ps_map_get(&self->step.tables, event->table);

    if (table != NULL) {
        table->aside = true;
        table->use.restoring = true; /* requests wait, as for rows that are to come */
    }
}

psd_status_t ps_shard_check_aside(const ps_local_table_t *table, const ps_table_spec_t *spec,
                                  psd_error_t *err)
{
    const ps_table_spec_t *here = &table->spec;

    if (!table->aside ||
        (strcmp(here->name, spec->name) == 0 && here->n_rows == spec->n_rows &&
         here->n_cols == spec->n_cols && here->type == spec->type && here->keys == spec->keys &&
         here->row_format == spec->row_format && here->n_partitions == spec->n_partitions &&
         here->n_col_slices == spec->n_col_slices && here->partition_by == spec->partition_by)) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_INVALID,
                         "another table \"%s\" with the number %" PRIu32
                         " is kept aside here; accept or discard that one",
                         here->name, table->id);
}

/* It has all that its last record says: it was no copy that was still catching up, or had
 * begun again. */
static bool is_whole(const ps_partition_t *partition)
{
    const ps_replicas_t *replicas = partition->replicas;

    return replicas == NULL ? !ps_store_is_partial(partition->store)
                            : ps_replicas_has_position(partition) && !replicas->diverged &&
                                  (replicas->primary || !replicas->catching_up);
}

static bool add_partition(const ps_partition_t *partition, ps_doc_t *array)
{
    const ps_store_bytes_t bytes = ps_store_bytes(partition->store);
    ps_doc_t *doc = ps_doc_append_object(array);

    return doc != NULL && ps_doc_set_u64(doc, "partition", partition->number) &&
           ps_doc_set_u64(doc, "epoch", partition->epoch) &&
           ps_doc_set_u64(doc, "lsn", partition->lsn) &&
           ps_doc_set_u64(doc, "lsn_epoch", partition->lsn_epoch) &&
           ps_doc_set_bool(doc, "whole", is_whole(partition)) &&
           ps_doc_set_u64(doc, "rows", bytes.rows_present) &&
           ps_doc_set_u64(doc, "bytes", ps_store_size(partition->store));
}

static bool add_table(const ps_local_table_t *table, ps_doc_t *array)
{
    ps_doc_t *doc = ps_doc_append_object(array);
    ps_doc_t *spec = NULL;
    ps_doc_t *partitions = NULL;
    bool done = doc != NULL && ps_doc_set_u64(doc, "id", table->id);

    spec = done ? ps_doc_add_object(doc, "spec") : NULL;
    done = spec != NULL && ps_table_spec_to_doc(&table->spec, spec);
    partitions = done ? ps_doc_add_array(doc, "partitions") : NULL;
    done = partitions != NULL;
    for (uint32_t i = 0; done && i < table->spec.n_partitions; i++) {
        done = table->partitions[i] == NULL || add_partition(table->partitions[i], partitions);
    }
    return done;
}

psd_status_t ps_shard_list_aside(const ps_shard_t *self, ps_buffer_t *words, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    ps_doc_t *array = doc == NULL ? NULL : ps_doc_add_array(doc, "tables");
    bool done = array != NULL;
    size_t at = 0;
    uint64_t id = 0;
    void *value = NULL;

    while (done && ps_map_next(&self->step.tables, &at, &id, &value)) {
        const ps_local_table_t *table = value;

        done = !table->aside || add_table(table, array);
    }
    return done && ps_doc_print(doc, words)
               ? PSD_OK
               : psd_error_set(err, PSD_NOMEM, "no memory to list tables");
}
