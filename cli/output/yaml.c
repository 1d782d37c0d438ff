/* SPDX-License-Identifier: Apache-2.0 */
/* Writing YAML and templates. */
#include "cli/output/yaml.h"

#include <ctype.h>
#include <string.h>

#include "cli/output/json_text.h"
#include "cli/output/output_cell.h"

#define INDENT 2
#define PATH_MAX_SIZE 128

static void write_value(FILE *file, const char *key, const json_t *value, int depth, bool as_text);

static void indent(FILE *file, int depth)
{
    for (int i = 0; i < depth * INDENT; i++) {
        (void)putc(' ', file);
    }
}

/* Words that YAML reads as something else than a text. */
static bool is_other(const char *text)
{
    static const char *const WORDS[] = {"true", "false", "yes", "no", "on",
                                        "off",  "null",  "y",   "n"};

    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        if (strcasecmp(WORDS[i], text) == 0) {
            return true;
        }
    }
    return false;
}

/* It needs no quotes: it begins with a letter, and no sign of YAML is in it. */
static bool is_plain(const char *text)
{
    if (!isalpha((unsigned char)text[0]) || is_other(text)) {
        return false;
    }
    for (const char *at = text; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at) && strchr("_-./", *at) == NULL) {
            return false;
        }
    }
    return true;
}

static void write_text(FILE *file, const char *text)
{
    if (is_plain(text)) {
        (void)fputs(text, file);
    } else {
        ps_json_write_text(file, text); /* a text of JSON is one of YAML */
    }
}

static bool is_nested(const json_t *value)
{
    return (json_is_object(value) && json_object_size(value) > 0) ||
           (json_is_array(value) && json_array_size(value) > 0);
}

static void write_members(FILE *file, const json_t *object, int depth, bool indent_first,
                          bool as_text)
{
    const char *key = NULL;
    json_t *value = NULL;
    bool indents = indent_first;

    /* jansson's iterator takes a non-const object, but does not change it. */
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (indents) {
            indent(file, depth);
        }
        indents = true;
        write_text(file, key);
        (void)putc(':', file);
        write_value(file, key, value, depth, as_text);
    }
}

static void write_items(FILE *file, const json_t *array, int depth, bool as_text)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *item = json_array_get(array, i);

        indent(file, depth);
        (void)putc('-', file);
        if (json_is_object(item) && json_object_size(item) > 0) {
            (void)putc(' ', file);
            write_members(file, item, depth + 1, false, as_text);
        } else {
            write_value(file, "", item, depth, as_text);
        }
    }
}

/* The value of a key or an item, up to its line end. Recursion ends: jansson's parser
 * bounds the depth. */
static void write_value(FILE *file, const char *key, const json_t *value, int depth, bool as_text)
{
    if (!is_nested(value)) {
        (void)putc(' ', file);
        if (json_is_string(value) && !ps_json_is_integer_text(key, value)) {
            write_text(file, json_string_value(value));
        } else {
            ps_json_write_member(file, key, value, as_text);
        }
        (void)putc('\n', file);
        return;
    }
    (void)putc('\n', file);
    if (json_is_object(value)) {
        write_members(file, value, depth + 1, true, as_text);
    } else {
        write_items(file, value, depth + 1, as_text);
    }
}

void ps_yaml_write_doc(FILE *file, const json_t *doc, bool big_as_text)
{
    (void)fputs("schema_version: 1\n", file);
    write_members(file, doc, 0, true, big_as_text);
}

/* ---- templates ---- */

bool ps_template_is_valid(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        size_t size = 0;

        if (*at == '\\' && at[1] != '\0') {
            at++;
        } else if (*at == '{') {
            size = strcspn(at + 1, "{}");
            if (at[1 + size] != '}' || size == 0 || size >= PATH_MAX_SIZE) {
                return false;
            }
            at += 1 + size;
        }
    }
    return true;
}

static char escaped(char c)
{
    return (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c);
}

void ps_template_write(FILE *file, const char *text, const json_t *item)
{
    char last = '\0';

    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '{') {
            char path[PATH_MAX_SIZE] = "";
            size_t size = strcspn(at + 1, "}");
            const ps_column_t column = {.title = "", .path = path};

            memcpy(path, at + 1, size < sizeof path ? size : sizeof path - 1);
            if (ps_cell_find(item, path) != NULL) {
                ps_cell_write(file, item, &column, PS_FORMAT_NAME);
            }
            at += 1 + size;
            last = '}';
        } else {
            bool is_escape = *at == '\\' && at[1] != '\0';

            at += is_escape ? 1 : 0;
            last = is_escape ? escaped(*at) : *at;
            (void)putc(last, file);
        }
    }
    if (last != '\n') {
        (void)putc('\n', file);
    }
}
