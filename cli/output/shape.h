/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shape - which columns a list has, and in which order its items come
 *
 * What     --columns and --sort name columns by their titles, or by what csv calls
 *          them, in any case of letters. What is wrong is kept for ps_out_finish.
 */
#ifndef PS_CLI_SHAPE_H
#define PS_CLI_SHAPE_H

#include "cli/output/output.h"

/* The columns to show, then a NULL title: those asked for, else all, else those that are not
 * wide. false: one of those asked for is not there. */
bool ps_shape_columns(const ps_out_t *self, const ps_column_t *columns,
                      ps_column_t ret_columns[PS_OUT_COLUMNS_MAX + 1]);
/* The items in the order asked for; the caller gives the array back with json_decref. NULL:
 * no memory, or no such column. */
json_t *ps_shape_sort(const ps_out_t *self, const json_t *items, const ps_column_t *columns);
#endif
