/* SPDX-License-Identifier: Apache-2.0 */
/* Information about a shard for the operator. */
#include <string.h>

#include "base/alloc.h"
#include "protocol/replica/replicas.h"
#include "protocol/shard/shard_state.h"

#define UNANSWERED_MS 100 /* that an answer waits before it is shown */

void ps_shard_info(const ps_shard_t *self, ps_shard_info_t *ret_info)
{
    *ret_info = (ps_shard_info_t){.sessions = self->step.peers.by_conn.count,
                                  .held_requests = self->step.n_held,
                                  .held_bytes = self->step.held_bytes + self->step.logged_bytes,
                                  .refused = self->step.refused,
                                  .tail_bytes = self->step.tail_bytes,
                                  .memory_bytes = self->step.args.memory_bytes};
    memcpy(ret_info->disk_trouble, self->step.disk_trouble, sizeof ret_info->disk_trouble);
}

/* Walks over the partitions that are here: *table_at and *i begin at 0. */
static const ps_partition_t *next_partition(const ps_shard_t *self, size_t *table_at,
                                            const ps_local_table_t **table, uint32_t *i)
{
    for (;;) {
        uint64_t id = 0;
        void *value = NULL;

        while (*table != NULL && *i < (*table)->spec.n_partitions) {
            const ps_partition_t *found = (*table)->partitions[(*i)++];

            if (found != NULL) {
                return found;
            }
        }
        if (!ps_map_next(&self->step.tables, table_at, &id, &value)) {
            return NULL;
        }
        *table = value;
        *i = 0;
    }
}

static ps_partition_info_t info_of(const ps_partition_t *partition)
{
    ps_partition_info_t info = {.table = partition->table,
                                .partition = partition->number,
                                .extent = *ps_store_extent(partition->store),
                                .epoch = partition->epoch,
                                .lsn = partition->lsn,
                                .queue_bytes = partition->queue_bytes,
                                .bytes = ps_store_bytes(partition->store),
                                .come_bytes = ps_store_size_come(partition->store),
                                .pushes = partition->pushes,
                                .pulls = partition->pulls,
                                .rows_pushed = partition->rows_pushed,
                                .rows_pulled = partition->rows_pulled};

    for (size_t i = 0; i < partition->n_jobs; i++) {
        info.held_bytes += partition->jobs[i].open.bytes;
    }
    return info;
}

psd_status_t ps_shard_partitions(const ps_shard_t *self, ps_partition_info_t **ret_infos,
                                 size_t *ret_n, psd_error_t *err)
{
    ps_partition_info_t *infos = NULL;
    size_t capacity = 0;
    size_t n = 0;
    size_t at = 0;
    uint32_t i = 0;
    const ps_local_table_t *table = NULL;
    const ps_partition_t *partition = NULL;

    while ((partition = next_partition(self, &at, &table, &i)) != NULL) {
        if (!ps_grow(&infos, &capacity, n + 1, sizeof *infos)) {
            ps_free(infos);
            return psd_error_set(err, PSD_NOMEM, "no memory to look");
        }
        infos[n++] = info_of(partition);
    }
    *ret_infos = infos;
    *ret_n = n;
    return PSD_OK;
}

psd_status_t ps_shard_sizes(const ps_shard_t *self, ps_size_info_t **ret_infos, size_t *ret_n,
                            psd_error_t *err)
{
    ps_size_info_t *infos = NULL;
    size_t capacity = 0;
    size_t n = 0;
    size_t at = 0;
    uint32_t i = 0;
    const ps_local_table_t *table = NULL;
    const ps_partition_t *partition = NULL;

    while ((partition = next_partition(self, &at, &table, &i)) != NULL) {
        if (partition->replicas != NULL && !partition->replicas->primary) {
            continue;
        }
        if (!ps_grow(&infos, &capacity, n + 1, sizeof *infos)) {
            ps_free(infos);
            return psd_error_set(err, PSD_NOMEM, "no memory to look");
        }
        infos[n++] = (ps_size_info_t){.table = partition->table,
                                      .partition = partition->number,
                                      .bytes = ps_store_size(partition->store)};
    }
    *ret_infos = infos;
    *ret_n = n;
    return PSD_OK;
}

