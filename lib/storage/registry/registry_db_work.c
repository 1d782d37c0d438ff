/* SPDX-License-Identifier: Apache-2.0 */
/* Work queues on disk: what was given and done, and back again. */
#include "base/alloc.h"
#include "storage/registry/registry_db_impl.h"

/* A queue of the job, without what is done. */
static psd_status_t add_queue(ps_registry_db_t *self, uint32_t job, const ps_work_t *work,
                              const char *name, psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(self, STATEMENT_QUEUE_ADD);

    ps_query_put_u64(&query, job);
    ps_query_put_u64(&query, work->queue);
    ps_query_put_text(&query, name);
    ps_query_put_u64(&query, work->n_slices);
    ps_query_put_u64(&query, work->n_epochs);
    ps_query_put_u64(&query, work->epoch);
    return ps_query_run(&query, err);
}

psd_status_t ps_registry_db_store_queue(ps_registry_db_t *self, const ps_command_t *command,
                                        psd_error_t *err)
{
    return add_queue(self, command->job.id, &command->work, command->name, err);
}

psd_status_t ps_registry_db_store_resumed(ps_registry_db_t *self, const ps_command_t *command,
                                          psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < command->n_resumed; i++) {
        const ps_work_resumed_t *queue = &command->resumed[i];
        const ps_work_t work = {.queue = (uint32_t)i + 1,
                                .n_slices = queue->n_slices,
                                .n_epochs = queue->n_epochs,
                                .epoch = queue->epoch};

        rc = add_queue(self, command->job.id, &work, queue->name, err);
        for (uint32_t k = 0; rc == PSD_OK && k < queue->n_done; k++) {
            uint64_t done[] = {command->job.id, work.queue, queue->done[k]};

            rc = ps_registry_db_run(self, STATEMENT_DONE_ADD, done, 3, err);
        }
    }
    return rc;
}

static psd_status_t store_given(ps_registry_db_t *self, const ps_command_t *command,
                                const ps_work_hold_t *hold, psd_error_t *err)
{
    uint64_t values[] = {command->job.id, command->work.queue, hold->session, hold->ask,
                         hold->epoch,     hold->slice,         hold->worker,  hold->joins};
    psd_status_t rc = ps_registry_db_run(self, STATEMENT_GIVEN_FORGET, values, 3, err);

    return rc == PSD_OK ? ps_registry_db_run(self, STATEMENT_GIVEN_ADD, values, 8, err) : rc;
}

static psd_status_t store_done(ps_registry_db_t *self, const ps_command_t *command,
                               const ps_work_hold_t *hold, psd_error_t *err)
{
    uint64_t done[] = {command->job.id, command->work.queue, hold->slice};
    uint64_t given[] = {command->job.id, command->work.queue, hold->session, hold->ask};
    psd_status_t rc = ps_registry_db_run(self, STATEMENT_DONE_ADD, done, 3, err);

    return rc == PSD_OK ? ps_registry_db_run(self, STATEMENT_GIVEN_DONE, given, 4, err) : rc;
}

psd_status_t ps_registry_db_store_work(ps_registry_db_t *self, const ps_command_t *command,
                                       psd_error_t *err)
{
    const ps_work_t *work = &command->work;
    uint64_t queue[] = {command->job.id, work->queue};
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < work->n_holds && rc == PSD_OK; i++) {
        const ps_work_hold_t *hold = &work->holds[i];

        rc = hold->kind == PS_WORK_GIVEN ? store_given(self, command, hold, err)
                                         : store_done(self, command, hold, err);
    }
    if (work->turns && rc == PSD_OK) {
        rc = ps_registry_db_run(self, STATEMENT_DONE_CUT, queue, 2, err);
    }
    if (work->turns && rc == PSD_OK) {
        rc = ps_registry_db_run(self, STATEMENT_QUEUE_TURN, queue, 2, err);
    }
    return rc;
}

/* Loading */

/* A queue whose rows are read. */
typedef struct queue {
    uint32_t job;
    uint32_t number;
    uint64_t epoch;
} queue_t;

static psd_status_t apply_hold(const ps_registry_load_t *load, const ps_query_t *query,
                               const queue_t *queue, ps_work_hold_t *hold, psd_error_t *err)
{
    /* Borrowed for the call: the command is not freed. */
    ps_command_t command = {
        .kind = PS_COMMAND_WORK,
        .work = {.queue = queue->number, .epoch = queue->epoch, .holds = hold, .n_holds = 1}};

    command.job.id = queue->job;
    return ps_registry_load_apply(load, query, &command, err);
}

static psd_status_t load_done(const ps_registry_load_t *load, const queue_t *queue,
                              psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(load->db, STATEMENT_DONE_ALL);
    psd_status_t rc = PSD_OK;

    ps_query_put_u64(&query, queue->job);
    ps_query_put_u64(&query, queue->number);
    while (rc == PSD_OK && ps_query_next(&query)) {
        ps_work_hold_t hold = {.kind = PS_WORK_WAS_DONE, .epoch = queue->epoch};

        (void)ps_query_u64(&query);
        (void)ps_query_u64(&query);
        hold.slice = ps_query_u32(&query);
        rc = apply_hold(load, &query, queue, &hold, err);
    }
    return ps_registry_load_end(&query, rc, err);
}

static psd_status_t load_given(const ps_registry_load_t *load, const queue_t *queue,
                               psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(load->db, STATEMENT_GIVEN_ALL);
    psd_status_t rc = PSD_OK;

    ps_query_put_u64(&query, queue->job);
    ps_query_put_u64(&query, queue->number);
    while (rc == PSD_OK && ps_query_next(&query)) {
        ps_work_hold_t hold = {0};

        (void)ps_query_u64(&query);
        (void)ps_query_u64(&query);
        hold.session = ps_query_u64(&query);
        hold.ask = ps_query_u64(&query);
        hold.epoch = ps_query_u64(&query);
        hold.slice = ps_query_u32(&query);
        hold.worker = ps_query_u32(&query);
        hold.joins = ps_query_u32(&query);
        hold.kind = ps_query_bool(&query) ? PS_WORK_WAS_LAST : PS_WORK_GIVEN;
        rc = apply_hold(load, &query, queue, &hold, err);
    }
    return ps_registry_load_end(&query, rc, err);
}

psd_status_t ps_registry_db_load_queues(const ps_registry_load_t *load, uint32_t job,
                                        psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(load->db, STATEMENT_QUEUE_ALL);
    psd_status_t rc = PSD_OK;

    ps_query_put_u64(&query, job);
    while (rc == PSD_OK && ps_query_next(&query)) {
        ps_command_t command = {.kind = PS_COMMAND_QUEUE};
        queue_t queue = {.job = job};

        (void)ps_query_u64(&query);
        command.job.id = job;
        command.work.queue = ps_query_u32(&query);
        ps_query_copy_text(&query, command.name, sizeof command.name);
        command.work.n_slices = ps_query_u32(&query);
        command.work.n_epochs = ps_query_u64(&query);
        command.work.epoch = ps_query_u64(&query);
        queue.number = command.work.queue;
        queue.epoch = command.work.epoch;
        rc = ps_registry_load_apply(load, &query, &command, err);
        if (rc == PSD_OK) {
            rc = load_done(load, &queue, err);
        }
        if (rc == PSD_OK) {
            rc = load_given(load, &queue, err);
        }
    }
    return ps_registry_load_end(&query, rc, err);
}
