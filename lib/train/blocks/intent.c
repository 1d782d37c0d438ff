/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that the caller intends to read: fetched ahead, kept until the last
 * clock that reads them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "train/blocks/blocks.h"
#include "train/courier/courier.h"

struct ps_intent {
    TAILQ_ENTRY(ps_intent) in_list;
    uint32_t table;
    uint64_t from;
    uint64_t to;
    uint64_t n_bytes; /* reserved */
    size_t n_rows;
    uint64_t rows[]; /* each once */
};

/* ---- what the caller says ------------------------------------------------ */

static int compare_rows(const void *left, const void *right)
{
    const uint64_t *a = left;
    const uint64_t *b = right;

    return *a < *b ? -1 : *a > *b;
}

static psd_status_t check(const psd_train_t *self, uint32_t table, uint64_t from, uint64_t to,
                          psd_error_t *err)
{
    if (self->phase != PS_TRAIN_RUNNING) {
        return psd_error_set(err, PSD_INVALID,
                             "an intent is allowed between psd_train_begin and psd_train_end");
    }
    if (self->options.staleness < 0) {
        return psd_error_set(err, PSD_INVALID, "staleness is off; an intent needs a number");
    }
    if (table >= self->n_tables) {
        return psd_error_set(err, PSD_INVALID, "table is %" PRIu32 "; there are %" PRIu32, table,
                             self->n_tables);
    }
    if (!self->shapes[table].adds) {
        return psd_error_set(err, PSD_INVALID,
                             "rows of table \"%s\" are not kept; allowed: "
                             "tables with updater add",
                             psd_table_name(self->tables[table]));
    }
    return from >= 1 && from <= to ? PSD_OK
                                   : psd_error_set(err, PSD_INVALID,
                                                   "from clock %" PRIu64 " to clock %" PRIu64
                                                   "; allowed: from 1, not after the last",
                                                   from, to);
}

static psd_status_t make_intent(const ps_shape_t *shape, const uint64_t *rows, size_t n_rows,
                                ps_intent_t **ret_intent, psd_error_t *err)
{
    size_t n_bytes = 0;
    ps_intent_t *intent = NULL;

    for (size_t i = 0; i < n_rows; i++) {
        if (!ps_shape_has_row(shape, rows[i])) {
            return psd_error_set(err, PSD_RANGE, "row %" PRIu64 "; the table has %" PRIu64, rows[i],
                                 shape->n_rows);
        }
    }
    if (!__builtin_mul_overflow(n_rows, sizeof *rows, &n_bytes) &&
        n_bytes <= SIZE_MAX - sizeof *intent) {
        intent = ps_alloc(1, sizeof *intent + n_bytes);
    }
    if (intent == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for an intent");
    }
    if (n_rows > 0) {
        memcpy(intent->rows, rows, n_bytes);
        qsort(intent->rows, n_rows, sizeof *rows, compare_rows);
    }
    for (size_t i = 0; i < n_rows; i++) {
        if (i == 0 || intent->rows[i] != intent->rows[intent->n_rows - 1]) {
            intent->rows[intent->n_rows++] = intent->rows[i];
        }
    }
    intent->n_bytes = intent->n_rows * ps_kept_row_bytes(shape);
    *ret_intent = intent;
    return PSD_OK;
}

