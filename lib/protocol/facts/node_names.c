/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes by their incarnations, and texts that name them so. */
#include "protocol/facts/node_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void ps_node_names_done(ps_node_names_t *self)
{
    ps_free(self->items);
    *self = (ps_node_names_t){.n = 0};
}

bool ps_node_names_set(ps_node_names_t *self, const ps_node_name_t *name)
{
    size_t at = 0;

    while (at < self->n && strcmp(self->items[at].name, name->name) != 0) {
        at++;
    }
    if (at == self->n &&
        !ps_grow(&self->items, &self->capacity, self->n + 1, sizeof *self->items)) {
        return false;
    }
    self->items[at] = *name;
    self->n += at == self->n ? 1 : 0;
    return true;
}

const ps_node_name_t *ps_node_names_find(const ps_node_names_t *self, uint64_t incarnation)
{
    for (size_t i = 0; i < self->n; i++) {
        if (self->items[i].incarnation == incarnation) {
            return &self->items[i];
        }
    }
    return NULL;
}

/* ---- documents ---- */

bool ps_node_name_to_doc(uint64_t incarnation, const char *name, const char *endpoint,
                         ps_doc_t *array)
{
    ps_doc_t *doc = ps_doc_append_object(array);

    return doc != NULL && ps_doc_set_u64(doc, "incarnation", incarnation) &&
           ps_doc_set_text(doc, "name", name) && ps_doc_set_text(doc, "endpoint", endpoint);
}

static psd_status_t read_name(const ps_doc_t *doc, ps_node_name_t *ret_name, psd_error_t *err)
{
    const char *name = NULL;
    const char *endpoint = NULL;
    psd_status_t rc =
        ps_doc_get_u64(doc, "incarnation", 1, UINT64_MAX, &ret_name->incarnation, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text(doc, "name", PS_NAME_MAX, &name, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_text(doc, "endpoint", PS_ENDPOINT_MAX, &endpoint, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    memcpy(ret_name->name, name, strlen(name) + 1);
    memcpy(ret_name->endpoint, endpoint, strlen(endpoint) + 1);
    return PSD_OK;
}

psd_status_t ps_node_names_from_doc(ps_node_names_t *self, const ps_doc_t *doc, psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    psd_status_t rc = PSD_OK;

    if (!ps_doc_has(doc, "nodes")) {
        return PSD_OK;
    }
    rc = ps_doc_get_array(doc, "nodes", PS_NODE_NAMES_MAX, &array, err);
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(array); i++) {
        const ps_doc_t *item = NULL;
        ps_node_name_t name = {0};

        rc = ps_doc_at_object(array, i, &item, err);
        if (rc == PSD_OK) {
            rc = read_name(item, &name, err);
        }
        if (rc == PSD_OK && !ps_node_names_set(self, &name)) {
            rc = psd_error_set(err, PSD_NOMEM, "no memory for names of nodes");
        }
    }
    return rc;
}

/* ---- texts ---- */

void ps_node_names_put(const char *text, ps_node_name_of_t *name_of, const void *names,
                       char *ret_text, size_t size)
{
    static const char NODE[] = "node ";
    const char *from = text;
    size_t used = 0;

    ret_text[0] = '\0';
    while (used < size) {
        const char *at = strstr(from, NODE);
        const char *name = NULL;
        char *end = NULL;

        if (at == NULL) {
            (void)snprintf(ret_text + used, size - used, "%s", from);
            return;
        }
        at += sizeof NODE - 1;
        if (*at >= '0' && *at <= '9') {
            name = name_of(names, strtoull(at, &end, 10));
        }
        used += name == NULL
                    ? (size_t)snprintf(ret_text + used, size - used, "%.*s", (int)(at - from), from)
                    : (size_t)snprintf(ret_text + used, size - used, "%.*s\"%s\"", (int)(at - from),
                                       from, name);
        from = name == NULL ? at : end;
    }
}
