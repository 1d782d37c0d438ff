/* SPDX-License-Identifier: Apache-2.0 */
/* pscli why: one line for each worker that waits. */
#include <stdio.h>
#include <string.h>

#include "cli/jobs/jobs.h"

#include "base/alloc.h"
#include "cli/run/ask_any.h"

static const ps_column_t WAITERS[] = {{"WORKER", "worker", PS_UNIT_NONE, false},
                                      {"CLOCK", "clock", PS_UNIT_NONE, false},
                                      {"WAITING", "waiting_s", PS_UNIT_SECONDS, false},
                                      {"WAITING_FOR", "waiting_for|for", PS_UNIT_NONE, false},
                                      {"TEXT", "text", PS_UNIT_NONE, true},
                                      {NULL, NULL, PS_UNIT_NONE, false}};

/* How many are in that state; the first one's name is the list's. */
static size_t count_jobs(const json_t *list, const char *state, const char **ret_first)
{
    const json_t *jobs = ps_json_at(list, "jobs");
    size_t n = 0;

    for (size_t i = 0; i < json_array_size(jobs); i++) {
        const json_t *job = json_array_get(jobs, i);

        if (strcmp(ps_json_text(job, "state"), state) == 0 && n++ == 0) {
            *ret_first = ps_json_text(job, "name");
        }
    }
    return n;
}

/* The job that runs; else the one that has lost its workers. */
static psd_status_t find_job(ps_cli_t *cli, const json_t *list, psd_error_t *err)
{
    const char *job = "";
    size_t n = count_jobs(list, "running", &job);

    if (n == 0) {
        n = count_jobs(list, "lost", &job);
    }
    (void)snprintf(cli->job, sizeof cli->job, "%s", n == 1 ? job : "");
    if (n == 0) {
        return psd_error_set(err, PSD_NO_JOB, "no job is running");
    }
    return n == 1
               ? PSD_OK
               : psd_error_set(err, PSD_USAGE,
                               "%zu jobs are running; name one: \"pscli job list\" shows them all",
                               n);
}

/* It stays chosen: --watch never switches from one job to another. */
static psd_status_t choose_job(ps_cli_t *cli, const char **ret_job, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *list = NULL;
    psd_status_t rc = PSD_OK;

    if (cli->args.n_words > 0) {
        return ps_cli_name(cli, 0, "JOB", ret_job, err);
    }
    if (cli->job[0] == '\0') {
        rc = ps_cli_request(cli, "job_list", NULL, NULL, &list, err);
        if (rc == PSD_OK) {
            rc = find_job(cli, list, err);
        }
        if (rc != PSD_OK) {
            return rc;
        }
    }
    ps_say(&cli->out, "job %s", cli->job);
    *ret_job = cli->job;
    return PSD_OK;
}

psd_status_t ps_cmd_why(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const char *job = NULL;
    psd_status_t rc = ps_cli_connect_soon(cli, err);

    if (rc == PSD_OK) {
        rc = choose_job(cli, &job, err);
    }
    if (rc == PSD_OK) {
        rc = ps_cli_request(cli, "why", "job", job, &reply, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (cli->out.format != PS_FORMAT_TABLE && cli->out.format != PS_FORMAT_WIDE) {
        ps_out_list(&cli->out, reply, "waiters", WAITERS);
        return PSD_OK;
    }
    const json_t *text = ps_json_at(reply, "text");

    for (size_t i = 0; i < json_array_size(text); i++) {
        const char *line = json_string_value(json_array_get(text, i));

        ps_print(cli->out.out, "%s\n", line == NULL ? "" : line);
    }
    if (json_array_size(text) == 0) {
        ps_say(&cli->out, "no worker waits in job \"%s\"", job);
    }
    return PSD_OK;
}
