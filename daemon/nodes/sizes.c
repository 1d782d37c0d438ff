/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of partitions, and the sizes last sent to the registry. */
#include "daemon/nodes/sizes.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "protocol/placement/registry_decide.h"

#define N_SIZE 3 /* numbers of each */
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
    for (uint32_t i = 0; i < answers->n_calls; i++) {
        const ps_shard_call_t *call = answers->calls[i];

        for (size_t k = 0; k < call->n_sizes; k++) {
            learn_one(self, &call->sizes[k]);
        }
        n += call->n_sizes;
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

/* The array is made with the first one. */
static bool tell_one(uint64_t key, const size_entry_t *entry, ps_doc_t *doc, ps_doc_t **array)
{
    if (*array == NULL) {
        *array = ps_doc_add_array(doc, "sizes");
    }
    return *array != NULL && ps_doc_append_u64(*array, key >> 32) &&
           ps_doc_append_u64(*array, key & UINT32_MAX) && ps_doc_append_u64(*array, entry->bytes);
}

bool ps_sizes_tell(ps_sizes_t *self, uint64_t now_ms, ps_doc_t *doc)
{
    size_t left = self->by_partition.count;
    size_t n = 0;
    ps_doc_t *array = NULL;
    bool done = true;

    /* One round from where the last beat ended, so that every partition gets its turn. */
    for (; done && left > 0 && n < PS_SIZES_MAX; left--) {
        uint64_t key = 0;
        void *value = NULL;
        size_entry_t *entry = NULL;

        if (!ps_map_next(&self->by_partition, &self->next, &key, &value)) {
            self->next = 0;
            (void)ps_map_next(&self->by_partition, &self->next, &key, &value);
        }
        entry = value;
        if (!is_due(entry, now_ms)) {
            continue;
        }
        done = tell_one(key, entry, doc, &array);
        entry->told = entry->bytes;
        entry->told_ms = done ? now_ms : 0;
        n++;
    }
    return done;
}

psd_status_t ps_sizes_from_doc(const ps_doc_t *doc, uint64_t incarnation, ps_registry_t *registry,
                               psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    psd_status_t rc = ps_doc_get_array(doc, "sizes", PS_SIZES_MAX * N_SIZE, &array, err);

    if (rc == PSD_OK && ps_doc_count(array) % N_SIZE != 0) {
        rc = psd_error_set(err, PSD_PROTO, "sizes: %zu numbers; they come in threes",
                           ps_doc_count(array));
    }
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(array); i += N_SIZE) {
        uint64_t at[N_SIZE] = {0};

        for (size_t k = 0; rc == PSD_OK && k < N_SIZE; k++) {
            rc = ps_doc_at_u64(array, i + k, &at[k], err);
        }
        if (rc == PSD_OK && (at[0] > UINT32_MAX || at[1] > UINT32_MAX)) {
            rc = psd_error_set(err, PSD_INVALID,
                               "sizes: partition %" PRIu64 " of table %" PRIu64
                               "; allowed: below 2^32",
                               at[1], at[0]);
        }
        if (rc == PSD_OK) {
            /* false: its primary is elsewhere by now. */
            (void)ps_registry_set_bytes(registry, incarnation, (uint32_t)at[0], (uint32_t)at[1],
                                        at[2]);
        }
    }
    return rc;
}

void ps_sizes_learn_here(ps_registry_t *registry, uint64_t incarnation, const ps_answers_t *answers)
{
    for (uint32_t i = 0; i < answers->n_calls; i++) {
        const ps_shard_call_t *call = answers->calls[i];

        for (size_t k = 0; k < call->n_sizes; k++) {
            (void)ps_registry_set_bytes(registry, incarnation, call->sizes[k].table,
                                        call->sizes[k].partition, call->sizes[k].bytes);
        }
    }
}
