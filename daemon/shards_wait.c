/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the shards and waiting for the answers. */
#include <zmq.h>

#include "base/alloc.h"
#include "daemon/shards_inner.h"

#define LOOK_MS 100 /* for questions whose time is over */

static bool
find_done(ps_shards_t *self, uint64_t serial, ps_shards_done_t *ret_done)
{
    for (size_t i = 0; i < self->n_ended; i++) {
        if (self->ended[i].serial == serial) {
            ps_shards_take_ended(self, i, ret_done);
            return true;
        }
    }
    return false;
}

/* Until something is there to take. */
static void
wait_for_some(const ps_shards_t *self)
{
    for (uint32_t i = 0; i < self->n_shards; i++) {
        self->items[i] = (zmq_pollitem_t){.socket = ps_shards_handle(self, i),
                                          .events = ZMQ_POLLIN};
    }
    (void)zmq_poll(self->items, (int)self->n_shards, LOOK_MS);
}

/* Waits for the end of the question, which was sent. */
static psd_status_t
wait_for(ps_shards_t *self,
         uint64_t serial,
         ps_answers_t *ret_answers,
         psd_error_t *err)
{
    PSD_AUTO(ps_shards_done_done) ps_shards_done_t done = {0};

    while (!find_done(self, serial, &done)) {
        wait_for_some(self);
        ps_shards_take(self, ps_now_ms());
    }
    if (done.status != PSD_OK) {
        return psd_error_set(err, done.status, "%s", done.text);
    }
    if (ret_answers != NULL) {
        *ret_answers = done.answers;
        done.answers = (ps_answers_t){0};
    }
    return PSD_OK;
}

psd_status_t
ps_shards_ask(ps_shards_t *self,
              ps_call_kind_t kind,
              uint32_t job_id,
              ps_answers_t *ret_answers,
              psd_error_t *err)
{
    uint64_t serial = 0;
    psd_status_t rc = ps_shards_send_ask(self, kind, job_id, &serial, err);

    return rc == PSD_OK ? wait_for(self, serial, ret_answers, err) : rc;
}

psd_status_t
ps_shards_tell_table(ps_shards_t *self,
                     const ps_table_t *table,
                     psd_error_t *err)
{
    uint64_t serial = 0;
    psd_status_t rc = ps_shards_send_table(self, table, &serial, err);

    return rc == PSD_OK ? wait_for(self, serial, NULL, err) : rc;
}

psd_status_t
ps_shards_tell_drop(ps_shards_t *self, uint32_t table, psd_error_t *err)
{
    uint64_t serial = 0;
    psd_status_t rc = ps_shards_send_drop(self, table, &serial, err);

    return rc == PSD_OK ? wait_for(self, serial, NULL, err) : rc;
}

psd_status_t
ps_shards_tell_job(ps_shards_t *self, const ps_job_t *job, psd_error_t *err)
{
    uint64_t serial = 0;
    psd_status_t rc = ps_shards_send_job(self, job, &serial, err);

    return rc == PSD_OK ? wait_for(self, serial, NULL, err) : rc;
}
