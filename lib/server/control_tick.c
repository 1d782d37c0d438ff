/* SPDX-License-Identifier: Apache-2.0 */
/* What the control part does when time passes, in this order. */
#include "server/state/control_inner.h"

static bool is_known_job(const void *registry, uint32_t job)
{
    return ps_registry_job_by_id(registry, job) != NULL;
}

void ps_control_tick(ps_control_t *self)
{
    ps_control_receive(self); /* heartbeats that have arrived already */
    ps_control_lose_silent(self);
    ps_control_settle(self);
    ps_fleet_tick(self->fleet);
    ps_control_note_nodes(self);
    ps_control_settle_work(self);
    ps_control_look_again(self);
    ps_control_go_on(self);
    ps_control_checkpoint_tick(self);
    ps_control_end_old_keys(self);
    ps_control_tend_members(self);
    ps_control_send_due(self);
    ps_control_look(self);
    if (self->watches.by_job.count > ps_registry_n_jobs(self->is.registry)) {
        ps_watches_sweep(&self->watches, is_known_job, self->is.registry);
    }
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t ps_control_deadline(const ps_control_t *self)
{
    uint64_t due_ms = ps_registry_deadline(self->is.registry);
    uint64_t workers = due_ms < self->grace_ms ? self->grace_ms : due_ms;
    uint64_t requests = ps_waiters_deadline(&self->waiters);
    uint64_t nodes = ps_overseer_deadline(self->overseer);
    uint64_t copies = ps_control_decide_at(self);

    if (self->work_due || !TAILQ_EMPTY(&self->unserved)) {
        return 0;
    }
    copies = min_u64(copies, ps_control_checkpoint_deadline(self));
    copies = min_u64(copies, ps_control_look_at(self));
    copies = min_u64(copies, self->old_keys_ms);
    return min_u64(min_u64(workers, requests), min_u64(nodes, copies));
}
