/* SPDX-License-Identifier: Apache-2.0 */
/* One world from its seeds. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "sim.h"

#define EVENTS_MAX 2000000 /* of one world */
#define PATIENCE_MS 60000  /* after the faults end, everything must finish within this */
#define AGAIN_MS 1500      /* most until it joins again */
#define LOST_MS 500        /* most until a killed worker is declared lost */

_Noreturn void sim_stop(const char *what)
{
    (void)fprintf(stderr, "the simulator needs %s\n", what);
    abort();
}

void sim_fail(sim_t *sim, const char *format, ...)
{
    va_list args;

    if (sim->failed) {
        return;
    }
    sim->failed = true;
    va_start(args, format);
    (void)vsnprintf(sim->violation, sizeof sim->violation, format, args);
    va_end(args);
    sim_trace(sim, "VIOLATION %s", sim->violation);
}

void sim_trace(sim_t *sim, const char *format, ...)
{
    va_list args;

    if (sim->trace == NULL) {
        return;
    }
    (void)fprintf(sim->trace, "[%6" PRIu64 "] ", sim->now_ms);
    va_start(args, format);
    (void)vfprintf(sim->trace, format, args);
    va_end(args);
    (void)fputc('\n', sim->trace);
}

static ps_worker_t *late_worker(sim_t *sim)
{
    ps_worker_t *worker = ps_job_worker(&sim->job, sim->plan.late);
    size_t i = sim->job.n_workers;

    if (worker != NULL) {
        return worker;
    }
    /* ascending by rank */
    while (i > 0 && sim->job.workers[i - 1].worker > sim->plan.late) {
        sim->job.workers[i] = sim->job.workers[i - 1];
        i--;
    }
    sim->job.n_workers++;
    sim->job.workers[i] = (ps_worker_t){.worker = sim->plan.late, .n_members = sim->plan.n_members};
    return &sim->job.workers[i];
}

static void join(sim_t *sim, ps_worker_t *worker)
{
    worker->state = PS_WORKER_JOINING;
    worker->n_members = sim->plan.n_members;
    worker->joins++;
    sim_node_tell(sim);
}

static void kill_worker(sim_t *sim)
{
    const ps_worker_t *worker = ps_job_worker(&sim->job, sim->plan.killed);

    if (worker->state != PS_WORKER_RUNNING) {
        return;
    }
    for (uint32_t i = 0; i < sim->plan.n_clients; i++) {
        if (sim->clients[i].worker == sim->plan.killed && sim->clients[i].life == 1) {
            sim_client_kill(sim, i);
        }
    }
    sim_at(sim, sim->now_ms + ps_rng_below(&sim->net, LOST_MS), SIM_EVENT_LOST, 0);
}

static void lose_worker(sim_t *sim)
{
    ps_job_worker(&sim->job, sim->plan.killed)->state = PS_WORKER_LOST;
    sim_node_tell(sim);
    if (sim->plan.again) {
        sim_at(sim, sim->now_ms + ps_rng_below(&sim->net, AGAIN_MS), SIM_EVENT_AGAIN, 0);
    }
}

static void do_event(sim_t *sim, sim_event_t *event)
{
    ps_event_t gone = {.kind = PS_EVENT_GONE, .conn = event->b};

    switch (event->kind) {
    case SIM_EVENT_PACKET:
        sim_arrive(sim, event->packet);
        break;
    case SIM_EVENT_CLIENT_TICK:
        sim_client_tick(sim, (uint32_t)event->a);
        break;
    case SIM_EVENT_SHARD_TICK:
        sim_node_tick(sim, (uint32_t)event->a);
        break;
    case SIM_EVENT_STEP:
        sim_client_step(sim, (uint32_t)event->a);
        break;
    case SIM_EVENT_JOB:
        sim_node_told(sim, (uint32_t)event->a, event->job);
        break;
    case SIM_EVENT_CUT:
        if (sim->now_ms < sim->weather.calm_ms) {
            sim_cut(sim);
            sim_at(sim,
                   sim->now_ms + 1 + ps_rng_below(&sim->net, (uint64_t)sim->weather.cut_ms * 2),
                   SIM_EVENT_CUT, 0);
        }
        break;
    case SIM_EVENT_RELINKED:
        sim_client_relinked(sim, (uint32_t)event->a, event->b);
        break;
    case SIM_EVENT_GONE:
        sim_lane_gone(sim, event->b);
        sim_node_event(sim, (uint32_t)event->a, &gone);
        break;
    case SIM_EVENT_RELAY:
        sim_relay_send(sim, event->a, event->b != 0);
        break;
    case SIM_EVENT_FLUSH:
        sim_flush(sim, event->a, event->b != 0);
        break;
    case SIM_EVENT_JOIN:
        join(sim, late_worker(sim));
        break;
    case SIM_EVENT_KILL:
        kill_worker(sim);
        break;
    case SIM_EVENT_LOST:
        lose_worker(sim);
        break;
    case SIM_EVENT_AGAIN:
        join(sim, ps_job_worker(&sim->job, sim->plan.killed));
        break;
    default:
        sim_need(false, "a known event");
    }
}

