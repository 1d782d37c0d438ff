/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the state of a job, and reports the end of its workers. */
#include "cli/jobs/workers_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define ANSWER_MS 1000 /* for psd, while workers run */

/* PSD_NO_JOB also for a number that belongs to another job. */
static psd_status_t inspect(ps_cli_t *cli, const char *name, json_t **ret_reply, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ps_cli_request(cli, "job_inspect", "job", name, &reply, err);

    if (rc == PSD_OK && strcmp(ps_json_text(reply, "job.name"), name) != 0) {
        return PSD_NO_JOB;
    }
    if (rc == PSD_OK) {
        *ret_reply = json_incref(reply);
    }
    return rc;
}

/* Whether any worker of the job is there, or is joining. */
static bool has_workers(const json_t *reply)
{
    const json_t *workers = ps_json_at(reply, "job.workers");
    const json_t *worker = NULL;
    size_t i = 0;

    json_array_foreach(workers, i, worker)
    {
        const char *state = ps_json_text(worker, "state");

        if (strcmp(state, "running") == 0 || strcmp(state, "joining") == 0) {
            return true;
        }
    }
    return false;
}

/* A job without any worker since its restore is ours. */
static psd_status_t look_for(ps_cli_t *cli, ps_known_job_t *job, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = inspect(cli, job->name, &reply, err);

    if (rc == PSD_NO_JOB) {
        psd_error_clear(err);
        return PSD_OK;
    }
    if (rc != PSD_OK) {
        return rc;
    }
    job->runs = has_workers(reply);
    if (job->runs || strcmp(ps_json_text(reply, "job.state"), "running") != 0) {
        job->old_id = ps_json_u64(reply, "job.id");
        job->old_unix_ms = ps_json_u64(reply, "job.created_unix_ms");
    }
    return PSD_OK;
}

psd_status_t ps_workers_job_open(ps_workers_job_t *ret_self, ps_cli_t *cli, const char *job,
                                 uint32_t n_workers, psd_error_t *err)
{
    ps_workers_job_t self = {.cli = cli};
    char name[PS_CLI_JOB_SIZE + 32];
    psd_status_t rc = PSD_OK;

    (void)snprintf(self.job.name, sizeof self.job.name, "%s", job);
    (void)snprintf(name, sizeof name, "%s.agree2.%" PRIu32, job, n_workers);
    rc = look_for(cli, &self.job, err);
    if (rc == PSD_OK && strlen(name) < sizeof self.meeting.name) {
        memcpy(self.meeting.name, name, strlen(name) + 1);
        rc = look_for(cli, &self.meeting, err);
    }
    psd_close(&cli->client); /* its threads would not survive a fork */
    *ret_self = self;
    return rc;
}

/* That worker has not left, and can no longer leave. */
static void tell_lost(ps_cli_t *cli, const json_t *reply, const json_t *worker, const char *reason)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_json_unref) json_t *answer = NULL;
    PSD_AUTO(ps_json_unref)
    json_t *request = json_pack(
        "{s:s,s:s,s:I,s:I,s:I,s:I,s:s}", "op", "job_leave", "job", ps_json_text(reply, "job.name"),
        "job_id", (json_int_t)ps_json_u64(reply, "job.id"), "worker",
        (json_int_t)ps_json_u64(worker, "worker"), "member", (json_int_t)0, "joins",
        (json_int_t)ps_json_u64(worker, "joins"), "reason", reason);
    psd_status_t rc = ps_cli_ask(cli, request, &answer, err);

    (void)rc; /* its silence also ends it */
}

static bool is_over(const json_t *worker)
{
    const char *state = ps_json_text(worker, "state");

    return strcmp(state, "lost") == 0 || strcmp(state, "finished") == 0;
}

