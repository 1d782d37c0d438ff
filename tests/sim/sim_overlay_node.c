/* SPDX-License-Identifier: Apache-2.0 */
/* The shards, the log of all they do, and the registry's part that sends them the job. What
 * takes a shard's or a partition's place is made from the log. */
#include <string.h>

#include "protocol/partition/replay.h"
#include "protocol/shard/shard_state.h"
#include "sim_alike.h"
#include "sim_overlay.h"

#define TELL_MS 40  /* until the last shard knows of a change */
#define MAP_MS 1500 /* until the last session knows of a change of the map */
#define FIRST_EPOCH 5

static void plan_tick(overlay_t *self, uint32_t shard)
{
    uint64_t at_ms = ps_shard_deadline(self->shards[shard]);

    if (at_ms < self->shard_wake_ms[shard]) {
        self->shard_wake_ms[shard] = at_ms;
        overlay_at(self, at_ms, OVERLAY_EVENT_NODE, shard);
    }
}

/* ---- the log ---- */

static void append(overlay_t *self, const ps_record_t *record, const ps_payload_t *payload)
{
    size_t size = ps_record_size(record, payload);
    PSD_AUTO(ps_free_at) uint8_t *bytes = ps_alloc_raw(1, size);
    overlay_logged_t *logged = NULL;

    overlay_need(
        size > 0 && bytes != NULL &&
            ps_grow(&self->log, &self->log_capacity, self->n_logged + 1, sizeof *self->log),
        "memory for a record");
    ps_record_write(record, payload, bytes);
    logged = &self->log[self->n_logged++];
    *logged = (overlay_logged_t){.partition = record->partition};
    overlay_need(ps_buffer_append(&logged->bytes, bytes, size), "memory for a record");
}

static ps_partition_t *partition_of(const ps_shard_t *shard, uint32_t number)
{
    const ps_local_table_t *table = ps_map_get(&shard->step.tables, OVERLAY_TABLE);

    return table->partitions[number];
}

static void replay(overlay_t *self, ps_shard_t *shard, const overlay_logged_t *logged)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_record_t record;
    ps_body_t body;
    size_t size = 0;

    if (ps_record_read((ps_bytes_t){logged->bytes.data, logged->bytes.size}, &size, &record, &body,
                       NULL) != PSD_OK) {
        overlay_fail(self, "log: a record cannot be read again");
        return;
    }
    if (body.keys.size + body.index.size + body.values.size > 0) {
        payload = ps_payload_copy(body.keys, body.index, body.values);
        overlay_need(payload != NULL, "memory for a payload");
    }
    shard->step.outbox = &self->replayed;
    shard->step.now_ms = self->now_ms;
    if (!ps_partition_replay(&shard->step, partition_of(shard, record.partition), &record,
                             payload)) {
        overlay_fail(self, "log: lsn %" PRIu64 " of partition %u cannot be replayed", record.lsn,
                     record.partition);
    }
    shard->step.outbox = NULL;
    ps_outbox_clear(&self->replayed);
}

/* ---- shards ---- */

static ps_event_t table_event(const overlay_t *self)
{
    return (ps_event_t){.kind = PS_EVENT_TABLE,
                        .table = OVERLAY_TABLE,
                        .spec = &self->plan.spec,
                        .routes = self->routes,
                        .n_routes = self->plan.spec.n_partitions};
}

static ps_shard_t *new_shard(const overlay_t *self, uint32_t number)
{
    const ps_shard_args_t args = {.cluster = {.bytes = {1, 2, 3}},
                                  .incarnation = OVERLAY_INCARNATION,
                                  .shard = number,
                                  .credit_requests = 256,
                                  .credit_bytes = 1 << 20,
                                  .chunk_bytes = self->weather.chunk_bytes,
                                  .slice_bytes = 1 << 20,
                                  .held_bytes = UINT64_C(1) << 30,
                                  .keys_bytes = 1 << 20,
                                  .sessions_max = 64,
                                  .trace = true,
                                  .log = true};
    ps_shard_t *shard = NULL;

    overlay_need(ps_shard_new(&args, &shard, NULL) == PSD_OK, "memory for a shard");
    return shard;
}

/* A shard with all that the log has of its partitions. */
static ps_shard_t *shard_of_log(overlay_t *self, uint32_t number)
{
    ps_shard_t *shard = new_shard(self, number);
    ps_event_t event = table_event(self);

    event.now_ms = self->now_ms;
    overlay_need(ps_shard_step(shard, &event, &self->replayed, NULL) == PSD_OK,
                 "memory for a table");
    for (size_t i = 0; i < self->n_logged; i++) {
        if (self->routes[self->log[i].partition].shard == number) {
            replay(self, shard, &self->log[i]);
        }
    }
    ps_outbox_clear(&self->replayed);
    return shard;
}

