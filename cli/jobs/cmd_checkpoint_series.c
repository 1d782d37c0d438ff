/* SPDX-License-Identifier: Apache-2.0 */
/* pscli checkpoint create --every: a series of checkpoints. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cli/jobs/checkpoint.h"
#include "cli/output/interrupt.h"

#define LOOK_MS 100 /* poll interval for an interrupt */
#define ASK_S 1.0   /* poll interval for the end of the job, or its first table */

static void print_name(const char *name, uint64_t number, char ret_name[PS_CHECKPOINT_NAME_SIZE])
{
    (void)snprintf(ret_name, PS_CHECKPOINT_NAME_SIZE, "%s-%" PRIu64, name, number);
}

/* N of NAME-N; 0: not part of the series. */
static uint64_t number_of(const char *text, const char *name)
{
    char again[PS_CHECKPOINT_NAME_SIZE];
    size_t size = strlen(name);
    uint64_t number = 0;

    if (strncmp(text, name, size) != 0 || text[size] != '-' ||
        !ps_text_u64(text + size + 1, &number)) {
        return 0;
    }
    print_name(name, number, again); /* NAME-007 is not */
    return strcmp(text, again) == 0 ? number : 0;
}

typedef struct job {
    const char *name; /* borrowed; NULL: of no job */
    uint64_t id;
} job_t;

typedef struct series {
    uint64_t last;    /* greatest number; 0: none */
    uint64_t newest;  /* of those that can be restored … */
    uint64_t oldest;  /* … the least of them from `from` on; 0: none … */
    uint64_t n_whole; /* … and how many there are from there on */
} series_t;

static void take(series_t *self, uint64_t number, bool is_whole, uint64_t from)
{
    if (number > self->last) {
        self->last = number;
    }
    if (number == 0 || !is_whole) {
        return;
    }
    if (number > self->newest) {
        self->newest = number;
    }
    if (number < from) {
        return;
    }
    if (self->oldest == 0 || number < self->oldest) {
        self->oldest = number;
    }
    self->n_whole++;
}

static psd_status_t look(ps_cli_t *cli, const char *name, uint64_t from, series_t *ret,
                         psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ps_cli_request(cli, "checkpoint_list", NULL, NULL, &reply, err);
    const json_t *list = rc == PSD_OK ? ps_json_at(reply, "checkpoints") : NULL;

    *ret = (series_t){.last = 0};
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);

        take(ret, number_of(ps_json_text(item, "name"), name),
             strcmp(ps_json_text(item, "state"), "whole") == 0, from);
    }
    return rc;
}

psd_status_t ps_checkpoint_newest(ps_cli_t *cli, const char *name,
                                  char ret_name[PS_CHECKPOINT_NAME_SIZE], psd_error_t *err)
{
    series_t series;
    psd_status_t rc = look(cli, name, 0, &series, err);

    ret_name[0] = '\0';
    if (rc == PSD_OK && series.newest > 0) {
        print_name(name, series.newest, ret_name);
    }
    return rc;
}

static psd_status_t make(ps_cli_t *cli, const char *name, json_t *request, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = PSD_OK;

    (void)json_object_set_new(request, "name", json_string(name));
    rc = ps_checkpoint_work(cli, request, &reply, err);
    if (rc == PSD_OK) {
        ps_print(cli->out.out, "%s\n", name);
        (void)fflush(cli->out.out);
    }
    return rc;
}

/* Drops the checkpoints older than the newest --keep whole ones. It reports
 * one that it cannot drop, for example because others build on it, and
 * retries after the next checkpoint. */
static void drop_old(ps_cli_t *cli, const char *name, psd_error_t *err)
{
    uint64_t keep = ps_args_u64(&cli->args, "keep");
    uint64_t from = 0;
    series_t series;

    while (keep > 0 && look(cli, name, from, &series, err) == PSD_OK && series.n_whole > keep) {
        PSD_AUTO(ps_json_unref) json_t *reply = NULL;
        char old[PS_CHECKPOINT_NAME_SIZE];

        print_name(name, series.oldest, old);
        if (ps_cli_request(cli, "checkpoint_drop", "name", old, &reply, err) != PSD_OK) {
            ps_say(&cli->out, "%s is not dropped: %s", old, psd_error_text(err));
            psd_error_clear(err);
        }
        from = series.oldest + 1;
    }
    psd_error_clear(err);
}

