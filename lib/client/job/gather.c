/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the registry for nodes and ranks. */
#include "client/job/gather.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "client/requests/wait.h"
#include "transport/environment/environment.h"

#define LOOK_MS 50 /* between two questions */
#define NODES_MAX 65536
#define NAMES_SIZE 400

/* What is there, and what is wanted. */
typedef struct gathering {
    int64_t wanted;
    int64_t n;
    char names[NAMES_SIZE]; /* of those that are there, as far as there is room */
} gathering_t;

static psd_status_t take_node(gathering_t *self, const ps_doc_t *node, psd_error_t *err)
{
    const char *name = "";
    const char *state = "";
    size_t used = strlen(self->names);
    psd_status_t rc = ps_doc_get_text(node, "name", PS_NAME_MAX, &name, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text(node, "state", PS_NAME_MAX, &state, err);
    }
    if (rc == PSD_OK && strcmp(state, "up") == 0 && strcmp(name, PS_SCHEDULER_NODE) != 0) {
        self->n++;
        if (used + strlen(name) + 3 < sizeof self->names) {
            (void)snprintf(self->names + used, sizeof self->names - used, "%s%s",
                           used == 0 ? "" : ", ", name);
        }
    }
    return rc;
}

static psd_status_t look(gathering_t *self, psd_client_t *client, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = ps_question_new("node_list");
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    const ps_doc_t *nodes = NULL;
    size_t n = 0;
    psd_status_t rc = PSD_OK;

    if (question == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a question");
    }
    rc = ps_question_ask(client, question, client->options.timeout_ms, 0, &reply, err);
    if (rc == PSD_OK) {
        rc = ps_doc_get_array(reply, "nodes", NODES_MAX, &nodes, err);
    }
    n = rc == PSD_OK ? ps_doc_count(nodes) : 0;
    self->n = 0;
    self->names[0] = '\0';
    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        const ps_doc_t *node = NULL;

        rc = ps_doc_at_object(nodes, i, &node, err);
        if (rc == PSD_OK) {
            rc = take_node(self, node, err);
        }
    }
    return rc;
}

psd_status_t ps_gather_servers(psd_client_t *client, psd_error_t *err)
{
    const struct timespec gap = {.tv_nsec = LOOK_MS * 1000000L};
    const uint64_t until_ms = ps_now_ms() + client->options.timeout_ms;
    gathering_t self = {.wanted = 0};
    int64_t spares = 0;
    psd_status_t rc = ps_environment_number("PSD_SERVERS", &self.wanted, err);

    if (rc == PSD_OK) {
        rc = ps_environment_number("PSD_SPARES", &spares, err);
    }
    self.wanted += spares;
    if (rc != PSD_OK || self.wanted == 0) {
        return rc;
    }
    while (true) {
        rc = look(&self, client, err);
        if (rc != PSD_OK || self.n >= self.wanted) {
            return rc;
        }
        if (ps_now_ms() >= until_ms) {
            return psd_error_set(err, PSD_DEADLINE,
                                 "%" PRId64 " of %" PRId64 " servers are missing after %" PRIu32
                                 " ms (PSD_SERVERS); there: %s",
                                 self.wanted - self.n, self.wanted, client->options.timeout_ms,
                                 self.names[0] == '\0' ? "none" : self.names);
        }
        (void)nanosleep(&gap, NULL);
    }
}

/* Marks who has joined, and who is there now; n: of the job that runs. */
static psd_status_t mark(const ps_doc_t *reply, uint8_t *had, uint8_t *has, psd_error_t *err)
{
    const ps_doc_t *workers = NULL;
    psd_status_t rc = ps_doc_get_array(reply, "workers", PS_WORKERS_MAX, &workers, err);
    size_t n = rc == PSD_OK ? ps_doc_count(workers) : 0;

    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        const ps_doc_t *worker = NULL;
        const char *state = "";
        uint64_t rank = 0;

        rc = ps_doc_at_object(workers, i, &worker, err);
        if (rc == PSD_OK) {
            rc = ps_doc_get_u64(worker, "worker", 0, PS_WORKERS_MAX - 1, &rank, err);
        }
        if (rc == PSD_OK) {
            rc = ps_doc_get_text(worker, "state", PS_NAME_MAX, &state, err);
        }
        if (rc == PSD_OK) {
            had[rank] = strcmp(state, "expected") != 0;
            has[rank] =
                had[rank] != 0 && strcmp(state, "lost") != 0 && strcmp(state, "finished") != 0;
        }
    }
    return rc;
}

