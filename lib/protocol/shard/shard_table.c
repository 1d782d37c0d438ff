/* SPDX-License-Identifier: Apache-2.0 */
/* Tables come, move and go: which partitions this shard holds. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "model/store/store_growth.h"
#include "protocol/admission/admission.h"
#include "protocol/shard/shard_recover.h"
#include "protocol/shard/shard_state.h"

void ps_shard_partition_destroy(ps_partition_t **self_p)
{
    if (*self_p != NULL) {
        ps_replicas_destroy(&(*self_p)->replicas);
        ps_partition_destroy(self_p);
    }
}

void ps_shard_table_destroy(ps_local_table_t **self_p)
{
    ps_local_table_t *self = self_p == NULL ? NULL : *self_p;

    if (self == NULL) {
        return;
    }
    for (uint32_t i = 0; self->partitions != NULL && i < self->spec.n_partitions; i++) {
        ps_shard_partition_destroy(&self->partitions[i]);
    }
    ps_free(self->partitions);
    ps_free(self->routes);
    ps_table_spec_done(&self->spec);
    ps_free(self);
    *self_p = NULL;
}

#define NOT_HERE UINT32_MAX

/* This shard's place among the copies of partition i; NOT_HERE: none. */
static uint32_t place_of(const ps_shard_t *self, const ps_event_t *event, uint32_t i)
{
    const ps_copies_t *copies = event->copies == NULL ? NULL : &event->copies[i];

    if (copies == NULL) {
        return event->routes[i].incarnation == self->step.args.incarnation &&
                       event->routes[i].shard == self->step.args.shard
                   ? 0
                   : NOT_HERE;
    }
    for (uint32_t k = 0; k < copies->n; k++) {
        if (copies->at[k].incarnation == self->step.args.incarnation &&
            copies->at[k].shard == self->step.args.shard) {
            return k;
        }
    }
    return NOT_HERE;
}

/* The event's line of the map is older than what is known of partition i. */
static bool is_older(const ps_local_table_t *table, const ps_event_t *event, uint32_t i)
{
    const ps_partition_t *partition = table->partitions[i];
    uint64_t epoch = event->routes[i].epoch;

    return epoch < table->routes[i].epoch ||
           (partition != NULL &&
            (epoch < partition->epoch ||
             (partition->replicas != NULL && epoch < partition->replicas->fence)));
}

static bool is_here(const ps_shard_t *self, const ps_local_table_t *table, const ps_event_t *event,
                    uint32_t i)
{
    return is_older(table, event, i) ? table->partitions[i] != NULL
                                     : place_of(self, event, i) != NOT_HERE;
}

/* It has, or has had, other copies, or is not the one that answers. */
static bool has_copies(const ps_event_t *event, uint32_t i)
{
    return event->copies != NULL && (event->copies[i].n > 1 || event->copies[i].fenced ||
                                     event->copies[i].at[0].state != PS_COPY_PRIMARY);
}

static psd_status_t new_table(const ps_event_t *event, ps_local_table_t **ret, psd_error_t *err)
{
    PSD_AUTO(ps_shard_table_destroy)
    ps_local_table_t *table = ps_alloc(1, sizeof *table);
    psd_status_t rc;

    if (table == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a table");
    }
    rc = ps_table_spec_copy(event->spec, &table->spec, err);
    if (rc != PSD_OK) {
        return rc;
    }
    table->id = event->table;
    table->use.restoring = event->restoring;
    table->routes = ps_alloc(event->n_routes, sizeof *table->routes);
    table->partitions = ps_alloc(event->n_routes, sizeof(ps_partition_t *));
    if (table->routes == NULL || table->partitions == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a table");
    }
    *ret = table;
    table = NULL;
    return PSD_OK;
}

/* The table's memory limit on a shard with n_here of its partitions. */
static uint64_t share_of(uint64_t table_bytes, uint32_t n_here, uint32_t n_partitions)
{
    uint64_t each = table_bytes / n_partitions;
    uint64_t rest = table_bytes % n_partitions;

    return each * n_here + rest * n_here / n_partitions;
}

static uint32_t count_here(const ps_shard_t *self, const ps_local_table_t *table,
                           const ps_event_t *event)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < event->n_routes; i++) {
        n += is_here(self, table, event, i) ? 1 : 0;
    }
    return n;
}

static psd_status_t check_share(const ps_shard_t *self, const ps_local_table_t *table,
                                const ps_event_t *event, uint64_t more, psd_error_t *err)
{
    uint64_t limit = self->step.args.table_bytes;
    uint64_t kept = table->use.row_bytes;
    uint32_t n_here = count_here(self, table, event);
    uint64_t share = share_of(limit, n_here, event->n_routes);

    if (limit == 0 || more == 0 || (kept <= share && more <= share - kept)) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_LIMIT,
                         "its rows take %" PRIu64 " bytes on shard %" PRIu32 "; allowed: %" PRIu64
                         " for %" PRIu32 " of %" PRIu32
                         " partitions, as limits.table_bytes is %" PRIu64,
                         kept + more, self->step.args.shard, share, n_here, event->n_routes, limit);
}

