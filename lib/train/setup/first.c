/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Initial values are added once, however often a worker restarts. A table of
 * marks, "JOB.first.ACK.REPLICAS", has the same acknowledgement level as the
 * tables that it is about. It has a row for each of those tables and each rank:
 * nothing, BEGUN before the first add, DONE when all adds are acknowledged.
 * Values that an earlier run left at BEGUN may have been added in part: that
 * cannot be known, and is an error. A table that was dropped and created again
 * has another number, so another row.
 *
 * The client of the marks is no worker: no clock holds it back.
 */
#include <inttypes.h>
#include <stdio.h>

#include "client/job/job.h"
#include "client/requests/table.h"
#include "train/setup/setup.h"

#define BEGUN 1
#define DONE 2

static psd_status_t open_marks(const psd_train_t *self, const psd_table_t *about,
                               psd_table_t **ret_marks, psd_error_t *err)
{
    const ps_table_spec_t *level = &about->spec;
    char replicas[16];
    char name[PS_NAME_MAX + 1];
    const char *words[][2] = {{"keys", "hash"},
                              {"type", "i32"},
                              {"updater", "assign"},
                              {"ack", ps_ack_name(level->ack)},
                              {"replicas", replicas}};
    const ps_train_options_t *options = &self->options;
    ps_wish_t wish = {.job = NULL};
    psd_spec_t *spec = NULL;
    psd_status_t rc = ps_wish_resolve(options->job, options->worker, options->n_workers,
                                      self->max_delay, &wish, err);

    if (rc != PSD_OK) {
        return rc;
    }
    (void)snprintf(replicas, sizeof replicas, "%" PRIu32, level->replicas);
    if (snprintf(name, sizeof name, "%s.first.%s.%s", wish.job, ps_ack_name(level->ack),
                 replicas) >= (int)sizeof name) {
        return psd_error_set(
            err, PSD_INVALID,
            "job is \"%s\": \"JOB.first.%s.%s\" is not a table name; allowed: %d letters", wish.job,
            ps_ack_name(level->ack), replicas, PS_NAME_MAX);
    }
    spec = psd_spec_new();
    if (spec == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a table");
    }
    for (size_t i = 0; rc == PSD_OK && i < sizeof words / sizeof *words; i++) {
        rc = psd_spec_set(spec, words[i][0], words[i][1], err);
    }
    if (rc == PSD_OK) {
        rc = psd_table_ensure(self->first_client, name, spec, ret_marks, err);
    }
    psd_spec_destroy(&spec);
    return rc;
}

static psd_status_t begin_table(psd_train_t *self, uint32_t table, psd_error_t *err)
{
    const psd_table_t *about = self->tables[table];
    ps_first_t *first = &self->first[table];
    const int32_t begun = BEGUN;
    int32_t mark = 0;
    psd_status_t rc = PSD_OK;

    if (self->first_client == NULL) {
        rc = ps_train_connect(self, &self->first_client, err);
    }
    if (rc == PSD_OK && first->marks == NULL) {
        rc = open_marks(self, about, &first->marks, err);
    }
    first->row = (uint64_t)about->known->id << 32 | self->worker;
    if (rc == PSD_OK) {
        rc = psd_pull(first->marks, &first->row, 1, &mark, 1, err);
    }
    if (rc == PSD_OK && mark == 0) {
        rc = psd_push(first->marks, &first->row, 1, &begun, 1, err);
        first->adds = rc == PSD_OK;
    } else if (rc == PSD_OK && mark != DONE) {
        rc = psd_error_set(
            err, PSD_FAILED,
            "it is not known whether those of worker %" PRIu32
            " have arrived: it ended while adding them; drop table \"%s\" and start again",
            self->worker, psd_table_name(about));
    }
    first->known = rc == PSD_OK;
    return rc;
}

psd_status_t ps_first_check(const psd_train_t *self, uint32_t table, bool by_one, psd_error_t *err)
{
    const psd_table_t *about = self->tables[table];
    ps_updater_kind_t updater = about->spec.updater.kind;

    if (updater != PS_UPDATER_ADD && updater != PS_UPDATER_ASSIGN) {
        return psd_error_set(err, PSD_INVALID,
                             "table \"%s\" has updater %s, which would change first values; "
                             "allowed: updater add or assign, or the table's init",
                             psd_table_name(about), ps_updater_name(updater));
    }
    if (by_one && about->spec.combine == PS_COMBINE_CLOCK_MEAN && self->n_workers > 1) {
        return psd_error_set(err, PSD_INVALID,
                             "table \"%s\" takes the mean of first values over %" PRIu32
                             " workers, and one loads them; allowed: combine each or clock-sum, "
                             "psd_train_add_to_server in each worker, or a job of one worker",
                             psd_table_name(about), self->n_workers);
    }
    return PSD_OK;
}

psd_status_t ps_first_begin(psd_train_t *self, uint32_t table, bool *ret_adds, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (!self->first[table].known) {
        rc = begin_table(self, table, err);
    }
    *ret_adds = self->first[table].adds;
    return rc == PSD_OK ? rc
                        : psd_error_wrap(err, rc, "first values of table \"%s\"",
                                         psd_table_name(self->tables[table]));
}

psd_status_t ps_first_end(psd_train_t *self, psd_error_t *err)
{
    const int32_t done = DONE;
    psd_status_t rc = PSD_OK;

    for (uint32_t i = 0; rc == PSD_OK && i < self->n_tables; i++) {
        ps_first_t *first = &self->first[i];

        if (first->adds && !first->partly) {
            rc = psd_push(first->marks, &first->row, 1, &done, 1, err);
            first->adds = rc != PSD_OK; /* once */
        }
    }
    return rc;
}

void ps_first_close(psd_train_t *self)
{
    for (uint32_t i = 0; i < self->n_tables; i++) {
        psd_table_close(&self->first[i].marks);
    }
    psd_close(&self->first_client);
}