/* A worker has finished when all its members have. */
static void finish_workers(sim_t *sim)
{
    bool changed = false;

    for (size_t i = 0; i < sim->job.n_workers; i++) {
        ps_worker_t *worker = &sim->job.workers[i];
        bool through = worker->state == PS_WORKER_RUNNING;

        for (uint32_t j = 0; j < sim->plan.n_clients; j++) {
            if (sim->clients[j].worker == worker->worker && sim->clients[j].life == worker->joins) {
                through = through && sim->clients[j].finished;
            }
        }
        if (through) {
            worker->state = PS_WORKER_FINISHED;
            changed = true;
        }
    }
    if (changed) {
        sim_node_tell(sim);
    }
}

static bool all_ended(const sim_t *sim)
{
    if (sim->job.n_workers < sim->plan.n_workers) {
        return false;
    }
    for (size_t i = 0; i < sim->job.n_workers; i++) {
        const ps_worker_t *worker = &sim->job.workers[i];

        if (worker->state != PS_WORKER_FINISHED &&
            (worker->state != PS_WORKER_LOST || sim->plan.again)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < sim->plan.n_shards; i++) {
        if (sim->told[i] < sim->job.version) {
            return false;
        }
    }
    return true;
}

static void print_waiting(sim_t *sim)
{
    char text[1024] = "";
    size_t used = 0;

    for (size_t i = 0; i < sim->n_clients; i++) {
        sim_client_t *client = &sim->clients[i];

        for (size_t j = 0; j < client->n_ops && used + 128 < sizeof text && client->session != NULL;
             j++) {
            if (!client->ops[j].done) {
                used += (size_t)snprintf(text + used, sizeof text - used,
                                         "; client %zu op %zu: %.80s", i, j + 1,
                                         ps_session_reason(client->session, sim->now_ms, j + 1));
                break;
            }
        }
    }
    sim_node_print_waiting(sim, text, sizeof text);
    sim_fail(sim, "A4: not at its end long after the weather is calm%s", text);
}

static void start(sim_t *sim, uint64_t workload_seed)
{
    for (uint32_t i = 0; i <= sim->plan.n_clients; i++) {
        sim_client_t *client = &sim->clients[i];

        client->number = i;
        client->reader = i == sim->plan.n_clients;
        client->worker = i / sim->plan.n_members;
        client->life = 1;
        if (client->worker == sim->plan.n_workers && !client->reader) {
            client->worker = sim->plan.killed;
            client->life = 2;
        }
        client->member = i % sim->plan.n_members;
        sim_script_make(&sim->plan, workload_seed, client);
    }
    sim->n_clients = sim->plan.n_clients + 1;
    sim_node_start(sim);
    sim_relay_start(sim);
    if (sim->weather.cut_ms > 0) {
        sim_at(sim, sim->weather.cut_ms, SIM_EVENT_CUT, 0);
    }
    if (sim->plan.late != UINT32_MAX) {
        sim_at(sim, 100 + ps_rng_below(&sim->net, 2000), SIM_EVENT_JOIN, 0);
    }
    if (sim->plan.killed != UINT32_MAX) {
        sim_at(sim, 50 + ps_rng_below(&sim->net, 1500), SIM_EVENT_KILL, 0);
    }
}

static bool is_over(sim_t *sim)
{
    sim_client_t *reader = &sim->clients[sim->plan.n_clients];

    finish_workers(sim);
    if (!sim->reading && all_ended(sim)) {
        sim->reading = true;
        sim_client_start(sim, reader->number, 0);
    }
    if (sim->now_ms > sim->weather.calm_ms + PATIENCE_MS || sim->n_events_done > EVENTS_MAX) {
        print_waiting(sim);
    }
    return sim->failed || reader->finished;
}

static void drop_event(sim_event_t *event)
{
    sim_packet_drop(&event->packet);
    if (event->job != NULL) {
        ps_job_done(event->job);
        ps_free(event->job);
    }
}

static void done(sim_t *sim)
{
    sim_event_t event;

    while (sim_next(sim, &event)) {
        drop_event(&event);
    }
    ps_free(sim->events);
    for (uint32_t i = 0; i < SIM_SHARDS_MAX; i++) {
        ps_shard_destroy(&sim->shards[i]);
    }
    for (size_t i = 0; i < sim->n_conns; i++) {
        ps_assembly_done(&sim->conns[i].at_shard);
        ps_assembly_done(&sim->conns[i].at_client);
        ps_batch_done(&sim->conns[i].batch[0]);
        ps_batch_done(&sim->conns[i].batch[1]);
    }
    sim_copy_done(sim);
    sim_relay_done(sim);
    sim_lanes_done(sim);
    ps_free(sim->conns);
    for (size_t i = 0; i < sim->n_clients; i++) {
        ps_session_destroy(&sim->clients[i].session);
        for (size_t k = 0; k < sim->clients[i].n_late; k++) {
            sim_packet_drop(&sim->clients[i].late[k]);
        }
        sim_filter_done(&sim->clients[i]);
        ps_free(sim->clients[i].script);
        ps_free(sim->clients[i].ops);
        ps_free(sim->clients[i].redo);
    }
    ps_job_done(&sim->job);
    ps_table_spec_done(&sim->plan.spec);
}

static void check_end(sim_t *sim)
{
    sim_lanes_check(sim);
    sim_copy_check(sim);
    for (uint32_t i = 0; i < sim->plan.n_shards; i++) {
        ps_shard_info_t info;

        ps_shard_info(sim->shards[i], &info);
        if (!sim->failed && (info.held_requests > 0 || info.held_bytes > 0) &&
            sim->plan.killed == UINT32_MAX) {
            sim_fail(sim, "A4: shard %u still holds %llu requests, %llu bytes", i,
                     (unsigned long long)info.held_requests, (unsigned long long)info.held_bytes);
        }
    }
}

void sim_run(uint64_t workload_seed, uint64_t weather_seed, FILE *trace, sim_result_t *ret_result)
{
    sim_t *sim = ps_alloc(1, sizeof *sim);
    sim_event_t event;

    sim_need(sim != NULL, "memory for a world");
    sim->trace = trace;
    sim->net.state = ps_hash_u64(weather_seed ^ (UINT64_C(1) << 60));
    sim_plan_make(workload_seed, &sim->plan);
    sim_weather_make(weather_seed, &sim->weather);
    start(sim, workload_seed);
    while (!is_over(sim)) {
        if (!sim_next(sim, &event)) {
            print_waiting(sim);
            break;
        }
        sim->now_ms = event.at_ms;
        sim->n_events_done++;
        do_event(sim, &event);
        drop_event(&event);
    }
    check_end(sim);
    *ret_result = (sim_result_t){
        .failed = sim->failed,
        .n_events = sim->n_events_done,
        .n_pulls = sim->n_pulls_checked,
        .n_batches = sim->n_batches,
        .n_under_way = sim->n_under_way,
        .n_coded = sim->n_coded,
        .n_bundles = sim->n_bundles,
        .n_sums = sim->n_sums,
        /* in other modes a pull may be cut or late, and continue in another clock */
        .is_repeatable = sim->plan.spec.type == PS_TYPE_F32 && sim->plan.late == UINT32_MAX &&
                         sim->plan.killed == UINT32_MAX};
    (void)snprintf(ret_result->violation, sizeof ret_result->violation, "%s", sim->violation);
    for (size_t i = 0; i < sim->n_clients; i++) {
        ret_result->digest += sim->clients[i].digest;
    }
    done(sim);
    ps_free(sim);
}
