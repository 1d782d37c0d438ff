/* SPDX-License-Identifier: Apache-2.0 */
/* Commands about work queues: do they fit, and what they do. */
#include "protocol/registry/registry_journal.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

void ps_queue_done(ps_queue_t *self)
{
    ps_free(self->slices);
    ps_free(self->holds);
    *self = (ps_queue_t){0};
}

ps_queue_t *ps_job_queue(const ps_job_entry_t *entry, uint32_t number)
{
    return number >= 1 && number <= entry->n_queues ? &entry->queues[number - 1] : NULL;
}

bool ps_queue_is_over(const ps_queue_t *self)
{
    return self->n_epochs != 0 && self->epoch > self->n_epochs;
}

ps_work_hold_t *ps_queue_hold(const ps_queue_t *self, uint64_t session, uint64_t ask)
{
    for (size_t i = 0; i < self->n_holds; i++) {
        if (self->holds[i].session == session && self->holds[i].ask == ask) {
            return &self->holds[i];
        }
    }
    return NULL;
}

/* Checks */

psd_status_t ps_command_check_queue(const ps_registry_t *self, const ps_command_t *command,
                                    psd_error_t *err)
{
    const ps_work_t *work = &command->work;
    const ps_job_entry_t *entry = ps_registry_find_job(self, command->job.id);

    if (entry == NULL || work->queue != entry->n_queues + 1 || work->queue > PS_QUEUES_MAX ||
        memchr(command->name, '\0', sizeof command->name) == NULL ||
        !ps_text_is_name(command->name)) {
        return psd_error_set(err, PSD_DAMAGED, "queue %u of job %u is not a queue", work->queue,
                             command->job.id);
    }
    if (work->n_slices < 1 || work->n_slices > PS_WORK_SLICES_MAX ||
        work->n_epochs > PS_WORK_EPOCHS_MAX || work->epoch < 1 || work->epoch > PS_STORED_MAX ||
        (work->n_epochs != 0 && work->epoch > work->n_epochs + 1)) {
        return psd_error_set(err, PSD_DAMAGED,
                             "queue %s of job %s has %u slices and is in epoch "
                             "%llu of %llu",
                             command->name, entry->job.name, work->n_slices,
                             (unsigned long long)work->epoch, (unsigned long long)work->n_epochs);
    }
    return PSD_OK;
}

static bool runs(const ps_job_entry_t *entry, const ps_work_hold_t *hold)
{
    const ps_worker_t *worker = ps_job_worker(&entry->job, hold->worker);

    return worker != NULL && worker->state == PS_WORKER_RUNNING && worker->joins == hold->joins;
}

/* The change fits the queue as it is before the command. */
static bool fits(const ps_job_entry_t *entry, const ps_queue_t *queue, const ps_work_hold_t *hold)
{
    const ps_work_hold_t *known = ps_queue_hold(queue, hold->session, hold->ask);
    bool now = hold->epoch == queue->epoch;
    uint8_t state = 0;

    if (hold->slice >= queue->n_slices ||
        (ps_queue_is_over(queue) && hold->kind != PS_WORK_WAS_LAST)) {
        return false;
    }
    state = queue->slices[hold->slice];
    switch (hold->kind) {
    case PS_WORK_GIVEN:
        return now && state == PS_SLICE_FREE && known == NULL && hold->session >= 1 &&
               hold->session <= PS_STORED_MAX && hold->ask <= PS_STORED_MAX && runs(entry, hold);
    case PS_WORK_DONE:
        return now && known != NULL && known->kind == PS_WORK_GIVEN &&
               known->slice == hold->slice && known->epoch == hold->epoch;
    case PS_WORK_WAS_DONE:
        return now && state == PS_SLICE_FREE;
    case PS_WORK_WAS_LAST:
        return hold->epoch >= 1 && hold->epoch <= queue->epoch && known == NULL &&
               (!now || state == PS_SLICE_DONE) && hold->session >= 1 &&
               hold->session <= PS_STORED_MAX && hold->ask <= PS_STORED_MAX && runs(entry, hold);
    default:
        return false;
    }
}

