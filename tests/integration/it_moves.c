/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes come and go while a job runs: a node that joins gets its share, one
 * that is drained gives everything away and is stopped and removed. No request
 * fails, every push is applied once, and under BSP the bits are those of a run
 * in which nothing moved. */
#include <psd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "integration/thread_job.h"
#include "support/check.h"
#include "support/cluster.h"

#define CALL_MS 60000
#define TRIES 6000 /* of 5 ms */
#define WORKERS 3

/* No node or worker is silent here but one that waits for a processor: with ack memory that
 * would cost pushes. */
static const cluster_args_t args = {
    .n_nodes = 2, .net = CLUSTER_DIRECT, .config = "shards: 2\ncluster: {suspect_after: 8000}\n"};

/* Asks until the reply has that text. */
static bool wait_reply(psd_client_t *client, const char *request, const char *wanted,
                       psd_error_t *err)
{
    const struct timespec step = {.tv_nsec = 5000000L};
    char last[4096] = "";

    for (int i = 0; i < TRIES; i++) {
        char *reply = NULL;
        bool found = false;

        CHECK_OK(psd_request(client, request, CALL_MS, &reply, err), err);
        found = strstr(reply, wanted) != NULL;
        (void)snprintf(last, sizeof last, "%s", reply);
        psd_free(reply);
        if (found) {
            return true;
        }
        (void)nanosleep(&step, NULL);
    }
    (void)fprintf(stderr, "%s: no %s in %s\n", request, wanted, last);
    return false;
}

/* A third node joins, and has a third of the copies in the end. */
static bool a_node_joins(cluster_t *cluster, psd_client_t *client, const char *share,
                         psd_error_t *err)
{
    CHECK(cluster_add(cluster));
    CHECK(wait_reply(client, "{\"op\":\"node_inspect\",\"name\":\"n2\"}", share, err));
    CHECK(wait_reply(client, "{\"op\":\"cluster_rebalance\",\"dry_run\":true}",
                     "\"moving\":0,\"moves\":[]", err));
    return true;
}

static bool a_node_drains_and_goes(cluster_t *cluster, psd_client_t *client, psd_error_t *err)
{
    CHECK(wait_reply(client, "{\"op\":\"node_drain\",\"name\":\"n1\"}", "\"left\":{\"copies\":0,",
                     err));
    CHECK(cluster_kill(cluster, 1, SIGTERM));
    CHECK(
        wait_reply(client, "{\"op\":\"node_inspect\",\"name\":\"n1\"}", "\"state\":\"down\"", err));
    CHECK(wait_reply(client, "{\"op\":\"node_remove\",\"name\":\"n1\"}", "\"removed\":true", err));
    return true;
}

/* The same job, of as many clocks, in which nothing moves. */
static bool nothing_moved(const thread_job_t *moved)
{
    cluster_t cluster = {.n_nodes = 0};
    thread_job_t *job = calloc(1, sizeof *job);
    thread_job_args_t like = moved->args;
    bool good = job != NULL && cluster_start(&cluster, &args);

    like.n_clocks = moved->last;
    (void)snprintf(like.endpoint, sizeof like.endpoint, "%s", cluster.nodes[0].control);
    good = good && thread_job_start(job, &like) && thread_job_finish(job);
    if (good && memcmp(job->floats, moved->floats, sizeof moved->floats) != 0) {
        (void)fprintf(stderr, "other bits after %llu clocks\n", (unsigned long long)moved->last);
        good = false;
    }
    if (job != NULL) {
        thread_job_drop(job);
    }
    free(job);
    cluster_drop(&cluster, !good);
    return good;
}

typedef struct round {
    const char *replicas;
    const char *ack;
    const char *share; /* what the node that joins has in the end */
    int max_delay;
} round_t;

static bool go_through(cluster_t *cluster, thread_job_t *job, psd_client_t *client,
                       const round_t *round, psd_error_t *err)
{
    CHECK(thread_job_wait_clocks(job, 3));
    CHECK(a_node_joins(cluster, client, round->share, err));
    CHECK(thread_job_wait_clocks(job, 3));
    CHECK(a_node_drains_and_goes(cluster, client, err));
    CHECK(thread_job_wait_clocks(job, 3));
    return thread_job_finish(job);
}

static bool run_round(const round_t *round)
{
    cluster_t cluster = {.n_nodes = 0};
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    thread_job_t *job = calloc(1, sizeof *job);
    thread_job_args_t like = {.name = "j",
                              .replicas = round->replicas,
                              .ack = round->ack,
                              .n_workers = WORKERS,
                              .max_delay = round->max_delay};
    bool good = job != NULL && cluster_start(&cluster, &args);

    (void)snprintf(like.endpoint, sizeof like.endpoint, "%s", cluster.nodes[0].control);
    good = good && psd_connect(like.endpoint, NULL, &client, err) == PSD_OK &&
           thread_job_start(job, &like) && go_through(&cluster, job, client, round, err);
    psd_close(&client);
    psd_error_destroy(&err);
    cluster_drop(&cluster, !good);
    if (job != NULL) {
        (void)fprintf(stderr, "%s copies, ack %s, max_delay %d: %s\n", round->replicas, round->ack,
                      round->max_delay, good ? "exact" : "FAILED");
        good = good && (round->max_delay != 0 || nothing_moved(job));
        thread_job_drop(job);
    }
    free(job);
    return good;
}

int main(int argc, char **argv)
{
    static const round_t rounds[] = {
        {"1", "memory", "\"primary\":4", 0},
        {"1", "memory", "\"primary\":4", -1},
        {"2", "replica", "\"primary\":4", 0},
    };
    size_t only = argc > 1 ? strtoul(argv[1], NULL, 10) : SIZE_MAX;

    for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
        if ((only == SIZE_MAX || only == i) && !run_round(&rounds[i])) {
            return 1;
        }
    }
    return 0;
}
