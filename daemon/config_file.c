/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file: walks libyaml's events against the table of keys,
 * so that every error names its line. */
#include "daemon/config_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/alloc.h"
#include "base/text.h"

#define FILE_BYTES_MAX (1 << 20)
#define SHOWN_MAX 100 /* bytes of a wrong word that an error repeats */

typedef struct walk {
    yaml_parser_t parser;
    yaml_event_t event;           /* the present one; owned */
    const char *name;             /* of the file */
    unsigned lines[PS_KEY_COUNT]; /* the line that set a key, from 1; 0: none */
    char *texts[PS_KEY_COUNT];    /* owned; the values, NULL where there is none */
    psd_error_t *err;
} walk_t;

static unsigned line_of(const walk_t *self)
{
    return (unsigned)self->event.start_mark.line + 1;
}

static psd_status_t next(walk_t *self)
{
    yaml_event_delete(&self->event);
    if (yaml_parser_parse(&self->parser, &self->event)) {
        return PSD_OK;
    }
    if (self->parser.error == YAML_MEMORY_ERROR) {
        return psd_error_set(self->err, PSD_NOMEM, "no memory to read %s", self->name);
    }
    return psd_error_set(self->err, PSD_CONFIG, "%s:%u: not YAML: %s", self->name,
                         (unsigned)self->parser.problem_mark.line + 1,
                         self->parser.problem == NULL ? "?" : self->parser.problem);
}

static const char *scalar(const walk_t *self)
{
    return (const char *)self->event.data.scalar.value;
}

/* A '\0' inside a word would hide what follows it. */
static bool is_word(const walk_t *self)
{
    return self->event.type == YAML_SCALAR_EVENT &&
           strlen(scalar(self)) == self->event.data.scalar.length;
}

