/* SPDX-License-Identifier: Apache-2.0 */
/* The node of the registry is killed while two workers of a job push, pull and
 * end clocks on other nodes: for as long as it is away nothing of that stops or
 * fails, and when it is back the job goes on as before, whole. */
#include <psd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "support/check.h"
#include "support/cluster.h"

#define WORKERS 2
#define ROWS 60
#define CALL_MS 60000
#define ROUNDS 200 /* that each does while nobody is there, at least */

static uint64_t rows[ROWS];
static int64_t ones[ROWS];

/* Silence of workers counts from the start of a registry. They find it again
 * within the second that a connection takes at most to try again. */
static const cluster_args_t args = {.n_nodes = 3,
                                    .net = CLUSTER_DIRECT,
                                    .calm = true,
                                    .config = "shards: 1\ncopies:\n  even_out: false\nworkers:\n"
                                              "  heartbeat_ms: 100\n  lost_after_ms: 8000\n"};

typedef struct worker {
    pthread_t thread;
    const char *endpoint;
    uint32_t rank;
    atomic_uint rounds;
    atomic_bool *stop;
    psd_error_t *err; /* the thread's own */
    atomic_bool ended;
    bool good; /* behind its end */
} worker_t;

static bool connect_to(const char *endpoint, psd_client_t **ret_client, psd_error_t *err)
{
    psd_options_t *options = psd_options_new();

    psd_options_set_timeout_ms(options, CALL_MS);
    CHECK_OK(psd_connect(endpoint, options, ret_client, err), err);
    psd_options_destroy(&options);
    return true;
}

static bool work(worker_t *self)
{
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    int64_t values[ROWS];

    CHECK(connect_to(self->endpoint, &client, self->err));
    CHECK_OK(psd_join(client, "lr", self->rank, WORKERS, 1, self->err), self->err);
    CHECK_OK(psd_table_open(client, "w", &table, self->err), self->err);
    while (!atomic_load(self->stop)) {
        CHECK_OK(psd_pull(table, rows, ROWS, values, ROWS, self->err), self->err);
        CHECK_OK(psd_push(table, rows, ROWS, ones, ROWS, self->err), self->err);
        CHECK_OK(psd_clock(client, self->err), self->err);
        atomic_fetch_add(&self->rounds, 1);
    }
    CHECK_OK(psd_leave(client, CALL_MS, self->err), self->err);
    psd_table_close(&table);
    psd_close(&client);
    return true;
}

static void *run_worker(void *arg)
{
    worker_t *self = arg;

    self->good = work(self);
    atomic_store(&self->ended, true);
    return NULL;
}

/* Until each has done so many rounds more, or one has failed. */
static bool wait_rounds(worker_t workers[WORKERS], unsigned more)
{
    for (int i = 0; i < WORKERS; i++) {
        unsigned wanted = atomic_load(&workers[i].rounds) + more;

        while (atomic_load(&workers[i].rounds) < wanted) {
            const struct timespec gap = {.tv_nsec = 1000000};

            CHECK(!atomic_load(&workers[i].ended));
            (void)nanosleep(&gap, NULL);
        }
    }
    return true;
}

/* Not on the first node, which is to go. */
static bool make_table(psd_client_t *client, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;
    char *reply = NULL;

    CHECK_OK(psd_request(client, "{\"op\":\"node_drain\",\"name\":\"n0\"}", CALL_MS, &reply, err),
             err);
    psd_free(reply);
    CHECK_OK(psd_spec_set(spec, "rows", "60", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_spec_set(spec, "partitions", "4", err), err);
    CHECK_OK(psd_spec_set(spec, "replicas", "2", err), err);
    CHECK_OK(psd_spec_set(spec, "ack", "replica", err), err);
    CHECK_OK(psd_table_create(client, "w", spec, &table, err), err);
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    return true;
}

static bool has_all(const char *endpoint, int64_t wanted, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    int64_t values[ROWS];

    CHECK(connect_to(endpoint, &client, err));
    CHECK_OK(psd_table_open(client, "w", &table, err), err);
    CHECK_OK(psd_pull(table, rows, ROWS, values, ROWS, err), err);
    for (size_t i = 0; i < ROWS; i++) {
        CHECK(values[i] == wanted);
    }
    psd_table_close(&table);
    psd_close(&client);
    return true;
}

static bool lives_without(cluster_t *cluster, worker_t workers[WORKERS])
{
    CHECK(wait_rounds(workers, ROUNDS / 10));
    CHECK(cluster_kill(cluster, 0, SIGKILL));
    CHECK(wait_rounds(workers, ROUNDS));
    for (unsigned i = 1; i < 3; i++) { /* they have missed it */
        while (!cluster_log_has(cluster, i, "registry_gone")) {
            CHECK(wait_rounds(workers, 1));
        }
    }
    CHECK(wait_rounds(workers, ROUNDS));
    CHECK(cluster_restart(cluster, 0));
    for (unsigned i = 1; i < 3; i++) {
        while (!cluster_log_has(cluster, i, "registry_back")) {
            CHECK(wait_rounds(workers, 1));
        }
    }
    return wait_rounds(workers, ROUNDS);
}

static bool run(cluster_t *cluster, psd_error_t *err)
{
    worker_t workers[WORKERS];
    atomic_bool stop = false;
    psd_client_t *client = NULL;
    int64_t sum = 0;
    bool good = true;

    CHECK(connect_to(cluster->nodes[0].control, &client, err));
    CHECK(make_table(client, err));
    psd_close(&client);
    for (uint32_t i = 0; i < WORKERS; i++) {
        workers[i] = (worker_t){.endpoint = cluster->nodes[0].control,
                                .rank = i,
                                .stop = &stop,
                                .err = psd_error_new()};
        CHECK(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]) == 0);
    }
    good = lives_without(cluster, workers);
    atomic_store(&stop, true);
    for (int i = 0; i < WORKERS; i++) {
        CHECK(pthread_join(workers[i].thread, NULL) == 0);
        good = good && workers[i].good;
        sum += atomic_load(&workers[i].rounds);
        psd_error_destroy(&workers[i].err);
    }
    return good && has_all(cluster->nodes[0].control, sum, err);
}

int main(void)
{
    cluster_t cluster = {.n_nodes = 0};
    psd_error_t *err = psd_error_new();
    bool ok = false;

    for (uint64_t i = 0; i < ROWS; i++) {
        rows[i] = i;
        ones[i] = 1;
    }
    ok = cluster_start(&cluster, &args) && run(&cluster, err);
    cluster_drop(&cluster, !ok);
    psd_error_destroy(&err);
    return ok ? 0 : 1;
}
