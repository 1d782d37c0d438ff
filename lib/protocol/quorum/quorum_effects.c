/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/quorum/quorum_effects.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

void ps_quorum_effects_done(ps_quorum_effects_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_buffer_done(&self->bytes[i]);
    }
    ps_free(self->at);
    ps_free(self->bytes);
    ps_free(self->ops);
    *self = (ps_quorum_effects_t){0};
}

void ps_quorum_effects_clear(ps_quorum_effects_t *self)
{
    assert(self->taken == self->n); /* the caller took them all */
    for (size_t i = 0; i < self->n; i++) {
        ps_buffer_done(&self->bytes[i]);
    }
    self->n = 0;
    self->taken = 0;
}

bool ps_quorum_effects_add(ps_quorum_effects_t *self, const ps_quorum_effect_t *effect,
                           ps_buffer_t *bytes)
{
    if (!ps_grow(&self->at, &self->capacity, self->n + 1, sizeof *self->at) ||
        !ps_grow(&self->bytes, &self->bytes_capacity, self->n + 1, sizeof *self->bytes)) {
        return false;
    }
    self->at[self->n] = *effect;
    self->bytes[self->n] = (ps_buffer_t){0};
    if (bytes != NULL) {
        self->bytes[self->n] = *bytes;
        self->at[self->n].bytes = (ps_bytes_t){bytes->data, bytes->size};
        *bytes = (ps_buffer_t){0};
    }
    self->n++;
    return true;
}

bool ps_quorum_effects_add_op(ps_quorum_effects_t *self, ps_quorum_effect_t *effect)
{
    uint64_t last = effect->index;

    if (!ps_grow(&self->ops, &self->ops_capacity, self->n_ops + 1, sizeof *self->ops)) {
        return false;
    }
    if (effect->kind == PS_QUORUM_EXTEND) {
        last += effect->n_entries - 1;
    } else if (effect->kind == PS_QUORUM_CUT) {
        last--;
        for (size_t i = 0; i < self->n_ops; i++) {
            self->ops[i].last = self->ops[i].last < last ? self->ops[i].last : last;
        }
    } else {
        self->n_ops = 0;
    }
    effect->op = ++self->op;
    self->ops[self->n_ops++] = (ps_quorum_op_t){.op = effect->op, .last = last};
    return ps_quorum_effects_add(self, effect, NULL);
}

uint64_t ps_quorum_effects_flushed(ps_quorum_effects_t *self, uint64_t op)
{
    uint64_t last = 0;
    size_t n = 0;

    while (n < self->n_ops && self->ops[n].op <= op) {
        last = self->ops[n++].last;
    }
    self->n_ops -= n;
    if (n > 0) {
        memmove(self->ops, self->ops + n, self->n_ops * sizeof *self->ops);
    }
    return last;
}
