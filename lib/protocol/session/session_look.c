/* SPDX-License-Identifier: Apache-2.0 */
/* Information about a session. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "protocol/session/session_private.h"

const ps_route_t *ps_session_link(const ps_session_t *self, uint64_t link)
{
    return link < self->n_links ? &self->links[link]->route : NULL;
}

void ps_session_link_goes(ps_session_t *self, uint64_t link, const char *endpoint)
{
    ps_link_t *found = NULL;

    assert(link < self->n_links);
    found = self->links[link];
    if (!ps_link_bulk_is(found, link)) { /* it is said of the first one */
        (void)snprintf(found->endpoint, sizeof found->endpoint, "%s", endpoint);
    }
}

bool ps_session_link_of(const ps_session_t *self, uint32_t table, uint32_t partition,
                        uint64_t *ret_link)
{
    const ps_session_table_t *known = ps_map_get(&self->table_of, table);
    const ps_link_t *link = NULL;

    if (known == NULL || !known->known || partition >= known->n_parts) {
        return false;
    }
    link = known->parts[partition].place;
    if (link == NULL || link->state == PS_LINK_UNUSED) {
        return false;
    }
    *ret_link = link->number;
    return true;
}

uint64_t ps_session_epochs(const ps_session_t *self, uint32_t table)
{
    const ps_session_table_t *found = ps_map_get(&self->table_of, table);
    uint64_t sum = 0;

    for (uint32_t i = 0; found != NULL && found->known && i < found->n_parts; i++) {
        sum += found->parts[i].epoch;
    }
    return sum;
}

uint32_t ps_session_chunk_bytes(const ps_session_t *self, uint64_t link)
{
    return link < self->n_links ? self->links[link]->chunk_bytes : 0;
}

uint32_t ps_session_bundle_bytes(const ps_session_t *self, uint64_t link)
{
    return link < self->n_links ? ps_link_bundle_bytes(self->links[link]) : 0;
}

uint32_t ps_session_filters(const ps_session_t *self, uint64_t link)
{
    return link < self->n_links ? self->links[link]->filters : 0;
}

uint64_t ps_session_slice_bytes(const ps_session_t *self)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < self->n_links; i++) {
        uint64_t bytes = self->links[i]->slice_bytes;

        if (bytes > 0 && bytes < least) {
            least = bytes;
        }
    }
    return least;
}

size_t ps_session_pending(const ps_session_t *self, bool with_pulls)
{
    return self->n_numbered + (with_pulls ? self->n_pulls : 0);
}

ps_node_names_t *ps_session_names(ps_session_t *self)
{
    return &self->names;
}

static const char *name_of(const void *names, uint64_t incarnation)
{
    const ps_node_name_t *found = ps_node_names_find(names, incarnation);

    return found == NULL ? NULL : found->name;
}

/* A link in a reason: `node "n1" (tcp://host:7171): `, which comes first, and
 * its place, "its shard 0 at tcp://host:35825": ports of shards stand in no
 * list of nodes. Of a node without a known name the place alone. */
typedef struct shown {
    char node[PS_NAME_MAX + PS_ENDPOINT_MAX + 16];
    char place[PS_LINK_ENDPOINT_MAX + 32];
} shown_t;

static void show_link(const ps_session_t *self, const ps_link_t *link, shown_t *ret)
{
    const ps_node_name_t *name = ps_node_names_find(&self->names, link->route.incarnation);

    ret->node[0] = '\0';
    if (name == NULL) {
        (void)snprintf(ret->place, sizeof ret->place, "%s", ps_link_place(link));
        return;
    }
    (void)snprintf(ret->node, sizeof ret->node, "node \"%s\" (%s): ", name->name, name->endpoint);
    (void)snprintf(ret->place, sizeof ret->place, "its shard %" PRIu32 " at %s", link->route.shard,
                   ps_link_place(link));
}

const char *ps_op_reason(const ps_session_t *self, const ps_op_t *op, uint64_t now_ms)
{
    const ps_link_t *link = op->part->link;
    shown_t shown;

    if (op->reason != NULL) {
        ps_node_names_put(op->reason, name_of, &self->names, self->reason, PS_REASON_SIZE);
        return self->reason;
    }
    if (link == NULL) {
        return psd_status_text(op->status);
    }
    show_link(self, link, &shown);
    if (link->state != PS_LINK_READY) {
        uint64_t since_ms = link->state == PS_LINK_UNUSED ? op->start_ms : link->greeted_ms;

        (void)snprintf(self->reason, PS_REASON_SIZE, "%sno welcome from %s for %" PRIu64 " s",
                       shown.node, shown.place, (now_ms - since_ms) / 1000);
    } else if (op->n_sends == 0) {
        (void)snprintf(self->reason, PS_REASON_SIZE, "%s%" PRIu32 " requests to %s are unanswered",
                       shown.node, link->n_credited, shown.place);
    } else {
        (void)snprintf(self->reason, PS_REASON_SIZE, "%sno answer from %s for %" PRIu64 " s",
                       shown.node, shown.place, (now_ms - op->heard_ms) / 1000);
    }
    return self->reason;
}

const char *ps_session_reason(const ps_session_t *self, uint64_t now_ms, uint64_t op)
{
    const ps_op_t *found = ps_op_find(self, op);

    return found == NULL ? "" : ps_op_reason(self, found, now_ms);
}

psd_status_t ps_session_broken(const ps_session_t *self, const char **ret_text)
{
    if (ret_text != NULL) {
        *ret_text = self->broken_text;
    }
    return self->broken;
}

bool ps_session_link_is_used(const ps_session_t *self, uint64_t link)
{
    assert(link < self->n_links);
    return !TAILQ_EMPTY(&self->links[link]->active);
}
