/* SPDX-License-Identifier: Apache-2.0 */
/* Shows rows and parts of rows to a callback. */
#include "model/rows/row_pieces.h"

/* Entries of a sparse row whose columns are neighbours. */
static void sparse_range(const ps_sparse_view_t *view, uint64_t key, ps_columns_t columns, size_t n,
                         size_t value_size, ps_piece_fn_t *piece, void *context)
{
    uint64_t end = (uint64_t)columns.first + n;
    uint32_t from = ps_sparse_view_seek(view, columns.first);
    uint32_t to = end > UINT32_MAX ? view->n : ps_sparse_view_seek(view, (uint32_t)end);
    ps_columns_t list = {.list = (const uint8_t *)view->columns + sizeof(uint32_t) * from};

    if (to > from) {
        piece(context, key, list, view->values + from * value_size, to - from);
    }
}

static void sparse_pieces(const ps_row_shape_t *shape, uint64_t key, const ps_row_t *row,
                          ps_columns_t columns, size_t n, ps_piece_fn_t *piece, void *context)
{
    ps_sparse_view_t view = ps_sparse_row_view(row->sparse, shape);

    if (columns.list == NULL) {
        sparse_range(&view, key, columns, n, shape->value_size, piece, context);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        ps_columns_t one = {.first = ps_columns_at(columns, i)};

        sparse_range(&view, key, one, 1, shape->value_size, piece, context);
    }
}

void ps_row_pieces(const ps_row_shape_t *shape, uint64_t key, const ps_row_t *row,
                   ps_columns_t columns, size_t n, ps_piece_fn_t *piece, void *context)
{
    if (row->sparse != NULL) {
        sparse_pieces(shape, key, row, columns, n, piece, context);
        return;
    }
    for (size_t i = 0; i < n;) {
        ps_columns_t rest = ps_columns_from(columns, i);
        size_t run = ps_columns_neighbours(rest, n - i);
        size_t col = ps_columns_at(rest, 0) - shape->first_col;

        piece(context, key, rest, row->dense.values + col * shape->value_size, run);
        i += run;
    }
}

uint8_t *ps_row_value(const ps_row_shape_t *shape, const ps_row_t *row, uint32_t col)
{
    ps_sparse_view_t view;
    uint32_t at = 0;

    if (row->sparse == NULL) {
        return row->dense.values + (size_t)(col - shape->first_col) * shape->value_size;
    }
    view = ps_sparse_row_view(row->sparse, shape);
    at = ps_sparse_view_seek(&view, col);
    return at < view.n && view.columns[at] == col ? view.values + (size_t)at * shape->value_size
                                                  : NULL;
}
