/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a document: every getter finds the value's place, checks its kind,
 * then its range, and names the place when one of them is wrong. */
#include "wire/messages/doc.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "wire/messages/doc_node.h"

#define SHOWN_SIZE 64 /* of a wrong value, in an error */

/* Where a value is looked for. */
typedef struct place {
    const ps_doc_t *in;
    const char *key; /* NULL: an item */
    size_t index;
} place_t;

static place_t at_key(const ps_doc_t *in, const char *key)
{
    return (place_t){.in = in, .key = key};
}

static place_t at_index(const ps_doc_t *in, size_t i)
{
    assert(i < json_array_size(in->json));
    return (place_t){.in = in, .index = i};
}

static json_t *look(const place_t *place)
{
    return place->key != NULL ? json_object_get(place->in->json, place->key)
                              : json_array_get(place->in->json, place->index);
}

static psd_status_t find(const place_t *place, json_t **ret, psd_error_t *err)
{
    char path[PS_DOC_PATH_SIZE];
    json_t *json = look(place);

    if (json == NULL) {
        return psd_error_set(err, PSD_PROTO, "%s is missing",
                             ps_doc_path(place->in, place->key, place->index, path));
    }
    *ret = json;
    return PSD_OK;
}

/* ---- errors ------------------------------------------------------------ */

/* The front of a value's text. */
typedef struct shown {
    char text[SHOWN_SIZE];
    size_t size;
} shown_t;

static int show_piece(const char *piece, size_t size, void *shown)
{
    shown_t *self = shown;
    size_t room = sizeof self->text - sizeof "..." - self->size;

    if (size > room) {
        memcpy(self->text + self->size, piece, room);
        memcpy(self->text + self->size + room, "...", sizeof "...");
        return -1; /* enough */
    }
    memcpy(self->text + self->size, piece, size);
    self->size += size;
    self->text[self->size] = '\0';
    return 0;
}