static ps_worker_fate_t fate_in(ps_cli_t *cli, const json_t *reply, const ps_known_job_t *job,
                                uint32_t rank, const char *reason)
{
    const json_t *workers = ps_json_at(reply, "job.workers");
    const json_t *worker = NULL;
    size_t i = 0;

    if (ps_json_u64(reply, "job.id") == job->old_id &&
        ps_json_u64(reply, "job.created_unix_ms") == job->old_unix_ms) {
        return job->runs ? PS_FATE_KNOWN : PS_FATE_UNKNOWN;
    }
    json_array_foreach(workers, i, worker)
    {
        if (ps_json_u64(worker, "worker") == rank) {
            if (reason != NULL && ps_json_u64(worker, "joins") > 0 && !is_over(worker)) {
                tell_lost(cli, reply, worker, reason);
            }
            return ps_json_u64(worker, "joins") > 0 ? PS_FATE_KNOWN : PS_FATE_MISSED;
        }
    }
    return PS_FATE_KNOWN;
}

/* Of one of the two jobs. */
static ps_worker_fate_t ask(ps_cli_t *cli, const ps_known_job_t *job, uint32_t rank,
                            const char *reason)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = inspect(cli, job->name, &reply, err);

    if (rc == PSD_OK) {
        return fate_in(cli, reply, job, rank, reason);
    }
    if (rc != PSD_NO_JOB) {
        psd_close(&cli->client); /* the next one may succeed */
    }
    return PS_FATE_UNKNOWN;
}

/* The job waits for a worker that fails between the meeting and its join. */
static ps_worker_fate_t ask_both(const ps_workers_job_t *self, uint32_t rank, const char *reason)
{
    ps_worker_fate_t fate = ask(self->cli, &self->job, rank, reason);
    bool may_meet =
        fate == PS_FATE_UNKNOWN && self->cli->client != NULL && self->meeting.name[0] != '\0';

    if (self->cli->client != NULL && self->nodes.name[0] != '\0') {
        (void)ask(self->cli, &self->nodes, rank, reason); /* they wait for it when they exit */
    }
    if (may_meet && ask(self->cli, &self->meeting, rank, reason) == PS_FATE_MISSED) {
        return PS_FATE_MISSED;
    }
    return fate;
}

ps_worker_fate_t ps_workers_job_fate(const ps_workers_job_t *self, uint32_t rank,
                                     const char *reason)
{
    uint32_t timeout_ms = self->cli->timeout_ms;
    ps_worker_fate_t fate = PS_FATE_UNKNOWN;

    if (self->is_out_of_reach) {
        return PS_FATE_KNOWN;
    }
    self->cli->timeout_ms = timeout_ms < ANSWER_MS ? timeout_ms : ANSWER_MS;
    fate = ask_both(self, rank, reason);
    self->cli->timeout_ms = timeout_ms;
    return fate;
}

static bool queues_are_over(const json_t *reply, const char *job, char *ret_why)
{
    const json_t *queues = ps_json_at(reply, "job.queues");
    bool over = json_array_size(queues) > 0;

    if (!over) {
        (void)snprintf(ret_why, PS_JOB_WHY_SIZE,
                       "job %s has no work queue: nobody has done the part of a lost worker", job);
    }
    for (size_t i = 0; over && i < json_array_size(queues); i++) {
        const json_t *queue = json_array_get(queues, i);

        over = json_is_true(ps_json_at(queue, "over"));
        if (!over) {
            (void)snprintf(ret_why, PS_JOB_WHY_SIZE,
                           "queue %s of job %s is not finished: %" PRIu64 " of %" PRIu64
                           " slices of epoch %" PRIu64 " are done",
                           ps_json_text(queue, "queue"), job, ps_json_u64(queue, "done"),
                           ps_json_u64(queue, "slices"), ps_json_u64(queue, "epoch"));
        }
    }
    return over;
}

bool ps_workers_job_is_whole(const ps_workers_job_t *self, char ret_why[PS_JOB_WHY_SIZE])
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = PSD_OK;

    if (self->is_out_of_reach) {
        (void)snprintf(ret_why, PS_JOB_WHY_SIZE,
                       "job %s: its registry was in a rank, so nothing is known of its slices",
                       self->job.name);
        return false;
    }
    rc = inspect(self->cli, self->job.name, &reply, err);
    if (rc != PSD_OK) {
        (void)snprintf(ret_why, PS_JOB_WHY_SIZE, "job %s: %s", self->job.name,
                       rc == PSD_NO_JOB ? psd_status_text(rc) : psd_error_text(err));
        return false;
    }
    return queues_are_over(reply, self->job.name, ret_why);
}
