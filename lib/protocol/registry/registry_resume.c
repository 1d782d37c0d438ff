/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that resume from a checkpoint. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "protocol/registry/registry_job.h"
#include "protocol/registry/registry_queue.h"

/* ---- checks ---- */

static bool is_queue(const ps_work_resumed_t *queue)
{
    bool is_good = memchr(queue->name, '\0', sizeof queue->name) != NULL &&
                   ps_text_is_name(queue->name) && queue->n_slices >= 1 &&
                   queue->n_slices <= PS_WORK_SLICES_MAX && queue->n_epochs <= PS_WORK_EPOCHS_MAX &&
                   queue->epoch >= 1 && queue->epoch <= PS_STORED_MAX &&
                   queue->n_done < queue->n_slices &&
                   (queue->n_epochs == 0 || queue->epoch <= queue->n_epochs ||
                    (queue->epoch == queue->n_epochs + 1 && queue->n_done == 0));

    for (uint32_t i = 0; is_good && i < queue->n_done; i++) {
        is_good =
            queue->done[i] < queue->n_slices && (i == 0 || queue->done[i - 1] < queue->done[i]);
    }
    return is_good;
}

psd_status_t ps_registry_check_resumed(const ps_registry_t *self, const ps_command_t *command,
                                       psd_error_t *err)
{
    bool is_good = command->n_resumed <= PS_QUEUES_MAX &&
                   (command->n_resumed == 0 || ps_registry_find_job(self, command->job.id) == NULL);

    for (size_t i = 0; is_good && i < command->n_resumed; i++) {
        is_good = is_queue(&command->resumed[i]);
        for (size_t k = 0; is_good && k < i; k++) {
            is_good = strcmp(command->resumed[i].name, command->resumed[k].name) != 0;
        }
    }
    return is_good
               ? PSD_OK
               : psd_error_set(
                     err, PSD_INVALID,
                     "job %s cannot resume with these %zu queues: a name, number or slice is wrong",
                     command->job.name, command->n_resumed);
}

/* ---- changes ---- */

void ps_work_resumed_free(ps_work_resumed_t *queues, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ps_free(queues[i].done);
    }
    ps_free(queues);
}

static psd_status_t make_queue(const ps_work_resumed_t *from, ps_queue_t *ret)
{
    ps_queue_t queue = {.n_slices = from->n_slices,
                        .n_epochs = from->n_epochs,
                        .epoch = from->epoch,
                        .n_done = from->n_done};

    memcpy(queue.name, from->name, sizeof queue.name);
    queue.slices = ps_alloc(queue.n_slices, sizeof *queue.slices);
    if (queue.slices == NULL) {
        return PSD_NOMEM;
    }
    for (uint32_t i = 0; i < from->n_done; i++) {
        queue.slices[from->done[i]] = PS_SLICE_DONE;
    }
    while (queue.slices[queue.first_free] != PS_SLICE_FREE) {
        queue.first_free++; /* not all are done */
    }
    *ret = queue;
    return PSD_OK;
}

psd_status_t ps_registry_make_resumed(const ps_command_t *command, ps_job_entry_t *entry,
                                      psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (command->n_resumed == 0) {
        return PSD_OK;
    }
    if (!ps_grow(&entry->queues, &entry->max_queues, command->n_resumed, sizeof *entry->queues)) {
        rc = PSD_NOMEM;
    }
    for (size_t i = 0; rc == PSD_OK && i < command->n_resumed; i++) {
        rc = make_queue(&command->resumed[i], &entry->queues[i]);
        entry->n_queues += rc == PSD_OK ? 1 : 0;
    }
    return rc == PSD_OK
               ? PSD_OK
               : psd_error_set(err, rc, "no memory for the queues of job %s", command->job.name);
}

/* ---- the plan ---- */

static psd_status_t copy_queues(const ps_resume_t *resume, ps_command_t *command)
{
    command->resumed = ps_alloc(resume->n_queues + 1, sizeof *command->resumed);
    if (command->resumed == NULL) {
        return PSD_NOMEM;
    }
    for (size_t i = 0; i < resume->n_queues; i++) {
        const ps_work_resumed_t *from = &resume->queues[i];
        ps_work_resumed_t *to = &command->resumed[i];

        *to = *from;
        to->done = ps_alloc((size_t)from->n_done + 1, sizeof *to->done);
        command->n_resumed++;
        if (to->done == NULL) {
            return PSD_NOMEM;
        }
        if (from->n_done > 0) {
            memcpy(to->done, from->done, from->n_done * sizeof *to->done);
        }
    }
    return PSD_OK;
}

psd_status_t ps_registry_plan_resume(const ps_registry_t *self, const ps_resume_t *resume,
                                     uint64_t unix_ms, ps_command_t *ret_command, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    const ps_join_t join = {
        .job = resume->job, .n_workers = resume->n_workers, .max_delay = resume->max_delay};
    const ps_job_entry_t *known = ps_registry_find_job_named(self, resume->job);
    psd_status_t rc = ps_registry_check_join(&join, err);

    if (rc == PSD_OK && known != NULL && known->ended == 0) {
        rc = psd_error_set(
            err, PSD_BUSY,
            "job \"%s\" is running; it can resume from a checkpoint once it has ended",
            resume->job);
    }
    if (rc == PSD_OK && resume->clock > PS_STORED_MAX) {
        rc = psd_error_set(err, PSD_INVALID, "clock is %" PRIu64, resume->clock);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_plan_new_job(self, &join, &command, err);
    }
    if (rc == PSD_OK && copy_queues(resume, &command) != PSD_OK) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for the queues of job %s", resume->job);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_check_resumed(self, &command, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    for (size_t i = 0; i < command.job.n_workers; i++) {
        command.job.workers[i].start = resume->clock;
    }
    command.unix_ms = unix_ms;
    command.created_unix_ms = unix_ms;
    (void)snprintf(command.text, sizeof command.text,
                   "job %s resumes after clock %" PRIu64 " of a checkpoint when its %" PRIu32
                   " workers come",
                   resume->job, resume->clock, resume->n_workers);
    *ret_command = command; /* ownership moves to the caller */
    command = (ps_command_t){0};
    return PSD_OK;
}
