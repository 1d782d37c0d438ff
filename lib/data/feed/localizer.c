/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_localizer - maps the keys of a batch to 0, 1, 2, …
 *
 * The entries are sorted by key, and each member of the crew takes a stretch of
 * them, moved on to where a new key begins. First all count their keys; then
 * each knows the id of its first one, and writes keys, counts and ids. With a
 * minimum count all members add their keys to the sketch before any of them
 * reads it, so that the keys left out do not depend on which was first.
 */
#include "psd_data.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "data/feed/count_sketch.h"
#include "data/feed/key_sort.h"
#include "model/rows/pages.h"
#include "transport/threads/fork.h"

/* What a member has done. */
typedef struct part {
    size_t first, end; /* of the items, at beginnings of keys */
    size_t id;         /* of its first key */
    size_t n_ids;
} part_t;

struct psd_localizer {
    ps_crew_t *crew;
    ps_key_counts_t *digits; /* owned; one of each member */
    part_t *parts;           /* owned; one of each member */
    ps_pages_t items, spare; /* of the sort */
    ps_pages_t ids;
    size_t capacity;   /* entries */
    uint64_t *keys;    /* owned */
    uint32_t *counts;  /* owned */
    uint32_t *renamed; /* owned; id of each key, those left out too */
    size_t keys_capacity;
    uint32_t min_count; /* 1: no sketch */
    ps_count_sketch_t sketch;
    size_t n_entries;
    size_t n_keys;
};

/* Begins a public call: empties err. Errors: PSD_CLOSED. */
static psd_status_t enter(const psd_localizer_t *self, psd_error_t *err)
{
    psd_error_clear(err);
    return ps_crew_is_forked(self->crew) ? ps_fork_error("localizer", err) : PSD_OK;
}

psd_status_t psd_localizer_new(uint32_t n_threads, psd_localizer_t **ret_localizer,
                               psd_error_t *err)
{
    psd_error_clear(err);

    PSD_AUTO(psd_localizer_destroy)
    psd_localizer_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a localizer");
    }
    self->min_count = 1;
    rc = ps_crew_start(n_threads, &self->crew, err);
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "localizer");
    }
    self->digits = ps_alloc(n_threads, sizeof *self->digits);
    self->parts = ps_alloc(n_threads, sizeof *self->parts);
    if (self->digits == NULL || self->parts == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a localizer");
    }
    *ret_localizer = self;
    self = NULL;
    return PSD_OK;
}

void psd_localizer_destroy(psd_localizer_t **self_p)
{
    psd_localizer_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_crew_stop(&self->crew);
    ps_free(self->digits);
    ps_free(self->parts);
    ps_pages_done(&self->items);
    ps_pages_done(&self->spare);
    ps_pages_done(&self->ids);
    ps_free(self->keys);
    ps_free(self->counts);
    ps_free(self->renamed);
    ps_count_sketch_done(&self->sketch);
    ps_free(self);
    *self_p = NULL;
}

