/* SPDX-License-Identifier: Apache-2.0 */
/* What a node's files have lost, as reported to the registry. */
#include "server/nodes/node_damage.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

void ps_node_damage_done(ps_node_damage_t *self)
{
    ps_free(self->lost);
    *self = (ps_node_damage_t){0};
}

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory to report damage");
}

static size_t count_lost(const ps_shards_t *shards)
{
    size_t n = 0;

    for (uint32_t i = 0; i < ps_shards_n(shards); i++) {
        n += ps_shards_damage(shards, i)->n_lost;
    }
    return n;
}

/* Each range by itself; where they are too many, the shards as a whole. */
static psd_status_t gather_lost(ps_node_damage_t *self, const ps_shards_t *shards, psd_error_t *err)
{
    size_t n = count_lost(shards);
    bool fits = n <= PS_LOST_MAX;

    self->lost = ps_alloc(fits ? n + 1 : ps_shards_n(shards), sizeof *self->lost);
    if (self->lost == NULL) {
        return no_memory(err);
    }
    for (uint32_t i = 0; i < ps_shards_n(shards); i++) {
        const ps_damage_t *damage = ps_shards_damage(shards, i);

        if (fits && damage->n_lost > 0) {
            memcpy(self->lost + self->n_lost, damage->lost, damage->n_lost * sizeof *self->lost);
            self->n_lost += damage->n_lost;
        } else if (damage->n_lost > 0) {
            self->lost[self->n_lost++] = (ps_lost_t){.shard = i, .last = UINT32_MAX};
        }
    }
    return PSD_OK;
}

psd_status_t ps_node_damage_gather(ps_node_damage_t *self, const ps_shards_t *shards,
                                   psd_error_t *err)
{
    const char *first = NULL;
    size_t n = 0;

    for (uint32_t i = 0; i < ps_shards_n(shards); i++) {
        const ps_damage_t *damage = ps_shards_damage(shards, i);

        n += damage->n_texts;
        if (first == NULL && damage->n_texts > 0) {
            first = damage->texts[0];
        }
    }
    if (n == 1) {
        (void)snprintf(self->text, sizeof self->text, "%.460s", first);
    } else if (n > 1) {
        (void)snprintf(self->text, sizeof self->text, "%.460s (and %zu more)", first, n - 1);
    }
    return n == 0 ? PSD_OK : gather_lost(self, shards, err);
}

void ps_node_damage_fill(const ps_node_damage_t *self, ps_node_t *node)
{
    node->lost = self->lost;
    node->n_lost = self->n_lost;
    node->accepts_loss = self->accepted;
}

psd_status_t ps_node_damage_wrap(const ps_node_damage_t *self, psd_status_t rc, psd_error_t *err)
{
    return rc == PSD_DAMAGED && self->text[0] != '\0' ? psd_error_wrap(err, rc, "%s", self->text)
                                                      : rc;
}
