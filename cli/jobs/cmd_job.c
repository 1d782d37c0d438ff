/* SPDX-License-Identifier: Apache-2.0 */
/* pscli job: training runs. */
#include "cli/jobs/jobs.h"

#include "base/alloc.h"

static const ps_column_t JOBS[] = {{"JOB", "name|job", PS_UNIT_NONE, false},
                                   {"STATE", "state", PS_UNIT_NONE, false},
                                   {"MAX_DELAY", "max_delay", PS_UNIT_NONE, false},
                                   {"WORKERS", "workers", PS_UNIT_COUNT, false},
                                   {"MIN", "min", PS_UNIT_NONE, false},
                                   {"MAX", "max", PS_UNIT_NONE, false},
                                   {"TABLES", "tables", PS_UNIT_NONE, true},
                                   {"CREATED", "created_unix_ms", PS_UNIT_UNIX_MS, false},
                                   {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t JOB[] = {
    {"JOB", "job.name|name|job", PS_UNIT_NONE, false},
    {"STATE", "job.state|state", PS_UNIT_NONE, false},
    {"MAX_DELAY", "job.max_delay|max_delay", PS_UNIT_NONE, false},
    {"WORKERS", "job.workers|workers", PS_UNIT_COUNT, false},
    {"MIN", "job.min|min", PS_UNIT_NONE, false},
    {"MAX", "job.max|max", PS_UNIT_NONE, false},
    {"TABLES", "job.tables|tables", PS_UNIT_NONE, false},
    {"CREATED", "job.created_unix_ms|created_unix_ms", PS_UNIT_UNIX_MS, false},
    {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t QUEUES[] = {{"QUEUE", "queue", PS_UNIT_NONE, false},
                                     {"EPOCH", "epoch", PS_UNIT_NONE, false},
                                     {"EPOCHS", "epochs", PS_UNIT_NONE, false},
                                     {"DONE", "done", PS_UNIT_NONE, false},
                                     {"SLICES", "slices", PS_UNIT_NONE, false},
                                     {"GIVEN", "given", PS_UNIT_NONE, false},
                                     {"WAITING", "waiting", PS_UNIT_NONE, false},
                                     {"OVER", "over", PS_UNIT_NONE, false},
                                     {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t OVERLAY[] = {
    {"WORKER", "worker", PS_UNIT_NONE, false},     {"RELAY", "relay", PS_UNIT_NONE, false},
    {"LINK", "link", PS_UNIT_NONE, false},         {"SITE", "site", PS_UNIT_NONE, false},
    {"SENDS_TO", "sends_to", PS_UNIT_NONE, false}, {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t STOPPED[] = {{"JOB", "job", PS_UNIT_NONE, false},
                                      {"STATE", "state", PS_UNIT_NONE, false},
                                      {"DRY_RUN", "dry_run", PS_UNIT_NONE, false},
                                      {NULL, NULL, PS_UNIT_NONE, false}};

psd_status_t ps_cmd_job_list(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ps_cli_request(cli, "job_list", NULL, NULL, &reply, err);

    if (rc == PSD_OK) {
        ps_out_list(&cli->out, reply, "jobs", JOBS);
    }
    return rc;
}

/* Work queues, and who passes deltas on, after the job's own lines; other formats have them
 * inside the job. */
static void show_list(const ps_out_t *out, const json_t *items, const ps_column_t *columns)
{
    if ((out->format == PS_FORMAT_TABLE || out->format == PS_FORMAT_WIDE) &&
        json_array_size(items) > 0) {
        ps_print(out->out, "\n");
        ps_out_table(out, items, columns);
    }
}

psd_status_t ps_cmd_job_inspect(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const char *job = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "JOB", &job, err);

    if (rc == PSD_OK && ps_job_wants_overlay(cli)) {
        return ps_job_show_overlay(cli, job, err);
    }
    if (rc == PSD_OK) {
        rc = ps_cli_request(cli, "job_inspect", "job", job, &reply, err);
    }
    if (rc == PSD_OK) {
        ps_out_object(&cli->out, reply, JOB);
        show_list(&cli->out, ps_json_at(reply, "job.queues"), QUEUES);
        show_list(&cli->out, ps_json_at(reply, "job.overlay.workers"), OVERLAY);
    }
    return rc;
}

psd_status_t ps_cmd_job_stop(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    bool dry_run = ps_args_on(&cli->args, "dry-run");
    const char *job = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "JOB", &job, err);

    if (rc == PSD_OK) {
        rc = ps_cli_request(cli, dry_run ? "job_inspect" : "job_stop", "job", job, &reply, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (dry_run) {
        const char *state = ps_json_text(reply, "job.state|state");

        doc = json_pack("{s:s,s:s,s:b}", "job", job, "state", state[0] == '\0' ? "?" : state,
                        "dry_run", 1);
    } else {
        doc = json_pack("{s:s,s:s}", "job", job, "state", "stopped");
    }
    ps_out_answer(&cli->out, doc, STOPPED, "%s job \"%s\"", dry_run ? "would stop" : "stopped",
                  job);
    return PSD_OK;
}
