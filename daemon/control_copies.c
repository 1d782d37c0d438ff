/* SPDX-License-Identifier: Apache-2.0 */
/* The registry looks after the copies: what is heard goes to it, what it has
 * decided is stored and told. */
#include <inttypes.h>

#include "daemon/commit.h"
#include "daemon/control_inner.h"
#include "daemon/fleet_doc.h"
#include "protocol/registry_decide.h"

#define RETRY_MS 500 /* after a decision that could not be made or stored */
#define GRACE_MS                                                 \
    1000 /* for the nodes to find a registry that has just begun \
          */
#define ROUNDS_MAX 1000

/* ---- what is decided ---- */

void
ps_control_tell_changes(ps_control_t *self, const ps_command_t *command)
{
    for (size_t i = 0; i < command->n_changes; i++) {
        if (i == 0 ||
            command->changes[i].table != command->changes[i - 1].table) {
            ps_fleet_tell_table(self->fleet, command->changes[i].table);
        }
    }
}

static void
tell_fence(ps_control_t *self, const ps_fence_t *fence)
{
    const ps_table_t *table =
        ps_registry_table_by_id(self->is.registry, fence->table);

    for (uint32_t i = 0; table != NULL && i < fence->n; i++) {
        const ps_copy_t *copy =
            ps_copies_on(&table->copies[fence->partition], fence->to[i]);

        if (copy != NULL) {
            ps_fleet_fence(self->fleet, copy, fence->table, fence->partition,
                           fence->epoch);
        }
    }
}

/* Stores and tells what is decided. *ret_more: something was. */
static psd_status_t
decide_once(ps_control_t *self, bool *ret_more, psd_error_t *err)
{
    PSD_AUTO(ps_decision_done) ps_decision_t decision = {0};
    psd_status_t rc = ps_registry_decide(self->is.registry, ps_now_ms(),
                                         ps_unix_ms(), &decision, err);

    *ret_more = rc == PSD_OK && decision.kind != PS_DECIDE_NOTHING;
    if (rc == PSD_OK && decision.kind == PS_DECIDE_COMMIT) {
        rc = ps_control_commit(self, &decision.command, PS_LOG_INFO, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_control_tell_changes(self, &decision.command);
    for (size_t i = 0; i < decision.n_fences; i++) {
        tell_fence(self, &decision.fences[i]);
    }
    return PSD_OK;
}

/* The registry's own node is alive as long as this runs. */
static void
beat_own(ps_control_t *self)
{
    psd_status_t rc =
        ps_registry_node_beat(self->is.registry, self->is.node,
                              self->is.incarnation, 0, ps_now_ms(), NULL);

    (void)rc; /* it was registered before the control part was made */
}

void
ps_control_decide(ps_control_t *self)
{
    bool more = true;

    beat_own(self);
    if (ps_now_ms() < self->decide_ms) {
        return;
    }
    for (int i = 0; more && i < ROUNDS_MAX && !self->broken; i++) {
        psd_status_t rc = decide_once(self, &more, self->err);

        if (rc != PSD_OK) {
            char quoted[512];

            self->decide_ms = ps_now_ms() + RETRY_MS;
            ps_log(
                PS_LOG_ERROR, "copies_not_decided",
                "status=%s reason=%s hint=\"tried again\"", psd_status_name(rc),
                ps_log_quote(psd_error_text(self->err), quoted, sizeof quoted));
            psd_error_clear(self->err);
            return;
        }
    }
}

void
ps_control_decide_later(ps_control_t *self)
{
    ps_control_decide(self);
    if (ps_registry_n_nodes(self->is.registry) > 1) {
        self->decide_ms = ps_now_ms() + GRACE_MS;
    }
}

uint64_t
ps_control_decide_at(const ps_control_t *self)
{
    uint64_t at = ps_registry_decide_at(self->is.registry);

    if (at != 0 && ps_registry_n_nodes(self->is.registry) < 2) {
        return UINT64_MAX; /* there is nobody to be silent */
    }
    return at < self->decide_ms ? self->decide_ms : at;
}

/* ---- what is heard ---- */

static void
take_report(ps_control_t *self, uint64_t from, const ps_report_t *report)
{
    bool minded = false;

    if (report->kind == PS_REPORT_POSITION) {
        minded = ps_registry_fenced(self->is.registry, from, report);
    } else if (report->kind != PS_REPORT_FENCED) {
        minded = ps_registry_report(self->is.registry, from, report);
    }
    ps_log(PS_LOG_DEBUG, "copy_reported",
           "kind=%d table=%" PRIu32 " partition=%" PRIu32 " epoch=%" PRIu64
           " lsn=%" PRIu64 " minded=%d",
           (int)report->kind, report->table, report->partition, report->epoch,
           report->lsn, minded);
}

void
ps_control_receive_shards(ps_control_t *self)
{
    ps_report_t report;

    ps_fleet_take_shards(self->fleet);
    while (ps_shards_next_report(self->is.shards, &report)) {
        take_report(self, self->is.incarnation, &report);
    }
    ps_control_go_on(self);
    ps_control_decide(self);
}

psd_status_t
ps_control_node_report(ps_control_t *self,
                       ps_control_request_t *request,
                       psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    uint64_t incarnation = 0;
    size_t n = 0;
    psd_status_t rc = ps_control_hear_node(self, request, &incarnation, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_array(request->doc, "reports", PS_REPORTS_MAX * 8,
                              &array, err);
    }
    if (rc == PSD_OK) {
        rc = ps_reports_count(array, &n, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        ps_report_t report;

        rc = ps_report_from_doc(array, i, &report, err);
        if (rc == PSD_OK) {
            take_report(self, incarnation, &report);
        }
    }
    request->parked = rc == PSD_OK; /* a report is not answered */
    return rc;
}

psd_status_t
ps_control_node_end(ps_control_t *self,
                    ps_control_request_t *request,
                    psd_error_t *err)
{
    const ps_node_t *node = NULL;
    uint64_t incarnation = 0;
    psd_status_t rc = ps_control_hear_node(self, request, &incarnation, err);

    if (rc != PSD_OK) {
        return rc;
    }
    request->parked = true; /* it does not wait for an answer */
    node = ps_registry_node_by_incarnation(self->is.registry, incarnation);
    if (node != NULL && ps_registry_node_ends(self->is.registry, node->name,
                                              incarnation, ps_now_ms())) {
        ps_log(PS_LOG_INFO, "node_ends", "node=%s", node->name);
    }
    return PSD_OK;
}
