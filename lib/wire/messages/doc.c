/* SPDX-License-Identifier: Apache-2.0 */
/* A document from its birth to its text: nodes, parsing, printing. Reading is
 * doc_get.c, writing doc_set.c. */
#include "wire/messages/doc.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "wire/messages/doc_node.h"

/* A value takes up to a hundred times the bytes of its text; this bounds the
 * memory that a document of "[[],[],[], ..." can make psd allocate. */
#define VALUES_MAX (UINT32_C(1) << 20)

/* The document's own node and the state that all nodes share. */
typedef struct root {
    ps_doc_t node; /* first, so that the node's address is the root's */
    ps_map_t nodes;
} root_t;

static uint64_t key_of(const json_t *json)
{
    return (uint64_t)(uintptr_t)json;
}

ps_doc_t *ps_doc_node(const ps_doc_t *parent, const char *key, size_t index, json_t *json)
{
    ps_doc_t *node = ps_map_get(parent->nodes, key_of(json));

    if (node != NULL) {
        return node;
    }
    node = ps_alloc(1, sizeof *node);
    if (node == NULL) {
        return NULL;
    }
    if (!ps_map_put(parent->nodes, key_of(json), node)) {
        ps_free(node);
        return NULL;
    }
    node->json = json_incref(json);
    node->parent = parent;
    node->key = key;
    node->index = index;
    node->nodes = parent->nodes;
    return node;
}

ps_doc_t *ps_doc_wrap(json_t *json)
{
    root_t *root = ps_alloc(1, sizeof *root);

    if (root == NULL) {
        return NULL;
    }
    root->node.json = json;
    root->node.nodes = &root->nodes;
    return &root->node;
}

static ps_doc_t *wrap_fresh(json_t *json)
{
    ps_doc_t *self = json != NULL ? ps_doc_wrap(json) : NULL;

    if (self == NULL) {
        json_decref(json);
    }
    return self;
}

ps_doc_t *ps_doc_new(void)
{
    return wrap_fresh(json_object());
}

ps_doc_t *ps_doc_new_array(void)
{
    return wrap_fresh(json_array());
}

void ps_doc_destroy(ps_doc_t **self_p)
{
    root_t *root = NULL;
    size_t at = 0;
    uint64_t key = 0;
    void *value = NULL;

    if (self_p == NULL || *self_p == NULL) {
        return;
    }
    assert((*self_p)->parent == NULL); /* borrowed ones are not destroyed */
    root = (root_t *)*self_p;
    while (ps_map_next(&root->nodes, &at, &key, &value)) {
        ps_doc_t *node = value;

        json_decref(node->json);
        ps_free(node);
    }
    ps_map_done(&root->nodes);
    json_decref(root->node.json);
    ps_free(root);
    *self_p = NULL;
}

/* ---- paths ------------------------------------------------------------- */

/* Prepends text to the text at *at_p; false: it did not fit and became
 * "...". */
static bool put_in_front(char *buffer, size_t *at_p, const char *text, size_t size)
{
    const size_t reserve = sizeof "..." - 1;

    if (size + reserve > *at_p) {
        *at_p -= reserve;
        memcpy(buffer + *at_p, "...", reserve);
        return false;
    }
    *at_p -= size;
    memcpy(buffer + *at_p, text, size);
    return true;
}

static bool put_step(char *buffer, size_t *at_p, const char *key, size_t index, bool first)
{
    char item[32];

    if (key == NULL) {
        (void)snprintf(item, sizeof item, "[%zu]", index);
        return put_in_front(buffer, at_p, item, strlen(item));
    }
    return put_in_front(buffer, at_p, key, strlen(key)) &&
           (first || put_in_front(buffer, at_p, ".", 1));
}

const char *ps_doc_path(const ps_doc_t *in, const char *key, size_t index,
                        char buffer[PS_DOC_PATH_SIZE])
{
    size_t at = PS_DOC_PATH_SIZE - 1;

    buffer[at] = '\0';
    while (in != NULL && put_step(buffer, &at, key, index, in->parent == NULL)) {
        key = in->key;
        index = in->index;
        in = in->parent;
    }
    return buffer + at;
}

