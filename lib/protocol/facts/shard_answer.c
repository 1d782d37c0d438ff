/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of shards as values. */
#include "protocol/facts/shard_answer.h"

#include <stdlib.h>

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

/* ---- finding ---- */

static int order(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int order_partitions(const void *a, const void *b)
{
    const ps_partition_info_t *one = a;
    const ps_partition_info_t *other = b;
    int by_table = order(one->table, other->table);

    return by_table != 0 ? by_table : order(one->partition, other->partition);
}

static int order_lags(const void *a, const void *b)
{
    const ps_lag_info_t *one = a;
    const ps_lag_info_t *other = b;
    int by = order(one->table, other->table);

    if (by == 0) {
        by = order(one->partition, other->partition);
    }
    if (by == 0) {
        by = order(one->incarnation, other->incarnation);
    }
    return by != 0 ? by : order(one->shard, other->shard);
}

void ps_answers_sort(ps_answers_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_shard_answer_t *answer = &self->at[i];

        if (answer->n_partitions > 1) {
            qsort(answer->partitions, answer->n_partitions, sizeof *answer->partitions,
                  order_partitions);
        }
        if (answer->n_lags > 1) {
            qsort(answer->lags, answer->n_lags, sizeof *answer->lags, order_lags);
        }
    }
}

const ps_partition_info_t *ps_answers_partition(const ps_answers_t *self, uint64_t incarnation,
                                                uint32_t shard, uint32_t table, uint32_t partition)
{
    const ps_partition_info_t key = {.table = table, .partition = partition};

    for (size_t i = 0; i < self->n; i++) {
        const ps_shard_answer_t *answer = &self->at[i];

        if (answer->incarnation == incarnation && answer->shard == shard) {
            return answer->n_partitions == 0
                       ? NULL
                       : bsearch(&key, answer->partitions, answer->n_partitions, sizeof key,
                                 order_partitions);
        }
    }
    return NULL;
}

const ps_lag_info_t *ps_answers_lag(const ps_answers_t *self, const ps_lag_info_t *of)
{
    const ps_lag_info_t *found = NULL;

    for (size_t i = 0; found == NULL && i < self->n; i++) {
        const ps_shard_answer_t *answer = &self->at[i];

        if (answer->n_lags > 0) {
            found = bsearch(of, answer->lags, answer->n_lags, sizeof *of, order_lags);
        }
    }
    return found;
}
