/* SPDX-License-Identifier: Apache-2.0 */
/* Plans about work queues. */
#include "protocol/registry/registry_work.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "protocol/registry/registry_job.h"
#include "protocol/registry/registry_queue.h"

/* The queue's number within the job; 0: there is none of that name. */
static uint32_t number_of(const ps_job_entry_t *entry, const char *name)
{
    for (uint32_t i = 0; i < entry->n_queues; i++) {
        if (strcmp(entry->queues[i].name, name) == 0) {
            return i + 1;
        }
    }
    return 0;
}

static psd_status_t check_job(const ps_registry_t *self, uint32_t job,
                              const ps_job_entry_t **ret_entry, psd_error_t *err)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, job);

    if (entry == NULL) {
        return psd_error_set(err, PSD_NO_JOB, "job number %u does not exist", job);
    }
    if (entry->job.stopped) {
        return psd_error_set(err, PSD_JOB_STOPPED, "job \"%s\" was stopped", entry->job.name);
    }
    *ret_entry = entry;
    return PSD_OK;
}

/* Is what is wanted a queue, and is there room for it? */
static psd_status_t check_new(const ps_job_entry_t *entry, const char *name, uint32_t n_slices,
                              uint64_t n_epochs, psd_error_t *err)
{
    if (!ps_text_is_name(name)) {
        return psd_error_set(err, PSD_INVALID,
                             "queue name is \"%.80s\"; allowed: 1..%d of "
                             "letters, digits, \"_\", \".\", \"-\"",
                             name, PS_NAME_MAX);
    }
    if (n_slices < 1 || n_slices > PS_WORK_SLICES_MAX) {
        return psd_error_set(err, PSD_INVALID, "queue %s has %u slices; allowed: 1..%d", name,
                             n_slices, PS_WORK_SLICES_MAX);
    }
    if (n_epochs > PS_WORK_EPOCHS_MAX) {
        return psd_error_set(err, PSD_INVALID, "queue %s has %llu epochs; allowed: 0..%d", name,
                             (unsigned long long)n_epochs, PS_WORK_EPOCHS_MAX);
    }
    if (entry->n_queues >= PS_QUEUES_MAX) {
        return psd_error_set(err, PSD_LIMIT, "job %s has %zu queues already", entry->job.name,
                             entry->n_queues);
    }
    return PSD_OK;
}

psd_status_t ps_registry_plan_queue(const ps_registry_t *self, uint32_t job, const char *name,
                                    uint32_t n_slices, uint64_t n_epochs, uint64_t unix_ms,
                                    ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_QUEUE, unix_ms);
    const ps_job_entry_t *entry = NULL;
    const ps_queue_t *known = NULL;
    psd_status_t rc = check_job(self, job, &entry, err);

    if (rc != PSD_OK) {
        return rc;
    }
    assert(entry != NULL);
    known = ps_job_queue(entry, number_of(entry, name));
    if (known != NULL && (known->n_slices != n_slices || known->n_epochs != n_epochs)) {
        return psd_error_set(err, PSD_JOB_MISMATCH,
                             "queue %s of job %s has %u slices and %llu epochs", name,
                             entry->job.name, known->n_slices, (unsigned long long)known->n_epochs);
    }
    if (known != NULL) {
        *ret_command = (ps_command_t){0};
        return PSD_OK;
    }
    rc = check_new(entry, name, n_slices, n_epochs, err);
    if (rc != PSD_OK) {
        return rc;
    }
    command.job.id = job;
    memcpy(command.name, name, strlen(name) + 1);
    command.work = (ps_work_t){.queue = (uint32_t)entry->n_queues + 1,
                               .n_slices = n_slices,
                               .n_epochs = n_epochs,
                               .epoch = 1};
    (void)snprintf(command.text, sizeof command.text, "job %s has queue %s of %u slices",
                   entry->job.name, name, n_slices);
    *ret_command = command;
    return PSD_OK;
}

/* The queue and the worker of a valid question. */
typedef struct place {
    const ps_queue_t *queue;
    uint32_t number;
    uint32_t joins;
    const char *job;
} place_t;