static void perform(overlay_t *self, uint32_t shard, const ps_outbox_t *outbox)
{
    for (size_t i = 0; i < outbox->n_effects; i++) {
        const ps_effect_t *effect = &outbox->effects[i];
        char text[256];

        if (effect->kind == PS_EFFECT_SEND) {
            overlay_send(self, effect->to, true, &effect->message, effect->payload);
        } else if (effect->kind == PS_EFFECT_RECORD) {
            overlay_check_record(self, shard, &effect->record, effect->payload);
            append(self, &effect->record, effect->payload);
        } else if (self->trace != NULL && effect->kind == PS_EFFECT_NOTE) {
            ps_note_print(&effect->note, text, sizeof text, NULL);
            overlay_trace(self, "  shard %u: %s", shard, text);
        }
    }
}

void overlay_node_event(overlay_t *self, uint32_t shard, ps_event_t *event)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    psd_status_t rc = PSD_OK;

    event->now_ms = self->now_ms;
    rc = ps_shard_step(self->shards[shard], event, &outbox, err);
    if (rc != PSD_OK) {
        overlay_fail(self, "shard %u refused an event: %s", shard, psd_error_text(err));
    }
    perform(self, shard, &outbox);
    plan_tick(self, shard);
}

void overlay_node_tick(overlay_t *self, uint32_t shard)
{
    ps_event_t event = {.kind = PS_EVENT_TICK};

    self->shard_wake_ms[shard] = UINT64_MAX;
    overlay_node_event(self, shard, &event);
}

void overlay_node_table(overlay_t *self, uint32_t shard)
{
    ps_event_t event = table_event(self);

    overlay_node_event(self, shard, &event);
}

/* ---- failover, moves ---- */

/* Sessions and relays hear of the new map, each at its own time. */
static void tell_map(overlay_t *self)
{
    for (size_t i = 0; i < self->n_lives; i++) {
        for (uint64_t courier = 0; courier < 2; courier++) {
            overlay_at(self, self->now_ms + overlay_below(self, MAP_MS), OVERLAY_EVENT_ROUTES, i)
                ->b = courier;
        }
    }
}

static void tell_job(overlay_t *self, uint32_t shard)
{
    ps_job_t *copy = ps_alloc(1, sizeof *copy);

    overlay_need(copy != NULL && ps_job_copy(&self->job, copy, NULL) == PSD_OK, "memory for a job");
    overlay_at(self, self->now_ms + overlay_below(self, TELL_MS), OVERLAY_EVENT_JOB, shard)->job =
        copy;
}

/* What was connected to the shard connects again. */
static void connect_again(overlay_t *self, uint32_t shard)
{
    size_t n = self->n_conns;

    for (size_t i = 1; i <= n; i++) {
        const overlay_conn_t *conn = overlay_conn(self, i);
        overlay_life_t *life = overlay_life(self, conn->life);
        bool is_courier = conn->from == OVERLAY_COURIER;
        const overlay_speaker_t *speaker = is_courier ? &life->relay.courier : &life->client;

        if (conn->to == OVERLAY_SHARD && conn->number == shard && !conn->is_cut &&
            conn->link < speaker->n_links && speaker->links[conn->link].conn == i) {
            overlay_cut(self, life, is_courier, conn->link);
        }
    }
}

void overlay_node_take_over(overlay_t *self, uint32_t shard)
{
    ps_shard_t *taker = shard_of_log(self, shard);

    overlay_trace(self, "shard %u is taken over", shard);
    ps_shard_destroy(&self->shards[shard]);
    self->shards[shard] = taker;
    self->shard_lives[shard]++;
    self->shard_wake_ms[shard] = UINT64_MAX;
    ps_job_done(&self->told[shard]);
    for (uint32_t i = 0; i < self->plan.spec.n_partitions; i++) {
        self->routes[i].epoch += self->routes[i].shard == shard ? 1 : 0;
    }
    for (uint32_t i = 0; i < self->plan.n_shards; i++) {
        overlay_at(self, self->now_ms + (i == shard ? 0 : overlay_below(self, TELL_MS)),
                   OVERLAY_EVENT_TABLE, i);
    }
    tell_job(self, shard);
    connect_again(self, shard);
    tell_map(self);
}

void overlay_node_move(overlay_t *self, uint32_t partition)
{
    ps_route_t *route = &self->routes[partition];
    uint32_t from = route->shard;

    route->epoch++;
    route->shard = (from + 1) % self->plan.n_shards;
    (void)snprintf(route->tcp, sizeof route->tcp, "tcp://node:%u", 1000 + route->shard);
    overlay_trace(self, "partition %u moves to shard %u", partition, route->shard);
    overlay_node_table(self, from);
    overlay_node_take_over(self, route->shard);
}

void overlay_node_check_log(overlay_t *self)
{
    for (uint32_t shard = 0; shard < self->plan.n_shards && !self->failed; shard++) {
        ps_shard_t *copy = shard_of_log(self, shard);

        for (uint32_t i = 0; i < self->plan.spec.n_partitions && !self->failed; i++) {
            const char *what =
                self->routes[i].shard != shard
                    ? NULL
                    : sim_difference(partition_of(self->shards[shard], i), partition_of(copy, i));

            if (what != NULL) {
                overlay_fail(self, "log: a copy of partition %u has other %s", i, what);
            }
        }
        ps_shard_destroy(&copy);
    }
}

