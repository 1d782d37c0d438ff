/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_node_names - the nodes' names for people
 *
 * What     Routes, shards and their reasons identify a node by its incarnation;
 *          people by its name and the address of its control port.
 * Shape    One line for each name. JSON: [{"incarnation":7,"name":"vm-2",
 *          "endpoint":"tcp://…"},…]
 * Owner    The caller; zeroed it is empty. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_NODE_NAMES_H
#define PS_PROTOCOL_NODE_NAMES_H

#include "model/tables/table.h"
#include "wire/messages/doc.h"
#include "wire/messages/route.h"

#define PS_NODE_NAMES_MAX 65536 /* lines in a document */

typedef struct ps_node_name {
    uint64_t incarnation;
    char name[PS_NAME_MAX + 1];
    char endpoint[PS_ENDPOINT_MAX + 1]; /* of its control port */
} ps_node_name_t;

typedef struct ps_node_names {
    ps_node_name_t *items; /* owned */
    size_t n;
    size_t capacity;
} ps_node_names_t;

/* Fits PSD_AUTO. */
void ps_node_names_done(ps_node_names_t *self);
/* Adds a line, or replaces the line of the same name after its node restarted.
 * false: no memory. */
PSD_MUST_CHECK bool ps_node_names_set(ps_node_names_t *self, const ps_node_name_t *name);
/* NULL: unknown. */
const ps_node_name_t *ps_node_names_find(const ps_node_names_t *self, uint64_t incarnation);

/* Appends a line to an array. false: no memory. */
PSD_MUST_CHECK bool ps_node_name_to_doc(uint64_t incarnation, const char *name,
                                        const char *endpoint, ps_doc_t *array);
/* Reads the lines of the member "nodes"; none if it is missing. Errors:
 * PSD_PROTO, PSD_INVALID, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_node_names_from_doc(ps_node_names_t *self, const ps_doc_t *doc,
                                                   psd_error_t *err);

/* The name of a node, or NULL. */
typedef const char *ps_node_name_of_t(const void *names, uint64_t incarnation);
/* A shard's reason for people: "the copy on node 77 shard 1" becomes "the copy
 * on node "vm-2" shard 1". Numbers of unknown nodes stay. ret_text must not be
 * text; a longer result is cut. */
void ps_node_names_put(const char *text, ps_node_name_of_t *name_of, const void *names,
                       char *ret_text, size_t size);
#endif
