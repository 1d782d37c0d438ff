/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which rows of a block are pulled when rows are kept: kept rows that
 * may be read again are not. */
#include <string.h>

#include "base/alloc.h"
#include "train/blocks/blocks.h"
#include "train/courier/courier.h"

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a pull");
}

/* ---- a block ------------------------------------------------------------- */

/* A row is in flight that the block cannot read from the kept rows. */
static bool must_wait(ps_kept_t *kept, const ps_cache_t *cache, ps_kept_time_t now)
{
    for (size_t i = 0; i < cache->n_tables; i++) {
        const ps_row_set_t *rows = &cache->tables[i].rows;

        for (size_t k = 0; !cache->tables[i].whole && k < rows->n; k++) {
            ps_kept_key_t key = ps_kept_row_key(i, rows->rows[k]);

            if (ps_kept_is_coming(kept, key) && ps_kept_read(kept, key, now) == NULL) {
                return true;
            }
        }
    }
    return false;
}

/* Rows that have to be asked for come first. */
static psd_status_t sort_rows(ps_kept_t *kept, ps_cache_table_t *table, size_t number,
                              ps_kept_time_t now, psd_error_t *err)
{
    ps_row_set_t *set = &table->rows;
    size_t n = set->n;
    PSD_AUTO(ps_free_at) uint64_t *rows = ps_alloc_raw(n, sizeof *rows);
    size_t n_missing = 0;
    size_t n_kept = 0;
    size_t ignored = 0;
    bool fits = true;

    if (rows == NULL) {
        return no_memory(err);
    }
    for (size_t i = 0; i < n; i++) {
        bool is_kept = ps_kept_read(kept, ps_kept_row_key(number, set->rows[i]), now) != NULL;

        rows[is_kept ? n - ++n_kept : n_missing++] = set->rows[i];
    }
    if (n_kept > 0) {
        ps_row_set_clear(set);
        for (size_t i = 0; fits && i < n; i++) {
            fits = ps_row_set_add(set, rows[i], &ignored);
        }
    }
    table->n_missing = n_missing;
    return fits ? PSD_OK : no_memory(err);
}

static psd_status_t sort_table(ps_kept_t *kept, ps_cache_table_t *table, size_t number,
                               ps_kept_time_t now, psd_error_t *err)
{
    if (table->whole) {
        table->n_missing = ps_kept_read(kept, ps_kept_whole_key(number), now) == NULL
                               ? (size_t)table->shape.n_rows
                               : 0;
        return PSD_OK;
    }
    return table->rows.n == 0 ? PSD_OK : sort_rows(kept, table, number, now, err);
}

/* Copies kept rows to where the block reads them. */
static void copy_kept(ps_kept_t *kept, const ps_cache_table_t *table, size_t number,
                      ps_kept_time_t now)
{
    size_t size = table->shape.n_cols * table->shape.value_size;

    if (table->whole && table->n_missing == 0) {
        memcpy(table->values, ps_kept_read(kept, ps_kept_whole_key(number), now),
               (size_t)table->shape.n_rows * size);
    }
    for (size_t i = table->n_missing; !table->whole && i < table->rows.n; i++) {
        memcpy((char *)table->values + i * size,
               ps_kept_read(kept, ps_kept_row_key(number, table->rows.rows[i]), now), size);
    }
}

/* Says that the others are asked for. */
static void ask_missing(ps_kept_t *kept, const ps_cache_table_t *table, size_t number,
                        uint64_t pull, ps_kept_time_t now)
{
    if (table->whole && table->n_missing > 0) {
        (void)ps_kept_ask(kept, ps_kept_whole_key(number), pull, now, 0);
    }
    for (size_t i = 0; !table->whole && i < table->n_missing; i++) {
        (void)ps_kept_ask(kept, ps_kept_row_key(number, table->rows.rows[i]), pull, now, 0);
    }
}

/* Locks what is kept when nothing that the block needs is on its way. */
static void lock_settled(psd_train_t *train, const ps_cache_t *cache, ps_kept_time_t now)
{
    for (;;) {
        uint64_t n_before = 0;
        bool failed = false;

        ps_train_lock(train);
        n_before = train->n_prefetched;
        ps_train_unlock(train);
        ps_kept_lock(&train->kept);
        if (!must_wait(&train->kept, cache, now)) {
            return;
        }
        ps_kept_unlock(&train->kept);
        ps_train_lock(train);
        while (train->failed == PSD_OK && train->n_prefetched == n_before) {
            ps_train_await(train);
        }
        failed = train->failed != PSD_OK;
        ps_train_unlock(train);
        if (failed) { /* the caller will see it */
            ps_kept_lock(&train->kept);
            return;
        }
    }
}

psd_status_t ps_fetch_block(psd_train_t *train, ps_item_t *item, ps_parcel_t **parcel_p,
                            psd_error_t *err)
{
    ps_kept_t *kept = &train->kept;
    ps_cache_t *cache = item->cache;
    ps_kept_time_t now = {.clock = item->n_clock, .block = item->n_block, .inner = item->n_inner};
    psd_status_t rc = PSD_OK;

    lock_settled(train, cache, now);
    for (size_t i = 0; rc == PSD_OK && i < cache->n_tables; i++) {
        rc = sort_table(kept, &cache->tables[i], i, now, err);
    }
    if (rc == PSD_OK) {
        rc = ps_cache_seal(cache, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < cache->n_tables; i++) {
        copy_kept(kept, &cache->tables[i], i, now);
    }
    cache->pull = ps_kept_pull(kept);
    now.clock = kept->clock; /* of what is asked for now */
    for (size_t i = 0; rc == PSD_OK && i < cache->n_tables; i++) {
        ask_missing(kept, &cache->tables[i], i, cache->pull, now);
    }
    if (rc == PSD_OK) {
        ps_train_lock(train);
        ps_parcel_send(train, parcel_p);
        ps_train_unlock(train);
    }
    ps_kept_unlock(kept);
    return rc;
}