/* ---- the job ---- */

void overlay_node_told(overlay_t *self, uint32_t shard, const ps_job_t *job)
{
    ps_event_t event = {.kind = PS_EVENT_JOB, .job = job};

    if (job->version > self->told[shard].version) {
        ps_job_done(&self->told[shard]);
        overlay_need(ps_job_copy(job, &self->told[shard], NULL) == PSD_OK, "memory for a job");
    }
    overlay_trace(self, "shard %u hears of job version %" PRIu64, shard, job->version);
    overlay_node_event(self, shard, &event);
    overlay_node_join(self);
}

void overlay_node_tell(overlay_t *self)
{
    self->job.version++;
    for (uint32_t i = 0; i < self->plan.n_shards; i++) {
        tell_job(self, i);
    }
}

static bool all_told(const overlay_t *self)
{
    for (uint32_t i = 0; i < self->plan.n_shards; i++) {
        if (self->told[i].version < self->job.version) {
            return false;
        }
    }
    return true;
}

/* The clocks that each worker of the job has finished where it is most advanced. */
static void gather_clocks(overlay_t *self, uint64_t clocks[OVERLAY_RANKS_MAX])
{
    memset(clocks, 0, OVERLAY_RANKS_MAX * sizeof *clocks);
    for (uint32_t shard = 0; shard < self->plan.n_shards; shard++) {
        ps_clock_info_t *infos = NULL;
        size_t n = 0;

        overlay_need(ps_shard_clocks(self->shards[shard], OVERLAY_JOB, &infos, &n, NULL) == PSD_OK,
                     "memory for clocks");
        for (size_t i = 0; i < n; i++) {
            uint64_t *clock =
                &clocks[ps_job_worker(&self->job, infos[i].worker) - self->job.workers];

            *clock = infos[i].max > *clock ? infos[i].max : *clock;
        }
        ps_free(infos);
    }
}

/* The start of a worker that joins now, as the registry sets it. */
static uint64_t agree_start(overlay_t *self)
{
    uint64_t clocks[OVERLAY_RANKS_MAX];
    uint64_t highest = 0;
    uint64_t slowest = UINT64_MAX;

    gather_clocks(self, clocks);
    for (size_t i = 0; i < self->job.n_workers; i++) {
        highest = clocks[i] > highest ? clocks[i] : highest;
        if (self->job.workers[i].state == PS_WORKER_RUNNING && clocks[i] < slowest) {
            slowest = clocks[i];
        }
    }
    return self->job.max_delay == 0 ? highest : slowest == UINT64_MAX ? 0 : slowest;
}

void overlay_node_join(overlay_t *self)
{
    if (!all_told(self)) {
        return;
    }
    for (size_t i = 0; i < self->job.n_workers; i++) {
        ps_worker_t *worker = &self->job.workers[i];

        if (worker->state == PS_WORKER_JOINING) {
            worker->start = agree_start(self);
            worker->state = PS_WORKER_RUNNING;
            overlay_node_tell(self);
            return;
        }
        for (size_t k = 0; worker->state == PS_WORKER_RUNNING && k + 1 < self->n_lives; k++) {
            overlay_life_t *life = &self->lives[k];

            if (life->rank == worker->worker && life->joins == worker->joins && !life->runs) {
                overlay_worker_start(self, life, worker->start);
                overlay_at(self, self->now_ms, OVERLAY_EVENT_TREE, 1);
            }
        }
    }
}

void overlay_node_start(overlay_t *self)
{
    overlay_plan_t *plan = &self->plan;

    self->job = (ps_job_t){.id = OVERLAY_JOB, .max_delay = plan->max_delay};
    (void)snprintf(self->job.name, sizeof self->job.name, "job");
    self->job.workers = ps_alloc(OVERLAY_RANKS_MAX, sizeof *self->job.workers);
    overlay_need(self->job.workers != NULL, "memory for workers");
    for (uint32_t i = 0; i < plan->n_ranks; i++) {
        self->job.workers[self->job.n_workers++] = (ps_worker_t){
            .worker = plan->ranks[i], .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1};
    }
    for (uint32_t i = 0; i < plan->spec.n_partitions; i++) {
        ps_route_t *route = &self->routes[i];

        *route = (ps_route_t){.partition = i,
                              .shard = i % plan->n_shards,
                              .epoch = FIRST_EPOCH,
                              .incarnation = OVERLAY_INCARNATION};
        (void)snprintf(route->tcp, sizeof route->tcp, "tcp://node:%u", 1000 + route->shard);
    }
    for (uint32_t i = 0; i < plan->n_shards; i++) {
        self->shard_wake_ms[i] = UINT64_MAX;
        self->shards[i] = new_shard(self, i);
        overlay_node_table(self, i);
    }
    overlay_node_tell(self);
}
