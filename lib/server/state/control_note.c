/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests the audit has, and what it says of them. */
#include <string.h>

#include "server/state/control_inner.h"
#include "server/threads/audit_note.h"

#define NAME_BYTES_MAX 255
#define DETAIL_BYTES_MAX 100

/* A part of a backup is asked for by the number of the backup. */
static bool is_next_piece(const ps_control_request_t *request)
{
    return request->op->trust == PS_TRUST_OP_cluster_backup && ps_doc_has(request->doc, "number");
}

/* It may have changed something. */
static bool is_change(const ps_control_request_t *request)
{
    bool dry_run = false;

    if (request->op == NULL || !ps_need_of_op(request->op->trust)->is_noted ||
        is_next_piece(request)) {
        return false;
    }
    if (request->op->trust == PS_TRUST_OP_table_open && request->made == 0) {
        return false;
    }
    return ps_doc_get_switch(request->doc, "dry_run", &dry_run, NULL) != PSD_OK || !dry_run;
}

static const char *text_of(const ps_doc_t *doc, const char *key, size_t max)
{
    const char *text = NULL;

    return doc != NULL && ps_doc_get_text(doc, key, max, &text, NULL) == PSD_OK ? text : NULL;
}

/* What the request is about: as it says, or the job whose number it has. */
static const char *name_of(const ps_control_t *self, const ps_control_request_t *request,
                           ps_scope_t scope)
{
    static const char *const KEYS[] = {"name", "job", "key", "from"};
    const ps_doc_t *doc = request->doc;
    const ps_doc_t *spec = NULL;
    const ps_job_t *job = NULL;
    const char *name = NULL;

    if (scope == PS_SCOPE_SPEC) {
        return ps_doc_get_object(doc, "spec", &spec, NULL) == PSD_OK
                   ? text_of(spec, "name", NAME_BYTES_MAX)
                   : NULL;
    }
    if (scope == PS_SCOPE_JOB && ps_control_find_job(self, doc, &job, NULL) == PSD_OK) {
        return job->name;
    }
    for (size_t i = 0; name == NULL && i < sizeof KEYS / sizeof *KEYS; i++) {
        name = text_of(doc, KEYS[i], NAME_BYTES_MAX);
    }
    return name;
}

/* What else it asks for, where that says what it may do. */
static size_t add_details(const ps_doc_t *doc, ps_audit_pair_t pairs[PS_AUDIT_PAIRS_MAX])
{
    static const char *const KEYS[] = {"role", "tables", "jobs",    "key", "value",
                                       "from", "table",  "combine", "as",  "to"};
    size_t n = 0;

    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS && n < PS_AUDIT_PAIRS_MAX; i++) {
        const char *text = text_of(doc, KEYS[i], DETAIL_BYTES_MAX);

        if (text != NULL) {
            pairs[n++] = (ps_audit_pair_t){.key = KEYS[i], .text = text};
        }
    }
    return n;
}

void ps_control_note(const ps_control_t *self, const ps_control_request_t *request,
                     psd_status_t status)
{
    const ps_principal_t *who = NULL;
    ps_audit_record_t record;

    if (self->is.audit == NULL || request->silent ||
        (status != PSD_DENIED && !is_change(request))) {
        return;
    }
    who = ps_control_principal(self, &request->caller);
    record = ps_audit_record_of(&request->caller, who == NULL ? NULL : who->name);
    if (request->op != NULL) {
        const ps_need_t *need = ps_need_of_op(request->op->trust);

        record.op = need->kind;
        record.verb = ps_verb_word(
            request->op->trust == PS_TRUST_OP_table_open && request->made != 0 ? PS_VERB_CREATE
                                                                               : need->verb);
        record.object = ps_object_word(need->object);
        record.name = name_of(self, request, need->scope);
        record.n_pairs = need->is_noted ? add_details(request->doc, record.pairs) : 0;
    }
    record.result = status;
    record.session = request->waits.session;
    record.request = request->waits.id;
    ps_audit_note(self->is.audit, &record);
}