/* Arrays allocate all their memory at once. */
static psd_status_t check_budget(const ps_shard_t *self, const ps_local_table_t *table,
                                 const ps_event_t *event, ps_partition_t *const *made,
                                 psd_error_t *err)
{
    uint64_t limit = self->step.args.memory_bytes;
    uint64_t kept = ps_shard_bytes(self) + self->step.other_bytes;
    uint64_t more = 0;
    psd_status_t rc = PSD_OK;

    for (uint32_t i = 0; i < event->n_routes; i++) {
        more += made[i] == NULL ? 0 : ps_store_footprint(made[i]->store);
    }
    rc = check_share(self, table, event, more, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (limit == 0 || (kept <= limit && more <= limit - kept)) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_LIMIT,
                         "its rows take %" PRIu64 " bytes here and the node "
                         "keeps %" PRIu64 "; limits.memory_bytes is %" PRIu64,
                         more, kept, limit);
}

static void drop_partition(ps_shard_t *self, ps_partition_t **partition_p,
                           const ps_local_table_t *moved)
{
    if (*partition_p != NULL) {
        ps_partition_leave(&self->step, *partition_p, moved);
        ps_partition_log_leave(&self->step, *partition_p);
        ps_partition_count_rows(&self->step, *partition_p, true);
        ps_shard_partition_destroy(partition_p);
    }
}

/* A partition that is here, by its new line of the map. */
static void settle(ps_shard_t *self, ps_local_table_t *table, const ps_event_t *event, uint32_t i)
{
    ps_partition_t *partition = table->partitions[i];
    uint32_t own = place_of(self, event, i);
    const ps_copies_t *copies = NULL;
    const ps_copies_t alone = {.epoch = event->routes[i].epoch,
                               .n = 1,
                               .at = {{.incarnation = self->step.args.incarnation,
                                       .shard = self->step.args.shard,
                                       .state = PS_COPY_PRIMARY}}};

    if (partition->replicas == NULL || (event->copies == NULL && !partition->has_log)) {
        partition->epoch = event->copies == NULL ? event->routes[i].epoch : event->copies[i].epoch;
        if (partition->replicas != NULL) {
            ps_replicas_set_lead(partition);
        }
        return;
    }
    copies = event->copies == NULL ? &alone : &event->copies[i];
    if (partition->replicas->primary && copies->fenced) {
        ps_partition_turn_away(&self->step, partition, table);
        ps_replicas_stop(&self->step, partition, copies->epoch);
    } else if (partition->replicas->primary && copies->at[own].state != PS_COPY_PRIMARY) {
        ps_partition_turn_away(&self->step, partition, table);
        ps_replicas_resign(&self->step, partition);
    }
    ps_replicas_settle(&self->step, partition, copies, own);
    ps_partition_go_on(&self->step, partition);
}

/* A primary has links to all other copies. */
static psd_status_t make_links(ps_shard_t *self, const ps_copies_t *copies, psd_error_t *err)
{
    for (uint32_t k = 1; k < copies->n; k++) {
        if (ps_shard_links_to(&self->links, &copies->at[k]) == NULL) {
            return psd_error_set(err, PSD_NOMEM, "no memory for a link");
        }
    }
    return PSD_OK;
}

/* What a partition must have before it follows its new line of the map. */
static psd_status_t equip(ps_shard_t *self, ps_partition_t *partition, const ps_event_t *event,
                          uint32_t i, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (partition->replicas == NULL && (partition->has_log || has_copies(event, i))) {
        rc = ps_replicas_new(&self->step, partition->lsn, partition->lsn_epoch,
                             &partition->replicas, err);
        if (rc == PSD_OK) {
            ps_replicas_set_lead(partition);
        }
        if (rc == PSD_OK && partition->lsn > 0) {
            partition->replicas->settled = true;
            partition->replicas->primary = true;
            partition->replicas->serving = true;
            ps_replicas_set_lead(partition);
        }
    }
    if (rc == PSD_OK && event->copies != NULL && !event->copies[i].fenced &&
        place_of(self, event, i) == 0) {
        rc = make_links(self, &event->copies[i], err);
        if (rc == PSD_OK && event->rows_lost && partition->replicas != NULL &&
            !ps_replicas_begin_empty(&self->step, partition)) {
            rc = psd_error_set(err, PSD_NOMEM, "no memory for a partition");
        }
    }
    return rc;
}

