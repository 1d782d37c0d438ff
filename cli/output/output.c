/* SPDX-License-Identifier: Apache-2.0 */
/* Which format, words and errors, and lists and objects in each format. */
#include "cli/output/output.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/output/json_text.h"
#include "cli/output/output_cell.h"
#include "cli/output/shape.h"
#include "cli/output/yaml.h"

static const char *const NAMES[] = {"table", "wide", "json", "jsonl",   "csv",
                                    "tsv",   "name", "yaml", "template"};

bool ps_format_parse(const char *text, ps_format_t *ret_format)
{
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (strcmp(NAMES[i], text) == 0) {
            *ret_format = (ps_format_t)i;
            return true;
        }
    }
    return false;
}

bool ps_format_is_json(ps_format_t format)
{
    return format == PS_FORMAT_JSON || format == PS_FORMAT_JSONL;
}

bool ps_format_is_csv(ps_format_t format)
{
    return format == PS_FORMAT_CSV || format == PS_FORMAT_TSV;
}

static void print_to(FILE *file, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

static void print_to(FILE *file, const char *format, va_list arguments)
{
    /* clang-tidy 14 finds this only after other files of the same run: its
     * state, not ours. NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
    (void)vfprintf(file, format, arguments);
}

void ps_say(const ps_out_t *self, const char *format, ...)
{
    va_list arguments;

    if (self->quiet) {
        return;
    }
    va_start(arguments, format);
    print_to(self->err, format, arguments);
    va_end(arguments);
    (void)putc('\n', self->err);
}

static void unref(json_t **value_p)
{
    json_decref(*value_p);
}

static void write_csv_row(const ps_out_t *self, const json_t *item, const ps_column_t *columns)
{
    for (size_t i = 0; columns[i].title != NULL; i++) {
        if (i > 0) {
            (void)putc(self->format == PS_FORMAT_CSV ? ',' : '\t', self->out);
        }
        ps_cell_write(self->out, item, &columns[i], self->format);
    }
    (void)putc('\n', self->out);
}

static void write_csv_header(const ps_out_t *self, const ps_column_t *columns)
{
    for (size_t i = 0; !self->no_headers && columns[i].title != NULL; i++) {
        ps_print(self->out, "%s%.*s",
                 i == 0                          ? ""
                 : self->format == PS_FORMAT_CSV ? ","
                                                 : "\t",
                 (int)strcspn(columns[i].path, "|"), columns[i].path);
    }
    (void)fputs(self->no_headers ? "" : "\n", self->out);
}

static void write_item(const ps_out_t *self, const json_t *item, const ps_column_t *columns)
{
    if (self->format == PS_FORMAT_JSONL) {
        ps_json_write_doc(self->out, item, self->big_as_text);
        (void)putc('\n', self->out);
    } else if (self->format == PS_FORMAT_NAME) {
        ps_cell_write(self->out, item, &columns[0], self->format);
        (void)putc('\n', self->out);
    } else if (self->format == PS_FORMAT_TEMPLATE) {
        ps_template_write(self->out, self->text, item);
    } else {
        write_csv_row(self, item, columns);
    }
}

static void write_whole(const ps_out_t *self, const json_t *doc)
{
    if (self->format == PS_FORMAT_YAML) {
        ps_yaml_write_doc(self->out, doc, self->big_as_text);
    } else {
        ps_json_write_doc(self->out, doc, self->big_as_text);
        (void)putc('\n', self->out);
    }
}

/* The whole document, with the list in its order. */
static void write_document(const ps_out_t *self, const json_t *doc, const char *key, json_t *items)
{
    PSD_AUTO(unref) json_t *copy = json_copy((json_t *)(uintptr_t)doc); /* only its first level */

    if (copy != NULL && (items == NULL || json_object_set(copy, key, items) == 0)) {
        write_whole(self, copy);
    }
}

static void write_items(const ps_out_t *self, const json_t *items, const ps_column_t *columns)
{
    ps_column_t shown[PS_OUT_COLUMNS_MAX + 1];

    if (!ps_shape_columns(self, columns, shown)) {
        return;
    }
    if (self->format == PS_FORMAT_TABLE || self->format == PS_FORMAT_WIDE) {
        ps_out_table(self, items, shown);
        return;
    }
    if (ps_format_is_csv(self->format)) {
        write_csv_header(self, shown);
    }
    for (size_t i = 0; i < json_array_size(items); i++) {
        write_item(self, json_array_get(items, i), shown);
    }
}

void ps_out_list(const ps_out_t *self, const json_t *doc, const char *key,
                 const ps_column_t *columns)
{
    const json_t *items = json_object_get(doc, key);
    PSD_AUTO(unref) json_t *sorted = ps_shape_sort(self, items, columns);

    if (sorted == NULL) {
        return;
    }
    if (self->format == PS_FORMAT_JSON || self->format == PS_FORMAT_YAML) {
        write_document(self, doc, key, items == NULL ? NULL : sorted);
    } else {
        write_items(self, sorted, columns);
    }
}

void ps_out_object(const ps_out_t *self, const json_t *doc, const ps_column_t *columns)
{
    switch (self->format) {
    case PS_FORMAT_JSON:
    case PS_FORMAT_JSONL:
    case PS_FORMAT_YAML:
        write_whole(self, doc);
        break;
    case PS_FORMAT_CSV:
    case PS_FORMAT_TSV:
        write_csv_header(self, columns);
        write_csv_row(self, doc, columns);
        break;
    case PS_FORMAT_NAME:
    case PS_FORMAT_TEMPLATE:
        write_item(self, doc, columns);
        break;
    case PS_FORMAT_TABLE:
    case PS_FORMAT_WIDE:
    default:
        ps_out_lines(self, doc, columns);
    }
}

void ps_out_answer(const ps_out_t *self, const json_t *doc, const ps_column_t *columns,
                   const char *format, ...)
{
    bool is_table = self->format == PS_FORMAT_TABLE;
    va_list arguments;

    if (!is_table || (self->verbose && !self->quiet)) {
        ps_out_object(self, doc, columns);
        return;
    }
    if (self->quiet) {
        return;
    }
    va_start(arguments, format);
    print_to(self->out, format, arguments);
    va_end(arguments);
    (void)putc('\n', self->out);
}

/* The part of a hint that does not only point back at the message. */
static const char *useful_part(const char *hint)
{
    const char *rest = strstr(hint, "; ");

    if (strncmp(hint, "read the message", 16) == 0) {
        return "";
    }
    if (strncmp(hint, "the message ", 12) == 0) {
        return rest == NULL ? "" : rest + 2;
    }
    return hint;
}

static void write_error_line(const ps_out_t *self, psd_status_t status, const char *message)
{
    const char *hint = useful_part(psd_status_hint(status));
    size_t length = strlen(message);
    const char *gap = length > 0 && message[length - 1] == '?' ? " " : "; ";

    if (strstr(message, hint) != NULL) {
        gap = ""; /* it is already in the message, or there is none */
        hint = "";
    }
    ps_print(self->err, "pscli: %s %s%s%s\n", psd_status_code(status), message, gap, hint);
}

void ps_out_error(const ps_out_t *self, psd_status_t status, const char *message,
                  const json_t *details)
{
    if (!ps_format_is_json(self->format)) {
        write_error_line(self, status, message);
        return;
    }
    ps_print(self->out,
             "{\"schema_version\":1,\"error\":{\"code\":\"%s\",\"exit\":%d,"
             "\"message\":",
             psd_status_code(status), psd_status_exit(status));
    ps_json_write_text(self->out, message);
    ps_print(self->out, ",\"hint\":");
    ps_json_write_text(self->out, psd_status_hint(status));
    ps_print(self->out, ",\"details\":");
    if (json_is_object(details)) {
        ps_json_write(self->out, details, self->big_as_text);
    } else {
        ps_print(self->out, "{}");
    }
    ps_print(self->out, "}}\n");
}

psd_status_t ps_out_finish(const ps_out_t *self, psd_error_t *err)
{
    if (fflush(self->out) != 0 || ferror(self->out)) {
        return psd_error_set(err, PSD_IO, "stdout cannot be written: %s", strerror(errno));
    }
    if (self->wrong != NULL && self->wrong[0] != '\0') {
        return psd_error_set(err, PSD_USAGE, "%s", self->wrong);
    }
    return PSD_OK;
}
