/* SPDX-License-Identifier: Apache-2.0 */
/* What another process hands over, before any of it is kept or added. */
#include "protocol/relay/relay_check.h"

#include <inttypes.h>

#include "model/rows/deltas.h"

static psd_status_t check_contributor(const ps_relay_tree_t *tree, const ps_relay_lot_t *lot,
                                      uint16_t i, psd_error_t *err)
{
    const ps_bundle_from_t *from = &lot->from[i];
    const ps_bundle_from_t *before = i == 0 ? NULL : &lot->from[i - 1];

    if (ps_relay_tree_find(tree, from->worker) == UINT32_MAX) {
        return psd_error_set(err, PSD_INVALID, "plan %" PRIu64 " has no worker at position %u",
                             tree->version, from->worker);
    }
    if (from->session == 0 || from->first_seq == 0 || from->last_seq < from->first_seq ||
        from->last_seq == UINT64_MAX) {
        return psd_error_set(err, PSD_INVALID,
                             "worker %u: session %" PRIu64 ", seqs %" PRIu64 " to %" PRIu64
                             "; allowed: 1 and more, ascending",
                             from->worker, from->session, from->first_seq, from->last_seq);
    }
    if (before != NULL && (from->worker < before->worker ||
                           (from->worker == before->worker && from->member <= before->member))) {
        return psd_error_set(err, PSD_INVALID,
                             "worker %u member %u comes twice, or after worker %u member %u",
                             from->worker, from->member, before->worker, before->member);
    }
    return PSD_OK;
}

/* Its own clients bring its own deltas; others must not bring them back. */
static psd_status_t check_way(uint32_t worker, uint32_t giver, const ps_bundle_from_t *from,
                              psd_error_t *err)
{
    bool is_own = worker != PS_RELAY_NOBODY && from->worker == worker;

    if (giver == worker && !is_own) {
        return psd_error_set(err, PSD_INVALID, "a client of worker %u brings deltas of worker %u",
                             worker, from->worker);
    }
    if (giver != worker && is_own) {
        return psd_error_set(err, PSD_INVALID,
                             "loop: worker %u brings worker %u its own deltas back", giver, worker);
    }
    return PSD_OK;
}

static psd_status_t check_contributors(const ps_relay_tree_t *tree, uint32_t worker, uint32_t giver,
                                       const ps_relay_lot_t *lot, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (lot->n_from == 0 || lot->n_from > PS_BUNDLE_FROM_MAX) {
        return psd_error_set(err, PSD_INVALID, "%u contributors; allowed: 1..%d", lot->n_from,
                             PS_BUNDLE_FROM_MAX);
    }
    for (uint16_t i = 0; rc == PSD_OK && i < lot->n_from; i++) {
        rc = check_contributor(tree, lot, i, err);
        if (rc == PSD_OK) {
            rc = check_way(worker, giver, &lot->from[i], err);
        }
    }
    return rc;
}

/* ---- rows and columns ---- */

static psd_status_t column_outside(const ps_relay_key_t *key, uint32_t col, psd_error_t *err)
{
    return psd_error_set(err, PSD_RANGE,
                         "column %u is not in the partition, which holds columns %u..%u", col,
                         key->first_col, key->first_col + key->width - 1);
}

static bool has_column(const ps_relay_key_t *key, uint32_t col)
{
    return col >= key->first_col && col - key->first_col < key->width;
}

static psd_status_t check_dense(const ps_relay_key_t *key, const ps_relay_span_t *span,
                                psd_error_t *err)
{
    const ps_slice_t *slice = &span->slice;
    ps_columns_t columns = ps_slice_columns(slice, span->payload, key->first_col);

    if (slice->n_cols == 0 || slice->n_cols > key->width ||
        (slice->cols == PS_COLS_ALL && slice->n_cols != key->width)) {
        return psd_error_set(err, PSD_SHAPE, "rows have %u values, the partition has %u columns",
                             slice->n_cols, key->width);
    }
    if (slice->cols == PS_COLS_RANGE && !has_column(key, slice->first_col)) {
        return column_outside(key, slice->first_col, err);
    }
    if (slice->cols == PS_COLS_RANGE &&
        slice->n_cols > key->width - (slice->first_col - key->first_col)) {
        return column_outside(key, key->first_col + key->width, err);
    }
    for (uint32_t i = 0; columns.list != NULL && i < slice->n_cols; i++) {
        if (!has_column(key, ps_columns_at(columns, i))) {
            return column_outside(key, ps_columns_at(columns, i), err);
        }
    }
    return PSD_OK;
}