/* "key: " and nothing after it. */
static bool is_nothing(const walk_t *self)
{
    return self->event.type == YAML_SCALAR_EVENT && self->event.data.scalar.length == 0 &&
           self->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static const char *event_name(const walk_t *self)
{
    switch ((int)self->event.type) {
    case YAML_MAPPING_START_EVENT:
        return "a mapping";
    case YAML_SEQUENCE_START_EVENT:
        return "a list";
    case YAML_ALIAS_EVENT:
        return "an alias";
    case YAML_SCALAR_EVENT:
        return is_nothing(self) ? "empty" : "a single value";
    default:
        return "something else";
    }
}

static psd_status_t refuse_kind(walk_t *self, const char *what, const char *allowed)
{
    return psd_error_set(self->err, PSD_CONFIG, "%s:%u: %s is %s; allowed: %s", self->name,
                         line_of(self), what, event_name(self), allowed);
}

/* The words that may stand in a section ("" the root), without repetition. */
static size_t words_of(const char *section, const char *words[PS_KEY_COUNT + 1])
{
    size_t n = 0;

    for (int id = 0; id < PS_KEY_COUNT; id++) {
        const ps_key_t *key = ps_config_key((ps_key_id_t)id);
        const char *word = NULL;

        if (strcmp(key->section, section) == 0) {
            word = key->member;
        } else if (section[0] == '\0' && (n == 0 || strcmp(words[n - 1], key->section) != 0)) {
            word = key->section;
        }
        if (word != NULL) {
            words[n++] = word;
        }
    }
    words[n] = NULL;
    return n;
}

static psd_status_t refuse_word(walk_t *self, const char *section)
{
    const char *words[PS_KEY_COUNT + 1];
    PSD_AUTO(ps_buffer_done) ps_buffer_t list = {0};
    size_t n = words_of(section, words);
    const char *near = ps_text_suggest(scalar(self), words);
    const char *dot = section[0] == '\0' ? "" : ".";
    char shown[SHOWN_MAX];
    bool printed = true;

    (void)ps_config_show(scalar(self), shown, sizeof shown);
    if (near != NULL) {
        return psd_error_set(self->err, PSD_CONFIG, "%s:%u: unknown key %s; did you mean %s%s%s?",
                             self->name, line_of(self), shown, section, dot, near);
    }
    for (size_t i = 0; i < n; i++) {
        printed = printed && ps_buffer_print(&list, "%s%s", i == 0 ? "" : ", ", words[i]);
    }
    if (!printed) {
        return psd_error_set(self->err, PSD_NOMEM, "no memory for an error");
    }
    return psd_error_set(self->err, PSD_CONFIG, "%s:%u: unknown key %s%s%s; allowed: %s",
                         self->name, line_of(self), shown, section[0] == '\0' ? "" : " in ",
                         section, (const char *)list.data);
}

/* The key of that name in that section, or NULL. */
static const ps_key_t *find_key(const char *section, const char *member)
{
    for (int id = 0; id < PS_KEY_COUNT; id++) {
        const ps_key_t *key = ps_config_key((ps_key_id_t)id);

        if (strcmp(key->section, section) == 0 && strcmp(key->member, member) == 0) {
            return key;
        }
    }
    return NULL;
}

static const char *find_section(const char *name)
{
    for (int id = 0; id < PS_KEY_COUNT; id++) {
        const ps_key_t *key = ps_config_key((ps_key_id_t)id);

        if (key->section[0] != '\0' && strcmp(key->section, name) == 0) {
            return key->section;
        }
    }
    return NULL;
}

/* Reports what is not YAML or not a setting before a value that is not allowed. */
static psd_status_t keep(walk_t *self, const ps_key_t *key, const char *text)
{
    self->texts[key->id] = ps_strdup(text);
    return self->texts[key->id] != NULL
               ? PSD_OK
               : psd_error_set(self->err, PSD_NOMEM, "no memory to read %s", self->name);
}

/* The value of a list: words up to the end of the sequence. An empty one leaves
 * the default. */
static psd_status_t walk_list(walk_t *self, const ps_key_t *key)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    uint64_t n = 0;
    psd_status_t rc = PSD_OK;

    if (self->event.type != YAML_SEQUENCE_START_EVENT) {
        return refuse_kind(self, key->path, "a list, as [tcp://127.0.0.1:0]");
    }
    for (;;) {
        rc = next(self);
        if (rc != PSD_OK) {
            return rc;
        }
        if (self->event.type == YAML_SEQUENCE_END_EVENT && n >= key->min) {
            return n == 0 ? PSD_OK : keep(self, key, (const char *)text.data);
        }
        if (!is_word(self) || is_nothing(self) || n == key->max ||
            strchr(scalar(self), ',') != NULL) {
            break;
        }
        if (!ps_buffer_print(&text, "%s%s", n++ == 0 ? "" : ",", scalar(self))) {
            return psd_error_set(self->err, PSD_NOMEM, "no memory for a list");
        }
    }
    return psd_error_set(self->err, PSD_CONFIG,
                         "%s:%u: %s is a list of other things; allowed: %u .. %u of "
                         "tcp://HOST:PORT and ipc://PATH",
                         self->name, line_of(self), key->path, (unsigned)key->min,
                         (unsigned)key->max);
}

/* The value of a key: the present event is the one after the key's. */
static psd_status_t walk_value(walk_t *self, const ps_key_t *key, unsigned line)
{
    if (self->lines[key->id] != 0) {
        return psd_error_set(self->err, PSD_CONFIG,
                             "%s:%u: %s is set a second time; the first "
                             "is in line %u",
                             self->name, line, key->path, self->lines[key->id]);
    }
    self->lines[key->id] = line;
    if (key->kind == PS_KEY_KIND_URLS) {
        return walk_list(self, key);
    }
    if (!is_word(self) || is_nothing(self)) {
        return refuse_kind(self, key->path, "a single value");
    }
    return keep(self, key, scalar(self));
}

/* The keys of a section, and their values. */
static psd_status_t walk_section(walk_t *self, const char *section)
{
    if (is_nothing(self)) {
        return PSD_OK; /* all its keys are commented out */
    }
    if (self->event.type != YAML_MAPPING_START_EVENT) {
        return refuse_kind(self, section, "a mapping of keys");
    }
    for (;;) {
        const ps_key_t *key = NULL;
        psd_status_t rc = next(self);
        unsigned line = line_of(self);

        if (rc != PSD_OK || self->event.type == YAML_MAPPING_END_EVENT) {
            return rc;
        }
        if (!is_word(self)) {
            return refuse_kind(self, "a key", "a word");
        }
        key = find_key(section, scalar(self));
        if (key == NULL) {
            return refuse_word(self, section);
        }
        rc = next(self);
        if (rc == PSD_OK) {
            rc = walk_value(self, key, line);
        }
        if (rc != PSD_OK) {
            return rc;
        }
    }
}

