/* SPDX-License-Identifier: Apache-2.0 */
/* One event into the shard: who is it from, which partition is it for. */
#include "protocol/shard.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/partition_work.h"

#define ENDED_JOBS_MAX 256 /* jobs kept so that their late workers are told */

psd_status_t
ps_shard_new(const ps_shard_args_t *args,
             ps_shard_t **ret_shard,
             psd_error_t *err)
{
    ps_shard_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a shard");
    }
    self->args = *args;
    *ret_shard = self;
    return PSD_OK;
}

static void
table_destroy(ps_shard_table_t **self_p)
{
    ps_shard_table_t *self = self_p == NULL ? NULL : *self_p;

    if (self == NULL) {
        return;
    }
    for (uint32_t i = 0;
         self->partitions != NULL && i < self->spec.n_partitions; i++) {
        ps_partition_destroy(&self->partitions[i]);
    }
    ps_free(self->partitions);
    ps_free(self->routes);
    ps_table_spec_done(&self->spec);
    ps_free(self);
    *self_p = NULL;
}

static void
job_destroy(ps_job_t **self_p)
{
    if (*self_p != NULL) {
        ps_job_done(*self_p);
        ps_free(*self_p);
        *self_p = NULL;
    }
}

void
ps_shard_destroy(ps_shard_t **self_p)
{
    ps_shard_t *self = self_p == NULL ? NULL : *self_p;
    size_t at = 0;
    uint64_t key = 0;
    void *value = NULL;

    if (self == NULL) {
        return;
    }
    while (ps_map_next(&self->tables, &at, &key, &value)) {
        ps_shard_table_t *table = value;

        table_destroy(&table);
    }
    at = 0;
    while (ps_map_next(&self->jobs, &at, &key, &value)) {
        ps_job_t *job = value;

        job_destroy(&job);
    }
    ps_map_done(&self->tables);
    ps_map_done(&self->jobs);
    ps_peers_done(&self->peers);
    ps_free(self);
    *self_p = NULL;
}

static psd_status_t
check_hello(const ps_shard_t *self,
            const ps_msg_hello_t *hello,
            psd_error_t *err)
{
    char mine[PS_ID_TEXT_SIZE];
    char theirs[PS_ID_TEXT_SIZE];

    if (hello->version_min > PS_VERSION ||
        hello->version_max < PS_VERSION_MIN) {
        return psd_error_set(
            err, PSD_VERSION, "protocol versions %u..%u; spoken here: %d..%d",
            hello->version_min, hello->version_max, PS_VERSION_MIN, PS_VERSION);
    }
    if (!ps_id_equal(&hello->cluster, &self->args.cluster)) {
        ps_id_format(&hello->cluster, theirs);
        ps_id_format(&self->args.cluster, mine);
        return psd_error_set(err, PSD_CLUSTER, "cluster %s; this is %s", theirs,
                             mine);
    }
    if (hello->session == 0) {
        return psd_error_set(err, PSD_DENIED, "session 0; allowed: 1 and up");
    }
    if (hello->session <= self->args.lost_sessions) {
        return psd_error_set(err, PSD_ROWS_LOST,
                             "session %" PRIu64
                             " is from before a restart in which rows were "
                             "lost",
                             hello->session);
    }
    if (hello->incarnation != self->args.incarnation) {
        return psd_error_set(err, PSD_INCARNATION,
                             "incarnation %" PRIu64 "; this is %" PRIu64,
                             hello->incarnation, self->args.incarnation);
    }
    return PSD_OK;
}

static psd_status_t
step_hello(ps_shard_t *self, uint64_t conn, const ps_msg_hello_t *hello)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    psd_status_t rc = check_hello(self, hello, why);

    if (rc == PSD_OK) {
        rc = ps_peers_hello(&self->peers, conn, hello->session, &hello->client,
                            self->now_ms, self->args.sessions_max, why);
    }
    if (rc != PSD_OK) {
        ps_answer_refused_conn(self, conn, rc, psd_error_text(why));
        ps_note(self, &(ps_note_t){.kind = PS_NOTE_HELLO_REFUSED,
                                   .a = hello->session,
                                   .b = (uint64_t)rc});
        return PSD_OK;
    }
    ps_answer_welcome(self, conn);
    ps_note_trace(
        self,
        &(ps_note_t){.kind = PS_NOTE_HELLO, .a = hello->session, .b = conn});
    return PSD_OK;
}

/* A request of a client that is known: to its partition. */
static void
step_request(ps_shard_t *self, const ps_request_t *request)
{
    ps_shard_table_t *table = ps_map_get(&self->tables, request->table);
    ps_partition_t *partition = NULL;

    if (table == NULL || request->partition >= table->spec.n_partitions) {
        ps_answer_refused(self, request, PSD_NO_TABLE, 0,
                          table == NULL ? "the table does not exist"
                                        : "the partition does not exist");
        return;
    }
    partition = table->partitions[request->partition];
    if (request->epoch > table->routes[request->partition].epoch) {
        ps_answer_refused(self, request, PSD_BUSY, 0,
                          "the map here is older than yours");
    } else if (partition == NULL || request->epoch != partition->epoch) {
        ps_answer_moved(self, request, table);
    } else {
        ps_partition_request(self, partition, request);
    }
}

