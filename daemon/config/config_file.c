/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file: lines first, so that errors can name them; then cyaml
 * loads it by a schema made from the table of keys. */
#include "daemon/config/config.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "daemon/config/config_lines.h"

#define FILE_BYTES_MAX (1 << 20)

/* What cyaml fills: every value as its text. */
#define RAW_PATH(member) char *member;
#define RAW_DIR(member) char *member;
#define RAW_NAME(member) char *member;
#define RAW_HOST(member) char *member;
#define RAW_PORTS(member) char *member;
#define RAW_UINT(member) char *member;
#define RAW_SIZE(member) char *member;
#define RAW_LEVEL(member) char *member;
#define RAW_PEERS(member) char *member;
#define RAW_BOOL(member) char *member;
#define RAW_URLS(member) \
    char **member;       \
    unsigned member##_count;

#define BEGIN(section) typedef struct raw_##section {
#define KEY(path, kind, section, member, ...) RAW_##kind(member)
#define END(section) \
    }                \
    raw_##section##_t;
#include "daemon/config/config_keys.def"

typedef struct raw {
#define ROOT(path, kind, member, ...) RAW_##kind(member)
#define BEGIN(section) raw_##section##_t *section;
#include "daemon/config/config_keys.def"
} raw_t;

static const cyaml_schema_value_t ITEM = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, CYAML_UNLIMITED),
};

#define TEXT_FIELD(type, member)                                                               \
    CYAML_FIELD_STRING_PTR(#member, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, type, member, 0, \
                           CYAML_UNLIMITED),
#define FIELD_PATH(type, member) TEXT_FIELD(type, member)
#define FIELD_DIR(type, member) TEXT_FIELD(type, member)
#define FIELD_NAME(type, member) TEXT_FIELD(type, member)
#define FIELD_HOST(type, member) TEXT_FIELD(type, member)
#define FIELD_PORTS(type, member) TEXT_FIELD(type, member)
#define FIELD_UINT(type, member) TEXT_FIELD(type, member)
#define FIELD_SIZE(type, member) TEXT_FIELD(type, member)
#define FIELD_LEVEL(type, member) TEXT_FIELD(type, member)
#define FIELD_PEERS(type, member) TEXT_FIELD(type, member)
#define FIELD_BOOL(type, member) TEXT_FIELD(type, member)
#define FIELD_URLS(type, member)                                                                 \
    CYAML_FIELD_SEQUENCE(#member, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, type, member, &ITEM, \
                         0, CYAML_UNLIMITED),

#define BEGIN(section) static const cyaml_schema_field_t section##_fields[] = {
#define KEY(path, kind, section, member, ...) FIELD_##kind(raw_##section##_t, member)
#define END(section) \
    CYAML_FIELD_END  \
    }                \
    ;
#include "daemon/config/config_keys.def"

static const cyaml_schema_field_t root_fields[] = {
#define ROOT(path, kind, member, ...) FIELD_##kind(raw_t, member)
#define BEGIN(section)                                                                      \
    CYAML_FIELD_MAPPING_PTR(#section, CYAML_FLAG_POINTER_NULL | CYAML_FLAG_OPTIONAL, raw_t, \
                            section, section##_fields),
#include "daemon/config/config_keys.def"
    CYAML_FIELD_END};

static const cyaml_schema_value_t SCHEMA = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, raw_t, root_fields),
};

static const cyaml_config_t CYAML = {
    .log_fn = NULL, /* errors go up, with our own words */
    .mem_fn = cyaml_mem,
    .log_level = CYAML_LOG_ERROR,
    .flags = CYAML_CFG_NO_ALIAS,
};

/* ---- from cyaml's texts to values ---- */

typedef struct loading {
    ps_config_t *config;
    const ps_config_lines_t *lines;
    psd_error_t *err;
} loading_t;

static psd_status_t take_text(const loading_t *self, ps_key_id_t id, const char *text)
{
    const ps_origin_t origin = {
        .source = PS_SOURCE_FILE, .file = self->config->file, .line = self->lines->lines[id]};

    if (text == NULL) {
        return PSD_OK;
    }
    return ps_config_set(self->config, id, text, &origin, self->err);
}

static psd_status_t take_list(const loading_t *self, ps_key_id_t id, char *const *items,
                              unsigned n_items)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    if (items == NULL || n_items == 0) {
        return PSD_OK;
    }
    for (unsigned i = 0; i < n_items; i++) {
        if (!ps_buffer_print(&text, "%s%s", i == 0 ? "" : ",", items[i])) {
            return psd_error_set(self->err, PSD_NOMEM, "no memory for a list");
        }
    }
    return take_text(self, id, (const char *)text.data);
}

