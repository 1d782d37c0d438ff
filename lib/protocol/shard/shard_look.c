/* SPDX-License-Identifier: Apache-2.0 */
/* One look at all that a shard has, for /metrics. */
#include "base/alloc.h"
#include "protocol/replica/replicas.h"
#include "protocol/shard/shard_state.h"

/* A sum over the partitions. */
typedef struct sums {
    uint64_t roles[PS_DIM_ROLE];
    uint64_t headless;
    uint64_t restoring;
    uint64_t copies;
    uint64_t copies_behind;
    uint64_t lag_records; /* the worst, as the next two */
    uint64_t lag_bytes;
    uint64_t lag_ms;
} sums_t;

void ps_shard_look_destroy(ps_shard_look_t **look_p)
{
    ps_shard_look_t *look = *look_p;

    if (look != NULL) {
        ps_free(look->tables);
        ps_free(look->workers);
        ps_free(look);
    }
    *look_p = NULL;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- copies ---- */

static void add_lag(const ps_replicas_t *replicas, uint64_t now_ms, sums_t *sums)
{
    const ps_tail_t *tail = &replicas->tail;
    uint64_t last = ps_tail_last(tail);

    for (uint32_t i = 0; i < replicas->n_followers; i++) {
        const ps_follower_t *follower = &replicas->followers[i];
        uint64_t since_ms = follower->level_ms < now_ms ? now_ms - follower->level_ms : 0;

        sums->copies++;
        if (!follower->needs_rows && follower->acked_lsn >= last) {
            continue;
        }
        sums->copies_behind++;
        sums->lag_records =
            most(sums->lag_records, follower->acked_lsn < last ? last - follower->acked_lsn : 0);
        sums->lag_bytes = most(
            sums->lag_bytes, follower->acked_end < tail->end ? tail->end - follower->acked_end : 0);
        sums->lag_ms = most(sums->lag_ms, since_ms);
    }
}

/* It has no primary by the map, or one that waits for the lease of the former. */
static bool is_headless(const ps_partition_t *partition)
{
    const ps_replicas_t *replicas = partition->replicas;

    return replicas != NULL &&
           (partition->epoch < replicas->fence || (replicas->primary && !replicas->serving));
}

static void add_partition(const ps_local_table_t *table, const ps_partition_t *partition,
                          uint64_t now_ms, sums_t *sums, ps_table_counts_t *counts)
{
    bool is_primary = partition->replicas == NULL || partition->replicas->primary;

    sums->roles[table->aside ? PS_ROLE_ASIDE : is_primary ? PS_ROLE_PRIMARY : PS_ROLE_COPY]++;
    if (table->aside) {
        return;
    }
    sums->headless += is_headless(partition) ? 1 : 0;
    sums->restoring += ps_partition_is_restoring(partition) ? 1 : 0;
    ps_count_add(counts->partitions, 1);
    ps_count_add(counts->bytes, ps_store_size(partition->store));
    ps_count_add(counts->pushes, partition->pushes);
    ps_count_add(counts->pulls, partition->pulls);
    ps_count_add(counts->rows_pushed, partition->rows_pushed);
    ps_count_add(counts->rows_pulled, partition->rows_pulled);
    if (is_primary) {
        ps_count_add(counts->rows, ps_store_rows_about(partition->store));
    }
    if (is_primary && partition->replicas != NULL) {
        add_lag(partition->replicas, now_ms, sums);
    }
}

/* ---- workers ---- */

/* Live workers of all jobs that are known here. */
static psd_status_t list_workers(const ps_shard_t *self, ps_shard_look_t *look, psd_error_t *err)
{
    size_t at = 0;
    uint64_t id = 0;
    void *value = NULL;

    look->n_workers = 0;
    while (ps_map_next(&self->step.jobs, &at, &id, &value)) {
        const ps_job_t *job = value;

        if (!ps_grow(&look->workers, &look->workers_capacity, look->n_workers + job->n_workers,
                     sizeof *look->workers)) {
            return psd_error_set(err, PSD_NOMEM, "no memory to look");
        }
        for (size_t i = 0; i < job->n_workers; i++) {
            if (ps_worker_is_live(&job->workers[i])) {
                look->workers[look->n_workers++] =
                    (ps_looked_worker_t){.job = job->id, .worker = job->workers[i].worker};
            }
        }
    }
    return PSD_OK;
}

/* The first worker of the job in the list, by a hint; n_workers: none. */
static size_t first_of(const ps_shard_look_t *look, uint32_t job, size_t hint)
{
    if (hint < look->n_workers && look->workers[hint].job == job) {
        return hint;
    }
    for (size_t i = 0; i < look->n_workers; i++) {
        if (look->workers[i].job == job) {
            return i;
        }
    }
    return look->n_workers;
}

/* The clocks at one gate. Both lists ascend by rank. */
static void add_gate(const ps_gate_t *gate, ps_shard_look_t *look, size_t *hint)
{
    uint32_t job = ps_gate_job(gate);
    size_t at = first_of(look, job, *hint);

    *hint = at;
    for (size_t i = 0; i < ps_gate_n_workers(gate); i++) {
        uint32_t worker = 0;
        uint64_t clock = ps_gate_finished(gate, i, &worker);
        ps_looked_worker_t *looked = NULL;

        while (at < look->n_workers && look->workers[at].job == job &&
               look->workers[at].worker < worker) {
            at++;
        }
        looked = at < look->n_workers ? &look->workers[at] : NULL;
        if (looked != NULL && looked->job == job && looked->worker == worker &&
            (!looked->is_here || clock < ps_count_get(looked->counts.clock))) {
            looked->is_here = true;
            ps_count_set(looked->counts.clock, clock);
        }
    }
}

/* ---- all of it ---- */

static void set_gauges(ps_shard_t *self, const sums_t *sums)
{
    ps_shard_counts_t *counts = self->step.counts;

    for (size_t i = 0; i < PS_DIM_ROLE; i++) {
        ps_count_set(&counts->partitions[i], sums->roles[i]);
    }
    ps_count_set(counts->headless, sums->headless);
    ps_count_set(counts->restoring, sums->restoring);
    ps_count_set(counts->copies, sums->copies);
    ps_count_set(counts->copies_behind, sums->copies_behind);
    ps_count_set(counts->lag_records, sums->lag_records);
    ps_count_set(counts->lag_bytes, sums->lag_bytes);
    ps_count_set(counts->lag_ms, sums->lag_ms);
    ps_count_set(counts->n_held, self->step.n_held);
    ps_count_set(counts->held_bytes, self->step.held_bytes + self->step.logged_bytes);
    ps_count_set(counts->connections, self->step.peers.by_conn.count);
    ps_count_set(counts->row_bytes, self->step.row_bytes);
    ps_count_set(counts->tail_bytes, self->step.tail_bytes);
    ps_count_set(counts->unflushed_bytes, self->step.unflushed_bytes);
    ps_count_set(counts->disk_fails, self->step.disk_trouble[0] == '\0' ? 0 : 1);
}

static void look_at_table(const ps_local_table_t *table, uint64_t now_ms, sums_t *sums,
                          ps_shard_look_t *look, size_t *hint)
{
    ps_looked_table_t looked = {.table = table->id};

    for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
        const ps_partition_t *partition = table->partitions[i];

        if (partition == NULL) {
            continue;
        }
        add_partition(table, partition, now_ms, sums, &looked.counts);
        for (size_t k = 0; k < partition->n_jobs; k++) {
            if (partition->jobs[k].gate != NULL) {
                add_gate(partition->jobs[k].gate, look, hint);
            }
        }
    }
    if (ps_count_get(looked.counts.partitions) > 0) {
        look->tables[look->n_tables++] = looked;
    }
}

psd_status_t ps_shard_look(ps_shard_t *self, uint64_t now_ms, ps_shard_look_t *look,
                           psd_error_t *err)
{
    sums_t sums = {0};
    size_t hint = 0;
    size_t at = 0;
    uint64_t id = 0;
    void *value = NULL;
    psd_status_t rc = list_workers(self, look, err);

    look->n_tables = 0;
    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_grow(&look->tables, &look->tables_capacity, self->step.tables.count,
                 sizeof *look->tables)) {
        return psd_error_set(err, PSD_NOMEM, "no memory to look");
    }
    while (ps_map_next(&self->step.tables, &at, &id, &value)) {
        look_at_table(value, now_ms, &sums, look, &hint);
    }
    set_gauges(self, &sums);
    return PSD_OK;
}
