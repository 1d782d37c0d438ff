/* SPDX-License-Identifier: Apache-2.0 */
/* Who may what, as the registry says: a node asks for the principals with each heartbeat, and
 * gets them when they have changed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/nodes/member_inner.h"
#include "wire/messages/reply.h"

#define PRINCIPALS_MAX 4096 /* more than a registry has */
#define WORD_MAX 31
#define DENIED_AGAIN_MS 10000 /* a node that was denied asks no more often */

/* {"v":1,"id":…,"op":"node_rights","epoch":…}: the answer has them when that is another one. */
static bool print_question(ps_member_t *self, ps_buffer_t *text)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();

    return doc != NULL && ps_doc_set_u64(doc, "v", 1) &&
           ps_doc_set_u64(doc, "id", ++self->last_id) &&
           ps_doc_set_text(doc, "op", "node_rights") &&
           ps_doc_set_u64(doc, "epoch", self->rights_heard ? ps_rights_epoch(self->rights) : 0) &&
           ps_doc_print(doc, text);
}

void ps_member_ask_rights(ps_member_t *self)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    uint64_t now_ms = ps_now_ms();

    if (self->rights == NULL || self->link == NULL || now_ms < self->rights_ms) {
        return;
    }
    self->rights_ms = now_ms + self->heartbeat_ms;
    (void)ps_socket_denial(self->link); /* reads what a watched one has noted */
    if (print_question(self, &text)) {  /* it is asked again anyhow */
        (void)!ps_socket_send_text(self->link, 0,
                                   (ps_bytes_t){.data = text.data, .size = text.size}, NULL);
    }
}

/* ---- the answer ---- */

static psd_status_t copy_word(const ps_doc_t *doc, const char *key, char ret[PS_NAME_MAX + 1],
                              psd_error_t *err)
{
    const char *text = NULL;
    psd_status_t rc = ps_doc_get_text(doc, key, PS_NAME_MAX, &text, err);

    if (rc == PSD_OK) {
        (void)snprintf(ret, PS_NAME_MAX + 1, "%s", text);
    }
    return rc;
}

static psd_status_t read_rules(const ps_doc_t *doc, ps_principal_t *principal, psd_error_t *err)
{
    const ps_doc_t *rules = NULL;
    psd_status_t rc = ps_doc_get_array(doc, "rules", PS_RULES_MAX, &rules, err);

    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(rules); i++) {
        ps_rule_t *rule = &principal->rules[i];
        const ps_doc_t *item = NULL;
        const char *word = NULL;

        rc = ps_doc_at_object(rules, i, &item, err);
        if (rc == PSD_OK) {
            rc = ps_doc_get_text(item, "role", WORD_MAX, &word, err);
        }
        if (rc == PSD_OK && !ps_role_of_word(word, &rule->role)) {
            rc = psd_error_set(err, PSD_PROTO, "role \"%s\"", word);
        }
        if (rc == PSD_OK) {
            rc = copy_word(item, "tables", rule->tables, err);
        }
        if (rc == PSD_OK) {
            rc = copy_word(item, "jobs", rule->jobs, err);
        }
        principal->n_rules += rc == PSD_OK ? 1 : 0;
    }
    return rc;
}

