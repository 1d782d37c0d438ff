/* SPDX-License-Identifier: Apache-2.0 */
/* pscli checkpoint resume: stop, drop and restore in one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "cli/jobs/checkpoint.h"
#include "cli/jobs/jobs.h"
#include "cli/run/confirm.h"

#define LOOK_MS 100   /* poll interval for the workers */
#define WAIT_S 90     /* timeout for their end */
#define TEXT_SIZE 400 /* of the question, and of the workers in it */

/* ---- the present state ---- */

/* Finds the checkpoint of that name, or the newest one of the series. */
static psd_status_t find_manifest(ps_cli_t *cli, const char **name,
                                  char newest[PS_CHECKPOINT_NAME_SIZE], json_t **ret_manifest,
                                  psd_error_t *err)
{
    psd_status_t rc = ps_checkpoint_newest(cli, *name, newest, err);

    if (rc != PSD_OK) {
        return rc;
    }
    rc = ps_checkpoint_manifest(cli, *name, ret_manifest, err);
    if (rc == PSD_NO_CHECKPOINT && newest[0] != '\0') {
        psd_error_clear(err);
        *name = newest;
        ps_say(&cli->out, "the newest is %s", newest);
        rc = ps_checkpoint_manifest(cli, newest, ret_manifest, err);
    }
    return rc;
}

static psd_status_t check_job(const json_t *manifest, const char *name, const char *job,
                              psd_error_t *err)
{
    const json_t *jobs = ps_json_at(manifest, "jobs");

    for (size_t i = 0; i < json_array_size(jobs); i++) {
        if (strcmp(ps_json_text(json_array_get(jobs, i), "job"), job) == 0) {
            return PSD_OK;
        }
    }
    return psd_error_set(err, PSD_NO_JOB,
                         "checkpoint \"%s\" has no job \"%s\": it was not made "
                         "with --job %s",
                         name, job, job);
}

static bool is_there(const json_t *list, const char *table)
{
    bool found = false;

    for (size_t i = 0; !found && i < json_array_size(list); i++) {
        found = strcmp(ps_json_text(json_array_get(list, i), "name"), table) == 0;
    }
    return found;
}

/* The names of its tables that exist. */
static psd_status_t find_tables(ps_cli_t *cli, const json_t *manifest, json_t *found,
                                psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const json_t *tables = ps_json_at(manifest, "tables");
    psd_status_t rc = ps_cli_request(cli, "table_list", NULL, NULL, &reply, err);

    for (size_t i = 0; rc == PSD_OK && i < json_array_size(tables); i++) {
        const char *table = ps_checkpoint_table(tables, i);

        if (is_there(ps_json_at(reply, "tables"), table)) {
            (void)json_array_append_new(found, json_string(table));
        }
    }
    return rc;
}

/* The job of that name; *ret_reply stays NULL when there is none. */
static psd_status_t inspect(ps_cli_t *cli, const char *job, json_t **ret_reply, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ps_cli_request(cli, "job_inspect", "job", job, &reply, err);

    ps_json_unref(ret_reply);
    if (rc == PSD_NO_JOB) {
        psd_error_clear(err);
        return PSD_OK;
    }
    /* A word of digits may have found another job, by its number. */
    if (rc == PSD_OK && strcmp(ps_json_text(reply, "job.name"), job) == 0) {
        *ret_reply = json_incref(reply);
    }
    return rc;
}

static psd_status_t ask_before(const ps_cli_t *cli, const json_t *tables, const char *name,
                               psd_error_t *err)
{
    char what[TEXT_SIZE + 100];
    char names[TEXT_SIZE] = "";
    size_t n = json_array_size(tables);
    size_t used = 0;

    for (size_t i = 0; i < n && used < sizeof names; i++) {
        used += (size_t)snprintf(names + used, sizeof names - used, "%s\"%s\"", i == 0 ? "" : ", ",
                                 json_string_value(json_array_get(tables, i)));
    }
    (void)snprintf(what, sizeof what, "table%s %s for what \"%s\" has", n == 1 ? "" : "s", names,
                   name);
    return n == 0 ? PSD_OK : ps_confirm_drop(cli, what, err);
}

/* ---- stopping ---- */

static bool is_live(const json_t *worker)
{
    const char *state = ps_json_text(worker, "state");

    return strcmp(state, "finished") != 0 && strcmp(state, "lost") != 0;
}

