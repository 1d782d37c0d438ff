/* SPDX-License-Identifier: Apache-2.0 */
/* A node starts again, and one table lost rows with it. Who used that table is
 * told so, by its name, wherever he waits; who used another one, which has a
 * second copy, goes on with his session, and nothing of his is lost. */
#include <psd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/cluster.h"

#define NODES 3
#define ROWS 60
#define CALL_MS 60000

static uint64_t rows[ROWS];
static int64_t ones[ROWS];

static const cluster_args_t args = {
    .n_nodes = NODES, .net = CLUSTER_DIRECT, .config = "shards: 2\ncopies:\n  even_out: false\n"};

/* One client in one thread, which waits for what never comes. */
typedef struct waiter {
    pthread_t thread;
    psd_client_t *client;
    psd_table_t *kept;
    psd_table_t *lost;
    psd_error_t *err;
    bool at_barrier; /* else at the gate of the table that loses nothing */
    atomic_bool waits;
    psd_status_t status;
} waiter_t;

static bool connect_to(cluster_t *cluster, psd_client_t **ret_client, psd_error_t *err)
{
    psd_options_t *options = psd_options_new();

    psd_options_set_timeout_ms(options, CALL_MS);
    CHECK_OK(psd_connect(cluster->nodes[0].control, options, ret_client, err), err);
    psd_options_destroy(&options);
    return true;
}

static bool make_table(psd_client_t *client, const char *name, const char *replicas,
                       psd_table_t **ret_table, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();

    CHECK_OK(psd_spec_set(spec, "rows", "60", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_spec_set(spec, "partitions", "6", err), err);
    CHECK_OK(psd_spec_set(spec, "replicas", replicas, err), err);
    CHECK_OK(psd_spec_set(spec, "ack", replicas[0] == '1' ? "memory" : "replica", err), err);
    CHECK_OK(psd_table_create(client, name, spec, ret_table, err), err);
    psd_spec_destroy(&spec);
    return true;
}

static bool has_all(psd_table_t *table, int64_t wanted, psd_error_t *err)
{
    int64_t values[ROWS];

    CHECK_OK(psd_pull(table, rows, ROWS, values, ROWS, err), err);
    for (size_t i = 0; i < ROWS; i++) {
        CHECK(values[i] == wanted);
    }
    return true;
}

static void *wait_in_vain(void *arg)
{
    waiter_t *self = arg;
    int64_t values[ROWS];

    atomic_store(&self->waits, true);
    self->status = self->at_barrier ? psd_barrier(self->client, CALL_MS, self->err)
                                    : psd_pull(self->kept, rows, ROWS, values, ROWS, self->err);
    return NULL;
}

/* Worker `rank` of job "bad", which uses both tables. */
static bool open_waiter(cluster_t *cluster, waiter_t *self, uint32_t rank)
{
    self->err = psd_error_new();
    CHECK(connect_to(cluster, &self->client, self->err));
    CHECK_OK(psd_join(self->client, "bad", rank, 3, 0, self->err), self->err);
    CHECK_OK(psd_table_open(self->client, "kept", &self->kept, self->err), self->err);
    CHECK_OK(psd_table_open(self->client, "lost", &self->lost, self->err), self->err);
    return true;
}

static void close_waiter(waiter_t *self)
{
    psd_table_close(&self->kept);
    psd_table_close(&self->lost);
    psd_close(&self->client);
    psd_error_destroy(&self->err);
}

static bool told_of_the_loss(psd_status_t status, const psd_error_t *err)
{
    if (status != PSD_ROWS_LOST ||
        strstr(psd_error_text(err), "table \"lost\" lost rows") == NULL) {
        (void)fprintf(stderr, "told %s: %s\n", psd_status_name(status), psd_error_text(err));
        return false;
    }
    return true;
}

/* Waiters 0 and 1 wait for 2, which does nothing; it is told at its next
 * call. */
static bool all_of_the_bad_job_hear_it(cluster_t *cluster)
{
    waiter_t waiters[3] = {{.at_barrier = false}, {.at_barrier = true}, {0}};

    for (uint32_t i = 0; i < 3; i++) {
        CHECK(open_waiter(cluster, &waiters[i], i));
    }
    CHECK_OK(psd_clock(waiters[0].client, waiters[0].err), waiters[0].err);
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&waiters[i].thread, NULL, wait_in_vain, &waiters[i]) == 0);
        while (!atomic_load(&waiters[i].waits)) {
        }
    }
    CHECK(cluster_kill(cluster, 1, SIGKILL));
    CHECK(cluster_restart(cluster, 1));
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_join(waiters[i].thread, NULL) == 0);
        CHECK(told_of_the_loss(waiters[i].status, waiters[i].err));
    }
    psd_error_clear(waiters[2].err);
    waiters[2].status = psd_push(waiters[2].lost, rows, ROWS, ones, ROWS, waiters[2].err);
    CHECK(told_of_the_loss(waiters[2].status, waiters[2].err));
    for (int i = 0; i < 3; i++) {
        close_waiter(&waiters[i]);
    }
    return true;
}

