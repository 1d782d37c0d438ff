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

void ps_invites_take(ps_invites_t *self, const ps_invite_t *invite, const char *key)
{
    ps_invite_t *item = &self->items[invite - self->items];

    (void)snprintf(item->taken, sizeof item->taken, "%s", key);
}

bool ps_invite_is_node(const ps_invite_t *self)
{
    return self->rule.role == PS_ROLE_NODE;
}

bool ps_invite_equal(const ps_invite_t *self, const ps_invite_t *other)
{
    return strcmp(self->key, other->key) == 0 && strcmp(self->name, other->name) == 0 &&
           strcmp(self->by, other->by) == 0 && self->rule.role == other->rule.role &&
           strcmp(self->rule.tables, other->rule.tables) == 0 &&
           strcmp(self->rule.jobs, other->rule.jobs) == 0;
}

bool ps_invite_counts(const ps_invite_t *self, uint64_t now_ms)
{
    return self->key[0] != '\0' && self->taken[0] == '\0' && now_ms < self->until_ms;
}

/* It is for that name, and nobody has used it. */
static bool is_open_for(const ps_invite_t *self, const char *name, bool is_node)
{
    return strcmp(self->name, name) == 0 && ps_invite_is_node(self) == is_node &&
           self->taken[0] == '\0';
}

bool ps_invites_drop(ps_invites_t *self, const char *name, bool is_node)
{
    bool found = false;

    for (size_t i = 0; i < PS_INVITES_MAX; i++) {
        ps_invite_t *item = &self->items[i];

        if (is_open_for(item, name, is_node)) {
            item->until_ms = 0;
            found = true;
        }
    }
    return found;
}

void ps_invites_drop_by(ps_invites_t *self, const char *by)
{
    for (size_t i = 0; i < PS_INVITES_MAX; i++) {
        ps_invite_t *item = &self->items[i];

        if (strcmp(item->by, by) == 0 && item->taken[0] == '\0') {
            item->until_ms = 0;
        }
    }
}

/* From the oldest on. NULL: all count. */
static ps_invite_t *next_room(ps_invites_t *self, uint64_t now_ms)
{
    for (uint64_t i = 0; i < PS_INVITES_MAX; i++) {
        ps_invite_t *item = &self->items[(self->n + i) % PS_INVITES_MAX];

        if (!ps_invite_counts(item, now_ms)) {
            self->n += i + 1;
            return item;
        }
    }
    return NULL;
}

bool ps_invites_has_room(const ps_invites_t *self, const ps_invite_t *invite, uint64_t now_ms)
{
    bool found = false;

    for (size_t i = 0; !found && i < PS_INVITES_MAX; i++) {
        const ps_invite_t *item = &self->items[i];

        found = !ps_invite_counts(item, now_ms) ||
                is_open_for(item, invite->name, ps_invite_is_node(invite));
    }
    return found;
}

bool ps_invites_add(ps_invites_t *self, const ps_invite_t *invite, uint64_t now_ms)
{
    ps_invite_t *item = NULL;

    if (ps_invites_find(self, invite->key) != NULL) {
        return true;
    }
    (void)ps_invites_drop(self, invite->name, ps_invite_is_node(invite));
    item = next_room(self, now_ms);
    if (item == NULL) {
        return false;
    }
    *item = *invite;
    return true;
}
