/* SPDX-License-Identifier: Apache-2.0 */
/* Names for nodes without a configured name: one host may run several. */
#include "server/state/control_inner.h"

#include <stdio.h>
#include <string.h>

#define TRIES_MAX 10000
#define SUFFIX_SIZE 8

/* A node that joins stores its name before it announces itself: until then
 * no other node gets it. */
static bool is_promised(const ps_control_t *self, const char *name, const ps_id_t *secret)
{
    uint64_t now_ms = ps_now_ms();

    for (size_t i = 0; i < PS_PROMISED_MAX; i++) {
        const ps_promised_t *promised = &self->promised[i];

        if (now_ms < promised->until_ms && strcmp(promised->name, name) == 0 &&
            !ps_id_equal(&promised->secret, secret)) {
            return true;
        }
    }
    return false;
}

static bool is_free(const ps_control_t *self, const char *name, const ps_id_t *secret)
{
    const ps_node_t *node = ps_registry_node(self->is.registry, name);

    return strcmp(name, self->is.node) != 0 &&
           (node == NULL || (!ps_id_is_zero(&node->secret) && ps_node_knows(node, secret))) &&
           !is_promised(self, name, secret);
}

static void promise(ps_control_t *self, const char *name, const ps_id_t *secret)
{
    ps_promised_t *promised = &self->promised[self->n_promised++ % PS_PROMISED_MAX];

    (void)snprintf(promised->name, sizeof promised->name, "%s", name);
    promised->secret = *secret;
    promised->until_ms = ps_now_ms() + PS_PROMISED_MS;
}

psd_status_t ps_control_give_name(ps_control_t *self, const char *wanted, const ps_id_t *secret,
                                  char ret_name[PS_NAME_MAX + 1], psd_error_t *err)
{
    for (unsigned n = 1; n <= TRIES_MAX; n++) {
        char suffix[SUFFIX_SIZE] = "";

        if (n > 1) {
            (void)snprintf(suffix, sizeof suffix, "-%u", n);
        }
        (void)snprintf(ret_name, PS_NAME_MAX + 1, "%.*s%s", (int)(PS_NAME_MAX - strlen(suffix)),
                       wanted, suffix);
        if (is_free(self, ret_name, secret)) {
            promise(self, ret_name, secret);
            return PSD_OK;
        }
    }
    return psd_error_set(err, PSD_LIMIT,
                         "no name like \"%s\" is free for another node; set node.name", wanted);
}
