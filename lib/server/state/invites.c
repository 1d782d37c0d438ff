/* SPDX-License-Identifier: Apache-2.0 */
/* A ring, of which those that count stay; there are few. */
#include "server/state/invites.h"

#include <stdio.h>
#include <string.h>

const ps_invite_t *ps_invites_find(const ps_invites_t *self, const char *key)
{
    for (size_t i = 0; key[0] != '\0' && i < PS_INVITES_MAX; i++) {
        if (strcmp(self->items[i].key, key) == 0) {
            return &self->items[i];
        }
    }
    return NULL;
}

void ps_invites_take(ps_invites_t *self, const ps_invite_t *invite, const char *node_key)
{
    ps_invite_t *item = &self->items[invite - self->items];

    (void)snprintf(item->taken, sizeof item->taken, "%s", node_key);
}

void ps_invites_drop(ps_invites_t *self, const char *node)
{
    for (size_t i = 0; i < PS_INVITES_MAX; i++) {
        if (strcmp(self->items[i].node, node) == 0 && self->items[i].taken[0] == '\0') {
            self->items[i].until_ms = 0;
        }
    }
}

/* From the oldest on. NULL: all count. */
static ps_invite_t *next_room(ps_invites_t *self, uint64_t now_ms)
{
    for (uint64_t i = 0; i < PS_INVITES_MAX; i++) {
        ps_invite_t *item = &self->items[(self->n + i) % PS_INVITES_MAX];

        if (item->key[0] == '\0' || item->taken[0] != '\0' || item->until_ms <= now_ms) {
            self->n += i + 1;
            return item;
        }
    }
    return NULL;
}

bool ps_invites_add(ps_invites_t *self, const char *key, const char *node, uint64_t now_ms,
                    uint64_t until_ms)
{
    ps_invite_t *item = NULL;

    if (ps_invites_find(self, key) != NULL) {
        return true;
    }
    ps_invites_drop(self, node);
    item = next_room(self, now_ms);
    if (item == NULL) {
        return false;
    }
    *item = (ps_invite_t){.until_ms = until_ms};
    (void)snprintf(item->key, sizeof item->key, "%s", key);
    (void)snprintf(item->node, sizeof item->node, "%s", node);
    return true;
}
