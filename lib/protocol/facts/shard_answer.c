/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of shards as values. */
#include "protocol/facts/shard_answer.h"

#include <string.h>

#include "base/alloc.h"

void ps_shard_answer_done(ps_shard_answer_t *self)
{
    ps_free(self->partitions);
    ps_free(self->sizes);
    ps_free(self->lags);
    ps_free(self->waiting);
    ps_free(self->clocks);
    ps_buffer_done(&self->words);
    *self = (ps_shard_answer_t){0};
}

void ps_answers_done(ps_answers_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_shard_answer_done(&self->at[i]);
    }
    ps_free(self->at);
    *self = (ps_answers_t){0};
}

bool ps_answers_join(ps_answers_t *self, ps_answers_t *from)
{
    size_t capacity = self->n;

    if (from->n == 0) {
        return true;
    }
    if (!ps_grow(&self->at, &capacity, self->n + from->n, sizeof *self->at)) {
        return false;
    }
    memcpy(&self->at[self->n], from->at, from->n * sizeof *from->at);
    self->n += from->n;
    ps_free(from->at);
    *from = (ps_answers_t){0};
    return true;
}

static void turn(uint64_t *ms, uint64_t now_ms)
{
    *ms = *ms < now_ms ? now_ms - *ms : 0;
}

void ps_answers_turn(ps_answers_t *self, uint64_t now_ms)
{
    for (size_t i = 0; i < self->n; i++) {
        for (size_t k = 0; k < self->at[i].n_lags; k++) {
            turn(&self->at[i].lags[k].level_ms, now_ms);
        }
        for (size_t k = 0; k < self->at[i].n_waiting; k++) {
            turn(&self->at[i].waiting[k].since_ms, now_ms);
        }
    }
}
