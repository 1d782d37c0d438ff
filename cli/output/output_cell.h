/* SPDX-License-Identifier: Apache-2.0 */
/* ps_cell - one value of an item, as text for a table, a csv file or a list */
#ifndef PS_CLI_OUTPUT_CELL_H
#define PS_CLI_OUTPUT_CELL_H

#include "cli/output/output.h"

/* The member that the path names: "a.b", or "a|b" for the first that is there.
 * NULL when there is none. */
json_t *ps_cell_find(const json_t *item, const char *path);
/* Writes the value as the format wants it: units for people in tables; quoted
 * for csv; tabs and line ends escaped in tsv. */
void ps_cell_write(FILE *file, const json_t *item, const ps_column_t *column, ps_format_t format);
/* A text field of csv or tsv. */
void ps_cell_write_field(FILE *file, const char *text, ps_format_t format);
/* The value for a table, on one line; the caller frees it with free. NULL: no
 * memory. */
char *ps_cell_text(const json_t *item, const ps_column_t *column);
/* Characters, not bytes. */
size_t ps_cell_width(const char *text);
#endif
