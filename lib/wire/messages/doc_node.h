/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doc_node - the definition of ps_doc_t; private to lib/wire
 *
 * What     One JSON object or array and its path. jansson's values do not know
 *          their parents, but an error must name the whole path. So each object
 *          and array gets a node on its first access.
 * Owner    The document (the root node) owns all nodes. A node holds a
 *          reference to its value, so the value survives its replacement in the
 *          document.
 */
#ifndef PS_WIRE_DOC_NODE_H
#define PS_WIRE_DOC_NODE_H

#include <jansson.h>

#include "base/map.h"
#include "wire/messages/doc.h"

struct ps_doc {
    json_t *json;
    const ps_doc_t *parent; /* NULL: this is the document */
    const char *key;        /* in the parent, which owns it; NULL: an item */
    size_t index;           /* in the parent, of an item */
    ps_map_t *nodes;        /* of the whole document: json_t's address -> node */
};

#define PS_DOC_PATH_SIZE 256

/* The node of the value in parent under key or, when key is NULL, at index. key
 * must live as long as the document: pass the parent's own string. NULL when
 * there is no memory. */
ps_doc_t *ps_doc_node(const ps_doc_t *parent, const char *key, size_t index, json_t *json);

/* A document around json; takes over the reference on success. NULL: no
 * memory. */
ps_doc_t *ps_doc_wrap(json_t *json);

/* Writes "routes[2].epoch" for a key (or, when key is NULL, an index) looked up
 * in `in`. If the path does not fit, its front becomes "...". Returns a pointer
 * into buffer. */
const char *ps_doc_path(const ps_doc_t *in, const char *key, size_t index,
                        char buffer[PS_DOC_PATH_SIZE]);
#endif
