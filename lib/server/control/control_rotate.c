/* SPDX-License-Identifier: Apache-2.0 */
/* Another key for a principal, beside the one that it has: until when both count. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/quorum/replica.h"
#include "server/state/control_inner.h"

#define GRACE_MS UINT64_C(600000)         /* unless the request says otherwise */
#define GRACE_MAX_MS UINT64_C(2592000000) /* 30 days */
#define LOOK_MS 60000                     /* at least as often: the wall clock may be set */
#define AGAIN_MS 1000                     /* after a change that could not be made */
#define MS_IN_S 1000

/* ---- asked for ---- */

/* The principal that is named, which an admin may, or else who asks. */
static psd_status_t find(const ps_control_t *self, const ps_control_request_t *request,
                         const ps_principal_t **ret_principal, psd_error_t *err)
{
    const ps_principal_t *own = ps_control_principal(self, &request->caller);
    const char *name = NULL;
    psd_status_t rc = PSD_OK;

    if (ps_doc_has(request->doc, "name")) {
        rc = ps_doc_get_text(request->doc, "name", PS_NAME_MAX, &name, err);
    } else if (own == NULL) {
        rc = psd_error_set(err, PSD_INVALID,
                           "who asks is no principal; allowed: the name of the one that gets the "
                           "key, from an admin");
    }
    if (rc != PSD_OK || name == NULL || (own != NULL && strcmp(own->name, name) == 0)) {
        *ret_principal = own;
        return rc;
    }
    rc = ps_control_may_also(self, request, PS_VERB_CHANGE, PS_OBJECT_AUTH, NULL, err);
    return rc == PSD_OK ? ps_control_find_principal(self, request->doc, "name", ret_principal, err)
                        : rc;
}

/* Whoever has an older key only does not keep others from the newer one. */
static bool asks_by_old_key(const ps_control_request_t *request, const ps_principal_t *principal)
{
    return principal->old_key[0] != '\0' && strcmp(request->caller.key, principal->old_key) == 0;
}

static psd_status_t check(const ps_control_request_t *request, const ps_principal_t *principal,
                          uint64_t grace_ms, psd_error_t *err)
{
    const char *name = principal->name;
    uint64_t now_ms = ps_unix_ms();

    if (principal->denied) {
        return psd_error_set(err, PSD_DENIED, "%s is denied; an admin can allow it", name);
    }
    if (ps_principal_is_node(principal)) {
        return psd_error_set(err, PSD_UNSUPPORTED,
                             "%s is a node, and keys of nodes cannot be changed; remove the node, "
                             "and invite it with an empty data directory",
                             name);
    }
    if (principal->key[0] == '\0') {
        return psd_error_set(err, PSD_INVALID,
                             "%s has no key: it is known by its uid; pscli auth allow %s --role "
                             "ROLE --key KEY gives it one",
                             name, name);
    }
    if (asks_by_old_key(request, principal)) {
        return psd_error_set(err, PSD_DENIED, "that is the old key of %s: use the new one", name);
    }
    if (principal->old_key[0] != '\0' && grace_ms > 0) {
        uint64_t until_ms = principal->old_until_unix_ms;

        return psd_error_set(err, PSD_BUSY,
                             "%s has two keys for %" PRIu64 " s more: wait, or use --grace 0s, "
                             "with which the new key alone counts at once",
                             name, until_ms > now_ms ? (until_ms - now_ms) / MS_IN_S + 1 : 1);
    }
    return PSD_OK;
}

/* The key that it has already changes nothing, but the old key may end. */
static void change(ps_principal_t *next, const char *key, uint64_t grace_ms)
{
    bool is_same = strcmp(next->key, key) == 0;

    if (grace_ms == 0) {
        ps_principal_end_old_key(next);
    } else if (!is_same) {
        memcpy(next->old_key, next->key, sizeof next->old_key);
        next->old_until_unix_ms = ps_unix_ms() + grace_ms;
    }
    if (!is_same) {
        memset(next->key, 0, sizeof next->key);
        (void)snprintf(next->key, sizeof next->key, "%s", key);
    }
}

psd_status_t ps_control_auth_rotate(ps_control_t *self, ps_control_request_t *request,
                                    psd_error_t *err)
{
    const ps_principal_t *principal = NULL;
    ps_principal_t next;
    const char *key = NULL;
    uint64_t grace_ms = 0;
    psd_status_t rc = find(self, request, &principal, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text(request->doc, "key", PS_PUBLIC_KEY_SIZE, &key, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(request->doc, "grace_ms", 0, GRACE_MAX_MS, GRACE_MS, &grace_ms, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    next = *principal;
    if (request->outcome.kind != PS_COMMAND_PRINCIPAL) {
        if (strcmp(next.key, key) != 0) {
            rc = check(request, principal, grace_ms, err);
        }
        if (rc != PSD_OK) {
            return rc;
        }
        change(&next, key, grace_ms);
        rc = ps_control_put_principal(self, request, &next, err);
        self->old_keys_ms = 0;
    }
    return rc == PSD_OK ? ps_control_answer_principal(self, request, next.name, err) : rc;
}

/* ---- ended ---- */

static psd_status_t end_one(ps_control_t *self, const ps_principal_t *principal)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    ps_principal_t next = *principal; /* which a change may move */
    char quoted[512];
    psd_status_t rc = PSD_OK;

    ps_principal_end_old_key(&next);
    rc = ps_registry_plan_principal(self->is.registry, &next, ps_unix_ms(), &command, self->err);
    if (rc == PSD_OK) {
        rc = ps_control_commit(self, &command, PS_LOG_INFO, self->err);
    }
    if (rc != PSD_OK) {
        ps_log(PS_LOG_WARN, "old_key_not_ended", "principal=%s status=%s reason=%s hint=retrying",
               next.name, psd_status_name(rc),
               ps_log_quote(psd_error_text(self->err), quoted, sizeof quoted));
        psd_error_clear(self->err);
    }
    return rc;
}

/* When the next one is due, by this node's wall clock. */
static uint64_t next_ms(const ps_control_t *self, uint64_t now_ms, uint64_t unix_ms)
{
    uint64_t next_ms = UINT64_MAX;

    for (size_t i = 0; i < ps_registry_n_principals(self->is.registry); i++) {
        const ps_principal_t *principal = ps_registry_principal_at(self->is.registry, i);
        uint64_t until_ms = principal->old_until_unix_ms;
        uint64_t left_ms = until_ms > unix_ms ? until_ms - unix_ms : 0;

        if (principal->old_key[0] != '\0') {
            left_ms = left_ms < LOOK_MS ? left_ms : LOOK_MS;
            next_ms = now_ms + left_ms < next_ms ? now_ms + left_ms : next_ms;
        }
    }
    return next_ms;
}

void ps_control_end_old_keys(ps_control_t *self)
{
    const ps_principal_t *due = NULL;
    uint64_t now_ms = ps_now_ms();
    uint64_t unix_ms = ps_unix_ms();

    if (now_ms < self->old_keys_ms) {
        return;
    }
    while ((due = ps_registry_principal_overdue(self->is.registry, unix_ms)) != NULL) {
        if (end_one(self, due) != PSD_OK) {
            self->old_keys_ms = now_ms + AGAIN_MS;
            return;
        }
    }
    self->old_keys_ms = next_ms(self, now_ms, unix_ms);
}
