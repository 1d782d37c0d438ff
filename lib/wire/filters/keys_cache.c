/* SPDX-License-Identifier: Apache-2.0 */
/* Known lists of keys: a map by half of the name, and a list in order of use.
 */
#include "wire/filters/keys_cache.h"

#include <string.h>
#include <sys/queue.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/map.h"
#include "wire/filters/keys.h"

typedef struct entry {
    TAILQ_ENTRY(entry) by_use;
    ps_id_t hash;
    size_t size;        /* bytes of the list */
    ps_payload_t *list; /* held; NULL: only its name is known */
} entry_t;

struct ps_key_cache {
    ps_map_t entries;                       /* half of the name -> entry_t, owned */
    TAILQ_HEAD(entries_head, entry) by_use; /* the one used last comes first */
    size_t limit_bytes;
    size_t bytes; /* the cost of the entries; never above the limit */
};

/* Lists whose names agree in this half replace each other. */
static uint64_t half_of(const ps_id_t *hash)
{
    return ps_load_u64(hash->bytes);
}

ps_key_cache_t *ps_key_cache_new(size_t limit_bytes)
{
    ps_key_cache_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        TAILQ_INIT(&self->by_use);
        self->limit_bytes = limit_bytes;
    }
    return self;
}

static void drop_entry(ps_key_cache_t *self, entry_t *entry)
{
    (void)ps_map_remove(&self->entries, half_of(&entry->hash));
    TAILQ_REMOVE(&self->by_use, entry, by_use);
    self->bytes -= entry->size + PS_KEY_CACHE_COST;
    ps_payload_destroy(&entry->list);
    ps_free(entry);
}

void ps_key_cache_clear(ps_key_cache_t *self)
{
    while (!TAILQ_EMPTY(&self->by_use)) {
        drop_entry(self, TAILQ_FIRST(&self->by_use));
    }
}

void ps_key_cache_destroy(ps_key_cache_t **self_p)
{
    ps_key_cache_t *self = self_p == NULL ? NULL : *self_p;

    if (self == NULL) {
        return;
    }
    *self_p = NULL;
    ps_key_cache_clear(self);
    ps_map_done(&self->entries);
    ps_free(self);
}

/* Adds an entry, which takes the list on success. */
static psd_status_t add(ps_key_cache_t *self, const ps_id_t *hash, size_t size, ps_payload_t *list)
{
    size_t cost = size + PS_KEY_CACHE_COST; /* a list's size is an object's */
    entry_t *old = ps_map_get(&self->entries, half_of(hash));
    entry_t *entry = ps_alloc(1, sizeof *entry);

    /* The new entry takes over the old one's slot in the map, so this cannot
     * fail after the old entry is gone. */
    if (entry == NULL || !ps_map_put(&self->entries, half_of(hash), entry)) {
        ps_free(entry);
        return PSD_NOMEM;
    }
    if (old != NULL) {
        TAILQ_REMOVE(&self->by_use, old, by_use);
        self->bytes -= old->size + PS_KEY_CACHE_COST;
        ps_payload_destroy(&old->list);
        ps_free(old);
    }
    entry->hash = *hash;
    entry->size = size;
    entry->list = list;
    while (self->bytes > self->limit_bytes - cost) {
        drop_entry(self, TAILQ_LAST(&self->by_use, entries_head));
    }
    TAILQ_INSERT_HEAD(&self->by_use, entry, by_use);
    self->bytes += cost;
    return PSD_OK;
}

static bool can_fit(const ps_key_cache_t *self, size_t size)
{
    return self->limit_bytes >= PS_KEY_CACHE_COST && size <= self->limit_bytes - PS_KEY_CACHE_COST;
}

psd_status_t ps_key_cache_put(ps_key_cache_t *self, const ps_id_t *hash, ps_bytes_t keys)
{
    ps_payload_t *list = NULL;
    psd_status_t rc = PSD_OK;

    if (!can_fit(self, keys.size)) {
        return PSD_OK;
    }
    list = ps_payload_copy(keys, (ps_bytes_t){0}, (ps_bytes_t){0});
    if (list == NULL) {
        return PSD_NOMEM;
    }
    rc = add(self, hash, keys.size, list);
    if (rc != PSD_OK) {
        ps_payload_destroy(&list);
    }
    return rc;
}

psd_status_t ps_key_cache_note(ps_key_cache_t *self, const ps_id_t *hash, size_t size)
{
    return can_fit(self, size) ? add(self, hash, size, NULL) : PSD_OK;
}

/* The entry of that name and size, now the one used last; NULL: none. */
static entry_t *use(ps_key_cache_t *self, const ps_id_t *hash, size_t size)
{
    entry_t *entry = ps_map_get(&self->entries, half_of(hash));

    if (entry == NULL || entry->size != size || !ps_id_equal(&entry->hash, hash)) {
        return NULL;
    }
    TAILQ_REMOVE(&self->by_use, entry, by_use);
    TAILQ_INSERT_HEAD(&self->by_use, entry, by_use);
    return entry;
}

ps_payload_t *ps_key_cache_find(ps_key_cache_t *self, const ps_id_t *hash, uint64_t n_keys)
{
    entry_t *entry = NULL;

    if (n_keys > SIZE_MAX / PS_KEY_SIZE) {
        return NULL;
    }
    entry = use(self, hash, (size_t)n_keys * PS_KEY_SIZE);
    return entry == NULL || entry->list == NULL ? NULL : ps_payload_keep(entry->list);
}

bool ps_key_cache_knows(ps_key_cache_t *self, const ps_id_t *hash, size_t size)
{
    return use(self, hash, size) != NULL;
}

void ps_key_cache_drop(ps_key_cache_t *self, const ps_id_t *hash)
{
    entry_t *entry = ps_map_get(&self->entries, half_of(hash));

    if (entry != NULL && ps_id_equal(&entry->hash, hash)) {
        drop_entry(self, entry);
    }
}

size_t ps_key_cache_bytes(const ps_key_cache_t *self)
{
    return self->bytes;
}

/* A body whose keys are a list from elsewhere. */
typedef struct listed {
    ps_payload_t *body; /* held */
    ps_payload_t *list; /* held */
} listed_t;

static void release_listed(void *owner)
{
    listed_t *listed = owner;

    ps_payload_destroy(&listed->body);
    ps_payload_destroy(&listed->list);
    ps_free(listed);
}

/* Points at the same values. false: no memory. */
static bool share_spans(ps_payload_t *to, const ps_payload_t *from)
{
    size_t n = from->n_spans;

    if (n == 1) {
        to->span = from->spans[0];
        to->spans = &to->span;
    } else if (n > 1) {
        ps_bytes_t *spans = ps_alloc(n, sizeof *spans);

        if (spans == NULL) {
            return false;
        }
        memcpy(spans, from->spans, n * sizeof *spans);
        to->spans = spans;
    }
    to->n_spans = n;
    to->shared = from->shared;
    to->finite = from->finite;
    return true;
}

ps_payload_t *ps_key_list_put(ps_payload_t *body, ps_payload_t *list)
{
    listed_t *listed = ps_alloc(1, sizeof *listed);
    ps_payload_t *whole = NULL;

    if (listed == NULL) {
        return NULL;
    }
    whole = ps_payload_new(list->keys, body->index, (ps_bytes_t){NULL, 0}, listed, release_listed);
    if (whole == NULL) {
        ps_free(listed);
        return NULL;
    }
    listed->body = ps_payload_keep(body);
    listed->list = ps_payload_keep(list);
    if (!share_spans(whole, body)) {
        ps_payload_destroy(&whole);
    }
    return whole;
}