/* ---- text -------------------------------------------------------------- */

/* A look at the text before jansson's parser, which recurses, may see it. */
typedef struct scan {
    size_t line; /* from 1 */
    size_t column;
    size_t depth;
    size_t n_values; /* one less than there are, or more */
    bool in_text;
    bool escaped; /* after a backslash within a text */
} scan_t;

static void scan_byte(scan_t *self, uint8_t byte)
{
    self->column += (byte & 0xC0) != 0x80 ? 1 : 0; /* characters */
    if (byte == '\n') {
        self->line++;
        self->column = 0;
    }
    if (self->in_text) {
        self->in_text = byte != '"' || self->escaped;
        self->escaped = byte == '\\' && !self->escaped;
        return;
    }
    switch (byte) {
    case '"':
        self->in_text = true;
        return;
    case '{':
    case '[':
        self->depth++;
        self->n_values++;
        return;
    case '}':
    case ']':
        self->depth -= self->depth > 0 ? 1 : 0;
        return;
    case ',':
        self->n_values++;
        return;
    default:
        return;
    }
}

static psd_status_t check_text(ps_bytes_t text, psd_error_t *err)
{
    scan_t scan = {.line = 1};

    if (text.size > PS_DOC_BYTES_MAX) {
        return psd_error_set(err, PSD_LIMIT, "document is %zu bytes; allowed: 0..%u", text.size,
                             (unsigned)PS_DOC_BYTES_MAX);
    }
    for (size_t i = 0; i < text.size; i++) {
        scan_byte(&scan, text.data[i]);
        if (scan.depth > PS_DOC_DEPTH_MAX) {
            return psd_error_set(err, PSD_LIMIT,
                                 "document is nested deeper than %d at line "
                                 "%zu, column %zu",
                                 PS_DOC_DEPTH_MAX, scan.line, scan.column);
        }
        if (scan.n_values > VALUES_MAX) {
            return psd_error_set(err, PSD_LIMIT,
                                 "document has more than %u values at line "
                                 "%zu, column %zu",
                                 (unsigned)VALUES_MAX, scan.line, scan.column);
        }
    }
    return PSD_OK;
}

/* jansson quotes the text it stumbled over as it is. */
static void flatten(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7F) {
            *text = ' ';
        }
    }
}

static psd_status_t parse_failed(json_error_t *why, psd_error_t *err)
{
    if (json_error_code(why) == json_error_out_of_memory) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a document");
    }
    flatten(why->text);
    return psd_error_set(err, PSD_PROTO, "document, line %d, column %d: %s", why->line, why->column,
                         why->text);
}

psd_status_t ps_doc_parse(ps_bytes_t text, ps_doc_t **ret_doc, psd_error_t *err)
{
    json_error_t why = {0};
    json_t *json = NULL;
    ps_doc_t *doc = NULL;
    psd_status_t rc = check_text(text, err);

    if (rc != PSD_OK) {
        return rc;
    }
    json = json_loadb(text.size > 0 ? (const char *)text.data : "", text.size,
                      JSON_REJECT_DUPLICATES, &why);
    if (json == NULL) {
        return parse_failed(&why, err);
    }
    if (!json_is_object(json)) {
        json_decref(json);
        return psd_error_set(err, PSD_PROTO, "document is an array; allowed: an object");
    }
    doc = wrap_fresh(json);
    if (doc == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a document");
    }
    *ret_doc = doc;
    return PSD_OK;
}

/* Jansson does not hear of a key that could not be written. */
typedef struct print {
    ps_buffer_t *buffer;
    bool failed;
} print_t;

static int append_piece(const char *piece, size_t size, void *context)
{
    print_t *self = context;

    self->failed = self->failed || !ps_buffer_append(self->buffer, piece, size);
    return self->failed ? -1 : 0;
}

bool ps_doc_print(const ps_doc_t *self, ps_buffer_t *buffer)
{
    print_t print = {.buffer = buffer};
    size_t size = buffer->size;

    if (json_dump_callback(self->json, append_piece, &print, JSON_COMPACT) == 0 && !print.failed) {
        return true;
    }
    buffer->size = size; /* half a document is none */
    return false;
}
