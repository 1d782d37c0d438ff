/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at a job, and says of its workers that they have ended. */
#include "cli/workers_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define ANSWER_MS 1000 /* for psd, while workers run */

static psd_status_t
look_for(ps_cli_t *cli, ps_known_job_t *job, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc =
        ps_cli_request(cli, "job_inspect", "job", job->name, &reply, err);

    if (rc == PSD_OK) {
        job->old_id = ps_json_u64(reply, "job.id");
        job->is_shared =
            strcmp(ps_json_text(reply, "job.state"), "running") == 0;
    } else if (rc == PSD_NO_JOB) {
        psd_error_clear(err);
        rc = PSD_OK;
    }
    return rc;
}

psd_status_t
ps_workers_job_open(ps_workers_job_t *ret_self,
                    ps_cli_t *cli,
                    const char *job,
                    uint32_t n_workers,
                    psd_error_t *err)
{
    ps_workers_job_t self = {.cli = cli};
    char name[PS_CLI_JOB_SIZE + 32];
    psd_status_t rc = PSD_OK;

    (void)snprintf(self.job.name, sizeof self.job.name, "%s", job);
    (void)snprintf(name, sizeof name, "%s.agree.%" PRIu32, job, n_workers);
    rc = look_for(cli, &self.job, err);
    if (rc == PSD_OK && strlen(name) < sizeof self.meeting.name) {
        memcpy(self.meeting.name, name, strlen(name) + 1);
        rc = look_for(cli, &self.meeting, err);
    }
    psd_close(&cli->client); /* its threads would not survive a fork */
    *ret_self = self;
    return rc;
}

static const json_t *
find_worker(const json_t *reply, uint32_t rank)
{
    const json_t *workers = ps_json_at(reply, "job.workers");
    const json_t *worker = NULL;
    size_t i = 0;

    json_array_foreach(workers, i, worker)
    {
        if (ps_json_u64(worker, "worker") == rank) {
            return worker;
        }
    }
    return NULL;
}

/* In its place; one that has ended already, or has joined again, stays as it
 * is. */
static psd_status_t
leave(ps_cli_t *cli,
      uint64_t id,
      const json_t *worker,
      const char *reason,
      psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    PSD_AUTO(ps_json_unref)
    json_t *request =
        json_pack("{s:s,s:I,s:O,s:O,s:s}", "op", "job_leave", "job_id",
                  (json_int_t)id, "worker", json_object_get(worker, "worker"),
                  "joins", json_object_get(worker, "joins"), "reason", reason);

    return ps_cli_ask(cli, request, &reply, err);
}

/* Of one of the two jobs. */
static ps_worker_fate_t
end_in(ps_cli_t *cli,
       const ps_known_job_t *job,
       uint32_t rank,
       const char *reason,
       psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const json_t *worker = NULL;
    uint64_t id = 0;
    psd_status_t rc =
        ps_cli_request(cli, "job_inspect", "job", job->name, &reply, err);

    if (rc == PSD_OK) {
        id = ps_json_u64(reply, "job.id");
        if (id == job->old_id) {
            return PS_FATE_UNKNOWN;
        }
        worker = find_worker(reply, rank);
        if (worker == NULL) {
            return PS_FATE_ABSENT;
        }
        rc = leave(cli, id, worker, reason, err);
    }
    psd_error_clear(err);
    if (rc == PSD_DEADLINE || rc == PSD_CONNECT || worker == NULL) {
        if (rc != PSD_NO_JOB) {
            psd_close(&cli->client); /* the next one may get on */
        }
        return PS_FATE_UNKNOWN;
    }
    return ps_json_u64(worker, "joins") > 0 ? PS_FATE_WORKER : PS_FATE_ABSENT;
}

static ps_worker_fate_t
end(const ps_workers_job_t *self,
    uint32_t rank,
    const char *reason,
    psd_error_t *err)
{
    ps_worker_fate_t fate = end_in(self->cli, &self->job, rank, reason, err);
    bool meets = self->meeting.name[0] != '\0' && !self->meeting.is_shared;

    /* Whoever fails between the meeting and the job is missed in the job. */
    if (fate == PS_FATE_UNKNOWN && meets && self->cli->client != NULL &&
        end_in(self->cli, &self->meeting, rank, reason, err) ==
            PS_FATE_ABSENT) {
        return PS_FATE_ABSENT;
    }
    return fate;
}

ps_worker_fate_t
ps_workers_job_end(const ps_workers_job_t *self,
                   uint32_t rank,
                   const char *reason)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint32_t timeout_ms = self->cli->timeout_ms;
    ps_worker_fate_t fate = PS_FATE_WORKER;

    if (!self->job.is_shared) {
        self->cli->timeout_ms = timeout_ms < ANSWER_MS ? timeout_ms : ANSWER_MS;
        fate = end(self, rank, reason, err);
        self->cli->timeout_ms = timeout_ms;
    }
    return fate;
}