/* … and no other change of the command. */
static bool is_alone(const ps_work_t *work, size_t at)
{
    const ps_work_hold_t *hold = &work->holds[at];

    for (size_t i = 0; i < at; i++) {
        const ps_work_hold_t *other = &work->holds[i];

        if (other->slice == hold->slice && other->epoch == hold->epoch) {
            return false;
        }
        if (other->session == hold->session && other->ask == hold->ask &&
            hold->kind != PS_WORK_WAS_DONE) {
            return false;
        }
    }
    return true;
}

psd_status_t ps_command_check_work(const ps_registry_t *self, const ps_command_t *command,
                                   psd_error_t *err)
{
    const ps_work_t *work = &command->work;
    const ps_job_entry_t *entry = ps_registry_find_job(self, command->job.id);
    const ps_queue_t *queue = entry == NULL ? NULL : ps_job_queue(entry, work->queue);
    size_t n_done = 0;

    if (queue == NULL || work->epoch != queue->epoch) {
        return psd_error_set(err, PSD_DAMAGED,
                             "queue %u of job %u is not there, or not in epoch "
                             "%llu",
                             work->queue, command->job.id, (unsigned long long)work->epoch);
    }
    for (size_t i = 0; i < work->n_holds; i++) {
        const ps_work_hold_t *hold = &work->holds[i];

        if (!fits(entry, queue, hold) || !is_alone(work, i)) {
            return psd_error_set(err, PSD_DAMAGED, "slice %u of queue %s of job %s does not fit",
                                 hold->slice, queue->name, entry->job.name);
        }
        n_done += hold->kind == PS_WORK_DONE || hold->kind == PS_WORK_WAS_DONE ? 1 : 0;
    }
    if (work->turns != (queue->n_done + n_done == queue->n_slices)) {
        return psd_error_set(err, PSD_DAMAGED, "all slices of queue %s of job %s are done",
                             queue->name, entry->job.name);
    }
    return PSD_OK;
}

/* Changes */

static psd_status_t no_memory(const char *queue, psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for queue %s", queue);
}

psd_status_t ps_command_apply_queue(ps_registry_t *self, const ps_command_t *command,
                                    psd_error_t *err)
{
    ps_job_entry_t *entry = ps_registry_find_job(self, command->job.id);
    ps_queue_t *queue = &self->journal->queue_in;

    assert(entry != NULL); /* it was checked */
    *queue = (ps_queue_t){.n_slices = command->work.n_slices,
                          .n_epochs = command->work.n_epochs,
                          .epoch = command->work.epoch};
    memcpy(queue->name, command->name, sizeof queue->name);
    queue->slices = ps_alloc(queue->n_slices, sizeof *queue->slices);
    if (queue->slices == NULL ||
        !ps_grow(&entry->queues, &entry->max_queues, entry->n_queues + 1, sizeof *entry->queues) ||
        !ps_journal_save(self, entry, sizeof *entry)) {
        return no_memory(command->name, err);
    }
    entry->queues[entry->n_queues++] = *queue; /* ownership moves */
    ps_touch(self, PS_ROW_QUEUE, entry->job.id, command->work.queue);
    return PSD_OK;
}

static void remove_hold(ps_queue_t *queue, size_t at)
{
    queue->n_holds--;
    queue->holds[at] = queue->holds[queue->n_holds];
}

/* A queue of a job, and the number that rows name it by. */
typedef struct place {
    uint32_t job;
    uint32_t number;
    ps_queue_t *queue;
} place_t;

static void touch_hold(ps_registry_t *self, const place_t *place, const ps_work_hold_t *hold)
{
    ps_touch(self, PS_ROW_GIVEN, place->job, place->number, hold->session, hold->ask);
}

/* What a client has done is remembered until it asks again: by then it has
 * heard the answers to its earlier questions. */
static void forget_done(ps_registry_t *self, const place_t *place, uint64_t session)
{
    ps_queue_t *queue = place->queue;

    for (size_t i = queue->n_holds; i > 0; i--) {
        const ps_work_hold_t *hold = &queue->holds[i - 1];

        if (hold->session == session && hold->kind != PS_WORK_GIVEN) {
            touch_hold(self, place, hold);
            remove_hold(queue, i - 1);
        }
    }
}

static void find_first_free(ps_queue_t *queue)
{
    while (queue->first_free < queue->n_slices &&
           queue->slices[queue->first_free] != PS_SLICE_FREE) {
        queue->first_free++;
    }
}