static bool
is_request(ps_kind_t kind)
{
    return kind == PS_KIND_PUSH || kind == PS_KIND_PULL ||
           kind == PS_KIND_MARK || kind == PS_KIND_PROBE;
}

static psd_status_t
step_message(ps_shard_t *self, const ps_event_t *event)
{
    ps_peer_t *peer = ps_peers_at(&self->peers, event->conn);
    ps_request_t request;

    if (event->message->kind == PS_KIND_HELLO) {
        return step_hello(self, event->conn, &event->message->hello);
    }
    if (event->message->kind == PS_KIND_BYE) {
        ps_peers_gone(&self->peers, event->conn);
        return PSD_OK;
    }
    if (!is_request(event->message->kind)) {
        char text[64];

        (void)snprintf(text, sizeof text, "%s is not for a shard",
                       ps_kind_name(event->message->kind));
        ps_answer_refused_conn(self, event->conn, PSD_PROTO, text);
        return PSD_OK;
    }
    if (peer == NULL) {
        ps_answer_refused_conn(self, event->conn, PSD_NO_SESSION,
                               "say HELLO first");
        return PSD_OK;
    }
    peer->used_ms = self->now_ms;
    ps_request_read(event->message, event->payload, peer->session, &request);
    step_request(self, &request);
    return PSD_OK;
}

static bool
is_here(const ps_shard_t *self, const ps_route_t *route)
{
    return route->incarnation == self->args.incarnation &&
           route->shard == self->args.shard;
}

static psd_status_t
new_table(const ps_event_t *event, ps_shard_table_t **ret, psd_error_t *err)
{
    PSD_AUTO(table_destroy)
    ps_shard_table_t *table = ps_alloc(1, sizeof *table);
    psd_status_t rc;

    if (table == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a table");
    }
    rc = ps_table_spec_copy(event->spec, &table->spec, err);
    if (rc != PSD_OK) {
        return rc;
    }
    table->id = event->table;
    table->routes = ps_alloc(event->n_routes, sizeof *table->routes);
    table->partitions = ps_alloc(event->n_routes, sizeof(ps_partition_t *));
    if (table->routes == NULL || table->partitions == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a table");
    }
    *ret = table;
    table = NULL;
    return PSD_OK;
}

/* Makes the partitions that are to be here and are not; all or none. */
static psd_status_t
make_partitions(ps_shard_t *self,
                ps_shard_table_t *table,
                const ps_event_t *event,
                psd_error_t *err)
{
    ps_partition_t **made = ps_alloc(event->n_routes, sizeof *made);
    psd_status_t rc = PSD_OK;

    if (made == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a table");
    }
    for (uint32_t i = 0; i < event->n_routes && rc == PSD_OK; i++) {
        if (table->partitions[i] == NULL && is_here(self, &event->routes[i])) {
            rc = ps_partition_new(&table->spec, table->id, i,
                                  event->routes[i].epoch, &made[i], err);
        }
    }
    for (uint32_t i = 0; i < event->n_routes; i++) {
        if (rc != PSD_OK) {
            ps_partition_destroy(&made[i]);
        } else if (made[i] != NULL) {
            table->partitions[i] = made[i];
        }
    }
    ps_free(made);
    return rc;
}

/* The map of a table as it is now: partitions come, go, or get a new epoch. */
static psd_status_t
step_table(ps_shard_t *self, const ps_event_t *event, psd_error_t *err)
{
    ps_shard_table_t *table = ps_map_get(&self->tables, event->table);
    ps_shard_table_t *fresh = NULL;
    psd_status_t rc;

    if (table == NULL) {
        rc = new_table(event, &fresh, err);
        if (rc != PSD_OK) {
            return rc;
        }
        table = fresh;
    }
    rc = make_partitions(self, table, event, err);
    if (rc == PSD_OK && fresh != NULL &&
        !ps_map_put(&self->tables, event->table, fresh)) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for a table");
    }
    if (rc != PSD_OK) {
        table_destroy(&fresh);
        return psd_error_wrap(err, rc, "table %s", event->spec->name);
    }
    memcpy(table->routes, event->routes,
           event->n_routes * sizeof *table->routes);
    for (uint32_t i = 0; i < event->n_routes; i++) {
        ps_partition_t *partition = table->partitions[i];

        if (partition == NULL) {
            continue;
        }
        if (is_here(self, &event->routes[i])) {
            partition->epoch = event->routes[i].epoch;
        } else {
            ps_partition_leave(self, partition, table);
            ps_partition_destroy(&table->partitions[i]);
        }
    }
    return PSD_OK;
}

static void
step_drop(ps_shard_t *self, const ps_event_t *event)
{
    ps_shard_table_t *table = ps_map_remove(&self->tables, event->table);

    for (uint32_t i = 0; table != NULL && i < table->spec.n_partitions; i++) {
        if (table->partitions[i] != NULL) {
            ps_partition_leave(self, table->partitions[i], NULL);
        }
    }
    table_destroy(&table);
}

