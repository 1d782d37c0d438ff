/* SPDX-License-Identifier: Apache-2.0 */
/* One value as text. */
#include "cli/output/output_cell.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/output/json_text.h"

#define PATH_PART_MAX 64

static json_t *find_one(const json_t *item, const char *path, size_t length)
{
    json_t *at = (json_t *)item; /* read only */

    while (at != NULL && length > 0) {
        const char *dot = memchr(path, '.', length);
        size_t part = dot == NULL ? length : (size_t)(dot - path);
        char key[PATH_PART_MAX];

        if (part >= sizeof key) {
            return NULL;
        }
        memcpy(key, path, part);
        key[part] = '\0';
        at = json_object_get(at, key);
        path += part + (dot == NULL ? 0 : 1);
        length -= part + (dot == NULL ? 0 : 1);
    }
    return at;
}

json_t *ps_cell_find(const json_t *item, const char *path)
{
    while (path[0] != '\0') {
        size_t length = strcspn(path, "|");
        json_t *found = find_one(item, path, length);

        if (found != NULL) {
            return found;
        }
        path += length + (path[length] == '|' ? 1 : 0);
    }
    return NULL;
}

static void write_time(FILE *file, double unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm parts;
    char text[32] = "?";

    if (gmtime_r(&seconds, &parts) != NULL) {
        (void)strftime(text, sizeof text, "%Y-%m-%d %H:%M:%SZ", &parts);
    }
    (void)fputs(text, file);
}

static void write_human_number(FILE *file, double value, ps_unit_t unit)
{
    char text[PS_NUMBER_SIZE] = "";

    switch (unit) {
    case PS_UNIT_BYTES:
        ps_bytes_format(value, text);
        break;
    case PS_UNIT_SECONDS:
        ps_seconds_format(value, text);
        break;
    case PS_UNIT_RATE:
        ps_rate_format(value, text);
        break;
    case PS_UNIT_UNIX_MS:
        write_time(file, value);
        return;
    case PS_UNIT_NONE:
    case PS_UNIT_COUNT:
    default:
        ps_f64_format(value, text);
    }
    (void)fputs(text, file);
}

static void write_number(FILE *file, const json_t *value, ps_unit_t unit)
{
    char text[PS_NUMBER_SIZE];

    if (unit != PS_UNIT_NONE && unit != PS_UNIT_COUNT) {
        write_human_number(file, json_number_value(value), unit);
    } else if (json_is_integer(value)) {
        ps_print(file, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else {
        ps_f64_format(json_real_value(value), text);
        (void)fputs(text, file);
    }
}

static void write_value(FILE *file, const json_t *value, ps_unit_t unit);

/* {"name":"sgd","alpha":0.1} becomes sgd:alpha=0.1; anything else `k=v, k=v`.
 */
static void write_object(FILE *file, const json_t *object)
{
    const char *name = json_string_value(json_object_get(object, "name"));
    const char *key = NULL;
    const char *gap = name == NULL ? "" : ":";
    json_t *value = NULL;

    if (name != NULL) {
        (void)fputs(name, file);
    }
    json_object_foreach((json_t *)object, key, value)
    {
        if (name != NULL && strcmp(key, "name") == 0) {
            continue;
        }
        ps_print(file, "%s%s=", gap, key);
        write_value(file, value, PS_UNIT_NONE);
        gap = name == NULL ? ", " : ",";
    }
}

static void write_value(FILE *file, const json_t *value, ps_unit_t unit)
{
    if (json_is_string(value)) {
        (void)fputs(json_string_value(value), file);
    } else if (json_is_number(value)) {
        write_number(file, value, unit);
    } else if (json_is_boolean(value)) {
        (void)fputs(json_is_true(value) ? "true" : "false", file);
    } else if (json_is_array(value) && unit == PS_UNIT_COUNT) {
        ps_print(file, "%zu", json_array_size(value));
    } else if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++) {
            (void)fputs(i == 0 ? "" : ", ", file);
            write_value(file, json_array_get(value, i), unit);
        }
    } else if (json_is_object(value)) {
        write_object(file, value);
    }
}

static void write_tsv(FILE *file, const char *text)
{
    for (; *text != '\0'; text++) {
        const char *escaped = *text == '\t'   ? "\\t"
                              : *text == '\n' ? "\\n"
                              : *text == '\r' ? "\\r"
                              : *text == '\\' ? "\\\\"
                                              : NULL;

        if (escaped != NULL) {
            (void)fputs(escaped, file);
        } else {
            (void)putc(*text, file);
        }
    }
}

static void write_quoted(FILE *file, const char *text)
{
    (void)putc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"') {
            (void)putc('"', file);
        }
        (void)putc(*text, file);
    }
    (void)putc('"', file);
}

void ps_cell_write_field(FILE *file, const char *text, ps_format_t format)
{
    if (format == PS_FORMAT_TSV) {
        write_tsv(file, text);
    } else if (format == PS_FORMAT_CSV && strpbrk(text, ",\"\r\n") != NULL) {
        write_quoted(file, text);
    } else {
        (void)fputs(text, file);
    }
}

/* Control bytes would move the cursor or break the line. */
static void clean_line(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7F) {
            *text = ' ';
        }
    }
}

static char *value_text(const json_t *value, ps_unit_t unit)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    if (file == NULL) {
        return NULL;
    }
    write_value(file, value, unit);
    if (fclose(file) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

char *ps_cell_text(const json_t *item, const ps_column_t *column)
{
    const json_t *value = ps_cell_find(item, column->path);
    char *text = value_text(value, column->unit);

    if (text != NULL) {
        clean_line(text);
    }
    return text;
}

void ps_cell_write(FILE *file, const json_t *item, const ps_column_t *column, ps_format_t format)
{
    const json_t *value = ps_cell_find(item, column->path);
    ps_unit_t unit = column->unit == PS_UNIT_COUNT ? PS_UNIT_COUNT : PS_UNIT_NONE;
    char *text = value_text(value, unit);

    if (text == NULL) {
        return;
    }
    if (format == PS_FORMAT_NAME) {
        clean_line(text);
    }
    ps_cell_write_field(file, text, format);
    free(text);
}

size_t ps_cell_width(const char *text)
{
    size_t width = 0;

    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xC0) != 0x80 ? 1 : 0;
    }
    return width;
}
