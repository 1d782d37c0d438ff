/* SPDX-License-Identifier: Apache-2.0 */
/* How the control part changes the registry. What is stored in one turn is flushed, or
 * agreed on by the members, once, and nothing that may say it leaves before. */
#include "server/metrics/meter.h"
#include "server/quorum/replica.h"
#include "server/state/control_inner.h"
#include "server/state/history_text.h"

/* What was committed is proposed by the next flush, which is what takes the time. */
static bool waits_for_members(const ps_control_t *self)
{
    return ps_replica_thread(self->is.replica) != NULL && !ps_replica_is_flushed(self->is.replica);
}

psd_status_t ps_control_commit(ps_control_t *self, const ps_command_t *command,
                               ps_log_level_t level, psd_error_t *err)
{
    uint64_t since_ns = ps_meter_now_ns();
    psd_status_t rc = ps_replica_commit(self->is.replica, command, level, err);

    if (rc == PSD_OK && command->kind != 0 && (size_t)command->kind < PS_DIM_COMMAND) {
        ps_count_add(&self->counts->commands[command->kind], 1);
        if (!waits_for_members(self)) {
            ps_histogram_add(self->counts->commit, ps_meter_now_ns() - since_ns);
        }
    }
    if (rc == PSD_OK) {
        ps_overseer_set_index(self->overseer, ps_registry_db_applied(self->is.db).index);
    }
    if (rc == PSD_OK && !ps_replica_is_flushed(self->is.replica)) {
        ps_fleet_hold(self->fleet);
    } else if (rc == PSD_OK) {
        ps_control_tell_rights(self); /* else once it is flushed */
    }
    return rc;
}

void ps_control_sign(const ps_control_t *self, const ps_control_request_t *request,
                     ps_command_t *command)
{
    char who[PS_CONTROL_WHO_SIZE];

    ps_history_sign(command->text, sizeof command->text,
                    ps_control_print_who(self, &request->caller, who));
}

psd_status_t ps_control_commit_for(ps_control_t *self, const ps_control_request_t *request,
                                   ps_command_t *command, uint64_t detail, ps_log_level_t level,
                                   psd_error_t *err)
{
    if (request->once) {
        command->session = request->waits.session;
        command->request = request->waits.id;
        command->detail = detail;
    }
    ps_control_sign(self, request, command);
    return ps_control_commit(self, command, level, err);
}

psd_status_t ps_control_check_flushed(ps_control_t *self, psd_error_t *err)
{
    return ps_control_flush(self)
               ? PSD_OK
               : psd_error_set(err, PSD_NOT_LEADER, "it is unknown whether the change was made");
}

/* In place of an answer that may not be true. Nodes hear of the next leader by themselves. */
static void refuse_instead(ps_control_t *self, uint64_t conn, ps_bytes_t bytes)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *answer = NULL;
    ps_control_request_t request = {.waits.conn = conn};

    if (!ps_node_message_is(bytes) && ps_doc_parse(bytes, &answer, NULL) == PSD_OK &&
        ps_doc_get_u64(answer, "id", 0, UINT64_MAX, &request.waits.id, NULL) == PSD_OK) {
        ps_control_refuse(self, &request, PSD_NOT_LEADER,
                          "it is unknown whether the change was made: ask again");
    }
}

void ps_control_unsay(ps_control_t *self)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    uint64_t conn = 0;

    if (self->fleet == NULL || !ps_replica_is_ahead(self->is.replica)) {
        return;
    }
    while (ps_fleet_unsay(self->fleet, &conn, &bytes)) {
        refuse_instead(self, conn, (ps_bytes_t){.data = bytes.data, .size = bytes.size});
        ps_buffer_done(&bytes);
    }
    if (self->is.audit != NULL) {
        ps_audit_log_say(self->is.audit, "unsaid", ps_unix_ms());
    }
}

void ps_control_send_due(ps_control_t *self)
{
    if (ps_control_flush(self)) {
        ps_control_tell_rights(self);
        ps_fleet_send_due(self->fleet);
    }
}

bool ps_control_flush(ps_control_t *self)
{
    uint64_t since_ns = ps_meter_now_ns();
    bool waits = waits_for_members(self);
    char quoted[512];
    psd_status_t rc = PSD_OK;

    if (self->fleet == NULL || !ps_fleet_holds(self->fleet)) { /* NULL: it was not made whole */
        return true;
    }
    rc = ps_replica_flush(self->is.replica, self->err);
    if (rc == PSD_OK) {
        if (waits) {
            ps_histogram_add(self->counts->commit, ps_meter_now_ns() - since_ns);
        }
        ps_control_tell_rights(self); /* they are so for good; and before anybody hears of it */
        ps_fleet_release(self->fleet);
        return true;
    }
    if (rc == PSD_NOT_LEADER) { /* ps_control_unsay follows */
        psd_error_clear(self->err);
        return false;
    }
    ps_log(PS_LOG_ERROR, "registry_not_flushed", "status=%s reason=%s", psd_status_name(rc),
           ps_log_quote(psd_error_text(self->err), quoted, sizeof quoted));
    psd_error_clear(self->err);
    return false;
}
