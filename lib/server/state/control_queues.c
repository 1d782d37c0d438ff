/* SPDX-License-Identifier: Apache-2.0 */
/* Work queues of a job: progress, waiting workers, holders of slices. */
#include <string.h>

#include "server/state/control_inner.h"

static uint32_t count_waiting(const ps_control_t *self, uint32_t job, const char *queue)
{
    const ps_waiter_t *waiter = NULL;
    uint32_t n = 0;

    while ((waiter = ps_waiters_next(&self->waiters, waiter, PS_FOR_WORK, job, PS_ANY_WORKER)) !=
           NULL) {
        n += strcmp(waiter->queue, queue) == 0 ? 1 : 0;
    }
    return n;
}

static bool add_holders(const ps_control_t *self, uint32_t job, const char *queue, ps_doc_t *doc)
{
    const ps_job_t *known = ps_registry_job_by_id(self->is.registry, job);
    ps_doc_t *array = ps_doc_add_array(doc, "holders");
    bool done = array != NULL;

    for (size_t i = 0; done && known != NULL && i < known->n_workers; i++) {
        uint32_t worker = known->workers[i].worker;
        uint32_t slice = 0;
        uint32_t n_given = ps_registry_queue_given(self->is.registry, job, queue, worker, &slice);
        ps_doc_t *holder = NULL;

        if (n_given > 0) {
            holder = ps_doc_append_object(array);
            done = holder != NULL && ps_doc_set_u64(holder, "worker", worker) &&
                   ps_doc_set_u64(holder, "given", n_given) &&
                   ps_doc_set_u64(holder, "slice", slice);
        }
    }
    return done;
}

bool ps_control_add_queues(const ps_control_t *self, uint32_t job, ps_doc_t *doc)
{
    ps_doc_t *array = ps_doc_add_array(doc, "queues");
    bool done = array != NULL;
    ps_queue_info_t info = {0};

    for (size_t i = 0; done && ps_registry_queue_at(self->is.registry, job, i, &info); i++) {
        ps_doc_t *queue = ps_doc_append_object(array);
        bool over = info.n_epochs != 0 && info.epoch > info.n_epochs;

        done = queue != NULL && ps_doc_set_text(queue, "queue", info.name) &&
               ps_doc_set_u64(queue, "slices", info.n_slices) &&
               ps_doc_set_u64(queue, "epochs", info.n_epochs) &&
               ps_doc_set_u64(queue, "epoch", over ? info.n_epochs : info.epoch) &&
               ps_doc_set_u64(queue, "done", over ? info.n_slices : info.n_done) &&
               ps_doc_set_u64(queue, "given", info.n_given) &&
               ps_doc_set_u64(queue, "waiting", count_waiting(self, job, info.name)) &&
               ps_doc_set_bool(queue, "over", over) && add_holders(self, job, info.name, queue);
    }
    return done;
}

bool ps_control_checkpoint_holds(const ps_control_t *self, const ps_control_request_t *request)
{
    const ps_checkpoint_work_t *work = &self->checkpoint;

    return work->number != 0 && work->holds_work && work->job == request->waits.job &&
           request->clock >= work->clock;
}