psd_status_t psd_localizer_set_min_count(psd_localizer_t *self, uint32_t min_count,
                                         uint64_t n_cells, psd_error_t *err)
{
    if (enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    ps_count_sketch_t sketch = {0};
    psd_status_t rc = PSD_OK;

    if (min_count < 1 || min_count > PS_COUNT_SKETCH_MOST) {
        return psd_error_set(err, PSD_INVALID,
                             "a minimum count of %" PRIu32 "; 1 .. %u are allowed", min_count,
                             PS_COUNT_SKETCH_MOST);
    }
    if (n_cells < 1) {
        return psd_error_set(err, PSD_INVALID, "a sketch of 0 cells");
    }
    if (min_count > 1) {
        rc = ps_count_sketch_init(&sketch, n_cells, err);
    }
    if (rc == PSD_OK) {
        ps_count_sketch_done(&self->sketch);
        self->sketch = sketch;
        self->min_count = min_count;
    }
    return rc;
}

/* ---- room ---- */

static psd_status_t no_memory(size_t n, psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory to localize %zu entries", n);
}

/* Nothing of what is replaced is wanted any more. */
static bool fit_entries(psd_localizer_t *self, size_t n)
{
    size_t items_bytes = n * sizeof(ps_key_item_t); /* n < 2^32 */

    if (n <= self->capacity) {
        return true;
    }
    self->capacity = 0;
    ps_pages_done(&self->items);
    ps_pages_done(&self->spare);
    ps_pages_done(&self->ids);
    if (!ps_pages_init(&self->items, items_bytes) || !ps_pages_init(&self->spare, items_bytes) ||
        !ps_pages_init(&self->ids, n * sizeof(uint32_t))) {
        return false;
    }
    /* All three are read and written in no order. */
    ps_pages_will_fill(&self->items);
    ps_pages_will_fill(&self->spare);
    ps_pages_will_fill(&self->ids);
    self->capacity = n;
    return true;
}

static bool fit_keys(psd_localizer_t *self, size_t n)
{
    if (n <= self->keys_capacity) {
        return true;
    }
    self->keys_capacity = 0;
    ps_free(self->keys);
    ps_free(self->counts);
    ps_free(self->renamed);
    self->keys = ps_alloc_raw(n, sizeof *self->keys);
    self->counts = ps_alloc_raw(n, sizeof *self->counts);
    self->renamed = ps_alloc_raw(n, sizeof *self->renamed);
    if (self->keys == NULL || self->counts == NULL || self->renamed == NULL) {
        return false;
    }
    self->keys_capacity = n;
    return true;
}

/* ---- what the members do, one function a round ---- */

static const ps_key_item_t *items_of(const psd_localizer_t *self)
{
    return (const void *)self->items.data;
}

static uint32_t *ids_of(const psd_localizer_t *self)
{
    return (void *)self->ids.data;
}

static bool is_first(const ps_key_item_t *items, size_t i)
{
    return i == 0 || items[i].key != items[i - 1].key;
}

/* Where the first key begins from the member's cut on. */
static size_t first_of(const psd_localizer_t *self, uint32_t member, uint32_t n_members)
{
    const ps_key_item_t *items = items_of(self);
    size_t at = ps_crew_cut(self->n_entries, member, n_members);

    while (at < self->n_entries && !is_first(items, at)) {
        at++;
    }
    return at;
}

static void count_keys(void *arg, uint32_t member, uint32_t n_members)
{
    psd_localizer_t *self = arg;
    const ps_key_item_t *items = items_of(self);
    part_t part = {.first = first_of(self, member, n_members),
                   .end = first_of(self, member + 1, n_members)};

    for (size_t i = part.first; i < part.end; i++) {
        part.n_ids += is_first(items, i);
    }
    self->parts[member] = part;
}

static void write_keys(void *arg, uint32_t member, uint32_t n_members)
{
    psd_localizer_t *self = arg;
    const ps_key_item_t *items = items_of(self);
    part_t part = self->parts[member];
    uint32_t *ids = ids_of(self);
    size_t id = part.id;

    (void)n_members;
    for (size_t i = part.first; i < part.end; id++) {
        uint64_t key = items[i].key;
        size_t first = i;

        for (; i < part.end && items[i].key == key; i++) {
            ids[items[i].place] = (uint32_t)id;
        }
        self->keys[id] = key;
        self->counts[id] = (uint32_t)(i - first);
    }
}

static void add_counts(void *arg, uint32_t member, uint32_t n_members)
{
    psd_localizer_t *self = arg;
    size_t end = ps_crew_cut(self->n_keys, member + 1, n_members);

    for (size_t i = ps_crew_cut(self->n_keys, member, n_members); i < end; i++) {
        ps_count_sketch_add(&self->sketch, self->keys[i], self->counts[i]);
    }
}

/* Marks the keys that stay. */
static void look_counts(void *arg, uint32_t member, uint32_t n_members)
{
    psd_localizer_t *self = arg;
    size_t end = ps_crew_cut(self->n_keys, member + 1, n_members);

    for (size_t i = ps_crew_cut(self->n_keys, member, n_members); i < end; i++) {
        self->renamed[i] =
            ps_count_sketch_look(&self->sketch, self->keys[i]) >= self->min_count ? 0 : PSD_ID_NONE;
    }
}

static void rename_ids(void *arg, uint32_t member, uint32_t n_members)
{
    psd_localizer_t *self = arg;
    uint32_t *ids = ids_of(self);
    size_t end = ps_crew_cut(self->n_entries, member + 1, n_members);

    for (size_t i = ps_crew_cut(self->n_entries, member, n_members); i < end; i++) {
        ids[i] = self->renamed[ids[i]];
    }
}

/* ---- a run ---- */

static size_t number_parts(psd_localizer_t *self)
{
    size_t id = 0;

    for (uint32_t m = 0; m < ps_crew_size(self->crew); m++) {
        self->parts[m].id = id;
        id += self->parts[m].n_ids;
    }
    return id;
}

static void leave_out(psd_localizer_t *self)
{
    size_t kept = 0;

    ps_crew_run(self->crew, add_counts, self);
    ps_crew_run(self->crew, look_counts, self);
    for (size_t i = 0; i < self->n_keys; i++) {
        if (self->renamed[i] != PSD_ID_NONE) {
            self->keys[kept] = self->keys[i];
            self->counts[kept] = self->counts[i];
            self->renamed[i] = (uint32_t)kept++;
        }
    }
    if (kept < self->n_keys) {
        ps_crew_run(self->crew, rename_ids, self);
    }
    self->n_keys = kept;
}

psd_status_t psd_localizer_run(psd_localizer_t *self, const uint64_t *keys, size_t n,
                               psd_error_t *err)
{
    if (enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    size_t n_keys = 0;

    self->n_entries = 0;
    self->n_keys = 0;
    if (n >= PSD_ID_NONE) {
        return psd_error_set(err, PSD_LIMIT,
                             "%zu entries in a batch; fewer than %" PRIu32 " can be localized", n,
                             PSD_ID_NONE);
    }
    if (n == 0) {
        return PSD_OK;
    }
    if (!fit_entries(self, n)) {
        return no_memory(n, err);
    }
    ps_key_sort(self->crew, self->digits, keys, n, (void *)self->items.data,
                (void *)self->spare.data);
    self->n_entries = n;
    ps_crew_run(self->crew, count_keys, self);
    n_keys = number_parts(self);
    if (!fit_keys(self, n_keys)) {
        self->n_entries = 0;
        return no_memory(n, err);
    }
    self->n_keys = n_keys;
    ps_crew_run(self->crew, write_keys, self);
    if (self->min_count > 1) {
        leave_out(self);
    }
    return PSD_OK;
}

size_t psd_localizer_count(const psd_localizer_t *self)
{
    return self->n_keys;
}

const uint64_t *psd_localizer_keys(const psd_localizer_t *self)
{
    return self->keys;
}

const uint32_t *psd_localizer_counts(const psd_localizer_t *self)
{
    return self->counts;
}

const uint32_t *psd_localizer_ids(const psd_localizer_t *self)
{
    return ids_of(self);
}