static psd_status_t read_principal(const ps_doc_t *doc, ps_principal_t *ret, psd_error_t *err)
{
    const char *text = NULL;
    uint64_t uid = PS_NO_UID;
    psd_status_t rc = copy_word(doc, "name", ret->name, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text(doc, "state", WORD_MAX, &text, err);
    }
    if (rc == PSD_OK) {
        ret->denied = strcmp(text, "allowed") != 0;
    }
    /* null: it has none; one of the two it has, as ps_principal_check sees to */
    if (ps_doc_get_text(doc, "key", PS_PUBLIC_KEY_SIZE, &text, NULL) == PSD_OK) {
        (void)snprintf(ret->key, sizeof ret->key, "%s", text);
    }
    if (ps_doc_get_text(doc, "old_key", PS_PUBLIC_KEY_SIZE, &text, NULL) == PSD_OK &&
        ps_doc_get_u64(doc, "old_until_unix_ms", 1, INT64_MAX, &ret->old_until_unix_ms, NULL) ==
            PSD_OK) {
        (void)snprintf(ret->old_key, sizeof ret->old_key, "%s", text);
    }
    if (ps_doc_get_u64(doc, "uid", 0, PS_NO_UID, &uid, NULL) != PSD_OK) {
        uid = PS_NO_UID;
    }
    ret->uid = (uint32_t)uid;
    if (rc == PSD_OK) {
        rc = read_rules(doc, ret, err);
    }
    return rc == PSD_OK ? ps_principal_check(ret, err) : rc;
}

/* One that this build cannot read, with a role of a newer one, say, may nothing here; the others
 * count. */
static void read_all(const ps_doc_t *array, ps_principal_t *principals, psd_error_t *err)
{
    for (size_t i = 0; i < ps_doc_count(array); i++) {
        const ps_doc_t *item = NULL;
        psd_status_t rc = PSD_OK;

        principals[i].uid = PS_NO_UID;
        rc = ps_doc_at_object(array, i, &item, err);
        if (rc == PSD_OK) {
            rc = read_principal(item, &principals[i], err);
        }
        if (rc != PSD_OK) {
            char quoted[512];

            ps_log(PS_LOG_WARN, "principal_not_read",
                   "name=%s reason=%s hint=\"it is denied at this node\"", principals[i].name,
                   ps_log_quote(psd_error_text(err), quoted, sizeof quoted));
            psd_error_clear(err);
            principals[i].denied = true;
            principals[i].n_rules = 0;
        }
    }
}

static psd_status_t take(ps_member_t *self, ps_bytes_t text, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    PSD_AUTO(ps_free_at) ps_principal_t *principals = NULL;
    const ps_doc_t *array = NULL;
    uint64_t epoch = 0;
    psd_status_t rc = ps_doc_parse(text, &doc, err);

    if (rc == PSD_OK) {
        rc = ps_reply_status(doc, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "epoch", 1, UINT64_MAX, &epoch, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_doc_has(doc, "principals")) { /* it has those already */
        return PSD_OK;
    }
    rc = ps_doc_get_array(doc, "principals", PRINCIPALS_MAX, &array, err);
    if (rc != PSD_OK) {
        return rc;
    }
    principals = ps_alloc(ps_doc_count(array) + 1, sizeof *principals);
    if (principals == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for principals");
    }
    read_all(array, principals, err);
    if (!ps_rights_set(self->rights, principals, ps_doc_count(array), epoch)) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for principals");
    }
    self->rights_heard = rc == PSD_OK;
    return rc;
}

void ps_member_take_rights(ps_member_t *self, ps_bytes_t text)
{
    psd_status_t rc = take(self, text, self->err);
    bool is_denied = rc != PSD_OK && rc != PSD_NOT_LEADER;

    if (is_denied && !self->rights_denied) {
        char quoted[512];

        ps_log(PS_LOG_WARN, "rights_not_heard", "registry=%s status=%s reason=%s", self->registry,
               psd_status_name(rc), ps_log_quote(psd_error_text(self->err), quoted, sizeof quoted));
    }
    self->is_shut_out = rc == PSD_DENIED || (self->is_shut_out && rc != PSD_OK);
    if (rc == PSD_DENIED) {
        self->rights_ms = ps_now_ms() + DENIED_AGAIN_MS;
        if (ps_rights_epoch(self->rights) != 0 && ps_rights_set(self->rights, NULL, 0, 0)) {
            self->rights_heard = false; /* this node was denied: it lets nobody in */
        }
    }
    self->rights_denied = is_denied;
    psd_error_clear(self->err);
}

bool ps_member_is_shut_out(const ps_member_t *self)
{
    return self->is_shut_out;
}