static psd_status_t check_sparse(const ps_relay_key_t *key, const ps_relay_span_t *span,
                                 psd_error_t *err)
{
    const uint8_t *columns = span->payload->index.data + sizeof(uint32_t) * span->slice.n_rows;

    for (uint64_t i = 0; i < span->slice.n_values; i++) {
        uint32_t col = ps_load_u32(columns + sizeof(uint32_t) * i);

        if (!has_column(key, col)) {
            return column_outside(key, col, err);
        }
    }
    return PSD_OK;
}

static psd_status_t check_slice(const ps_relay_key_t *key, const ps_relay_span_t *span,
                                psd_error_t *err)
{
    const ps_slice_t *slice = &span->slice;
    uint64_t last = 0;

    if (slice->type != key->type) {
        return psd_error_set(err, PSD_TYPE, "values are %s, the table's are %s",
                             ps_type_name(slice->type), ps_type_name(key->type));
    }
    if (slice->rows > PS_ROWS_RANGE || slice->n_rows == 0 || span->payload == NULL) {
        return psd_error_set(err, PSD_INVALID, "a span without rows, or with rows that it lacks");
    }
    if (slice->rows == PS_ROWS_RANGE &&
        __builtin_add_overflow(slice->first_row, slice->n_rows - 1, &last)) {
        return psd_error_set(err, PSD_RANGE, "%" PRIu64 " rows from row %" PRIu64 " on",
                             slice->n_rows, slice->first_row);
    }
    return slice->layout == PS_LAYOUT_DENSE ? check_dense(key, span, err)
                                            : check_sparse(key, span, err);
}

static bool has_contributor(const ps_relay_lot_t *lot, const ps_relay_span_t *span)
{
    for (uint16_t i = 0; i < lot->n_from; i++) {
        if (lot->from[i].worker >= span->first && lot->from[i].worker - span->first < span->n) {
            return true;
        }
    }
    return false;
}

static psd_status_t check_spans(const ps_relay_key_t *key, const ps_relay_lot_t *lot,
                                psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (lot->n_spans > PS_BUNDLE_SPANS_MAX) {
        return psd_error_set(err, PSD_INVALID, "%u spans; allowed: 0..%d", lot->n_spans,
                             PS_BUNDLE_SPANS_MAX);
    }
    for (uint16_t i = 0; rc == PSD_OK && i < lot->n_spans; i++) {
        const ps_relay_span_t *span = &lot->spans[i];
        const ps_relay_span_t *before = i == 0 ? NULL : &lot->spans[i - 1];

        if (!ps_combine_is_interval(span->first, span->n) ||
            (before != NULL && span->first < before->first + before->n) ||
            !has_contributor(lot, span)) {
            return psd_error_set(err, PSD_INVALID,
                                 "span %u of %u positions from %u on; allowed: aligned intervals "
                                 "with a contributor, ascending, that do not meet",
                                 i, span->n, span->first);
        }
        rc = check_slice(key, span, err);
    }
    return rc;
}

psd_status_t ps_relay_check(const ps_relay_tree_t *tree, uint32_t worker, uint32_t giver,
                            const ps_relay_key_t *key, const ps_relay_lot_t *lot, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (key->width == 0 || key->width - 1 > UINT32_MAX - key->first_col ||
        ps_type_size(key->type) == 0) {
        return psd_error_set(err, PSD_INVALID, "a partition of %u columns from %u on of type %s",
                             key->width, key->first_col, ps_type_name(key->type));
    }
    rc = check_contributors(tree, worker, giver, lot, err);
    return rc == PSD_OK ? check_spans(key, lot, err) : rc;
}