static const char *show(const json_t *json, shown_t *shown)
{
    if (json_is_object(json)) {
        return "an object";
    }
    if (json_is_array(json)) {
        return "an array";
    }
    shown->text[0] = '\0';
    shown->size = 0;
    (void)json_dump_callback(json, show_piece, shown, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    for (char *at = shown->text; *at != '\0'; at++) {
        *at = *at == 0x7F ? '?' : *at; /* the one that JSON does not escape */
    }
    return shown->text;
}

static psd_status_t refuse(const place_t *place, const json_t *json, psd_status_t status,
                           const char *allowed, psd_error_t *err)
{
    char path[PS_DOC_PATH_SIZE];
    shown_t shown;

    return psd_error_set(err, status, "%s is %s; allowed: %s",
                         ps_doc_path(place->in, place->key, place->index, path), show(json, &shown),
                         allowed);
}

/* Refuses a value with too many bytes or items. */
static psd_status_t refuse_size(const place_t *place, size_t size, const char *unit, size_t max,
                                psd_error_t *err)
{
    char path[PS_DOC_PATH_SIZE];

    return psd_error_set(err, PSD_INVALID, "%s has %zu %s; allowed: 0..%zu",
                         ps_doc_path(place->in, place->key, place->index, path), size, unit, max);
}

/* ---- values ------------------------------------------------------------ */

static psd_status_t read_u64(place_t place, uint64_t min, uint64_t max, uint64_t *ret,
                             psd_error_t *err)
{
    json_t *json = NULL;
    uint64_t value = 0;
    char allowed[64];
    psd_status_t rc = find(&place, &json, err);

    if (rc != PSD_OK) {
        return rc;
    }
    (void)snprintf(allowed, sizeof allowed, "%" PRIu64 "..%" PRIu64, min, max);
    if (json_is_integer(json)) {
        if (json_integer_value(json) < 0) {
            return refuse(&place, json, PSD_INVALID, allowed, err);
        }
        value = (uint64_t)json_integer_value(json);
    } else if (!json_is_string(json) || !ps_text_u64(json_string_value(json), &value)) {
        return refuse(&place, json, PSD_PROTO, allowed, err);
    }
    if (value < min || value > max) {
        return refuse(&place, json, PSD_INVALID, allowed, err);
    }
    *ret = value;
    return PSD_OK;
}

static psd_status_t read_text(place_t place, size_t max_bytes, const char **ret, psd_error_t *err)
{
    json_t *json = NULL;
    size_t size = 0;
    psd_status_t rc = find(&place, &json, err);

    if (rc != PSD_OK) {
        return rc;
    }
    /* The parser lets no '\0' into a text. */
    if (!json_is_string(json)) {
        return refuse(&place, json, PSD_PROTO, "a text", err);
    }
    size = json_string_length(json);
    if (size > max_bytes) {
        return refuse_size(&place, size, "bytes", max_bytes, err);
    }
    *ret = json_string_value(json);
    return PSD_OK;
}

/* key: the place's own, which lives as long as the document. */
static psd_status_t read_node(place_t place, json_t *json, const ps_doc_t **ret, psd_error_t *err)
{
    const char *key = NULL;
    const ps_doc_t *node = NULL;

    if (place.key != NULL) {
        key = json_object_iter_key(json_object_iter_at(place.in->json, place.key));
    }
    node = ps_doc_node(place.in, key, place.index, json);
    if (node == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a document");
    }
    *ret = node;
    return PSD_OK;
}

static psd_status_t read_object(place_t place, const ps_doc_t **ret, psd_error_t *err)
{
    json_t *json = NULL;
    psd_status_t rc = find(&place, &json, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!json_is_object(json)) {
        return refuse(&place, json, PSD_PROTO, "an object", err);
    }
    return read_node(place, json, ret, err);
}

bool ps_doc_has(const ps_doc_t *self, const char *key)
{
    return json_object_get(self->json, key) != NULL;
}

psd_status_t ps_doc_get_u64(const ps_doc_t *self, const char *key, uint64_t min, uint64_t max,
                            uint64_t *ret, psd_error_t *err)
{
    return read_u64(at_key(self, key), min, max, ret, err);
}

psd_status_t ps_doc_get_u64_or(const ps_doc_t *self, const char *key, uint64_t min, uint64_t max,
                               uint64_t fallback, uint64_t *ret, psd_error_t *err)
{
    if (!ps_doc_has(self, key)) {
        *ret = fallback;
        return PSD_OK;
    }
    return ps_doc_get_u64(self, key, min, max, ret, err);
}

psd_status_t ps_doc_get_i64(const ps_doc_t *self, const char *key, int64_t min, int64_t max,
                            int64_t *ret, psd_error_t *err)
{
    place_t place = at_key(self, key);
    json_t *json = NULL;
    char allowed[64];
    psd_status_t rc = find(&place, &json, err);

    if (rc != PSD_OK) {
        return rc;
    }
    (void)snprintf(allowed, sizeof allowed, "%" PRId64 "..%" PRId64, min, max);
    if (!json_is_integer(json)) {
        return refuse(&place, json, PSD_PROTO, allowed, err);
    }
    if (json_integer_value(json) < min || json_integer_value(json) > max) {
        return refuse(&place, json, PSD_INVALID, allowed, err);
    }
    *ret = json_integer_value(json);
    return PSD_OK;
}

psd_status_t ps_doc_get_f64(const ps_doc_t *self, const char *key, double *ret, psd_error_t *err)
{
    place_t place = at_key(self, key);
    json_t *json = NULL;
    psd_status_t rc = find(&place, &json, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!json_is_number(json)) {
        return refuse(&place, json, PSD_PROTO, "a number", err);
    }
    *ret = json_number_value(json);
    return PSD_OK;
}

psd_status_t ps_doc_get_bool(const ps_doc_t *self, const char *key, bool *ret, psd_error_t *err)
{
    place_t place = at_key(self, key);
    json_t *json = NULL;
    psd_status_t rc = find(&place, &json, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!json_is_boolean(json)) {
        return refuse(&place, json, PSD_PROTO, "true, false", err);
    }
    *ret = json_is_true(json);
    return PSD_OK;
}

psd_status_t ps_doc_get_switch(const ps_doc_t *self, const char *key, bool *ret, psd_error_t *err)
{
    return ps_doc_has(self, key) ? ps_doc_get_bool(self, key, ret, err) : PSD_OK;
}

psd_status_t ps_doc_get_text(const ps_doc_t *self, const char *key, size_t max_bytes,
                             const char **ret, psd_error_t *err)
{
    return read_text(at_key(self, key), max_bytes, ret, err);
}

psd_status_t ps_doc_get_text_or(const ps_doc_t *self, const char *key, size_t max_bytes,
                                const char *fallback, const char **ret, psd_error_t *err)
{
    if (!ps_doc_has(self, key)) {
        *ret = fallback;
        return PSD_OK;
    }
    return ps_doc_get_text(self, key, max_bytes, ret, err);
}

psd_status_t ps_doc_get_id(const ps_doc_t *self, const char *key, ps_id_t *ret, psd_error_t *err)
{
    place_t place = at_key(self, key);
    json_t *json = NULL;
    ps_id_t id = {0};
    psd_status_t rc = find(&place, &json, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!json_is_string(json) || !ps_id_parse(json_string_value(json), &id)) {
        return refuse(&place, json, PSD_PROTO, "a UUID", err);
    }
    *ret = id;
    return PSD_OK;
}

psd_status_t ps_doc_get_object(const ps_doc_t *self, const char *key, const ps_doc_t **ret,
                               psd_error_t *err)
{
    return read_object(at_key(self, key), ret, err);
}

psd_status_t ps_doc_get_array(const ps_doc_t *self, const char *key, size_t max_count,
                              const ps_doc_t **ret, psd_error_t *err)
{
    place_t place = at_key(self, key);
    json_t *json = NULL;
    psd_status_t rc = find(&place, &json, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!json_is_array(json)) {
        return refuse(&place, json, PSD_PROTO, "an array", err);
    }
    if (json_array_size(json) > max_count) {
        return refuse_size(&place, json_array_size(json), "items", max_count, err);
    }
    return read_node(place, json, ret, err);
}

size_t ps_doc_count(const ps_doc_t *self)
{
    return json_array_size(self->json);
}

psd_status_t ps_doc_at_object(const ps_doc_t *self, size_t i, const ps_doc_t **ret,
                              psd_error_t *err)
{
    return read_object(at_index(self, i), ret, err);
}

psd_status_t ps_doc_at_u64(const ps_doc_t *self, size_t i, uint64_t *ret, psd_error_t *err)
{
    return read_u64(at_index(self, i), 0, UINT64_MAX, ret, err);
}

psd_status_t ps_doc_at_text(const ps_doc_t *self, size_t i, size_t max_bytes, const char **ret,
                            psd_error_t *err)
{
    return read_text(at_index(self, i), max_bytes, ret, err);
}