static psd_status_t find_place(const ps_registry_t *self, const ps_work_ask_t *ask,
                               const ps_command_t *command, place_t *ret, psd_error_t *err)
{
    const ps_job_entry_t *entry = NULL;
    const ps_worker_t *worker = NULL;
    psd_status_t rc = check_job(self, ask->job, &entry, err);

    if (rc == PSD_OK) {
        rc = ps_registry_worker(self, ask->job, ask->worker, &entry, &worker, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    assert(entry != NULL && worker != NULL);
    if (worker->state == PS_WORKER_LOST || (ask->joins != 0 && ask->joins != worker->joins)) {
        return psd_error_set(err, PSD_WORKER_LOST, "worker %u of job %s was declared lost",
                             ask->worker, entry->job.name);
    }
    if (worker->state != PS_WORKER_RUNNING) {
        return ps_not_there(entry, worker, err);
    }
    ret->number = number_of(entry, ask->queue);
    ret->queue = ps_job_queue(entry, ret->number);
    ret->joins = worker->joins;
    ret->job = entry->job.name;
    if (ret->queue == NULL) {
        return psd_error_set(err, PSD_NO_JOB, "job %s has no queue \"%.80s\"", entry->job.name,
                             ask->queue);
    }
    if (command->kind != 0 &&
        (command->kind != PS_COMMAND_WORK || command->job.id != ask->job ||
         command->work.queue != ret->number || command->work.n_holds >= PS_WORK_BATCH_MAX)) {
        return psd_error_set(err, PSD_BUSY, "another slice is next");
    }
    return PSD_OK;
}

/* The change joins the command. */
static psd_status_t join(const ps_registry_t *self, const place_t *place, const ps_work_ask_t *ask,
                         const ps_work_hold_t *hold, ps_command_t *command, psd_error_t *err)
{
    size_t capacity = command->work.n_holds;
    ps_work_hold_t *grown = NULL;

    if ((capacity & (capacity - 1)) == 0) { /* full at powers of two */
        grown =
            ps_alloc_resize(command->work.holds, capacity == 0 ? 1 : 2 * capacity, sizeof *grown);
        if (grown == NULL) {
            return psd_error_set(err, PSD_NOMEM, "no memory for a slice");
        }
        command->work.holds = grown;
    }
    if (command->kind == 0) {
        command->kind = PS_COMMAND_WORK;
        command->epoch = self->epoch;
        command->job.id = ask->job;
        command->work.queue = place->number;
        command->work.epoch = place->queue->epoch;
        (void)snprintf(command->text, sizeof command->text, "slices of queue %s of job %s",
                       place->queue->name, place->job);
    }
    command->work.holds[command->work.n_holds++] = *hold;
    return PSD_OK;
}

/* A client's questions so far, in the queue and in the command. */
typedef struct known {
    const ps_work_hold_t *same; /* what this question got */
    uint64_t last;              /* number of the newest */
    uint32_t n_given;           /* slices that it has */
} known_t;

static void look_at(known_t *known, const ps_work_ask_t *ask, const ps_work_hold_t *hold)
{
    if (hold->session != ask->session) {
        return;
    }
    known->same = hold->ask == ask->number ? hold : known->same;
    known->last = hold->ask > known->last ? hold->ask : known->last;
    known->n_given += hold->kind == PS_WORK_GIVEN ? 1 : 0;
}

static known_t known_of(const ps_queue_t *queue, const ps_command_t *command,
                        const ps_work_ask_t *ask)
{
    known_t known = {0};

    for (size_t i = 0; i < queue->n_holds; i++) {
        look_at(&known, ask, &queue->holds[i]);
    }
    for (size_t i = 0; i < command->work.n_holds; i++) {
        look_at(&known, ask, &command->work.holds[i]);
    }
    return known;
}

static bool is_given_in(const ps_command_t *command, uint32_t slice)
{
    for (size_t i = 0; i < command->work.n_holds; i++) {
        if (command->work.holds[i].kind == PS_WORK_GIVEN && command->work.holds[i].slice == slice) {
            return true;
        }
    }
    return false;
}

/* n_slices: none is free. */
static uint32_t free_slice(const ps_queue_t *queue, const ps_command_t *command)
{
    uint32_t slice = queue->first_free;

    while (slice < queue->n_slices &&
           (queue->slices[slice] != PS_SLICE_FREE || is_given_in(command, slice))) {
        slice++;
    }
    return slice;
}

psd_status_t ps_registry_plan_work_next(const ps_registry_t *self, const ps_work_ask_t *ask,
                                        uint64_t unix_ms, ps_command_t *command,
                                        ps_work_answer_t *ret_answer, psd_error_t *err)
{
    ps_work_answer_t answer = {.found = PS_WORK_WAIT};
    place_t place = {0};
    known_t known = {0};
    psd_status_t rc = find_place(self, ask, command, &place, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (ask->session == 0 || ask->session > PS_STORED_MAX || ask->number == 0 ||
        ask->number > PS_STORED_MAX) {
        return psd_error_set(err, PSD_INVALID, "session or number of a question is out of range");
    }
    known = known_of(place.queue, command, ask);
    if (known.same != NULL) {
        answer = (ps_work_answer_t){
            .found = PS_WORK_SLICE, .epoch = known.same->epoch, .slice = known.same->slice};
    } else if (ps_queue_is_over(place.queue)) {
        answer.found = PS_WORK_END;
    } else if (known.n_given >= PS_WORK_HOLDS_MAX) {
        return psd_error_set(err, PSD_LIMIT, "a client of worker %u has %u slices already",
                             ask->worker, known.n_given);
    } else if (ask->number > known.last) {
        ps_work_hold_t hold = {.kind = PS_WORK_GIVEN,
                               .session = ask->session,
                               .ask = ask->number,
                               .epoch = place.queue->epoch,
                               .slice = free_slice(place.queue, command),
                               .worker = ask->worker,
                               .joins = place.joins};

        if (hold.slice < place.queue->n_slices) {
            rc = join(self, &place, ask, &hold, command, err);
            command->unix_ms = unix_ms;
            answer = (ps_work_answer_t){
                .found = PS_WORK_SLICE, .epoch = hold.epoch, .slice = hold.slice};
        }
    }
    if (rc == PSD_OK) {
        *ret_answer = answer;
    }
    return rc;
}

/* Done by an earlier change of the command. */
static bool is_done_in(const ps_command_t *command, uint32_t slice)
{
    for (size_t i = 0; i < command->work.n_holds; i++) {
        if (command->work.holds[i].kind == PS_WORK_DONE && command->work.holds[i].slice == slice) {
            return true;
        }
    }
    return false;
}

/* The hold, by any of the worker's clients; NULL: the worker does not hold the
 * slice. */
static const ps_work_hold_t *hold_of(const place_t *place, const ps_work_ask_t *ask)
{
    const ps_queue_t *queue = place->queue;

    for (size_t i = 0; i < queue->n_holds; i++) {
        const ps_work_hold_t *hold = &queue->holds[i];

        if (hold->kind == PS_WORK_GIVEN && hold->slice == ask->slice &&
            hold->worker == ask->worker && hold->joins == place->joins) {
            return hold;
        }
    }
    return NULL;
}

static bool all_done(const ps_queue_t *queue, const ps_command_t *command)
{
    uint32_t n = queue->n_done;

    for (size_t i = 0; i < command->work.n_holds; i++) {
        n += command->work.holds[i].kind == PS_WORK_DONE ? 1 : 0;
    }
    return n == queue->n_slices;
}

psd_status_t ps_registry_plan_work_done(const ps_registry_t *self, const ps_work_ask_t *ask,
                                        uint64_t unix_ms, ps_command_t *command, psd_error_t *err)
{
    place_t place = {0};
    const ps_work_hold_t *found = NULL;
    ps_work_hold_t hold = {0};
    psd_status_t rc = find_place(self, ask, command, &place, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (ask->slice >= place.queue->n_slices || ask->epoch < 1 || ask->epoch > place.queue->epoch) {
        return psd_error_set(err, PSD_INVALID, "queue %s has no slice %u in epoch %llu",
                             place.queue->name, ask->slice, (unsigned long long)ask->epoch);
    }
    if (ask->epoch < place.queue->epoch || place.queue->slices[ask->slice] == PS_SLICE_DONE ||
        is_done_in(command, ask->slice)) {
        return PSD_OK; /* it is counted */
    }
    found = hold_of(&place, ask);
    if (found == NULL) {
        return psd_error_set(err, PSD_INVALID, "slice %u of queue %s was not given to worker %u",
                             ask->slice, place.queue->name, ask->worker);
    }
    hold = *found;
    hold.kind = PS_WORK_DONE;
    rc = join(self, &place, ask, &hold, command, err);
    if (rc == PSD_OK) {
        command->unix_ms = unix_ms;
        command->work.turns = all_done(place.queue, command);
    }
    return rc;
}

bool ps_registry_queue_at(const ps_registry_t *self, uint32_t job, size_t i,
                          ps_queue_info_t *ret_info)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, job);
    const ps_queue_t *queue = NULL;

    if (entry == NULL || i >= entry->n_queues) {
        return false;
    }
    queue = &entry->queues[i];
    *ret_info = (ps_queue_info_t){.name = queue->name,
                                  .n_slices = queue->n_slices,
                                  .n_epochs = queue->n_epochs,
                                  .epoch = queue->epoch,
                                  .n_done = queue->n_done};
    for (size_t j = 0; j < queue->n_holds; j++) {
        ret_info->n_given += queue->holds[j].kind == PS_WORK_GIVEN ? 1 : 0;
    }
    return true;
}

bool ps_registry_slice_is_done(const ps_registry_t *self, uint32_t job, size_t i, uint32_t slice)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, job);

    return entry != NULL && i < entry->n_queues && slice < entry->queues[i].n_slices &&
           entry->queues[i].slices[slice] == PS_SLICE_DONE;
}

uint32_t ps_registry_queue_given(const ps_registry_t *self, uint32_t job, const char *queue,
                                 uint32_t worker, uint32_t *ret_slice)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, job);
    const ps_queue_t *found = entry == NULL ? NULL : ps_job_queue(entry, number_of(entry, queue));
    uint32_t n = 0;

    for (size_t i = 0; found != NULL && i < found->n_holds; i++) {
        const ps_work_hold_t *hold = &found->holds[i];

        if (hold->kind == PS_WORK_GIVEN && hold->worker == worker) {
            *ret_slice = hold->slice;
            n++;
        }
    }
    return n;
}
