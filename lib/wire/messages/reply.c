/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a control answer. */
#include "wire/messages/reply.h"

#include <string.h>

#define MESSAGE_MAX 4096 /* of a refusal */
#define OP_BYTES_MAX 64

/* The status of that name; PSD_PROTO when there is none. */
static psd_status_t status_of(const char *name)
{
#define STATUS_NUMBER(NAME, number, code, exit, text, hint) PSD_##NAME,
    static const psd_status_t statuses[] = {PSD_STATUS_MAP(STATUS_NUMBER)};
#undef STATUS_NUMBER

    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        if (strcmp(name, psd_status_name(statuses[i])) == 0) {
            return statuses[i];
        }
    }
    return PSD_PROTO;
}

psd_status_t ps_reply_status(const ps_doc_t *reply, psd_error_t *err)
{
    const ps_doc_t *error = NULL;
    const char *name = "";
    const char *message = "";
    psd_status_t status = PSD_OK;
    psd_status_t rc = ps_doc_get_text(reply, "status", 64, &name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    status = status_of(name);
    if (status == PSD_OK) {
        return PSD_OK;
    }
    if (ps_doc_get_object(reply, "error", &error, NULL) != PSD_OK ||
        ps_doc_get_text(error, "message", MESSAGE_MAX, &message, NULL) != PSD_OK) {
        message = psd_status_text(status);
    }
    return psd_error_set(err, status, "%s", message);
}

bool ps_request_is_of_map(const ps_doc_t *request)
{
    static const char *const OPS[] = {"hello", "routes", "table_open", "table_inspect"};
    const char *op = NULL;

    if (ps_doc_get_text(request, "op", OP_BYTES_MAX, &op, NULL) != PSD_OK ||
        ps_doc_has(request, "spec") || ps_doc_has(request, "job")) {
        return false;
    }
    for (size_t i = 0; i < sizeof OPS / sizeof *OPS; i++) {
        if (strcmp(op, OPS[i]) == 0) {
            return true;
        }
    }
    return false;
}
