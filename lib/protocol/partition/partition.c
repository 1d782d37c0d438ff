/* SPDX-License-Identifier: Apache-2.0 */
/* Creating and destroying a partition, and its memory accounting. */
#include <assert.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "model/store/store_growth.h"
#include "protocol/partition/partition.h"

psd_status_t ps_partition_new(const ps_table_spec_t *spec, ps_table_use_t *use, uint32_t table,
                              uint32_t number, uint64_t epoch, ps_partition_t **ret_partition,
                              psd_error_t *err)
{
    PSD_AUTO(ps_partition_destroy)
    ps_partition_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a partition");
    }
    self->table = table;
    self->number = number;
    self->epoch = epoch;
    self->spec = spec;
    self->use = use;
    self->version = 1;
    self->combine = PS_COMBINE_EACH;
    self->deadline_ms = UINT64_MAX;
    self->lead = (ps_lead_t){.primary = true, .until_ms = UINT64_MAX};
    rc = ps_store_new(spec, number, &self->store, err);
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "partition %" PRIu32, number);
    }
    *ret_partition = self;
    self = NULL;
    return PSD_OK;
}

static void job_place_done(ps_job_place_t *place)
{
    ps_gate_destroy(&place->gate);
    ps_open_clock_done(&place->open);
}

void ps_partition_clear(ps_partition_t *self)
{
    size_t at = 0;
    uint64_t session = 0;
    void *window = NULL;

    for (size_t i = 0; i < self->n_jobs; i++) {
        job_place_done(&self->jobs[i]);
    }
    self->n_jobs = 0;
    while (ps_map_next(&self->windows, &at, &session, &window)) {
        ps_window_t *each = window;

        ps_window_destroy(&each);
    }
    ps_map_done(&self->windows);
    ps_session_set_done(&self->retired);
}

void ps_partition_uncount_open(ps_step_t *step, const ps_partition_t *self)
{
    for (size_t i = 0; i < self->n_jobs; i++) {
        step->logged_bytes -= self->jobs[i].open.bytes;
        self->use->logged_bytes -= self->jobs[i].open.bytes;
    }
}

bool ps_partition_begin_anew(ps_step_t *step, ps_partition_t *self)
{
    ps_store_t *store = NULL;

    if (ps_store_new(self->spec, self->number, &store, NULL) != PSD_OK) {
        return false;
    }
    ps_store_destroy(&self->store);
    self->store = store;
    ps_partition_uncount_open(step, self);
    ps_partition_clear(self);
    self->lsn = 0;
    self->lsn_epoch = 0;
    self->epochs.n = 0;
    self->restoring = false;
    self->snapshot_lsn = 0;
    self->needs_base = false;
    self->base_given = false;
    self->life = ++step->n_lives;
    self->version = 1;
    self->combine = PS_COMBINE_EACH;
    ps_partition_count_rows(step, self, false);
    return true;
}

void ps_partition_destroy(ps_partition_t **self_p)
{
    ps_partition_t *self = self_p == NULL ? NULL : *self_p;

    if (self == NULL) {
        return;
    }
    ps_held_clear(&self->held);
    ps_partition_clear(self);
    ps_free(self->jobs);
    assert(self->replicas == NULL); /* the room replica destroys them first */
    ps_store_destroy(&self->store);
    ps_free(self);
    *self_p = NULL;
}

ps_job_place_t *ps_partition_find_place(const ps_partition_t *self, uint32_t job)
{
    for (size_t i = 0; i < self->n_jobs; i++) {
        if (ps_gate_job(self->jobs[i].gate) == job) {
            return &self->jobs[i];
        }
    }
    return NULL;
}

ps_gate_t *ps_partition_gate(const ps_partition_t *self, uint32_t job)
{
    const ps_job_place_t *place = ps_partition_find_place(self, job);

    return place == NULL ? NULL : place->gate;
}

void ps_partition_count_rows(ps_step_t *step, ps_partition_t *self, bool gone)
{
    uint64_t now = gone ? 0 : ps_store_footprint(self->store) + self->incoming_bytes;

    step->row_bytes = step->row_bytes - self->row_bytes + now;
    self->use->row_bytes = self->use->row_bytes - self->row_bytes + now;
    self->row_bytes = now;
}

bool ps_partition_is_restoring(const ps_partition_t *self)
{
    return self->restoring || self->use->restoring;
}