/* Where cyaml puts the text of each key. */
#define NOWHERE SIZE_MAX
#define COUNT_PATH(type, member) NOWHERE
#define COUNT_DIR(type, member) NOWHERE
#define COUNT_NAME(type, member) NOWHERE
#define COUNT_HOST(type, member) NOWHERE
#define COUNT_PORTS(type, member) NOWHERE
#define COUNT_UINT(type, member) NOWHERE
#define COUNT_SIZE(type, member) NOWHERE
#define COUNT_LEVEL(type, member) NOWHERE
#define COUNT_PEERS(type, member) NOWHERE
#define COUNT_BOOL(type, member) NOWHERE
#define COUNT_URLS(type, member) offsetof(type, member##_count)

#define ROOT(path, kind, member, ...) \
    {PS_KEY_##member, NOWHERE, offsetof(raw_t, member), COUNT_##kind(raw_t, member)},
#define KEY(path, kind, section, member, ...)                                                    \
    {PS_KEY_##section##_##member, offsetof(raw_t, section), offsetof(raw_##section##_t, member), \
     COUNT_##kind(raw_##section##_t, member)},
static const struct {
    ps_key_id_t id;
    size_t section; /* of the pointer to its section in raw_t; NOWHERE: root */
    size_t member;  /* in the section */
    size_t count;   /* of a list, in the section; NOWHERE: it is none */
} PLACES[] = {
#include "daemon/config/config_keys.def"
};

/* The pointer that lies at that offset. */
static const void *pointer_at(const void *base, size_t offset)
{
    const void *found = NULL;

    memcpy(&found, (const char *)base + offset, sizeof found);
    return found;
}

static psd_status_t take_all(const loading_t *self, const raw_t *raw)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < PS_KEY_COUNT && rc == PSD_OK; i++) {
        const void *section =
            PLACES[i].section == NOWHERE ? raw : pointer_at(raw, PLACES[i].section);
        const void *value = section == NULL ? NULL : pointer_at(section, PLACES[i].member);

        if (value == NULL) {
            continue; /* it is not in the file */
        }
        if (PLACES[i].count == NOWHERE) {
            rc = take_text(self, PLACES[i].id, value);
        } else {
            unsigned n_items = 0;

            memcpy(&n_items, (const char *)section + PLACES[i].count, sizeof n_items);
            rc = take_list(self, PLACES[i].id, value, n_items);
        }
    }
    return rc;
}

psd_status_t ps_config_parse(ps_config_t *self, const char *name, ps_bytes_t text, psd_error_t *err)
{
    ps_config_lines_t lines = {0};
    loading_t loading = {.config = self, .lines = &lines, .err = err};
    cyaml_data_t *raw = NULL;
    cyaml_err_t failed = CYAML_OK;
    psd_status_t rc = ps_config_lines(name, text, &lines, err);

    if (rc != PSD_OK) {
        return rc;
    }
    ps_free(self->file);
    self->file = ps_strdup(name);
    if (self->file == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to read %s", name);
    }
    if (lines.is_empty) {
        return PSD_OK;
    }
    failed = cyaml_load_data(text.data, text.size, &CYAML, &SCHEMA, &raw, NULL);
    if (failed == CYAML_ERR_OOM) {
        return psd_error_set(err, PSD_NOMEM, "no memory to read %s", name);
    }
    if (failed != CYAML_OK || raw == NULL) {
        return psd_error_set(err, PSD_CONFIG, "%s: %s", name, cyaml_strerror(failed));
    }
    rc = take_all(&loading, raw);
    (void)cyaml_free(&CYAML, &SCHEMA, raw, 0);
    return rc;
}

/* Reads the file into buffer, at most FILE_BYTES_MAX. */
static psd_status_t read_file(FILE *file, const char *path, ps_buffer_t *buffer, psd_error_t *err)
{
    char piece[8192];
    size_t n = 0;

    while ((n = fread(piece, 1, sizeof piece, file)) > 0) {
        if (buffer->size + n > FILE_BYTES_MAX) {
            return psd_error_set(err, PSD_CONFIG,
                                 "%s: larger than %d bytes; allowed: at most "
                                 "that",
                                 path, FILE_BYTES_MAX);
        }
        if (!ps_buffer_append(buffer, piece, n)) {
            return psd_error_set(err, PSD_NOMEM, "no memory to read %s", path);
        }
    }
    if (ferror(file)) {
        return psd_error_set(err, PSD_CONFIG, "%s: cannot be read: %s", path, strerror(errno));
    }
    return PSD_OK;
}

psd_status_t ps_config_load(ps_config_t *self, const char *path, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    FILE *file = fopen(path, "re");
    psd_status_t rc = PSD_OK;

    if (file == NULL) {
        return psd_error_set(err, PSD_CONFIG, "%s: cannot be opened: %s", path, strerror(errno));
    }
    rc = read_file(file, path, &text, err);
    (void)fclose(file);
    if (rc != PSD_OK) {
        return rc;
    }
    return ps_config_parse(self, path, (ps_bytes_t){.data = text.data, .size = text.size}, err);
}
