/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the node, and ends it when nobody needs it any more. */
#include "client/job/serving_node.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "client/connection/private_server.h"
#include "client/job/gather.h"
#include "client/job/job.h"
#include "transport/environment/environment.h"
#include "transport/threads/clock.h"
#include "transport/threads/fork.h"

#define LOOK_NS 50000000L /* between two looks at the others */
#define TOLD_MS 5000      /* of waiting, before a word about it */
#define SILENT_MS 5000    /* without an answer: more than a worker's silence may last */
#define DRAIN_MS 5000
#define SUFFIX ".nodes"

/* One for the process, whose clients know nothing of each other. */
static struct {
    pthread_mutex_t mutex;
    psd_client_t *client;     /* owned; a worker of the job of the nodes; NULL: not started */
    struct psd_embed *server; /* owned; NULL: this rank has none */
    char *join;               /* owned */
    const char *endpoint;     /* borrowed from one of them */
    unsigned n_forks;         /* before it was started */
    uint64_t since_ms;
    bool has_ended; /* the process exits */
} mine = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* The lock may be held while the node starts, when another thread forks. */
static void in_child(void)
{
    mine.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* ---- the end ---- */

/* Until all have left or are lost. One that was never there may be late, or never connect. The
 * registry declares one lost that is silent, so that the wait ends; a registry that does not
 * answer may be on its way to another node. True: some are there, as far as is known. */
static bool wait_for_others(psd_client_t *client, const char *job, uint64_t id, uint32_t n)
{
    const struct timespec gap = {.tv_nsec = LOOK_NS};
    const uint64_t begin_ms = ps_now_ms();
    const uint64_t late_ms = mine.since_ms + client->options.timeout_ms;
    uint64_t answered_ms = begin_ms;
    ps_gathered_t others = {.are_there = true};
    bool is_told = false;

    while (true) {
        ps_gathered_t seen = {.are_there = false};

        if (ps_gather_others(client, job, id, n, &seen, NULL) == PSD_OK) {
            others = seen;
            answered_ms = ps_now_ms();
        } else if (ps_now_ms() >= answered_ms + SILENT_MS) {
            return others.are_there;
        }
        if (!others.are_there && (!others.may_come || ps_now_ms() >= late_ms)) {
            return false;
        }
        if (!is_told && others.are_there && ps_now_ms() >= begin_ms + TOLD_MS) {
            is_told = true;
            ps_log(PS_LOG_WARN, "node_waits", "job=%s workers=\"%s\" hint=\"they use its rows\"",
                   job, others.names);
        }
        (void)nanosleep(&gap, NULL);
    }
}

/* The process exits. One that fails takes its node with it, as one that is killed does. */
static void leave(int status, void *unused)
{
    char job[PS_NAME_MAX + 1];
    uint64_t id = 0;
    uint32_t n = 0;
    bool is_here = false;
    bool is_used = false;
    psd_status_t rc = PSD_OK;

    (void)unused;
    (void)pthread_mutex_lock(&mine.mutex);
    mine.has_ended = true;
    is_here = mine.client != NULL && !ps_fork_is_since(mine.n_forks);
    (void)pthread_mutex_unlock(&mine.mutex);
    if (!is_here) {
        return;
    }
    (void)snprintf(job, sizeof job, "%s", mine.client->worker.job);
    id = mine.client->worker.stamp.job;
    n = mine.client->membership->n_workers;
    rc = psd_leave(mine.client, mine.client->options.timeout_ms, NULL);
    if (status == 0) {
        /* A worker that did not leave its job does nothing any more: the others, for which this
         * process waits, must not wait for it. */
        ps_beat_stop_all();
        is_used = wait_for_others(mine.client, job, id, n) || rc != PSD_OK;
    }
    psd_close(&mine.client);
    if (mine.server != NULL && is_used) {
        rc = ps_private_server_drain(mine.server, DRAIN_MS, NULL);
        (void)rc; /* it ends all the same */
    }
    if (mine.server != NULL) {
        ps_private_server_stop(&mine.server);
    }
}

/* ---- the beginning ---- */

static void watch(void)
{
    (void)pthread_atfork(NULL, NULL, in_child);
    (void)on_exit(leave, NULL);
}

/* The job of the nodes, which is named by that of the workers. */
static psd_status_t name_job(const ps_wish_t *wish, char ret_name[PS_NAME_MAX + 1],
                             psd_error_t *err)
{
    const size_t most = 63 - strlen(SUFFIX);

    if (strlen(wish->job) > most) {
        return psd_error_set(err, PSD_INVALID,
                             "PSD_JOB is \"%s\"; allowed with embed:ENDPOINT: 1 to %zu characters",
                             wish->job, most);
    }
    (void)snprintf(ret_name, PS_NAME_MAX + 1, "%s" SUFFIX, wish->job);
    return PSD_OK;
}

/* A rank that is not named may be any: it has a node. */
static psd_status_t may_serve(const ps_wish_t *wish, bool *ret_serves, psd_error_t *err)
{
    int64_t n_servers = 0;
    psd_status_t rc = ps_environment_number("PSD_SERVERS", &n_servers, err);

    *ret_serves = n_servers == 0 || wish->any_rank || wish->worker < n_servers;
    return rc;
}

static psd_status_t join_others(ps_wish_t *wish, psd_error_t *err)
{
    char name[PS_NAME_MAX + 1] = "";
    psd_status_t rc = name_job(wish, name, err);

    wish->job = name;
    if (rc == PSD_OK) {
        rc = ps_client_connect(mine.endpoint, NULL, &mine.client, err);
    }
    if (rc == PSD_OK) {
        rc = ps_join_bare(mine.client, wish, err);
    }
    if (rc != PSD_OK) {
        psd_close(&mine.client);
    }
    return rc;
}

static psd_status_t start(const char *join, psd_error_t *err)
{
    ps_wish_t wish = {.job = NULL};
    ps_environment_t rank = {.text = NULL};
    bool serves = false;
    psd_status_t rc = ps_wish_resolve(NULL, -1, 0, -1, &wish, err);

    if (rc == PSD_OK) {
        rc = ps_environment_read("PSD_WORKER", &rank, err);
    }
    wish.any_rank = wish.any_rank || rank.text == NULL;
    if (rc == PSD_OK) {
        rc = may_serve(&wish, &serves, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    mine.n_forks = ps_fork_count();
    mine.since_ms = ps_now_ms();
    mine.join = ps_strdup(join);
    mine.endpoint = mine.join;
    if (mine.join == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a server");
    }
    if (serves) {
        rc = ps_private_server_start(join, NULL, &mine.server, &mine.endpoint, err);
    }
    if (rc == PSD_OK) {
        rc = join_others(&wish, err);
    }
    if (rc != PSD_OK && mine.server != NULL) {
        ps_private_server_stop(&mine.server);
    }
    if (rc != PSD_OK) {
        ps_free(mine.join);
        mine.join = NULL;
    }
    return rc;
}

psd_status_t ps_serving_node_hold(const char *join, const char **ret_endpoint, psd_error_t *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    psd_status_t rc = PSD_OK;

    (void)pthread_once(&once, watch);
    (void)pthread_mutex_lock(&mine.mutex);
    if (mine.client != NULL && ps_fork_is_since(mine.n_forks)) {
        mine.client = NULL; /* the parent's */
        mine.server = NULL;
    }
    if (mine.has_ended) {
        rc = psd_error_set(err, PSD_CLOSED, "the process exits, and so does its node");
    } else if (mine.client == NULL) {
        rc = start(join, err);
    } else if (strcmp(mine.join, join) != 0) {
        rc = psd_error_set(err, PSD_INVALID, "this process serves the cluster of %.300s already",
                           mine.join);
    }
    if (rc == PSD_OK) {
        *ret_endpoint = mine.endpoint;
    }
    (void)pthread_mutex_unlock(&mine.mutex);
    return rc;
}