/* One key of the root, or one section. */
static psd_status_t walk_entry(walk_t *self, unsigned *seen)
{
    const ps_key_t *key = NULL;
    const char *section = NULL;
    unsigned line = line_of(self);
    psd_status_t rc = PSD_OK;

    if (!is_word(self)) {
        return refuse_kind(self, "a key", "a word");
    }
    key = find_key("", scalar(self));
    section = find_section(scalar(self));
    if (key == NULL && section == NULL) {
        return refuse_word(self, "");
    }
    rc = next(self);
    if (rc != PSD_OK) {
        return rc;
    }
    if (key != NULL) {
        return walk_value(self, key, line);
    }
    /* `seen` is indexed by the section's first key. */
    for (int id = 0; id < PS_KEY_COUNT; id++) {
        if (ps_config_key((ps_key_id_t)id)->section == section) {
            if (seen[id] != 0) {
                return psd_error_set(self->err, PSD_CONFIG,
                                     "%s:%u: section %s is there a second time; the first is "
                                     "in line %u",
                                     self->name, line, section, seen[id]);
            }
            seen[id] = line;
            break;
        }
    }
    return walk_section(self, section);
}

static psd_status_t walk_root(walk_t *self)
{
    unsigned seen[PS_KEY_COUNT] = {0};

    if (is_nothing(self)) {
        return PSD_OK;
    }
    if (self->event.type != YAML_MAPPING_START_EVENT) {
        return refuse_kind(self, "the file", "a mapping of keys");
    }
    for (;;) {
        psd_status_t rc = next(self);

        if (rc != PSD_OK || self->event.type == YAML_MAPPING_END_EVENT) {
            return rc;
        }
        rc = walk_entry(self, seen);
        if (rc != PSD_OK) {
            return rc;
        }
    }
}

static psd_status_t walk_stream(walk_t *self)
{
    bool had_document = false;

    for (;;) {
        psd_status_t rc = next(self);

        if (rc != PSD_OK || self->event.type == YAML_STREAM_END_EVENT) {
            return rc;
        }
        if (self->event.type != YAML_DOCUMENT_START_EVENT) {
            continue; /* start of the stream, end of the document */
        }
        if (had_document) {
            return psd_error_set(self->err, PSD_CONFIG, "%s:%u: a second document; allowed: one",
                                 self->name, line_of(self));
        }
        had_document = true;
        rc = next(self);
        if (rc == PSD_OK) {
            rc = walk_root(self);
        }
        if (rc != PSD_OK) {
            return rc;
        }
    }
}

/* Sets the values that were read, key by key. */
static psd_status_t take_texts(const walk_t *self, ps_config_t *config)
{
    psd_status_t rc = PSD_OK;

    for (int id = 0; id < PS_KEY_COUNT && rc == PSD_OK; id++) {
        const ps_origin_t origin = {
            .source = PS_SOURCE_FILE, .file = config->file, .line = self->lines[id]};

        if (self->texts[id] != NULL) {
            rc = ps_config_set(config, (ps_key_id_t)id, self->texts[id], &origin, self->err);
        }
    }
    return rc;
}

psd_status_t ps_config_parse(ps_config_t *self, const char *name, ps_bytes_t text, psd_error_t *err)
{
    walk_t walk = {.name = name, .err = err};
    psd_status_t rc = PSD_OK;

    ps_free(self->file);
    self->file = ps_strdup(name);
    if (self->file == NULL || !yaml_parser_initialize(&walk.parser)) {
        return psd_error_set(err, PSD_NOMEM, "no memory to read %s", name);
    }
    /* libyaml asserts that there is a text, even an empty one. */
    yaml_parser_set_input_string(
        &walk.parser, text.data == NULL ? (const unsigned char *)"" : text.data, text.size);
    rc = walk_stream(&walk);
    if (rc == PSD_OK) {
        rc = take_texts(&walk, self);
    }
    for (int id = 0; id < PS_KEY_COUNT; id++) {
        ps_free(walk.texts[id]);
    }
    yaml_event_delete(&walk.event);
    yaml_parser_delete(&walk.parser);
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