static psd_status_t ask_workers(psd_client_t *client, const char *op, const char *job,
                                ps_doc_t **ret_reply, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = ps_question_new(op);

    if (question == NULL || !ps_doc_set_text(question, "job", job)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a question");
    }
    return ps_question_ask(client, question, client->options.timeout_ms, 0, ret_reply, err);
}

/* The id of the running job of that name; 0: none runs. */
static psd_status_t look_for_running(psd_client_t *client, const char *name, uint64_t *ret_id,
                                     psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    const ps_doc_t *job = NULL;
    const char *state = "";
    psd_status_t rc = ask_workers(client, "job_state", name, &reply, err);

    *ret_id = 0;
    if (rc == PSD_NO_JOB) {
        psd_error_clear(err);
        return PSD_OK;
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_object(reply, "job", &job, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_text(job, "state", PS_NAME_MAX, &state, err);
    }
    if (rc == PSD_OK && strcmp(state, "running") == 0) {
        rc = ps_doc_get_u64(job, "id", 1, UINT32_MAX, ret_id, err);
    }
    return rc;
}

psd_status_t ps_gather_rank(psd_client_t *client, const char *job, uint32_t n_workers,
                            uint32_t *ret_rank, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    PSD_AUTO(ps_free_at) uint8_t *had = ps_alloc(PS_WORKERS_MAX, 1);
    PSD_AUTO(ps_free_at) uint8_t *has = ps_alloc(PS_WORKERS_MAX, 1);
    uint64_t runs = 0; /* 0: a new one begins with rank 0 */
    uint32_t rank = 0;
    psd_status_t rc = look_for_running(client, job, &runs, err);

    if (had == NULL || has == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for ranks");
    }
    if (rc == PSD_OK && runs != 0) {
        rc = ask_workers(client, "worker_list", job, &reply, err);
    }
    if (rc == PSD_OK && runs != 0) {
        rc = mark(reply, had, has, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    while (rank < n_workers && had[rank] != 0) {
        rank++;
    }
    for (rank = rank < n_workers ? rank : 0; rank < PS_WORKERS_MAX && has[rank] != 0;) {
        rank++;
    }
    *ret_rank = rank < PS_WORKERS_MAX ? rank : 0;
    return PSD_OK;
}

static void add_rank(ps_gathered_t *ret, uint32_t rank)
{
    size_t used = strlen(ret->names);

    if (used + 12 < sizeof ret->names) {
        (void)snprintf(ret->names + used, sizeof ret->names - used, "%s%" PRIu32,
                       used == 0 ? "" : ", ", rank);
    }
    ret->are_there = true;
}

psd_status_t ps_gather_others(psd_client_t *client, const char *job, uint64_t id,
                              uint32_t n_workers, ps_gathered_t *ret, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    PSD_AUTO(ps_free_at) uint8_t *had = ps_alloc(PS_WORKERS_MAX, 1);
    PSD_AUTO(ps_free_at) uint8_t *has = ps_alloc(PS_WORKERS_MAX, 1);
    uint64_t runs = 0;
    psd_status_t rc = had == NULL || has == NULL
                          ? psd_error_set(err, PSD_NOMEM, "no memory for ranks")
                          : look_for_running(client, job, &runs, err);

    *ret = (ps_gathered_t){.are_there = false};
    if (rc != PSD_OK || runs != id) {
        return rc;
    }
    rc = ask_workers(client, "worker_list", job, &reply, err);
    if (rc == PSD_OK) {
        rc = mark(reply, had, has, err);
    }
    for (uint32_t i = 0; rc == PSD_OK && i < PS_WORKERS_MAX; i++) {
        if (has[i] != 0) {
            add_rank(ret, i);
        }
        ret->may_come = ret->may_come || (i < n_workers && had[i] == 0);
    }
    return rc;
}