/* "0, 2": the workers that have not ended and are not lost. */
static size_t name_live(const json_t *job, char ret_names[TEXT_SIZE])
{
    const json_t *workers = ps_json_at(job, "job.workers");
    size_t used = 0;
    size_t n = 0;

    ret_names[0] = '\0';
    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *worker = json_array_get(workers, i);

        if (!is_live(worker)) {
            continue;
        }
        if (used < TEXT_SIZE) {
            used += (size_t)snprintf(ret_names + used, TEXT_SIZE - used, "%s%" PRIu64,
                                     n == 0 ? "" : ", ", ps_json_u64(worker, "worker"));
        }
        n++;
    }
    return n;
}

static psd_status_t wait_for_workers(ps_cli_t *cli, const char *name, psd_error_t *err)
{
    const struct timespec gap = {.tv_nsec = LOOK_MS * 1000000L};
    PSD_AUTO(ps_json_unref) json_t *job = NULL;
    double until_s = ps_cli_now_s() + WAIT_S;
    char names[TEXT_SIZE];
    size_t n_said = 0;

    for (;;) {
        psd_status_t rc = inspect(cli, name, &job, err);
        size_t n = rc == PSD_OK && job != NULL ? name_live(job, names) : 0;

        if (rc != PSD_OK || n == 0) {
            return rc;
        }
        if (n != n_said) {
            ps_say(&cli->out,
                   "waiting until worker%s %s of job \"%s\" %s, or declared "
                   "lost",
                   n == 1 ? "" : "s", names, name, n == 1 ? "has ended" : "have ended");
            n_said = n;
        }
        if (ps_cli_now_s() > until_s) {
            return psd_error_set(err, PSD_DEADLINE,
                                 "worker%s %s of job \"%s\" still run%s, %d s after the job was "
                                 "stopped; stop %s and retry",
                                 n == 1 ? "" : "s", names, name, n == 1 ? "s" : "", WAIT_S,
                                 n == 1 ? "it" : "them");
        }
        (void)nanosleep(&gap, NULL);
    }
}

static psd_status_t stop(ps_cli_t *cli, const char *name, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *job = NULL;
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = inspect(cli, name, &job, err);

    if (rc == PSD_OK && job != NULL && strcmp(ps_json_text(job, "job.state"), "running") == 0) {
        rc = ps_cli_request(cli, "job_stop", "job", name, &reply, err);
    }
    return rc == PSD_OK && job != NULL ? wait_for_workers(cli, name, err) : rc;
}

/* ---- the command ---- */

static psd_status_t verify(ps_cli_t *cli, const char *name, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    PSD_AUTO(ps_json_unref)
    json_t *request = json_pack("{s:s,s:s}", "op", "checkpoint_verify", "name", name);

    return ps_checkpoint_work_soon(cli, request, &reply, err);
}

static psd_status_t drop(ps_cli_t *cli, const json_t *tables, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < json_array_size(tables); i++) {
        rc = psd_table_drop(cli->client, json_string_value(json_array_get(tables, i)), err);
    }
    return rc;
}

psd_status_t ps_cmd_checkpoint_resume(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *manifest = NULL;
    PSD_AUTO(ps_json_unref) json_t *tables = json_array();
    char newest[PS_CHECKPOINT_NAME_SIZE];
    const char *job = ps_args_text(&cli->args, "job");
    const char *name = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    if (rc == PSD_OK && job == NULL) {
        rc = psd_error_set(err, PSD_USAGE, "--job is missing: the job to resume");
    }
    if (rc == PSD_OK) {
        rc = find_manifest(cli, &name, newest, &manifest, err);
    }
    if (rc == PSD_OK) {
        rc = check_job(manifest, name, job, err);
    }
    if (rc == PSD_OK) {
        rc = find_tables(cli, manifest, tables, err);
    }
    if (rc == PSD_OK) {
        rc = ask_before(cli, tables, name, err);
    }
    if (rc == PSD_OK) { /* before anything is dropped */
        rc = verify(cli, name, err);
    }
    if (rc == PSD_OK) {
        rc = stop(cli, job, err);
    }
    if (rc == PSD_OK) {
        rc = drop(cli, tables, err);
    }
    return rc == PSD_OK ? ps_checkpoint_restore(cli, name, NULL, err) : rc;
}
