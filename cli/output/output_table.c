/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and lines for people. */
#include "cli/output/output.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/output/output_cell.h"

#define BOLD "\033[1m"
#define PLAIN "\033[0m"

/* Frees the n texts of an array and the array. */
static void free_cells(char **cells, size_t n)
{
    for (size_t i = 0; cells != NULL && i < n; i++) {
        free(cells[i]);
    }
    ps_free(cells);
}

static const char *cell_or_dash(const char *text)
{
    return text == NULL || text[0] == '\0' ? "-" : text;
}

static void write_padded(FILE *file, const char *text, size_t width, bool last)
{
    size_t used = ps_cell_width(text);

    (void)fputs(text, file);
    for (; !last && used < width + 2; used++) {
        (void)putc(' ', file);
    }
}

static size_t pick_columns(const ps_out_t *self, const ps_column_t *columns,
                           const ps_column_t *picked[PS_OUT_COLUMNS_MAX])
{
    size_t n = 0;

    for (size_t i = 0; columns[i].title != NULL && n < PS_OUT_COLUMNS_MAX; i++) {
        if (!columns[i].wide || self->format == PS_FORMAT_WIDE) {
            picked[n++] = &columns[i];
        }
    }
    return n;
}

static void write_titles(const ps_out_t *self, const ps_column_t *const *columns, size_t n_columns,
                         const size_t *widths)
{
    (void)fputs(self->color ? BOLD : "", self->out);
    for (size_t c = 0; c < n_columns; c++) {
        write_padded(self->out, columns[c]->title, widths[c], c + 1 == n_columns);
    }
    (void)fputs(self->color ? PLAIN "\n" : "\n", self->out);
}

static void write_rows(const ps_out_t *self, const ps_column_t *const *columns, size_t n_columns,
                       char *const *cells, size_t n_items)
{
    size_t widths[PS_OUT_COLUMNS_MAX];

    for (size_t c = 0; c < n_columns; c++) {
        widths[c] = strlen(columns[c]->title);
        widths[c] = self->no_headers ? 1 : widths[c];
        for (size_t i = 0; i < n_items; i++) {
            size_t width = ps_cell_width(cell_or_dash(cells[i * n_columns + c]));

            widths[c] = width > widths[c] ? width : widths[c];
        }
    }
    if (!self->no_headers) {
        write_titles(self, columns, n_columns, widths);
    }
    for (size_t i = 0; i < n_items; i++) {
        for (size_t c = 0; c < n_columns; c++) {
            write_padded(self->out, cell_or_dash(cells[i * n_columns + c]), widths[c],
                         c + 1 == n_columns);
        }
        (void)putc('\n', self->out);
    }
}

void ps_out_table(const ps_out_t *self, const json_t *items, const ps_column_t *columns)
{
    const ps_column_t *picked[PS_OUT_COLUMNS_MAX] = {NULL};
    size_t n_columns = pick_columns(self, columns, picked);
    size_t n_items = json_array_size(items);
    char **cells = ps_alloc(n_columns * n_items + 1, sizeof *cells);

    if (cells == NULL) {
        return;
    }
    for (size_t i = 0; i < n_items; i++) {
        for (size_t c = 0; c < n_columns; c++) {
            cells[i * n_columns + c] = ps_cell_text(json_array_get(items, i), picked[c]);
        }
    }
    write_rows(self, picked, n_columns, cells, n_items);
    free_cells(cells, n_columns * n_items);
}

void ps_out_lines(const ps_out_t *self, const json_t *object, const ps_column_t *columns)
{
    const ps_column_t *picked[PS_OUT_COLUMNS_MAX] = {NULL};
    size_t n = pick_columns(self, columns, picked);
    size_t width = 0;

    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(picked[i]->title);

        width = length > width ? length : width;
    }
    for (size_t i = 0; i < n; i++) {
        char *text = NULL;

        if (ps_cell_find(object, picked[i]->path) == NULL) {
            continue;
        }
        text = ps_cell_text(object, picked[i]);

        (void)fputs(self->color ? BOLD : "", self->out);
        write_padded(self->out, picked[i]->title, width, false);
        ps_print(self->out, "%s%s\n", self->color ? PLAIN : "", cell_or_dash(text));
        free(text);
    }
}
