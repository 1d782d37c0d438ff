/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outer steps: what trainers add stays with this worker for some clocks of the
 * training, as its drift from the rows that were fetched. A block reads fetched
 * values plus drift; a push sends the drift and ends it.
 *
 * The examples have a scheduler of the same outer steps that compares whole
 * vectors (examples/common/job/outer.h). Here rows come and go, and only what
 * was added to them is known, so it is the sums that are kept.
 */
#include "train/blocks/blocks.h"

psd_status_t ps_drift_take(psd_train_t *train, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    ps_kept_lock(&train->kept);
    for (uint32_t i = 0; i < train->n_tables; i++) {
        for (uint32_t k = 0; k < train->options.n_trainers; k++) {
            ps_sums_t *sums = &train->trainers[k].sums[i];

            if (rc == PSD_OK) {
                rc = ps_sums_merge(&train->drift[i], sums, err);
            }
            ps_sums_clear(sums);
        }
    }
    ps_kept_unlock(&train->kept);
    return rc;
}

void ps_drift_add(psd_train_t *train, const ps_cache_t *cache)
{
    ps_kept_lock(&train->kept);
    for (uint32_t i = 0; i < train->n_tables; i++) {
        ps_cache_add(&cache->tables[i], &train->drift[i]);
    }
    ps_kept_unlock(&train->kept);
}

/* Moves the rows whose turn it is to where they are bound; the others stay. */
static psd_status_t choose(psd_train_t *train, uint32_t table, psd_error_t *err)
{
    ps_sums_t *drift = &train->drift[table];
    ps_sums_t *later = &train->later[table];
    ps_sums_t swap = *drift;
    psd_status_t rc = ps_sums_split(drift, train->options.outer_fragments,
                                    ps_kept_turn(&train->kept), &train->merged[table], later, err);

    if (rc == PSD_OK) {
        *drift = *later;
        *later = swap;
        ps_sums_clear(later);
    }
    return rc;
}

psd_status_t ps_drift_bind(psd_train_t *train, uint32_t table, bool all, ps_sheaf_t *ret_sheaf,
                           psd_error_t *err)
{
    bool chooses = train->options.outer_fragments > 1 && !all;
    ps_sums_t *sums = chooses ? &train->merged[table] : &train->drift[table];
    const ps_sums_t *bound = sums;
    psd_status_t rc = PSD_OK;

    ps_kept_lock(&train->kept);
    if (chooses) {
        rc = choose(train, table, err);
    }
    if (rc == PSD_OK && sums->n_touched > 0) {
        rc = ps_binder_bind(&train->binder, &bound, 1, ret_sheaf, err);
    }
    if (rc == PSD_OK && train->options.outer_overlap > 0) {
        ps_kept_move(&train->kept, table, ret_sheaf);
    }
    ps_sums_clear(sums);
    ps_kept_unlock(&train->kept);
    if (rc == PSD_OK && !train->shapes[table].adds) {
        ps_sheaf_negate(ret_sheaf, train->shapes[table].type); /* a gradient points uphill */
    }
    return rc;
}
