/* SPDX-License-Identifier: Apache-2.0 */
/* The registry manages the copies: this passes reports to it, stores its
 * decisions and sends them to the nodes. */
#include <inttypes.h>

#include "server/quorum/replica.h"
#include "server/state/control_inner.h"
#include "protocol/placement/registry_decide.h"

#define RETRY_MS 500  /* backoff after a decision that could not be made or stored */
#define GRACE_MS 1000 /* for nodes to find a registry that has started */
#define ROUNDS_MAX 1000

/* ---- decisions ---- */

void ps_control_tell_changes(ps_control_t *self, const ps_command_t *command)
{
    for (size_t i = 0; i < command->n_changes; i++) {
        if (i == 0 || command->changes[i].table != command->changes[i - 1].table) {
            ps_overseer_tell_table(self->overseer, command->changes[i].table);
        }
    }
}

static void tell_fence(ps_control_t *self, const ps_fence_t *fence)
{
    const ps_table_t *table = ps_registry_table_by_id(self->is.registry, fence->table);

    for (uint32_t i = 0; table != NULL && i < fence->n; i++) {
        const ps_copy_t *copy = ps_copies_on(&table->copies[fence->partition], fence->to[i]);

        if (copy != NULL) {
            ps_fleet_fence(self->fleet, copy, fence->table, fence->partition, fence->epoch);
        }
    }
}

static bool loses_rows(const ps_command_t *command)
{
    for (size_t i = 0; i < command->n_changes; i++) {
        if (command->changes[i].rows_lost) {
            return true;
        }
    }
    return false;
}

/* Stores and sends the decisions. *ret_more: there was one. */
static psd_status_t decide_once(ps_control_t *self, bool *ret_more, psd_error_t *err)
{
    PSD_AUTO(ps_decision_done) ps_decision_t decision = {0};
    psd_status_t rc =
        ps_registry_decide(self->is.registry, ps_now_ms(), ps_unix_ms(), &decision, err);

    *ret_more = rc == PSD_OK && decision.kind != PS_DECIDE_NOTHING;
    if (rc == PSD_OK && decision.kind == PS_DECIDE_COMMIT) {
        rc = ps_control_commit(self, &decision.command, PS_LOG_INFO, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_control_tell_changes(self, &decision.command);
    ps_control_send_due(self); /* before the fences of these tables */
    if (loses_rows(&decision.command)) {
        ps_control_end_jobs(self);
        ps_control_note_losses(self, &decision.command);
    }
    for (size_t i = 0; i < decision.n_fences; i++) {
        tell_fence(self, &decision.fences[i]);
    }
    return PSD_OK;
}

/* The registry's own node is alive as long as this runs. */
static void beat_own(ps_control_t *self)
{
    psd_status_t rc = ps_registry_node_beat(self->is.registry, self->is.node, self->is.incarnation,
                                            0, ps_now_ms(), NULL);

    (void)rc; /* it was registered before the control part was made */
}

void ps_control_decide(ps_control_t *self)
{
    bool more = true;

    beat_own(self);
    if (ps_now_ms() < self->decide_ms) {
        return;
    }
    ps_registry_keep_still(self->is.registry, self->checkpoint.number != 0);
    for (int i = 0; more && i < ROUNDS_MAX; i++) {
        psd_status_t rc = decide_once(self, &more, self->err);

        if (rc != PSD_OK) {
            char quoted[512];

            self->decide_ms = ps_now_ms() + RETRY_MS;
            ps_log(PS_LOG_ERROR, "copies_not_decided", "status=%s reason=%s hint=\"retrying\"",
                   psd_status_name(rc),
                   ps_log_quote(psd_error_text(self->err), quoted, sizeof quoted));
            psd_error_clear(self->err);
            return;
        }
    }
}

void ps_control_decide_later(ps_control_t *self)
{
    ps_control_decide(self);
    if (ps_registry_n_nodes(self->is.registry) > 1 &&
        !ps_registry_knows_nodes(self->is.registry, ps_now_ms())) {
        self->decide_ms = ps_now_ms() + GRACE_MS;
    }
}

uint64_t ps_control_decide_at(const ps_control_t *self)
{
    uint64_t at = ps_registry_decide_at(self->is.registry);

    if (at != 0 && ps_registry_n_nodes(self->is.registry) < 2) {
        return UINT64_MAX; /* no other node can be silent */
    }
    return at < self->decide_ms ? self->decide_ms : at;
}

/* ---- reports ---- */

void ps_control_take_report(ps_control_t *self, uint64_t from, const ps_report_t *report)
{
    bool minded = false;

    if (report->kind == PS_REPORT_POSITION || report->kind == PS_REPORT_PARTIAL) {
        minded = ps_registry_fenced(self->is.registry, from, report);
    } else if (report->kind != PS_REPORT_FENCED) {
        minded = ps_registry_report(self->is.registry, from, report);
    }
    ps_log(PS_LOG_DEBUG, "copy_reported",
           "kind=%d table=%" PRIu32 " partition=%" PRIu32 " epoch=%" PRIu64 " lsn=%" PRIu64
           " accepted=%d",
           (int)report->kind, report->table, report->partition, report->epoch, report->lsn, minded);
}
