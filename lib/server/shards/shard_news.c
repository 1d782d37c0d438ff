/* SPDX-License-Identifier: Apache-2.0 */
/* A list, and a letter that comes back. */
#include "server/shards/shard_news.h"

#include <string.h>

void ps_shard_news_add(ps_shard_news_t *self, const ps_report_t *report)
{
    if (self->n_kept < PS_SHARD_NEWS_KEPT) {
        self->kept[self->n_kept++] = *report;
    }
}

bool ps_shard_news_seal(ps_shard_news_t *self)
{
    uint32_t n = self->n_kept < PS_SHARD_NEWS_LETTER ? self->n_kept : PS_SHARD_NEWS_LETTER;

    if (self->n_kept == 0 || atomic_load_explicit(&self->is_away, memory_order_acquire)) {
        return false;
    }
    memcpy(self->letter, self->kept, n * sizeof *self->letter);
    self->n_letter = n;
    self->n_kept -= n;
    memmove(self->kept, self->kept + n, self->n_kept * sizeof *self->kept);
    atomic_store_explicit(&self->is_away, true, memory_order_release);
    return true;
}

void ps_shard_news_give_back(ps_shard_news_t *self)
{
    atomic_store_explicit(&self->is_away, false, memory_order_release);
}