/* The same rank of the same job at once, with rows that begin anew. */
static bool the_bad_job_begins_anew(cluster_t *cluster, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;

    CHECK(connect_to(cluster, &client, err));
    CHECK_OK(psd_join(client, "bad", 0, 1, 0, err), err);
    CHECK_OK(psd_table_open(client, "lost", &table, err), err);
    CHECK_OK(psd_push(table, rows, ROWS, ones, ROWS, err), err);
    CHECK_OK(psd_clock(client, err), err);
    CHECK_OK(psd_leave(client, CALL_MS, err), err);
    psd_table_close(&table);
    psd_close(&client);
    return true;
}

/* A node that is removed takes the last copies with it as well. */
static bool a_forced_removal_is_told_too(cluster_t *cluster, psd_error_t *err)
{
    psd_client_t *user = NULL;
    psd_client_t *admin = NULL;
    psd_table_t *table = NULL;
    char *reply = NULL;
    psd_status_t rc = PSD_NODE_HELD;

    CHECK(connect_to(cluster, &user, err));
    CHECK(connect_to(cluster, &admin, err));
    CHECK_OK(psd_table_open(user, "lost", &table, err), err);
    CHECK_OK(psd_push(table, rows, ROWS, ones, ROWS, err), err);
    CHECK(cluster_kill(cluster, 2, SIGKILL));
    do { /* until it is silent for long enough */
        psd_error_clear(err);
        rc = psd_request(admin,
                         "{\"op\":\"node_remove\",\"name\":\"n2\","
                         "\"force\":true,\"last\":0}",
                         CALL_MS, &reply, err);
        psd_free(reply);
        reply = NULL;
    } while (rc == PSD_NODE_HELD && strstr(psd_error_text(err), "were confirmed") == NULL);
    CHECK(rc == PSD_NODE_HELD);
    while (rc == PSD_NODE_HELD) {
        psd_error_clear(err);
        rc = psd_request(admin,
                         "{\"op\":\"node_remove\",\"name\":\"n2\","
                         "\"force\":true}",
                         CALL_MS, &reply, err);
        psd_free(reply);
        reply = NULL;
    }
    CHECK_OK(rc, err);
    rc = psd_push(table, rows, ROWS, ones, ROWS, err);
    CHECK(told_of_the_loss(rc, err));
    psd_error_clear(err);
    psd_table_close(&table);
    psd_close(&admin);
    psd_close(&user);
    return true;
}

/* Pushes and clocks of one who does not know the other table. */
typedef struct steady {
    psd_client_t *client;
    psd_table_t *table;
} steady_t;

static bool push_one_clock(steady_t *self, psd_error_t *err)
{
    CHECK_OK(psd_push(self->table, rows, ROWS, ones, ROWS, err), err);
    CHECK_OK(psd_clock(self->client, err), err);
    return true;
}

static bool run(cluster_t *cluster, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_table_t *lost = NULL;
    psd_table_t *kept = NULL;
    steady_t good = {NULL, NULL};

    CHECK(connect_to(cluster, &client, err));
    CHECK(make_table(client, "lost", "1", &lost, err));
    CHECK(make_table(client, "kept", "2", &kept, err));
    psd_table_close(&lost);
    CHECK(connect_to(cluster, &good.client, err));
    CHECK_OK(psd_join(good.client, "good", 0, 1, 0, err), err);
    CHECK_OK(psd_table_open(good.client, "kept", &good.table, err), err);

    CHECK(push_one_clock(&good, err));
    CHECK(all_of_the_bad_job_hear_it(cluster));
    CHECK(push_one_clock(&good, err));
    CHECK_OK(psd_push(kept, rows, ROWS, ones, ROWS, err), err);
    CHECK(the_bad_job_begins_anew(cluster, err));
    CHECK(a_forced_removal_is_told_too(cluster, err));
    CHECK(push_one_clock(&good, err));
    CHECK_OK(psd_leave(good.client, CALL_MS, err), err);
    CHECK(has_all(kept, 4, err));

    psd_table_close(&good.table);
    psd_close(&good.client);
    psd_table_close(&kept);
    psd_close(&client);
    return true;
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