/* Whether the job of the start has ended; a resumed job is a different one. */
static bool has_ended(ps_cli_t *cli, const job_t *job, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = job->name == NULL
                          ? PSD_BUSY
                          : ps_cli_request(cli, "job_inspect", "job", job->name, &reply, err);

    psd_error_clear(err);
    if (rc != PSD_NO_JOB &&
        (rc != PSD_OK || (strcmp(ps_json_text(reply, "job.state"), "running") == 0 &&
                          ps_json_u64(reply, "job.id") == job->id))) {
        return false;
    }
    ps_say(&cli->out, "job \"%s\" has ended", job->name);
    return true;
}

/* The job of --job, if that is given. */
static psd_status_t find_job(ps_cli_t *cli, job_t *ret, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = PSD_OK;

    *ret = (job_t){.name = ps_args_text(&cli->args, "job")};
    if (ret->name != NULL) {
        rc = ps_cli_request(cli, "job_inspect", "job", ret->name, &reply, err);
        ret->id = rc == PSD_OK ? ps_json_u64(reply, "job.id") : 0;
    }
    return rc;
}

/* False: it was interrupted, or the job has ended. */
static bool sleep_until(ps_cli_t *cli, const job_t *job, double until_s, psd_error_t *err)
{
    const struct timespec gap = {.tv_nsec = LOOK_MS * 1000000L};
    double ask_s = ps_cli_now_s() + ASK_S;
    bool ended = false;

    while (!ended && ps_cli_now_s() < until_s && !ps_interrupt_came()) {
        (void)nanosleep(&gap, NULL);
        if (ps_cli_now_s() >= ask_s) {
            ended = has_ended(cli, job, err);
            ask_s = ps_cli_now_s() + ASK_S;
        }
    }
    return !ended && !ps_interrupt_came();
}

/* A job that has just started has opened no table. */
static bool is_too_early(const ps_cli_t *cli, psd_status_t rc)
{
    return rc == PSD_NO_TABLE && ps_args_text(&cli->args, "job") != NULL &&
           ps_args_text(&cli->args, "table") == NULL;
}

psd_status_t ps_checkpoint_series(ps_cli_t *cli, const char *name, json_t *request,
                                  psd_error_t *err)
{
    double every_s = (double)ps_args_ms(&cli->args, "every") / 1000.0;
    double due_s = 0;
    uint64_t n_made = 0;
    bool waits = false; /* and has reported it */
    series_t series;
    job_t job;
    psd_status_t rc = look(cli, name, 0, &series, err);

    if (rc == PSD_OK) {
        rc = find_job(cli, &job, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_interrupt_hold();
    do {
        char next[PS_CHECKPOINT_NAME_SIZE];

        due_s = ps_cli_now_s() + every_s;
        print_name(name, ++series.last, next);
        rc = make(cli, next, request, err);
        if (rc == PSD_OK) {
            n_made++;
            drop_old(cli, name, err);
        } else if (n_made > 0 && has_ended(cli, &job, NULL)) {
            return PSD_OK;
        } else if (is_too_early(cli, rc)) {
            if (!waits) {
                ps_say(&cli->out, "%s yet: waiting", psd_error_text(err));
            }
            waits = true;
            due_s = ps_cli_now_s() + ASK_S;
            series.last--;
        } else if (n_made == 0 || rc == PSD_CLOSED) {
            return rc; /* a later try would fail too */
        } else {
            ps_say(&cli->out, "%s was not created: %s", next, psd_error_text(err));
        }
        psd_error_clear(err);
    } while (sleep_until(cli, &job, due_s, err));
    return PSD_OK;
}
