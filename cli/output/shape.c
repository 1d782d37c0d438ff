/* SPDX-License-Identifier: Apache-2.0 */
/* Picks columns, sorts items. */
#include "cli/output/shape.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "cli/output/output_cell.h"

#define LIST_SIZE 400 /* of the columns that there are, in a message */

static void complain(const ps_out_t *self, const char *option, const char *name, size_t size,
                     const ps_column_t *columns)
{
    char list[LIST_SIZE] = "";
    size_t used = 0;

    for (size_t i = 0; columns[i].title != NULL && used < sizeof list; i++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ",
                                 columns[i].title);
    }
    if (self->wrong != NULL && self->wrong[0] == '\0') {
        (void)snprintf(self->wrong, PS_OUT_WRONG_SIZE, "--%s: no column \"%.*s\"; allowed: %s",
                       option, (int)size, name, list);
    }
}

/* The column of that title, or of a path that begins so. */
static const ps_column_t *find(const ps_column_t *columns, const char *name, size_t size)
{
    for (size_t i = 0; columns[i].title != NULL; i++) {
        const char *path = columns[i].path;
        bool is_title =
            strlen(columns[i].title) == size && strncasecmp(columns[i].title, name, size) == 0;

        if (is_title || (strcspn(path, "|") == size && strncasecmp(path, name, size) == 0)) {
            return &columns[i];
        }
    }
    return NULL;
}

bool ps_shape_columns(const ps_out_t *self, const ps_column_t *columns,
                      ps_column_t ret_columns[PS_OUT_COLUMNS_MAX + 1])
{
    const bool has_all = self->format != PS_FORMAT_TABLE;
    size_t n = 0;

    for (const char *at = self->columns; at != NULL && *at != '\0' && n < PS_OUT_COLUMNS_MAX;) {
        size_t size = strcspn(at, ",");
        const ps_column_t *found = find(columns, at, size);

        if (found == NULL) {
            complain(self, "columns", at, size, columns);
            return false;
        }
        ret_columns[n] = *found;
        ret_columns[n++].wide = false;
        at += size + (at[size] == ',' ? 1 : 0);
    }
    for (size_t i = 0; self->columns == NULL && columns[i].title != NULL; i++) {
        if ((has_all || !columns[i].wide) && n < PS_OUT_COLUMNS_MAX) {
            ret_columns[n++] = columns[i];
        }
    }
    ret_columns[n] = (ps_column_t){.title = NULL};
    return true;
}

/* ---- sorting ---- */

typedef struct sorted {
    json_t *item;        /* borrowed */
    const json_t *value; /* borrowed; NULL: it has none */
    size_t at;           /* its place before */
    int sign;            /* -1: the greatest first */
    ps_unit_t unit;
} sorted_t;

static double number_of(const sorted_t *self)
{
    return json_is_array(self->value)     ? (double)json_array_size(self->value)
           : json_is_boolean(self->value) ? (double)json_is_true(self->value)
                                          : json_number_value(self->value);
}

/* Numbers before texts before what has no order; items without a value come last. */
static int kind_of(const sorted_t *self)
{
    bool is_number = json_is_number(self->value) || json_is_boolean(self->value) ||
                     (self->unit == PS_UNIT_COUNT && json_is_array(self->value));

    return self->value == NULL || json_is_null(self->value) ? 3
           : is_number                                      ? 0
           : json_is_string(self->value)                    ? 1
                                                            : 2;
}

/* What is equal keeps its order. */
static int compare(const void *a, const void *b)
{
    const sorted_t *x = a;
    const sorted_t *y = b;
    int order = kind_of(x) - kind_of(y);

    if (order == 0 && kind_of(x) == 0) {
        double one = number_of(x);
        double two = number_of(y);

        order = x->sign * (one > two ? 1 : one < two ? -1 : 0);
    } else if (order == 0 && kind_of(x) == 1) {
        order = x->sign * strcmp(json_string_value(x->value), json_string_value(y->value));
    }
    return order != 0 ? order : x->at > y->at ? 1 : -1;
}

static json_t *array_of(const sorted_t *sorted, size_t n)
{
    json_t *array = json_array();

    for (size_t i = 0; array != NULL && i < n; i++) {
        if (json_array_append(array, sorted[i].item) != 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

json_t *ps_shape_sort(const ps_out_t *self, const json_t *items, const ps_column_t *columns)
{
    const int sign = self->sort != NULL && self->sort[0] == '-' ? -1 : 1;
    const char *name = self->sort == NULL ? "" : self->sort + (sign < 0 ? 1 : 0);
    const ps_column_t *by = self->sort == NULL ? NULL : find(columns, name, strlen(name));
    const size_t n = json_array_size(items);
    sorted_t *sorted = NULL;
    json_t *array = NULL;

    if (self->sort != NULL && by == NULL) {
        complain(self, "sort", name, strlen(name), columns);
        return NULL;
    }
    sorted = ps_alloc(n + 1, sizeof *sorted);
    if (sorted == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        json_t *item = json_array_get(items, i);

        sorted[i] = (sorted_t){.item = item,
                               .value = by == NULL ? NULL : ps_cell_find(item, by->path),
                               .at = i,
                               .sign = sign,
                               .unit = by == NULL ? PS_UNIT_NONE : by->unit};
    }
    qsort(sorted, n, sizeof *sorted, compare);
    array = array_of(sorted, n);
    ps_free(sorted);
    return array;
}
