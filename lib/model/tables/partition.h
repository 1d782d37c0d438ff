/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_extent - which rows and columns a partition of a table holds
 *
 * What     Partition p = row slice p / n_col_slices, column slice
 *          p % n_col_slices. Row slices follow partition_by; column slices are
 *          equal ranges of columns (the first ones one wider).
 * Units    rows and columns of the table; last is inclusive
 */
#ifndef PS_MODEL_PARTITION_H
#define PS_MODEL_PARTITION_H

#include "model/tables/table.h"

typedef struct ps_extent {
    uint64_t first_row; /* BY_HASH: 0 */
    uint64_t last_row;  /* inclusive; BY_HASH: the table's last (or UINT64_MAX);
                           first > last: the extent is empty, which is legal */
    uint32_t first_col;
    uint32_t last_col; /* inclusive */
    uint32_t slice;    /* BY_HASH: the row slice's number */
    uint32_t n_slices; /* BY_HASH: row slices; else 1 */
} ps_extent_t;

/* partition < spec->n_partitions; spec has passed ps_table_spec_check. */
ps_extent_t ps_extent_of(const ps_table_spec_t *spec, uint32_t partition);
/* Rows of a RANGE-keys table in the extent: exact by range and list; by hash,
 * counted (linear in the table's rows). */
uint64_t ps_extent_rows(const ps_table_spec_t *spec, const ps_extent_t *extent);
bool ps_extent_has_row(const ps_extent_t *self, uint64_t row);
/* Row slice that holds the row: row / n_col_slices step of partitions. */
uint32_t ps_row_slice_of(const ps_table_spec_t *spec, uint64_t row);
/* Column slice that holds the column. */
uint32_t ps_col_slice_of(const ps_table_spec_t *spec, uint32_t col);
#endif
