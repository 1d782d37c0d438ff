/* SPDX-License-Identifier: Apache-2.0 */
/* Several workers at once. */
#include "cli/bench/bench_team.h"

#include <pthread.h>

#include "base/alloc.h"
#include "cli/machine/bench_stats.h"
#include "transport/threads/thread.h"

#define WARM_PART 4 /* this part of a repeat's time is enough to warm up */

void ps_bench_pools_done(ps_bench_pools_t *self)
{
    for (size_t i = 0; i < PS_BENCH_WORKERS_MAX; i++) {
        ps_bench_pool_done(&self->from[i]);
        ps_bench_pool_done(&self->to[i]);
    }
}

psd_status_t ps_bench_team_open(const ps_cli_t *cli, const char *transport, uint32_t n_workers,
                                ps_bench_pools_t *pools, ps_bench_team_t *ret_team,
                                psd_error_t *err)
{
    ps_bench_team_t team = {
        .transport = transport, .n = n_workers, .pools = pools, .timeout_ms = cli->timeout_ms};
    psd_status_t rc = PSD_OK;

    team.members = ps_alloc(n_workers, sizeof *team.members);
    if (team.members == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %u workers", n_workers);
    }
    for (uint32_t i = 0; rc == PSD_OK && i < n_workers; i++) {
        team.members[i].load.rng.state = i;
        team.members[i].error = psd_error_new();
        rc = ps_cli_connect_by(cli, transport, cli->timeout_ms, &team.members[i].client, err);
    }
    if (rc != PSD_OK) {
        ps_bench_team_close(&team);
        return rc;
    }
    *ret_team = team;
    return PSD_OK;
}

psd_status_t ps_bench_team_use(ps_bench_team_t *self, const char *table, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (uint32_t i = 0; rc == PSD_OK && i < self->n; i++) {
        ps_bench_member_t *member = &self->members[i];

        psd_table_close(&member->table);
        rc = psd_table_open(member->client, table, &member->table, err);
    }
    return rc;
}

/* The barrier where members wait until all are prepared. */
typedef struct ps_bench_gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t n_ready;
    bool open;
    bool given_up; /* not all members could start */
} gate_t;

static void gate_pass(gate_t *gate)
{
    (void)pthread_mutex_lock(&gate->lock);
    gate->n_ready++;
    (void)pthread_cond_broadcast(&gate->changed);
    while (!gate->open) {
        (void)pthread_cond_wait(&gate->changed, &gate->lock);
    }
    (void)pthread_mutex_unlock(&gate->lock);
}

/* Waits for n members and lets them through. */
static void gate_open(gate_t *gate, uint32_t n, bool given_up)
{
    (void)pthread_mutex_lock(&gate->lock);
    while (gate->n_ready < n) {
        (void)pthread_cond_wait(&gate->changed, &gate->lock);
    }
    gate->open = true;
    gate->given_up = given_up;
    (void)pthread_cond_broadcast(&gate->changed);
    (void)pthread_mutex_unlock(&gate->lock);
}

static void prepare(ps_bench_member_t *member)
{
    psd_error_clear(member->error);
    member->status = ps_bench_load_prepare(&member->load, member->n, member->error);
}

static void run(ps_bench_member_t *member)
{
    if (member->status == PSD_OK) {
        member->status = ps_bench_load_run(&member->load, member->error);
    }
}

static void *work(void *arg)
{
    ps_bench_member_t *member = arg;

    prepare(member);
    gate_pass(member->gate);
    if (!member->gate->given_up) {
        run(member);
    }
    return NULL;
}

