/* SPDX-License-Identifier: Apache-2.0 */
/* The loader's thread: block by block it runs the load call-back, hands over
 * the pulls, and waits for them; and what that call-back asks for. */
#include <inttypes.h>

#include "base/alloc.h"
#include "train/blocks/blocks.h"
#include "train/courier/courier.h"

/* ---- what the call-back asks for ----------------------------------------- */

psd_status_t psd_loader_table(psd_loader_t *self, uint32_t table, psd_error_t *err)
{
    if (ps_train_enter(self->train, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    psd_status_t rc = ps_cache_want_all(self->cache, table, err);

    return rc == PSD_OK ? rc : psd_error_wrap(err, rc, "table %" PRIu32, table);
}

psd_status_t psd_loader_rows(psd_loader_t *self, uint32_t table, const uint64_t *rows,
                             size_t n_rows, psd_error_t *err)
{
    if (ps_train_enter(self->train, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    psd_status_t rc = ps_cache_want_rows(self->cache, table, rows, n_rows, err);

    return rc == PSD_OK ? rc : psd_error_wrap(err, rc, "table %" PRIu32, table);
}

psd_status_t psd_loader_element(psd_loader_t *self, uint32_t table, uint64_t row, uint32_t col,
                                psd_error_t *err)
{
    if (ps_train_enter(self->train, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    psd_status_t rc = ps_cache_want_element(self->cache, table, row, col, err);

    return rc == PSD_OK ? rc : psd_error_wrap(err, rc, "table %" PRIu32, table);
}

/* ---- the thread ---------------------------------------------------------- */

static void set_doing(psd_loader_t *self, const char *what, uint64_t n_block)
{
    ps_train_lock(self->train);
    self->doing = (ps_doing_t){.what = what, .n_block = n_block};
    ps_train_unlock(self->train);
}

static ps_item_t *find_item(psd_train_t *train, uint64_t number)
{
    ps_item_t *item = NULL;

    TAILQ_FOREACH(item, &train->items, in_list)
    {
        if (item->number == number) {
            return item;
        }
    }
    return NULL;
}

/* How many earlier items the trainers may still be working on: one other block
 * with the marks around it, or none. With outer steps none of an earlier clock
 * of psd: what is fetched and the drift from it change together. */
static bool may_load(const psd_train_t *train, const ps_item_t *item)
{
    const ps_item_t *before = NULL;
    uint32_t n_blocks = 0;

    if (item->kind != PS_ITEM_BLOCK) {
        return true;
    }
    if (train->options.pipeline == 0) {
        return TAILQ_FIRST(&train->items) == item;
    }
    TAILQ_FOREACH(before, &train->items, in_list)
    {
        if (before == item) {
            break;
        }
        if (before->ends_clock && train->drift != NULL) {
            return false;
        }
        n_blocks += before->kind == PS_ITEM_BLOCK ? 1 : 0;
    }
    return n_blocks < train->n_caches;
}

/* The next item, when it may be loaded; NULL: there will be none. */
static ps_item_t *next_item(psd_loader_t *self, uint64_t number)
{
    psd_train_t *train = self->train;
    ps_item_t *item = NULL;

    ps_train_lock(train);
    for (;;) {
        item = find_item(train, number);
        if (train->failed != PSD_OK || (item != NULL && may_load(train, item)) ||
            (item == NULL && train->stop)) {
            break;
        }
        ps_train_await(train);
    }
    if (train->failed != PSD_OK) {
        item = NULL;
    }
    ps_train_unlock(train);
    return item;
}

static void set_ready(psd_loader_t *self, ps_item_t *item)
{
    ps_train_lock(self->train);
    self->doing = (ps_doing_t){.what = NULL};
    item->ready = true;
    ps_train_tell(self->train);
    ps_train_unlock(self->train);
}

/* All that the block needs is pulled. */
static psd_status_t seal(ps_cache_t *cache, psd_error_t *err)
{
    for (size_t i = 0; i < cache->n_tables; i++) {
        ps_cache_table_t *table = &cache->tables[i];

        table->n_missing = table->whole ? (size_t)table->shape.n_rows : table->rows.n;
    }
    return ps_cache_seal(cache, err);
}

/* Hands the pulls of the block over and waits for them. */
static psd_status_t pull(psd_loader_t *self, ps_item_t *item, psd_error_t *err)
{
    psd_train_t *train = self->train;
    ps_parcel_t *parcel = ps_alloc(1, sizeof *parcel);
    psd_status_t rc = PSD_OK;

    if (parcel == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a pull");
    }
    parcel->kind = PS_PARCEL_PULL;
    parcel->cache = item->cache;
    parcel->n_block = item->n_block;
    parcel->done_p = &item->pulled; /* it outlives the courier */
    set_doing(self, "the pull of", item->n_block);
    if (train->keeps) {
        rc = ps_fetch_block(train, item, &parcel, err);
    } else {
        rc = seal(item->cache, err);
    }
    if (rc != PSD_OK) {
        ps_parcel_destroy(&parcel);
        return psd_error_wrap(err, rc, "block %" PRIu64 ": load", item->n_block);
    }
    ps_train_lock(train);
    if (parcel != NULL) {
        ps_parcel_send(train, &parcel);
    }
    while (!item->pulled && train->failed == PSD_OK) {
        ps_train_await(train);
    }
    rc = ps_train_check(train, err);
    ps_train_unlock(train);
    if (rc == PSD_OK && train->keeps) {
        ps_kept_take_cache(&train->kept, item->cache);
    }
    if (rc == PSD_OK && train->drift != NULL) {
        ps_drift_add(train, item->cache);
    }
    return rc;
}

static psd_status_t load(psd_loader_t *self, ps_item_t *item, psd_error_t *err)
{
    psd_train_t *train = self->train;
    psd_status_t rc = PSD_OK;

    item->cache = &train->caches[item->n_block % train->n_caches];
    self->cache = item->cache;
    ps_cache_clear(self->cache);
    if (train->on_load == NULL) {
        return PSD_OK;
    }
    set_doing(self, "the load call-back of", item->n_block);
    rc = train->on_load(train->user, self, item->block, err);
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "block %" PRIu64 ": load", item->n_block);
    }
    train->counts.rows_asked += self->cache->n_rows_asked;
    train->counts.cells_asked += self->cache->n_cells_asked;
    return pull(self, item, err);
}

void *ps_loader_run(void *arg)
{
    psd_train_t *train = arg;
    psd_loader_t *self = &train->loader;
    psd_error_t *err = psd_error_new(); /* NULL: reasons are lost */
    psd_status_t rc = PSD_OK;
    ps_item_t *item = NULL;

    for (uint64_t number = 1; rc == PSD_OK; number++) {
        item = next_item(self, number);
        if (item == NULL) {
            break;
        }
        if (item->kind == PS_ITEM_BLOCK) {
            rc = load(self, item, err);
        }
        if (rc == PSD_OK) {
            set_ready(self, item);
        }
    }
    if (rc != PSD_OK) {
        ps_train_fail(train, rc, err);
    }
    psd_error_destroy(&err);
    return NULL;
}
