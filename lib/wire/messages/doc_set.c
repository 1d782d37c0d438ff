/* SPDX-License-Identifier: Apache-2.0 */
/* Writing into a document. jansson's _new calls take their value also when
 * they fail. */
#include "wire/messages/doc.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "wire/messages/doc_node.h"

static bool set(ps_doc_t *self, const char *key, json_t *value)
{
    return value != NULL && json_object_set_new(self->json, key, value) == 0;
}

static bool append(ps_doc_t *self, json_t *value)
{
    return value != NULL && json_array_append_new(self->json, value) == 0;
}

/* JSON numbers here are signed; a larger value becomes a string of digits. */
static json_t *number_of(uint64_t value)
{
    if (value <= INT64_MAX) {
        return json_integer((json_int_t)value);
    }
    return json_sprintf("%" PRIu64, value);
}

bool ps_doc_set_u64(ps_doc_t *self, const char *key, uint64_t value)
{
    return set(self, key, number_of(value));
}

bool ps_doc_set_i64(ps_doc_t *self, const char *key, int64_t value)
{
    return set(self, key, json_integer(value));
}

bool ps_doc_set_f64(ps_doc_t *self, const char *key, double value)
{
    return set(self, key, json_real(value)); /* NULL unless finite */
}

bool ps_doc_set_bool(ps_doc_t *self, const char *key, bool value)
{
    return set(self, key, json_boolean(value));
}

bool ps_doc_set_text(ps_doc_t *self, const char *key, const char *value)
{
    return set(self, key, json_string(value)); /* NULL unless UTF-8 */
}

bool ps_doc_set_id(ps_doc_t *self, const char *key, const ps_id_t *value)
{
    char text[PS_ID_TEXT_SIZE];

    ps_id_format(value, text);
    return ps_doc_set_text(self, key, text);
}

bool ps_doc_set_null(ps_doc_t *self, const char *key)
{
    return set(self, key, json_null());
}

/* Makes the node before its value gets a place, so that nothing can fail once
 * the value is there. */
static ps_doc_t *add(ps_doc_t *self, const char *key, json_t *value)
{
    ps_doc_t *node = NULL;
    size_t index = json_array_size(self->json);
    int rc = 0;

    if (value == NULL) {
        return NULL;
    }
    node = ps_doc_node(self, NULL, index, value);
    if (node == NULL) {
        json_decref(value);
        return NULL;
    }
    rc = key != NULL ? json_object_set(self->json, key, value)
                     : json_array_append(self->json, value);
    json_decref(value); /* the node and its place hold it */
    if (rc != 0) {
        (void)ps_map_remove(self->nodes, (uint64_t)(uintptr_t)value);
        json_decref(node->json);
        ps_free(node);
        return NULL;
    }
    if (key != NULL) {
        /* The object's own copy of the key, which stays when the value is
         * replaced. */
        node->key = json_object_iter_key(json_object_iter_at(self->json, key));
    }
    return node;
}

ps_doc_t *ps_doc_add_object(ps_doc_t *self, const char *key)
{
    return add(self, key, json_object());
}

ps_doc_t *ps_doc_add_array(ps_doc_t *self, const char *key)
{
    return add(self, key, json_array());
}

bool ps_doc_append_u64(ps_doc_t *self, uint64_t value)
{
    return append(self, number_of(value));
}

bool ps_doc_append_text(ps_doc_t *self, const char *value)
{
    return append(self, json_string(value));
}

ps_doc_t *ps_doc_append_object(ps_doc_t *self)
{
    return add(self, NULL, json_object());
}
