/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests the audit has, and what it says of them. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/state/control_inner.h"
#include "server/threads/audit_note.h"

/* Bytes of what a caller has written, before "…"; a line has room for all of them, escaped. */
#define NAME_BYTES 255
#define DETAIL_BYTES 255
#define DETAILS_BYTES 1000       /* of one line */
#define FAILED_DETAILS_BYTES 255 /* … of a request that failed */
#define STRANGER_BYTES 64        /* the name in a request of nobody known, that failed */
#define SHOWN_SIZE 264           /* of one, with "…" */

/* What a line says of a request beside the name. */
typedef struct shown {
    char name[SHOWN_SIZE];
    char details[PS_AUDIT_PAIRS_MAX][SHOWN_SIZE];
} shown_t;

/* What requests have that says what they may do. What is not here is not written: callers may
 * send any members. */
static const struct {
    ps_trust_op_t op;
    const char *keys[PS_AUDIT_PAIRS_MAX];
} DETAILS[] = {
    {PS_TRUST_OP_auth_allow, {"role", "tables", "jobs", "key", "uid", "add"}},
    {PS_TRUST_OP_auth_rotate, {"key", "grace_ms"}},
    {PS_TRUST_OP_setting_set, {"key", "value"}},
    {PS_TRUST_OP_table_create, {"job"}},
    {PS_TRUST_OP_table_open, {"job"}},
    {PS_TRUST_OP_table_set, {"combine"}},
    {PS_TRUST_OP_registry_accept, {"accept_loss"}},
    {PS_TRUST_OP_registry_set, {"role"}},
    {PS_TRUST_OP_registry_transfer, {"from"}},
    {PS_TRUST_OP_checkpoint_create, {"tables", "job", "since"}},
    {PS_TRUST_OP_checkpoint_restore, {"table", "as", "job", "partitions", "replicas", "ack"}},
    {PS_TRUST_OP_node_drain, {"stay"}},
    {PS_TRUST_OP_auth_invite, {"role", "tables", "jobs", "key", "ttl_s"}},
    {PS_TRUST_OP_auth_accept, {"key"}},
    {PS_TRUST_OP_node_invite, {"key", "ttl_s"}},
    {PS_TRUST_OP_node_join, {"key"}},
    {PS_TRUST_OP_node_remove, {"force", "last"}},
};

/* A part of a backup is asked for by the number of the backup. */
static bool is_next_piece(const ps_control_request_t *request)
{
    return request->op->trust == PS_TRUST_OP_cluster_backup && ps_doc_has(request->doc, "number");
}

/* It may have changed something. */
static bool is_change(const ps_control_request_t *request)
{
    return request->op != NULL && ps_need_of_op(request->op->trust)->is_noted &&
           !is_next_piece(request) && !request->was_dry &&
           (request->op->trust != PS_TRUST_OP_table_open || request->made != 0) &&
           (request->op->trust != PS_TRUST_OP_node_join || request->lets_in);
}

/* ---- what a caller has written, as it is shown ---- */

/* Appends it, cut after `max` bytes of all, at a character. Control characters, which JSON makes
 * six of, become '?'. */
static void show(char ret[SHOWN_SIZE], const char *text, size_t max)
{
    size_t n = strlen(ret);
    size_t left = n < max ? max - n : 0;
    size_t take = strnlen(text, left + 1);

    if (take > left) {
        for (take = left; take > 0 && ((unsigned char)text[take] & 0xC0) == 0x80; take--) {
        }
        left = 0;
    } else {
        left = 1;
    }
    for (size_t i = 0; i < take; i++) {
        ret[n++] = (char)(iscntrl((unsigned char)text[i]) ? '?' : text[i]);
    }
    (void)snprintf(ret + n, SHOWN_SIZE - n, "%s", left == 0 ? "…" : "");
}

static void show_item(char ret[SHOWN_SIZE], const ps_doc_t *array, size_t i, size_t max)
{
    const char *text = NULL;
    uint64_t number = 0;
    char digits[24] = "?";

    if (ps_doc_at_text(array, i, PS_DOC_BYTES_MAX, &text, NULL) == PSD_OK) {
        show(ret, text, max);
        return;
    }
    if (ps_doc_at_u64(array, i, &number, NULL) == PSD_OK) {
        (void)snprintf(digits, sizeof digits, "%" PRIu64, number);
    }
    show(ret, digits, max);
}

/* Texts, numbers, truths, and what an array has of them; "?": anything else. */
static void show_value(char ret[SHOWN_SIZE], const ps_doc_t *doc, const char *key, size_t max)
{
    const ps_doc_t *array = NULL;
    const char *text = NULL;
    char digits[24] = "?";
    int64_t number = 0;
    bool truth = false;

    ret[0] = '\0';
    if (ps_doc_get_text(doc, key, PS_DOC_BYTES_MAX, &text, NULL) == PSD_OK) {
        show(ret, text, max);
        return;
    }
    if (ps_doc_get_array(doc, key, PS_DOC_BYTES_MAX, &array, NULL) == PSD_OK) {
        for (size_t i = 0; i < ps_doc_count(array) && strlen(ret) <= max; i++) {
            show(ret, i > 0 ? "," : "", max);
            show_item(ret, array, i, max);
        }
        return;
    }
    if (ps_doc_get_bool(doc, key, &truth, NULL) == PSD_OK) {
        (void)snprintf(digits, sizeof digits, "%s", truth ? "true" : "false");
    } else if (ps_doc_get_i64(doc, key, INT64_MIN, INT64_MAX, &number, NULL) == PSD_OK) {
        (void)snprintf(digits, sizeof digits, "%" PRId64, number);
    }
    show(ret, digits, max);
}

