/* SPDX-License-Identifier: Apache-2.0 */
/* At security.level encrypt relays speak CURVE with each other. The registry hands each one's
 * public key out with the plan; it has it from the worker's own heartbeats, which are encrypted. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "client/relay/relay_inner.h"
#include "transport/sockets/curve.h"

static psd_status_t begin(ps_relay_thread_t *self, psd_error_t *err)
{
    psd_status_t rc = ps_key_pair_make("relay", &self->keys, err);

    if (rc == PSD_OK) {
        rc = ps_context_guard(self->context, err);
    }
    return rc == PSD_OK ? ps_context_admit(self->context, NULL, 0, err) : rc;
}

bool ps_relay_begin_keys(ps_relay_thread_t *self)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    char text[PS_TEXT_MAX + 1];

    self->has_keys = begin(self, why) == PSD_OK;
    if (!self->has_keys) {
        ps_log(PS_LOG_WARN, "overlay_off",
               "reason=%s hint=\"security.level is encrypt, and this worker's relay cannot: it "
               "pushes to the nodes\"",
               ps_log_quote(psd_error_text(why), text, sizeof text));
    }
    return self->has_keys;
}

bool ps_relay_place(const ps_relay_thread_t *self, char ret[PS_ENDPOINT_MAX + 1])
{
    const char *bound = ps_socket_endpoint(self->port, 0);

    if (self->has_keys) {
        return ps_curve_join(bound, self->keys.public_key, ret);
    }
    return (size_t)snprintf(ret, PS_ENDPOINT_MAX + 1, "%s", bound) <= PS_ENDPOINT_MAX;
}

/* The key that the plan names for a worker. false: none. */
static bool read_key(const ps_relay_member_t *member, ps_public_key_t *ret_key)
{
    char address[PS_ENDPOINT_MAX + 1];

    return ps_curve_split(member->relay, address, ret_key->text, NULL) == PSD_OK &&
           ret_key->text[0] != '\0';
}

void ps_relay_admit(const ps_relay_thread_t *self, const ps_relay_facts_t *facts)
{
    size_t n_members = facts == NULL ? 0 : facts->n_members;
    PSD_AUTO(ps_free_at) ps_public_key_t *keys = NULL;
    psd_status_t rc = PSD_OK;
    size_t n = 0;

    if (!self->has_keys) {
        return;
    }
    keys = n_members == 0 ? NULL : ps_alloc(n_members, sizeof *keys);
    for (size_t i = 0; keys != NULL && i < n_members; i++) {
        n += read_key(&facts->members[i], &keys[n]) ? 1 : 0;
    }
    rc = ps_context_admit(self->context, keys, n, NULL);
    (void)rc; /* nobody gets in then: workers that do not get in send to the nodes */
}

bool ps_relay_has_key(const ps_relay_thread_t *self, uint64_t conn, const ps_relay_member_t *member)
{
    ps_public_key_t key;
    ps_asker_t asker;

    return !self->has_keys ||
           (read_key(member, &key) && ps_socket_greeter(self->port, conn, &asker) &&
            strcmp(asker.key, key.text) == 0);
}