psd_status_t psd_train_intent(psd_train_t *self, uint32_t table, const uint64_t *rows,
                              size_t n_rows, uint64_t from, uint64_t to, psd_error_t *err)
{
    if (ps_train_enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    ps_intent_t *intent = NULL;
    psd_status_t rc = check(self, table, from, to, err);

    if (rc == PSD_OK) {
        rc = make_intent(&self->shapes[table], rows, n_rows, &intent, err);
    }
    if (rc != PSD_OK || intent == NULL) {
        return rc;
    }
    intent->table = table;
    intent->from = from;
    intent->to = to;
    ps_kept_lock(&self->kept);
    ps_intents_end(self, self->kept.clock); /* said when it was too late */
    if (ps_kept_reserve(&self->kept, intent->n_bytes)) {
        TAILQ_INSERT_TAIL(&self->intents, intent, in_list);
        intent = NULL;
    } else {
        rc = psd_error_set(
            err, PSD_LIMIT,
            "%zu rows need %" PRIu64 " bytes, others %" PRIu64 "; allowed by keep-bytes: %" PRIu64,
            intent->n_rows, intent->n_bytes, self->kept.n_reserved, self->kept.rule.max_bytes);
    }
    ps_kept_unlock(&self->kept);
    ps_free(intent);
    return rc;
}

void ps_intents_end(psd_train_t *self, uint64_t clock)
{
    ps_intent_t *intent = TAILQ_FIRST(&self->intents);

    while (intent != NULL) {
        ps_intent_t *next = TAILQ_NEXT(intent, in_list);

        if (intent->to < clock) {
            TAILQ_REMOVE(&self->intents, intent, in_list);
            ps_kept_release(&self->kept, intent->n_bytes);
            ps_free(intent);
        }
        intent = next;
    }
}

void ps_intents_free(psd_train_t *self)
{
    while (!TAILQ_EMPTY(&self->intents)) {
        ps_intent_t *intent = TAILQ_FIRST(&self->intents);

        TAILQ_REMOVE(&self->intents, intent, in_list);
        ps_free(intent);
    }
}

/* ---- fetching ahead ------------------------------------------------------ */

/* Wants rows that a clock intends to read and could not. */
static psd_status_t want_rows(psd_train_t *train, const ps_intent_t *intent, uint64_t clock,
                              ps_cache_t *cache, psd_error_t *err)
{
    ps_kept_time_t then = {.clock = clock};
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < intent->n_rows; i++) {
        ps_kept_key_t key = {.table = intent->table, .row = intent->rows[i]};

        ps_kept_intend(&train->kept, key, intent->to);
        if (ps_kept_is_coming(&train->kept, key) || ps_kept_read(&train->kept, key, then) != NULL) {
            continue;
        }
        if (ps_kept_ask(&train->kept, key, cache->pull,
                        (ps_kept_time_t){.clock = train->kept.clock}, intent->to)) {
            rc = ps_cache_want_rows(cache, key.table, &key.row, 1, err);
        }
    }
    return rc;
}

/* The rows that the clock that begins, and the next one, lack. Rows for the
 * next one are of use only if they may be one clock old. */
static psd_status_t collect(psd_train_t *train, ps_cache_t *cache, psd_error_t *err)
{
    uint64_t clock = train->kept.clock;
    uint64_t last = clock + (train->kept.rule.staleness > 0 ? 1 : 0);
    const ps_intent_t *intent = NULL;
    psd_status_t rc = PSD_OK;

    cache->pull = ps_kept_pull(&train->kept);
    TAILQ_FOREACH(intent, &train->intents, in_list)
    {
        for (uint64_t at = last; rc == PSD_OK && at >= clock; at--) {
            if (intent->from <= at && at <= intent->to) {
                rc = want_rows(train, intent, at, cache, err);
            }
        }
    }
    if (rc == PSD_OK) {
        rc = ps_cache_seal(cache, err);
    }
    return rc;
}

static bool wants_any(const ps_cache_t *cache)
{
    bool any = false;

    for (size_t i = 0; i < cache->n_tables; i++) {
        any = any || cache->tables[i].rows.n > 0;
    }
    return any;
}

psd_status_t ps_intents_fetch(psd_train_t *train, const ps_item_t *item, psd_error_t *err)
{
    ps_parcel_t *parcel = NULL;
    psd_status_t rc = PSD_OK;

    ps_kept_lock(&train->kept);
    if (TAILQ_EMPTY(&train->intents)) {
        ps_kept_unlock(&train->kept);
        return PSD_OK;
    }
    parcel = ps_parcel_new_ahead(train, err);
    rc = parcel == NULL ? PSD_NOMEM : collect(train, parcel->cache, err);
    if (rc == PSD_OK && wants_any(parcel->cache)) {
        parcel->n_block = item->n_block;
        for (size_t i = 0; i < parcel->cache->n_tables; i++) {
            parcel->cache->tables[i].n_missing = parcel->cache->tables[i].rows.n;
        }
        ps_train_lock(train);
        ps_parcel_send(train, &parcel);
        ps_train_unlock(train);
    }
    ps_kept_unlock(&train->kept);
    ps_parcel_destroy(&parcel);
    return rc;
}