static ps_lag_info_t lag_of(const ps_partition_t *partition, const ps_follower_t *follower)
{
    const ps_tail_t *tail = &partition->replicas->tail;
    uint64_t last = ps_tail_last(tail);

    return (ps_lag_info_t){
        .table = partition->table,
        .partition = partition->number,
        .incarnation = follower->incarnation,
        .shard = follower->shard,
        .behind = follower->needs_rows || follower->acked_lsn < last,
        .records = follower->acked_lsn < last ? last - follower->acked_lsn : 0,
        .bytes = follower->acked_end < tail->end ? tail->end - follower->acked_end : 0,
        .level_ms = follower->level_ms};
}

psd_status_t ps_shard_lags(const ps_shard_t *self, ps_lag_info_t **ret_infos, size_t *ret_n,
                           psd_error_t *err)
{
    ps_lag_info_t *infos = NULL;
    size_t capacity = 0;
    size_t n = 0;
    size_t at = 0;
    uint32_t i = 0;
    const ps_local_table_t *table = NULL;
    const ps_partition_t *partition = NULL;

    while ((partition = next_partition(self, &at, &table, &i)) != NULL) {
        const ps_replicas_t *replicas = partition->replicas;
        uint32_t n_others = replicas == NULL || !replicas->primary ? 0 : replicas->n_followers;

        if (n_others > 0 && !ps_grow(&infos, &capacity, n + n_others, sizeof *infos)) {
            ps_free(infos);
            return psd_error_set(err, PSD_NOMEM, "no memory to look");
        }
        for (uint32_t k = 0; k < n_others; k++) {
            infos[n++] = lag_of(partition, &replicas->followers[k]);
        }
    }
    *ret_infos = infos;
    *ret_n = n;
    return PSD_OK;
}

/* The list of what waits, while it is made. */
typedef struct waiting_list {
    ps_waiting_info_t *infos;
    size_t n;
    size_t capacity;
    uint32_t job;
    uint64_t delay; /* the job's max_delay */
} waiting_list_t;

/* NULL: no memory. */
static ps_waiting_info_t *add_waiting(waiting_list_t *self, const ps_waiting_info_t *info)
{
    ps_waiting_info_t *added = NULL;

    if (!ps_grow(&self->infos, &self->capacity, self->n + 1, sizeof *self->infos)) {
        return NULL;
    }
    added = &self->infos[self->n++];
    *added = *info;
    added->for_clock -= added->for_clock < self->delay ? added->for_clock : self->delay;
    return added;
}

static bool add_held(waiting_list_t *self, const ps_shard_t *shard, const ps_partition_t *partition)
{
    for (const ps_held_t *held = partition->held.first; held != NULL; held = held->next) {
        ps_waiting_info_t *info = NULL;

        if (held->is.job != self->job) {
            continue;
        }
        info = add_waiting(self, &(ps_waiting_info_t){.job = held->is.job,
                                                      .worker = held->is.worker,
                                                      .clock = held->is.clock,
                                                      .since_ms = held->since_ms,
                                                      .for_clock = held->is.clock,
                                                      .table = partition->table,
                                                      .partition = partition->number,
                                                      .is_pull = held->is.kind == PS_KIND_PULL});
        if (info == NULL) {
            return false;
        }
        (void)ps_partition_hindrance(&shard->step, partition, &held->is, info->reason,
                                     sizeof info->reason);
    }
    return true;
}