static void change(ps_registry_t *self, const place_t *place, const ps_work_hold_t *hold)
{
    ps_queue_t *queue = place->queue;
    bool given = hold->kind == PS_WORK_GIVEN || hold->kind == PS_WORK_WAS_LAST;

    if (hold->kind == PS_WORK_GIVEN) {
        forget_done(self, place, hold->session);
        queue->slices[hold->slice] = PS_SLICE_GIVEN;
    }
    if (given) {
        queue->holds[queue->n_holds++] = *hold;
    }
    if (hold->kind == PS_WORK_DONE || hold->kind == PS_WORK_WAS_DONE) {
        queue->slices[hold->slice] = PS_SLICE_DONE;
        queue->n_done++;
        ps_touch(self, PS_ROW_DONE, place->job, place->number, hold->slice);
    }
    if (hold->kind == PS_WORK_DONE || hold->kind == PS_WORK_WAS_LAST) {
        ps_work_hold_t *known = ps_queue_hold(queue, hold->session, hold->ask);

        assert(known != NULL); /* it was checked */
        known->kind = PS_WORK_DONE;
    }
    if (hold->kind != PS_WORK_WAS_DONE) {
        touch_hold(self, place, hold);
    }
}

/* All that is about to change. */
static bool save_queue(ps_registry_t *self, ps_queue_t *queue)
{
    return ps_journal_save(self, queue, sizeof *queue) &&
           ps_journal_save(self, queue->holds, queue->n_holds * sizeof *queue->holds);
}

static bool save_slices(ps_registry_t *self, const ps_queue_t *queue, const ps_work_t *work)
{
    bool ok = !work->turns || ps_journal_save(self, queue->slices, queue->n_slices);

    for (size_t i = 0; i < work->n_holds && ok; i++) {
        ok = ps_journal_save(self, &queue->slices[work->holds[i].slice], sizeof *queue->slices);
    }
    return ok;
}

psd_status_t ps_command_apply_work(ps_registry_t *self, const ps_command_t *command,
                                   psd_error_t *err)
{
    const ps_work_t *work = &command->work;
    ps_job_entry_t *entry = ps_registry_find_job(self, command->job.id);
    ps_queue_t *queue = entry == NULL ? NULL : ps_job_queue(entry, work->queue);
    const place_t place = {command->job.id, work->queue, queue};

    assert(queue != NULL); /* it was checked */
    if (!ps_grow(&queue->holds, &queue->max_holds, queue->n_holds + work->n_holds,
                 sizeof *queue->holds) ||
        !save_queue(self, queue) || !save_slices(self, queue, work)) {
        return no_memory(queue->name, err);
    }
    for (size_t i = 0; i < work->n_holds; i++) {
        change(self, &place, &work->holds[i]);
    }
    if (work->turns) {
        memset(queue->slices, PS_SLICE_FREE, queue->n_slices);
        queue->n_done = 0;
        queue->first_free = 0;
        queue->epoch++;
        ps_touch(self, PS_ROW_DONE, place.job, place.number, PS_DONE_ALL);
        ps_touch(self, PS_ROW_QUEUE, place.job, place.number);
    }
    find_first_free(queue);
    return PSD_OK;
}

static psd_status_t return_work(ps_registry_t *self, const ps_job_entry_t *entry,
                                const place_t *place, psd_error_t *err)
{
    ps_queue_t *queue = place->queue;

    if (!save_queue(self, queue)) {
        return no_memory(queue->name, err);
    }
    for (size_t i = queue->n_holds; i > 0; i--) {
        const ps_work_hold_t *hold = &queue->holds[i - 1];

        if (runs(entry, hold)) {
            continue;
        }
        if (hold->kind == PS_WORK_GIVEN) {
            if (!ps_journal_save(self, &queue->slices[hold->slice], sizeof *queue->slices)) {
                return no_memory(queue->name, err);
            }
            queue->slices[hold->slice] = PS_SLICE_FREE;
            queue->first_free = hold->slice < queue->first_free ? hold->slice : queue->first_free;
        }
        touch_hold(self, place, hold);
        remove_hold(queue, i - 1);
    }
    return PSD_OK;
}

psd_status_t ps_job_return_work(ps_registry_t *self, const ps_job_entry_t *entry, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < entry->n_queues && rc == PSD_OK; i++) {
        const place_t place = {entry->job.id, (uint32_t)i + 1, &entry->queues[i]};

        rc = return_work(self, entry, &place, err);
    }
    return rc;
}