/* Other copies' logs may have records of a life of it of which nothing is here:
 * its rows are lost, or it ended before anything was flushed. A primary tells
 * what comes now from those by an epoch record. */
static bool may_have_lived(const ps_local_table_t *table, const ps_event_t *event,
                           const ps_partition_t *made)
{
    return made->has_log && (table->was_found || event->rows_lost);
}

/* Creates a partition that should be here; does nothing if it exists. */
static psd_status_t make_partition(ps_shard_t *self, ps_local_table_t *table,
                                   const ps_event_t *event, uint32_t i, ps_partition_t **ret_made,
                                   psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (table->partitions[i] != NULL || !is_here(self, table, event, i)) {
        return PSD_OK;
    }
    rc = ps_partition_new(&table->spec, &table->use, table->id, i,
                          event->copies == NULL ? event->routes[i].epoch : event->copies[i].epoch,
                          ret_made, err);
    if (rc != PSD_OK) {
        return rc;
    }
    (*ret_made)->has_log = ps_shard_has_log(self, &table->spec);
    rc = equip(self, *ret_made, event, i, err);
    if (rc == PSD_OK && may_have_lived(table, event, *ret_made)) {
        (*ret_made)->replicas->settled = true;
    }
    return rc;
}

/* The log may have records and a snapshot of an earlier life, which was here
 * and moved away: marks in the log that this life begins, before its
 * records. */
static psd_status_t begin_lives(ps_shard_t *self, ps_partition_t **made, uint32_t n_routes,
                                psd_error_t *err)
{
    size_t n = 0;
    bool is_told = true;

    for (uint32_t i = 0; i < n_routes; i++) {
        n += made[i] != NULL && made[i]->has_log ? 1 : 0;
    }
    is_told = n == 0 || ps_outbox_reserve(self->step.outbox, n); /* all or none */
    for (uint32_t i = 0; is_told && i < n_routes; i++) {
        if (made[i] != NULL && made[i]->has_log) {
            made[i]->life = ++self->step.n_lives;
            is_told = ps_partition_log_anew(&self->step, made[i]);
        }
    }
    return is_told ? PSD_OK : psd_error_set(err, PSD_NOMEM, "no memory for a record");
}

/* Creates the missing partitions that should be here; all or none. */
static psd_status_t make_partitions(ps_shard_t *self, ps_local_table_t *table,
                                    const ps_event_t *event, psd_error_t *err)
{
    ps_partition_t **made = ps_alloc(event->n_routes, sizeof *made);
    psd_status_t rc = PSD_OK;

    if (made == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a table");
    }
    for (uint32_t i = 0; i < event->n_routes && rc == PSD_OK; i++) {
        rc = make_partition(self, table, event, i, &made[i], err);
    }
    if (rc == PSD_OK) {
        rc = check_budget(self, table, event, made, err);
    }
    if (rc == PSD_OK) {
        rc = begin_lives(self, made, event->n_routes, err);
    }
    for (uint32_t i = 0; i < event->n_routes; i++) {
        if (rc != PSD_OK) {
            ps_shard_partition_destroy(&made[i]);
        } else if (made[i] != NULL) {
            table->partitions[i] = made[i];
            ps_partition_count_rows(&self->step, made[i], false);
        }
    }
    ps_free(made);
    return rc;
}

/* Takes over each line of the map that is not older than what is here, and for
 * which there is what it needs; the first error of another one. */
static psd_status_t take_routes(ps_shard_t *self, ps_local_table_t *table, const ps_event_t *event,
                                psd_error_t *err)
{
    psd_status_t first = PSD_OK;

    for (uint32_t i = 0; i < event->n_routes; i++) {
        psd_status_t rc = PSD_OK;

        if (is_older(table, event, i)) {
            continue;
        }
        if (place_of(self, event, i) != NOT_HERE) {
            rc = table->partitions[i] == NULL ? PSD_NOMEM /* said already */
                                              : equip(self, table->partitions[i], event, i, err);
        }
        if (rc == PSD_OK) {
            table->routes[i] = event->routes[i];
        }
        first = first == PSD_OK ? rc : first;
    }
    return first;
}

static void follow_routes(ps_shard_t *self, ps_local_table_t *table, const ps_event_t *event)
{
    for (uint32_t i = 0; i < event->n_routes; i++) {
        if (event->routes[i].epoch != table->routes[i].epoch || is_older(table, event, i)) {
            continue;
        }
        if (place_of(self, event, i) != NOT_HERE) {
            settle(self, table, event, i);
        } else {
            drop_partition(self, &table->partitions[i], table);
        }
    }
}

static psd_status_t visit_paired(ps_shard_t *self, ps_partition_t *partition, const void *arg,
                                 psd_error_t *err)
{
    (void)arg;
    (void)err;
    if (partition->n_held > 0) {
        ps_partition_advance(&self->step, partition);
    }
    return PSD_OK;
}