/* Threads for all but the first member, which works in this one. */
static psd_status_t work_together(ps_bench_team_t *self, psd_error_t *err)
{
    pthread_t threads[PS_BENCH_WORKERS_MAX];
    gate_t gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    uint32_t n = 0;
    bool whole = true;

    while (whole && n + 1 < self->n) {
        self->members[n + 1].gate = &gate;
        whole = ps_thread_start(&threads[n], work, &self->members[n + 1]) == 0;
        n += whole ? 1 : 0;
    }
    prepare(&self->members[0]);
    gate_open(&gate, n, !whole);
    if (whole) {
        run(&self->members[0]);
    }
    for (uint32_t i = 0; i < n; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return whole ? PSD_OK : psd_error_set(err, PSD_NOMEM, "only %u of %u threads", n + 1, self->n);
}

static psd_status_t fit_pools(ps_bench_team_t *self, const ps_bench_shape_t *shape, size_t n,
                              psd_error_t *err)
{
    for (uint32_t i = 0; i < self->n; i++) {
        ps_bench_member_t *member = &self->members[i];
        psd_status_t rc = PSD_OK;

        if (shape->kind != PS_BENCH_PULL) {
            rc = ps_bench_pool_fit(&self->pools->from[i], shape, err);
        }
        if (rc == PSD_OK && shape->kind != PS_BENCH_PUSH && shape->kind != PS_BENCH_IN_PLACE) {
            rc = ps_bench_pool_fit(&self->pools->to[i], shape, err);
        }
        if (rc != PSD_OK) {
            return rc;
        }
        member->n = n;
        member->load.client = member->client;
        member->load.table = member->table;
        member->load.from = &self->pools->from[i];
        member->load.to = &self->pools->to[i];
        member->load.shape = shape;
        member->load.timeout_ms = self->timeout_ms;
    }
    return PSD_OK;
}

/* Summary of the members' times. */
static ps_bench_sample_t sum_up(ps_bench_team_t *self, size_t n)
{
    uint64_t start = UINT64_MAX;
    uint64_t end = 0;
    ps_bench_load_t *first = &self->members[0].load;
    ps_bench_sample_t sample = {0};

    for (uint32_t i = 0; i < self->n; i++) {
        const ps_bench_load_t *load = &self->members[i].load;

        start = load->start_ns < start ? load->start_ns : start;
        end = load->end_ns > end ? load->end_ns : end;
    }
    if (self->n == 1 && first->shape->in_flight == 1) {
        end -= first->idle_ns;
    }
    sample.seconds = (double)(end - start) / 1e9;
    sample.requests_s = (double)n * self->n / sample.seconds;
    if (first->shape->in_flight == 1) {
        ps_bench_sort(first->times, n);
        sample.p50_s = ps_bench_quantile(first->times, n, 0.5);
        sample.p99_s = ps_bench_quantile(first->times, n, 0.99);
        sample.p999_s = ps_bench_quantile(first->times, n, 0.999);
        sample.max_s = first->times[n - 1];
    }
    return sample;
}

psd_status_t ps_bench_team_sample(ps_bench_team_t *self, const ps_bench_shape_t *shape, size_t n,
                                  ps_bench_sample_t *ret_sample, psd_error_t *err)
{
    psd_status_t rc = fit_pools(self, shape, n, err);

    if (rc == PSD_OK) {
        rc = work_together(self, err);
    }
    for (uint32_t i = 0; rc == PSD_OK && i < self->n; i++) {
        const ps_bench_member_t *member = &self->members[i];

        if (member->status != PSD_OK) {
            rc = psd_error_set(err, member->status, "%s", psd_error_text(member->error));
        }
    }
    if (rc == PSD_OK) {
        *ret_sample = sum_up(self, n);
    }
    return rc;
}

psd_status_t ps_bench_team_warm(ps_bench_team_t *self, const ps_bench_shape_t *shape,
                                uint64_t duration_ms, size_t *ret_n, psd_error_t *err)
{
    size_t least = (size_t)shape->in_flight * 2 + 2;
    size_t most = ps_bench_load_most(shape);
    double wanted_s = (double)duration_ms / 1000;
    size_t n = least;

    for (;;) {
        ps_bench_sample_t sample = {0};
        psd_status_t rc = ps_bench_team_sample(self, shape, n, &sample, err);
        double fits = 0;

        if (rc != PSD_OK) {
            return rc;
        }
        fits = (double)n / sample.seconds * wanted_s;
        if (n == most || sample.seconds * WARM_PART >= wanted_s) {
            *ret_n = fits >= (double)most ? most : fits <= (double)least ? least : (size_t)fits;
            return PSD_OK;
        }
        n = n * 4 > most ? most : n * 4;
    }
}

void ps_bench_team_close(ps_bench_team_t *self)
{
    for (uint32_t i = 0; self->members != NULL && i < self->n; i++) {
        ps_bench_member_t *member = &self->members[i];

        ps_bench_load_done(&member->load);
        psd_table_close(&member->table);
        psd_close(&member->client);
        psd_error_destroy(&member->error);
    }
    ps_free(self->members);
    *self = (ps_bench_team_t){0};
}
