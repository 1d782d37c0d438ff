/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that have changed. Each partition has its own versions; an answer in
 * pieces counts from its first piece, so that no change between pieces is
 * missed. */
#include "base/alloc.h"
#include "client/requests/ops.h"
#include "client/requests/result.h"
#include "psd/ops.h"

struct psd_seen {
    uint32_t table;     /* 0: none yet */
    uint64_t *versions; /* owned; of each partition */
    uint32_t n_partitions;
};

psd_seen_t *psd_seen_new(void)
{
    return ps_alloc(1, sizeof(psd_seen_t));
}

void psd_seen_destroy(psd_seen_t **self_p)
{
    if (self_p != NULL && *self_p != NULL) {
        ps_free((*self_p)->versions);
        ps_free(*self_p);
        *self_p = NULL;
    }
}

static psd_status_t check(psd_seen_t *self, const psd_table_t *table, psd_error_t *err)
{
    uint32_t n = table->spec.n_partitions;

    if (!table->spec.versions) {
        return psd_error_set(err, PSD_UNSUPPORTED,
                             "it keeps no versions; create it with versions true");
    }
    if (table->spec.n_col_slices > 1) {
        return psd_error_set(err, PSD_UNSUPPORTED, "its rows are split by columns");
    }
    if (self->table == table->known->id && self->n_partitions == n) {
        return PSD_OK;
    }
    if (self->table != 0) {
        return psd_error_set(err, PSD_INVALID,
                             "seen is of another table, or of one that was "
                             "dropped since");
    }
    self->versions = ps_alloc(n, sizeof *self->versions);
    if (self->versions == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for versions");
    }
    self->n_partitions = n;
    self->table = table->known->id;
    return PSD_OK;
}

/* A partition has been seen up to the least version of its slices. */
static void remember(psd_seen_t *self, const ps_row_work_t *work)
{
    for (size_t i = 0; i < work->n_aggregates; i++) {
        const ps_aggregate_t *aggregate = &work->aggregates[i];
        bool is_first = true;

        for (size_t j = 0; j < i && is_first; j++) {
            is_first = work->aggregates[j].partition != aggregate->partition;
        }
        if (is_first || aggregate->version < self->versions[aggregate->partition]) {
            self->versions[aggregate->partition] = aggregate->version;
        }
    }
}

psd_status_t psd_pull_changed(psd_table_t *table, const psd_select_t *select, psd_seen_t *seen,
                              bool sparse, const psd_call_t *call, psd_result_t **ret_result,
                              psd_error_t *err)
{
    if (ps_client_enter(table->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    PSD_AUTO(ps_work_done)
    ps_row_work_t work = PS_WORK(table, PS_REQUEST_PULL, "pull of", call);
    psd_status_t rc = ps_work_refuse(&work, check(seen, table, err), err);

    work.sparse = sparse;
    work.call.since = seen->versions;
    if (rc == PSD_OK) {
        rc = ps_result_new(table->spec.type, sparse, SIZE_MAX, &work.result, err);
    }
    if (rc == PSD_OK) {
        rc = ps_work_cut(&work, select, err);
    }
    if (rc == PSD_OK) {
        rc = ps_work_run(&work, err);
    }
    if (rc == PSD_OK) {
        rc = ps_result_finish(work.result, false, SIZE_MAX, err);
    }
    if (rc == PSD_OK) {
        remember(seen, &work);
        *ret_result = work.result;
        work.result = NULL;
    }
    return rc;
}
