/* SPDX-License-Identifier: Apache-2.0 */
/* Which words of a registry count, and which tables a node may drop. */
#include "protocol/agent/heard.h"

#include <string.h>

#include "base/alloc.h"

bool ps_moment_is_before(const ps_moment_t *self, const ps_moment_t *other)
{
    return self->term < other->term || (self->term == other->term && self->index < other->index);
}

void ps_heard_done(ps_heard_t *self)
{
    ps_free(self->aside);
    *self = (ps_heard_t){0};
}

bool ps_heard_copy(const ps_heard_t *self, ps_heard_t *ret)
{
    *ret = *self;
    ret->aside = NULL;
    ret->aside_capacity = 0;
    if (self->n_aside == 0) {
        return true;
    }
    if (!ps_grow(&ret->aside, &ret->aside_capacity, self->n_aside, sizeof *ret->aside)) {
        *ret = (ps_heard_t){0};
        return false;
    }
    memcpy(ret->aside, self->aside, self->n_aside * sizeof *ret->aside);
    return true;
}

static bool has_left(const ps_heard_t *self, const ps_id_t *lineage)
{
    for (size_t i = 0; i < self->n_past; i++) {
        if (ps_id_equal(&self->past[i], lineage)) {
            return true;
        }
    }
    return false;
}

ps_heard_word_t ps_heard_judge(const ps_heard_t *self, const ps_moment_t *moment)
{
    const ps_moment_t *at = &self->at;

    if (!ps_id_equal(&at->lineage, &moment->lineage)) {
        return has_left(self, &moment->lineage) ? PS_HEARD_PAST : PS_HEARD_OTHER;
    }
    return ps_moment_is_before(moment, at) ? PS_HEARD_OLDER : PS_HEARD_NEWEST;
}

static void leave(ps_heard_t *self)
{
    if (ps_id_is_zero(&self->at.lineage)) {
        return;
    }
    if (self->n_past == PS_PAST_MAX) {
        self->n_past--;
        memmove(&self->past[0], &self->past[1], self->n_past * sizeof *self->past);
    }
    self->past[self->n_past++] = self->at.lineage;
}

void ps_heard_follow(ps_heard_t *self, const ps_moment_t *moment)
{
    if (!ps_id_equal(&self->at.lineage, &moment->lineage)) {
        leave(self);
    }
    self->at = *moment;
}

ps_table_fate_t ps_heard_fate(const ps_heard_t *self, ps_heard_word_t word, uint32_t last_table,
                              uint32_t table)
{
    return word == PS_HEARD_NEWEST && table <= last_table && !ps_heard_is_aside(self, table)
               ? PS_FATE_DROPPED
               : PS_FATE_ASIDE;
}

bool ps_heard_is_aside(const ps_heard_t *self, uint32_t table)
{
    for (size_t i = 0; i < self->n_aside; i++) {
        if (self->aside[i] == table) {
            return true;
        }
    }
    return false;
}

bool ps_heard_put_aside(ps_heard_t *self, uint32_t table)
{
    if (ps_heard_is_aside(self, table)) {
        return true;
    }
    if (!ps_grow(&self->aside, &self->aside_capacity, self->n_aside + 1, sizeof *self->aside)) {
        return false;
    }
    self->aside[self->n_aside++] = table;
    return true;
}

bool ps_heard_take_back(ps_heard_t *self, uint32_t table)
{
    for (size_t i = 0; i < self->n_aside; i++) {
        if (self->aside[i] == table) {
            self->n_aside--;
            memmove(&self->aside[i], &self->aside[i + 1],
                    (self->n_aside - i) * sizeof *self->aside);
            return true;
        }
    }
    return false;
}