static const char *text_of(const ps_doc_t *doc, const char *key)
{
    const char *text = NULL;

    return doc != NULL && ps_doc_get_text(doc, key, PS_DOC_BYTES_MAX, &text, NULL) == PSD_OK ? text
                                                                                             : NULL;
}

/* What the request is about: as it says, the job whose number it has or, for a key, its owner. */
static const char *name_of(const ps_control_t *self, const ps_control_request_t *request,
                           ps_scope_t scope, const char *who)
{
    static const char *const KEYS[] = {"name", "job", "key", "from"};
    const ps_doc_t *doc = request->doc;
    const ps_doc_t *spec = NULL;
    const ps_job_t *job = NULL;
    const char *name = NULL;

    if (scope == PS_SCOPE_SPEC) {
        return ps_doc_get_object(doc, "spec", &spec, NULL) == PSD_OK ? text_of(spec, "name") : NULL;
    }
    if (scope == PS_SCOPE_JOB && ps_control_find_job(self, doc, &job, NULL) == PSD_OK) {
        return job->name;
    }
    if (request->op->trust == PS_TRUST_OP_auth_rotate) { /* its key is a detail */
        name = text_of(doc, "name");
        return name == NULL ? who : name;
    }
    for (size_t i = 0; name == NULL && i < sizeof KEYS / sizeof *KEYS; i++) {
        name = text_of(doc, KEYS[i]);
    }
    return name;
}

static const char *const *details_of(ps_trust_op_t op)
{
    for (size_t i = 0; i < sizeof DETAILS / sizeof *DETAILS; i++) {
        if (DETAILS[i].op == op) {
            return DETAILS[i].keys;
        }
    }
    return NULL;
}

/* What else it asks for, in `left` bytes and a little more. */
static size_t add_details(const ps_control_t *self, const ps_control_request_t *request,
                          size_t left, shown_t *shown, ps_audit_pair_t pairs[PS_AUDIT_PAIRS_MAX])
{
    const ps_invite_t *invite = ps_invites_find(&self->invites, request->caller.key);
    const char *const *keys = details_of(request->op->trust);
    size_t n = 0;

    for (size_t i = 0; keys != NULL && i < PS_AUDIT_PAIRS_MAX && keys[i] != NULL; i++) {
        if (ps_doc_has(request->doc, keys[i])) {
            size_t size = 0;

            show_value(shown->details[n], request->doc, keys[i],
                       left < DETAIL_BYTES ? left : DETAIL_BYTES);
            size = strlen(shown->details[n]);
            left -= size < left ? size : left;
            pairs[n] = (ps_audit_pair_t){.key = keys[i], .text = shown->details[n]};
            n++;
        }
    }
    if ((request->op->trust == PS_TRUST_OP_auth_accept ||
         request->op->trust == PS_TRUST_OP_node_join) &&
        invite != NULL) { /* nobody says it */
        pairs[n++] = (ps_audit_pair_t){.key = "invited_by", .text = invite->by};
    }
    return n;
}

void ps_control_note_who(const ps_control_t *self, ps_control_request_t *request)
{
    const ps_principal_t *who = ps_control_principal(self, &request->caller);

    request->is_judged = true;
    request->who_id = who == NULL ? 0 : who->id;
    (void)snprintf(request->who, sizeof request->who, "%s", who == NULL ? "" : who->name);
}

static ps_audit_record_t record_of(const ps_control_t *self, const ps_control_request_t *request)
{
    const ps_principal_t *who = NULL;

    if (request->is_judged) {
        return ps_audit_record_of(&request->caller, request->who_id == 0 ? NULL : request->who,
                                  request->who_id);
    }
    who = ps_control_principal(self, &request->caller);
    return ps_audit_record_of(&request->caller, who == NULL ? NULL : who->name,
                              who == NULL ? 0 : who->id);
}

/* What is asked for. */
static void fill(const ps_control_t *self, const ps_control_request_t *request, psd_status_t status,
                 shown_t *shown, ps_audit_record_t *record)
{
    const ps_need_t *need = ps_need_of_op(request->op->trust);
    const bool is_open = request->op->trust == PS_TRUST_OP_table_open && request->made != 0;
    const bool is_vague = record->who == NULL && status != PSD_OK;
    const char *name = name_of(self, request, need->scope, record->who);

    record->op = need->kind;
    record->verb = ps_verb_word(is_open ? PS_VERB_CREATE : need->verb);
    record->object = ps_object_word(need->object);
    if (name != NULL) {
        shown->name[0] = '\0';
        show(shown->name, name, is_vague ? STRANGER_BYTES : NAME_BYTES);
        record->name = shown->name;
    }
    if (need->is_noted && !is_vague) {
        record->n_pairs =
            add_details(self, request, status == PSD_OK ? DETAILS_BYTES : FAILED_DETAILS_BYTES,
                        shown, record->pairs);
    }
}

void ps_control_note(const ps_control_t *self, const ps_control_request_t *request,
                     psd_status_t status)
{
    ps_audit_record_t record;
    shown_t shown;

    if (self->is.audit == NULL || request->silent ||
        (status != PSD_DENIED && !is_change(request))) {
        return;
    }
    record = record_of(self, request);
    if (request->op != NULL) {
        fill(self, request, status, &shown, &record);
    }
    record.result = status;
    record.has_changed = request->made != 0 && request->outcome.kind == 0; /* a table, now */
    record.session = request->waits.session;
    record.request = request->waits.id;
    ps_audit_note(self->is.audit, &record);
}