/* A partition is gone: answers requests of other partitions that also waited
 * for it. */
static void tell_paired(ps_shard_t *self)
{
    psd_status_t rc =
        self->step.n_paired == 0 ? PSD_OK : ps_shard_visit(self, visit_paired, NULL, NULL);

    (void)rc; /* no visit fails */
}

static psd_status_t visit_loss(ps_shard_t *self, ps_partition_t *partition, const void *arg,
                               psd_error_t *err)
{
    const uint32_t *lost = arg;

    (void)err;
    ps_partition_refuse_lost(&self->step, partition, *lost, ps_map_get(&self->step.tables, *lost));
    return PSD_OK;
}

/* Rows of the table are lost, here or elsewhere: refuses waiting requests of
 * sessions that used them, at partitions of any table. */
static void take_loss(ps_shard_t *self, ps_local_table_t *table, const ps_event_t *event)
{
    psd_status_t rc = PSD_OK;

    if (event->lost_sessions <= table->lost_sessions) {
        return;
    }
    table->lost_sessions = event->lost_sessions;
    if (self->step.n_held > 0) {
        rc = ps_shard_visit(self, visit_loss, &event->table, NULL);
    }
    (void)rc; /* no visit fails */
}

/* All rows of the table are there, in all partitions: clients go on. An older
 * word does not take that back. */
static void take_restored(ps_shard_t *self, ps_local_table_t *table, const ps_event_t *event)
{
    if (!table->use.restoring || event->restoring) {
        return;
    }
    table->use.restoring = false;
    for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
        if (table->partitions[i] != NULL) {
            ps_partition_advance(&self->step, table->partitions[i]);
        }
    }
}

/* What becomes of pushes from the next clock on. An older word does not take
 * that back. */
static void take_combine(ps_local_table_t *table, const ps_event_t *event)
{
    if (!is_older(table, event, 0)) {
        table->spec.combine = event->spec->combine;
    }
}

bool ps_shard_has_table(const ps_shard_t *self, const ps_event_t *event)
{
    const ps_local_table_t *table = ps_map_get(&self->step.tables, event->table);

    return table != NULL &&
           (is_older(table, event, 0) || table->spec.combine == event->spec->combine ||
            ps_shard_check_aside(table, event->spec, NULL) != PSD_OK);
}

psd_status_t ps_shard_step_table(ps_shard_t *self, const ps_event_t *event, psd_error_t *err)
{
    ps_local_table_t *table = ps_map_get(&self->step.tables, event->table);
    ps_local_table_t *fresh = NULL;
    psd_status_t equipped = PSD_OK;
    psd_status_t rc;

    if (table == NULL) {
        rc = new_table(event, &fresh, err);
        if (rc != PSD_OK) {
            return rc;
        }
        table = fresh;
    }
    rc = ps_shard_check_aside(table, event->spec, err);
    if (rc != PSD_OK) {
        return rc;
    }
    rc = make_partitions(self, table, event, err);
    table->aside = rc != PSD_OK && table->aside;
    if (rc == PSD_OK && fresh != NULL && !ps_map_put(&self->step.tables, event->table, fresh)) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for a table");
    }
    if (rc != PSD_OK && fresh != NULL) {
        ps_shard_table_destroy(&fresh);
        return psd_error_wrap(err, rc, "table %s", event->spec->name);
    }
    equipped = take_routes(self, table, event, rc == PSD_OK ? err : NULL);
    rc = rc == PSD_OK ? equipped : rc;
    table->use.n_here = count_here(self, table, event);
    if (self->step.args.table_bytes > 0) {
        uint64_t share = share_of(self->step.args.table_bytes, table->use.n_here, event->n_routes);

        table->use.limit_bytes = share > 0 ? share : 1;
    }
    take_combine(table, event);
    take_loss(self, table, event);
    follow_routes(self, table, event);
    take_restored(self, table, event);
    ps_shard_close_links(self);
    tell_paired(self);
    return rc == PSD_OK ? PSD_OK : psd_error_wrap(err, rc, "table %s", event->spec->name);
}

void ps_shard_step_drop(ps_shard_t *self, const ps_event_t *event)
{
    ps_local_table_t *table = ps_map_remove(&self->step.tables, event->table);
    bool is_noted = ps_map_put(&self->step.dropped, event->table, self);

    (void)is_noted; /* without memory it counts as one that is not told yet, for a while */
    for (uint32_t i = 0; table != NULL && i < table->spec.n_partitions; i++) {
        if (table->partitions[i] != NULL) {
            ps_partition_leave(&self->step, table->partitions[i], NULL);
            ps_partition_count_rows(&self->step, table->partitions[i], true);
        }
    }
    ps_shard_table_destroy(&table);
    tell_paired(self);
}