/* Every push above level memory waits for a moment: do not report that. */
static bool add_unanswered(waiting_list_t *self, const ps_shard_t *shard,
                           const ps_partition_t *partition, ps_ack_t level)
{
    const ps_pending_list_t *list = &partition->replicas->pending.of[level];

    for (size_t i = 0; i < list->n; i++) {
        const ps_waiting_answer_t *answer = &list->items[list->first + i];
        ps_waiting_info_t *info = NULL;

        if (answer->job != self->job || shard->step.now_ms < answer->since_ms + UNANSWERED_MS) {
            continue;
        }
        info = add_waiting(self, &(ps_waiting_info_t){.job = answer->job,
                                                      .worker = answer->worker,
                                                      .clock = answer->clock,
                                                      .since_ms = answer->since_ms,
                                                      .table = partition->table,
                                                      .partition = partition->number});
        if (info == NULL) {
            return false;
        }
        ps_replicas_answer_reason(&shard->step, partition, level, info->reason,
                                  sizeof info->reason);
    }
    return true;
}

psd_status_t ps_shard_waiting(const ps_shard_t *self, uint32_t job, ps_waiting_info_t **ret_infos,
                              size_t *ret_n, psd_error_t *err)
{
    const ps_job_t *known = ps_map_get(&self->step.jobs, job);
    waiting_list_t list = {.job = job};
    bool done = true;
    size_t at = 0;
    uint32_t i = 0;
    const ps_local_table_t *table = NULL;
    const ps_partition_t *partition = NULL;

    list.delay = known == NULL || known->max_delay < 0 ? 0 : (uint64_t)known->max_delay;
    while (done && (partition = next_partition(self, &at, &table, &i)) != NULL) {
        done = add_held(&list, self, partition);
        if (done && partition->replicas != NULL) {
            done = add_unanswered(&list, self, partition, PS_ACK_REPLICA) &&
                   add_unanswered(&list, self, partition, PS_ACK_DISK);
        }
    }
    if (!done) {
        ps_free(list.infos);
        return psd_error_set(err, PSD_NOMEM, "no memory to look");
    }
    *ret_infos = list.infos;
    *ret_n = list.n;
    return PSD_OK;
}

/* Merges one worker's clock at one partition into the list. */
static bool merge_clock(ps_clock_info_t **infos, size_t *capacity, size_t *n,
                        const ps_clock_info_t *clock)
{
    for (size_t i = 0; i < *n; i++) {
        ps_clock_info_t *known = &(*infos)[i];

        if (known->worker == clock->worker) {
            known->min = clock->min < known->min ? clock->min : known->min;
            known->max = clock->max > known->max ? clock->max : known->max;
            return true;
        }
    }
    if (!ps_grow(infos, capacity, *n + 1, sizeof **infos)) {
        return false;
    }
    (*infos)[(*n)++] = *clock;
    return true;
}

psd_status_t ps_shard_clocks(const ps_shard_t *self, uint32_t job, ps_clock_info_t **ret_infos,
                             size_t *ret_n, psd_error_t *err)
{
    ps_clock_info_t *infos = NULL;
    size_t capacity = 0;
    size_t n = 0;
    size_t at = 0;
    uint32_t i = 0;
    const ps_local_table_t *table = NULL;
    const ps_partition_t *partition = NULL;

    while ((partition = next_partition(self, &at, &table, &i)) != NULL) {
        const ps_gate_t *gate = ps_partition_gate(partition, job);

        for (size_t w = 0; gate != NULL && w < ps_gate_n_workers(gate); w++) {
            ps_clock_info_t clock = {.job = job};

            clock.min = ps_gate_finished(gate, w, &clock.worker);
            clock.max = clock.min;
            if (!merge_clock(&infos, &capacity, &n, &clock)) {
                ps_free(infos);
                return psd_error_set(err, PSD_NOMEM, "no memory to look");
            }
        }
    }
    *ret_infos = infos;
    *ret_n = n;
    return PSD_OK;
}

psd_status_t ps_shard_list_slow(const ps_shard_t *self, uint64_t now_ms, ps_buffer_t *words,
                                psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    ps_doc_t *array = doc == NULL ? NULL : ps_doc_add_array(doc, "slow");

    return array != NULL && ps_slow_log_print(&self->step.slow, now_ms, array) &&
                   ps_doc_print(doc, words)
               ? PSD_OK
               : psd_error_set(err, PSD_NOMEM, "no memory to list slow requests");
}
