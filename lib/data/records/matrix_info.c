/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of MatrixInfo. */
#include "data/records/matrix_info.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "data/streams/window.h"

#define TEXT_MAX ((size_t)64 << 10)
#define NAME_SIZE 48
#define WORD_SIZE 40

static const char *const TYPES[] = {[PSD_ENTRIES_SPARSE] = "SPARSE",
                                    [PSD_ENTRIES_BINARY] = "SPARSE_BINARY",
                                    [PSD_ENTRIES_DENSE] = "DENSE"};

/* What has been read, and which of it was there. */
typedef struct parts {
    ps_matrix_info_t info;
    uint64_t row_begin, row_end;
    uint64_t index_size, value_size;
    bool has_type, has_rows, has_value_size;
    bool by_columns;
} parts_t;

static const char *skip_space(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n') {
        at++;
    }
    return at;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '+' || c == '.';
}

/* A word of at most size - 1 bytes; NULL: there is none. */
static const char *take_word(const char *at, char *ret_word, size_t size)
{
    size_t n = 0;

    at = skip_space(at);
    while (is_word(at[n])) {
        n++;
    }
    if (n == 0 || n >= size) {
        return NULL;
    }
    memcpy(ret_word, at, n);
    ret_word[n] = '\0';
    return at + n;
}

static bool set_type(parts_t *parts, const char *value)
{
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
        if (strcmp(TYPES[i], value) == 0) {
            parts->info.type = (psd_entries_t)i;
            parts->has_type = true;
            return true;
        }
    }
    return false;
}

/* `name`, with the names that it stands in before it, is `value`. false: it
 * cannot be. */
static bool set(parts_t *parts, const char *name, const char *value)
{
    struct {
        const char *name;
        uint64_t *to;
        bool *has;
    } const numbers[] = {
        {"row.begin", &parts->row_begin, NULL},
        {"row.end", &parts->row_end, &parts->has_rows},
        {"col.begin", &parts->info.column_begin, NULL},
        {"col.end", &parts->info.column_end, NULL},
        {"nnz", &parts->info.n_entries, NULL},
        {"sizeof_index", &parts->index_size, NULL},
        {"sizeof_value", &parts->value_size, &parts->has_value_size},
    };

    if (strcmp(name, "type") == 0) {
        return set_type(parts, value);
    }
    if (strcmp(name, "row_major") == 0) {
        parts->by_columns = strcmp(value, "true") != 0;
        return !parts->by_columns || strcmp(value, "false") == 0;
    }
    if (strcmp(name, "id") == 0) {
        return ps_text_i64(value, &parts->info.id) && parts->info.id >= INT32_MIN &&
               parts->info.id <= INT32_MAX;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(name, numbers[i].name) == 0) {
            if (numbers[i].has != NULL) {
                *numbers[i].has = true;
            }
            return ps_text_u64(value, numbers[i].to);
        }
    }
    return true; /* something that is not used here */
}

/* One `name: value`, `name {` or `}`; `inside` is the name of the braces that
 * it stands in, "" for none. NULL: it is none of these. */
static const char *take_field(parts_t *parts, const char *at, char inside[WORD_SIZE])
{
    char word[WORD_SIZE];
    char value[WORD_SIZE];
    char name[2 * NAME_SIZE];

    if (*at == '}' && inside[0] != '\0') {
        inside[0] = '\0';
        return at + 1;
    }
    at = take_word(at, word, sizeof word);
    at = at == NULL ? NULL : skip_space(at);
    if (at != NULL && *at == ':' && *skip_space(at + 1) == '{') {
        at = skip_space(at + 1);
    }
    if (at != NULL && *at == '{' && inside[0] == '\0') {
        memcpy(inside, word, sizeof word);
        return at + 1;
    }
    if (at == NULL || *at != ':') {
        return NULL;
    }
    at = take_word(at + 1, value, sizeof value);
    (void)snprintf(name, sizeof name, "%s%s%s", inside, inside[0] == '\0' ? "" : ".", word);
    return at != NULL && set(parts, name, value) ? at : NULL;
}

/* Why the parts are no matrix that can be read; NULL: they are one. */
static const char *find_fault(const parts_t *parts)
{
    bool dense = parts->info.type == PSD_ENTRIES_DENSE;

    if (!parts->has_type || !parts->has_rows || !parts->has_value_size) {
        return "type, row or sizeof_value is missing";
    }
    if (parts->by_columns) {
        return "it is stored by columns (row_major: false); only rows are read";
    }
    if (parts->row_begin > parts->row_end || parts->info.column_begin > parts->info.column_end) {
        return "a range ends before it begins";
    }
    if (parts->value_size != 4 && parts->value_size != 8) {
        return "sizeof_value is neither 4 nor 8";
    }
    if (!dense && parts->index_size != 4 && parts->index_size != 8) {
        return "sizeof_index is neither 4 nor 8";
    }
    return NULL;
}

static psd_status_t parse(const char *path, const char *text, ps_matrix_info_t *ret_info,
                          psd_error_t *err)
{
    parts_t parts = {0};
    char inside[WORD_SIZE] = "";
    const char *fault = NULL;

    for (const char *at = skip_space(text); *at != '\0'; at = skip_space(at)) {
        const char *next = take_field(&parts, at, inside);

        if (next == NULL) {
            return psd_error_set(err, PSD_INVALID,
                                 "%s: byte %zu: no field of the text form of "
                                 "MatrixInfo, or a value that it cannot have",
                                 path, (size_t)(at - text));
        }
        at = next;
    }
    fault = find_fault(&parts);
    if (fault != NULL) {
        return psd_error_set(err, PSD_INVALID, "%s: %s", path, fault);
    }
    parts.info.n_rows = parts.row_end - parts.row_begin;
    parts.info.index_size = (uint32_t)parts.index_size;
    parts.info.value_size = (uint32_t)parts.value_size;
    *ret_info = parts.info;
    return PSD_OK;
}

psd_status_t ps_matrix_info_read(const char *path, ps_matrix_info_t *ret_info, psd_error_t *err)
{
    PSD_AUTO(ps_window_done) ps_byte_window_t window = {0};
    PSD_AUTO(ps_free_at) char *text = NULL;
    const uint8_t *bytes = NULL;
    size_t size = 0;
    psd_status_t rc = ps_window_open(&window, path, err);

    if (rc == PSD_OK) {
        rc = ps_window_peek(&window, TEXT_MAX, &bytes, &size, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (size == TEXT_MAX || memchr(bytes, '\0', size) != NULL) {
        return psd_error_set(err, PSD_INVALID, "%s: no text of less than %zu bytes", path,
                             TEXT_MAX);
    }
    text = ps_alloc(size + 1, 1);
    if (text == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to read %s", path);
    }
    memcpy(text, bytes, size);
    return parse(path, text, ret_info, err);
}

bool ps_matrix_info_print(const ps_matrix_info_t *self, ps_buffer_t *out)
{
    bool room = ps_buffer_print(
        out,
        "type: %s\nrow_major: true\nid: %" PRId64 "\nrow {\n  begin: 0\n  end: %" PRIu64
        "\n}\ncol {\n  begin: %" PRIu64 "\n  end: %" PRIu64 "\n}\nnnz: %" PRIu64 "\n",
        TYPES[self->type], self->id, self->n_rows, self->column_begin, self->column_end,
        self->n_entries);

    if (room && self->index_size != 0) {
        room = ps_buffer_print(out, "sizeof_index: %" PRIu32 "\n", self->index_size);
    }
    return room && ps_buffer_print(out, "sizeof_value: %" PRIu32 "\n", self->value_size);
}
