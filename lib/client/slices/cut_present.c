/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of rows present in a hash table: only the server knows which. */
#include "base/alloc.h"
#include "client/slices/cut.h"
#include "model/tables/partition.h"

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory to cut a call");
}

/* The part of the selected range that may lie in a partition. */
static bool clip(const psd_select_t *select, const ps_extent_t *extent, uint64_t *ret_first,
                 uint64_t *ret_last)
{
    uint64_t first = select->all_rows ? 0 : select->first_row;
    uint64_t last = select->all_rows ? UINT64_MAX : first + select->n_rows - 1;

    *ret_first = first > extent->first_row ? first : extent->first_row;
    *ret_last = last < extent->last_row ? last : extent->last_row;
    return *ret_first <= *ret_last;
}

/* A range of u64 rows has at most 2^64 - 1: the last key goes by itself. */
static psd_status_t add_range(const ps_cut_t *like, uint64_t first, uint64_t last, ps_cuts_t *cuts,
                              psd_error_t *err)
{
    for (;;) {
        uint64_t n = last - first == UINT64_MAX ? UINT64_MAX : last - first + 1;
        ps_cut_t *cut = ps_cuts_add(cuts);

        if (cut == NULL) {
            return no_memory(err);
        }
        *cut = *like;
        cut->slice.first_row = first;
        cut->slice.n_rows = n;
        if (like->payload != NULL) {
            cut->payload = ps_payload_keep(like->payload);
        }
        if (last - first < n) {
            return PSD_OK;
        }
        first += n;
    }
}

/* What is asked of the rows: all of their entries, the columns selected, or
 * (keys_only) as little as there can be. */
static psd_status_t make_pattern(const ps_present_args_t *self, const ps_extent_t *extent,
                                 ps_cut_t *ret_cut, psd_error_t *err)
{
    const psd_select_t *select = self->select;
    ps_slice_t slice = {.rows = PS_ROWS_RANGE,
                        .layout = PS_LAYOUT_DENSE,
                        .cols = select->cols_are,
                        .type = self->spec->type};

    if (self->sparse) {
        slice.layout = PS_LAYOUT_SPARSE;
        slice.cols = PS_COLS_ALL;
    } else if (self->keys_only) {
        slice.cols = PS_COLS_RANGE;
        slice.first_col = extent->first_col;
        slice.n_cols = 1;
    } else {
        slice.first_col = select->first_col;
        slice.n_cols = (uint32_t)ps_select_width(select, self->spec);
    }
    ret_cut->slice = slice;
    if (slice.cols == PS_COLS_LIST) {
        ps_bytes_t none = {NULL, 0};
        ps_bytes_t index = {.data = (const uint8_t *)select->cols,
                            .size = select->n_cols * sizeof *select->cols};

        ret_cut->payload = ps_payload_copy(none, index, none);
        if (ret_cut->payload == NULL) {
            return no_memory(err);
        }
    }
    return PSD_OK;
}

psd_status_t ps_cut_present(const ps_present_args_t *args, uint32_t partition, ps_cuts_t *cuts,
                            psd_error_t *err)
{
    ps_extent_t extent = ps_extent_of(args->spec, partition);
    ps_cut_t like = {.partition = partition};
    uint64_t first = 0;
    uint64_t last = 0;
    psd_status_t rc = PSD_OK;

    if (!clip(args->select, &extent, &first, &last)) {
        return PSD_OK;
    }
    rc = make_pattern(args, &extent, &like, err);
    if (rc == PSD_OK) {
        rc = add_range(&like, first, last, cuts, err);
    }
    ps_payload_destroy(&like.payload);
    return rc;
}
