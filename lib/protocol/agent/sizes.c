/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of partitions, and the sizes last sent to the registry. */
#include "protocol/agent/sizes.h"

#include "base/alloc.h"

#define SWEEP_MAX 256

typedef struct size_entry {
    uint64_t bytes;
    uint64_t told;    /* bytes */
    uint64_t told_ms; /* 0: never */
    uint64_t looked;  /* when it was last seen */
} size_entry_t;

static uint64_t key_of(uint32_t table, uint32_t partition)
{
    return (uint64_t)table << 32 | partition;
}

void ps_sizes_done(ps_sizes_t *self)
{
    size_t at = 0;
    uint64_t key = 0;
    void *value = NULL;

    while (ps_map_next(&self->by_partition, &at, &key, &value)) {
        ps_free(value);
    }
    ps_map_done(&self->by_partition);
    *self = (ps_sizes_t){0};
}

static void learn_one(ps_sizes_t *self, const ps_size_info_t *info)
{
    uint64_t key = key_of(info->table, info->partition);
    size_entry_t *entry = ps_map_get(&self->by_partition, key);

    if (entry == NULL) {
        entry = ps_alloc(1, sizeof *entry);
        if (entry == NULL || !ps_map_put(&self->by_partition, key, entry)) {
            ps_free(entry);
            return;
        }
    }
    entry->bytes = info->bytes;
    entry->looked = self->looked;
}

/* Each removal may move other entries, so the walk starts again. What it
 * leaves goes the next time; that does no harm. */
static void sweep(ps_sizes_t *self)
{
    bool found = true;

    for (int i = 0; found && i < SWEEP_MAX; i++) {
        size_t at = 0;
        uint64_t key = 0;
        void *value = NULL;

        found = false;
        while (!found && ps_map_next(&self->by_partition, &at, &key, &value)) {
            found = ((size_entry_t *)value)->looked != self->looked;
        }
        if (found) {
            ps_free(ps_map_remove(&self->by_partition, key));
        }
    }
}

void ps_sizes_learn(ps_sizes_t *self, const ps_answers_t *answers)
{
    size_t n = 0;

    self->looked++;
    for (size_t i = 0; i < answers->n; i++) {
        const ps_shard_answer_t *answer = &answers->at[i];

        for (size_t k = 0; k < answer->n_sizes; k++) {
            learn_one(self, &answer->sizes[k]);
        }
        n += answer->n_sizes;
    }
    if (self->by_partition.count > n) {
        sweep(self);
    }
}

void ps_sizes_forget(ps_sizes_t *self)
{
    size_t at = 0;
    uint64_t key = 0;
    void *value = NULL;

    while (ps_map_next(&self->by_partition, &at, &key, &value)) {
        ((size_entry_t *)value)->told_ms = 0;
    }
}

/* Whether to send it: a change of a sixteenth at once, a smaller one after a while. */
static bool is_due(const size_entry_t *entry, uint64_t now_ms)
{
    uint64_t by =
        entry->bytes > entry->told ? entry->bytes - entry->told : entry->told - entry->bytes;

    return entry->told_ms == 0 || by > entry->told / 16 ||
           (by > 0 && now_ms - entry->told_ms >= PS_SIZES_SETTLE_MS);
}

size_t ps_sizes_take_due(ps_sizes_t *self, uint64_t now_ms, ps_size_info_t ret_due[PS_SIZES_MAX])
{
    size_t left = self->by_partition.count;
    size_t n = 0;

    /* One round from where the last beat ended, so that every partition gets its turn. */
    for (; left > 0 && n < PS_SIZES_MAX; left--) {
        uint64_t key = 0;
        void *value = NULL;
        size_entry_t *entry = NULL;

        if (!ps_map_next(&self->by_partition, &self->next, &key, &value)) {
            self->next = 0;
            (void)ps_map_next(&self->by_partition, &self->next, &key, &value);
        }
        entry = value;
        if (is_due(entry, now_ms)) {
            entry->told = entry->bytes;
            entry->told_ms = now_ms;
            ret_due[n++] = (ps_size_info_t){
                .table = (uint32_t)(key >> 32), .partition = (uint32_t)key, .bytes = entry->bytes};
        }
    }
    return n;
}