/* Calls every partition of this shard in the order of tables and numbers. */
static psd_status_t
for_each_partition(ps_shard_t *self,
                   psd_status_t (*visit)(ps_shard_t *self,
                                         ps_partition_t *partition,
                                         const void *arg,
                                         psd_error_t *err),
                   const void *arg,
                   psd_error_t *err)
{
    size_t at = 0;
    uint64_t id = 0;
    void *value = NULL;

    while (ps_map_next(&self->tables, &at, &id, &value)) {
        ps_shard_table_t *table = value;

        for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
            psd_status_t rc = table->partitions[i] == NULL
                                  ? PSD_OK
                                  : visit(self, table->partitions[i], arg, err);

            if (rc != PSD_OK) {
                return rc;
            }
        }
    }
    return PSD_OK;
}

static psd_status_t
visit_job(ps_shard_t *self,
          ps_partition_t *partition,
          const void *arg,
          psd_error_t *err)
{
    return ps_partition_job(self, partition, arg, err);
}

static psd_status_t
visit_advance(ps_shard_t *self,
              ps_partition_t *partition,
              const void *arg,
              psd_error_t *err)
{
    (void)arg;
    (void)err;
    ps_partition_advance(self, partition);
    return PSD_OK;
}

static psd_status_t
visit_tick(ps_shard_t *self,
           ps_partition_t *partition,
           const void *arg,
           psd_error_t *err)
{
    (void)arg;
    (void)err;
    ps_partition_tick(self, partition);
    return PSD_OK;
}

static bool
has_ended(const ps_job_t *job)
{
    for (size_t i = 0; i < job->n_workers; i++) {
        if (ps_worker_is_live(&job->workers[i])) {
            return false;
        }
    }
    return true;
}

/* Forgets the oldest ended jobs above ENDED_JOBS_MAX. */
static void
forget_ended_jobs(ps_shard_t *self)
{
    while (self->jobs.count > ENDED_JOBS_MAX) {
        ps_job_t *oldest = NULL;
        size_t at = 0;
        uint64_t id = 0;
        void *value = NULL;

        while (ps_map_next(&self->jobs, &at, &id, &value)) {
            ps_job_t *job = value;

            if (has_ended(job) && (oldest == NULL || job->id < oldest->id)) {
                oldest = job;
            }
        }
        if (oldest == NULL) {
            return;
        }
        (void)ps_map_remove(&self->jobs, oldest->id);
        job_destroy(&oldest);
    }
}

static psd_status_t
step_job(ps_shard_t *self, const ps_job_t *job, psd_error_t *err)
{
    ps_job_t *known = ps_map_get(&self->jobs, job->id);
    ps_job_t *fresh = NULL;
    psd_status_t rc;

    if (known != NULL && known->version >= job->version) {
        return PSD_OK;
    }
    fresh = ps_alloc(1, sizeof *fresh);
    if (fresh == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a job");
    }
    rc = ps_job_copy(job, fresh, err);
    if (rc == PSD_OK) {
        rc = for_each_partition(self, visit_job, job, err);
    }
    if (rc == PSD_OK && !ps_map_put(&self->jobs, job->id, fresh)) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for a job");
    }
    if (rc != PSD_OK) {
        job_destroy(&fresh);
        return psd_error_wrap(err, rc, "job %s", job->name);
    }
    job_destroy(&known);
    forget_ended_jobs(self);
    return for_each_partition(self, visit_advance, NULL, err);
}

psd_status_t
ps_shard_step(ps_shard_t *self,
              const ps_event_t *event,
              ps_outbox_t *outbox,
              psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    self->now_ms = event->now_ms;
    self->outbox = outbox;
    switch (event->kind) {
    case PS_EVENT_MESSAGE:
        rc = step_message(self, event);
        break;
    case PS_EVENT_TICK:
        rc = for_each_partition(self, visit_tick, NULL, err);
        break;
    case PS_EVENT_TABLE:
        rc = step_table(self, event, err);
        break;
    case PS_EVENT_DROP:
        step_drop(self, event);
        break;
    case PS_EVENT_JOB:
        rc = step_job(self, event->job, err);
        break;
    case PS_EVENT_GONE:
        ps_peers_gone(&self->peers, event->conn);
        break;
    default:
        break;
    }
    self->outbox = NULL;
    return rc;
}

uint64_t
ps_shard_deadline(const ps_shard_t *self)
{
    uint64_t deadline_ms = UINT64_MAX;
    size_t at = 0;
    uint64_t id = 0;
    void *value = NULL;

    while (ps_map_next(&self->tables, &at, &id, &value)) {
        const ps_shard_table_t *table = value;

        for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
            if (table->partitions[i] != NULL &&
                table->partitions[i]->deadline_ms < deadline_ms) {
                deadline_ms = table->partitions[i]->deadline_ms;
            }
        }
    }
    return deadline_ms;
}
