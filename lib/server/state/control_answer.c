/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of the control port. */
#include <inttypes.h>

#include "server/state/control_inner.h"

psd_status_t ps_control_no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for an answer");
}

static bool add_error(ps_doc_t *reply, psd_status_t status, const char *text)
{
    ps_doc_t *error = ps_doc_add_object(reply, "error");

    return error != NULL && ps_doc_set_text(error, "code", psd_status_code(status)) &&
           ps_doc_set_i64(error, "exit", psd_status_exit(status)) &&
           ps_doc_set_text(error, "message", text[0] == '\0' ? psd_status_text(status) : text) &&
           ps_doc_set_text(error, "hint", psd_status_hint(status));
}

ps_doc_t *ps_control_new_reply(uint64_t id, psd_status_t status)
{
    ps_doc_t *reply = ps_doc_new();

    if (reply != NULL &&
        (!ps_doc_set_u64(reply, "v", PS_CONTROL_VERSION) || !ps_doc_set_u64(reply, "id", id) ||
         !ps_doc_set_text(reply, "status", psd_status_name(status)))) {
        ps_doc_destroy(&reply);
    }
    return reply;
}

void ps_control_send_text(ps_control_t *self, uint64_t conn, ps_bytes_t text)
{
    /* The client asks again for an answer that was not sent. */
    if (!ps_fleet_say(self->fleet, conn, text)) {
        ps_log(PS_LOG_DEBUG, "answer_dropped", "conn=%" PRIu64 " reason=not_sent", conn);
    }
}

/* Prints a reply; one that is too long becomes an error. */
static bool print_reply(const ps_doc_t *reply, uint64_t id, ps_buffer_t *ret_text)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *instead = NULL;

    if (!ps_doc_print(reply, ret_text)) {
        return false;
    }
    if (ret_text->size <= PS_DOC_BYTES_MAX) {
        return true;
    }
    ps_buffer_done(ret_text);
    instead = ps_control_new_reply(id, PSD_LIMIT);
    return instead != NULL &&
           add_error(instead, PSD_LIMIT,
                     "the answer does not fit in a control message; ask for less at once") &&
           ps_doc_print(instead, ret_text);
}

void ps_control_send_reply(ps_control_t *self, const ps_control_request_t *request,
                           const ps_doc_t *reply)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    ps_bytes_t bytes;

    if (reply == NULL || !print_reply(reply, request->waits.id, &text)) {
        ps_log(PS_LOG_ERROR, "answer_dropped", "reason=no_memory id=%" PRIu64, request->waits.id);
        return;
    }
    bytes = (ps_bytes_t){.data = text.data, .size = text.size};
    if (request->once) {
        ps_replies_keep(&self->replies, request->waits.session, request->waits.id, bytes);
    }
    ps_control_send_text(self, request->waits.conn, bytes);
}

void ps_control_refuse(ps_control_t *self, const ps_control_request_t *request, psd_status_t status,
                       const char *text)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *reply = ps_control_new_reply(request->waits.id, status);

    if (reply != NULL && !add_error(reply, status, text)) {
        ps_doc_destroy(&reply);
    }
    ps_control_send_reply(self, request, reply);
}

void ps_control_end(ps_control_t *self, ps_control_request_t *request, psd_status_t status,
                    const char *text)
{
    bool may_have_new_id = request->waits.kind == PS_FOR_BARRIER; /* it was repeated */

    ps_waiters_remove(&self->waiters, &request->waits);
    ps_control_note(self, request, status);
    if (may_have_new_id && request->reply != NULL &&
        !ps_doc_set_u64(request->reply, "id", request->waits.id)) {
        ps_doc_destroy(&request->reply); /* it is asked again */
    }
    if (status != PSD_OK) {
        ps_control_refuse(self, request, status, text);
    } else if (!request->silent) {
        ps_control_send_reply(self, request, request->reply);
    }
    ps_doc_destroy(&request->reply);
    ps_buffer_done(&request->words);
    ps_buffer_done(&request->text);
    ps_doc_destroy(&request->doc);
    ps_free(request);
}
