/* SPDX-License-Identifier: Apache-2.0 */
/* Shards of other nodes that hold copies: their handshake and their
 * messages. */
#include <inttypes.h>

#include "base/alloc.h"
#include "protocol/admission/admission.h"
#include "protocol/partition/answer.h"
#include "protocol/shard/shard_state.h"

/* The copy that is here; NULL: none. */
static ps_partition_t *copy_here(const ps_shard_t *self, uint32_t id, uint32_t partition)
{
    const ps_local_table_t *table = ps_map_get(&self->step.tables, id);
    ps_partition_t *found = table == NULL || partition >= table->spec.n_partitions
                                ? NULL
                                : table->partitions[partition];

    return found == NULL || found->replicas == NULL ? NULL : found;
}

static psd_status_t check_peer(const ps_shard_t *self, const ps_msg_peer_t *peer, psd_error_t *err)
{
    char mine[PS_ID_TEXT_SIZE];
    char theirs[PS_ID_TEXT_SIZE];

    if (peer->version_min > PS_VERSION || peer->version_max < PS_VERSION_MIN) {
        return psd_error_set(err, PSD_VERSION, "protocol versions %u..%u; spoken here: %d..%d",
                             peer->version_min, peer->version_max, PS_VERSION_MIN, PS_VERSION);
    }
    if (!ps_id_equal(&peer->cluster, &self->step.args.cluster)) {
        ps_id_format(&peer->cluster, theirs);
        ps_id_format(&self->step.args.cluster, mine);
        return psd_error_set(err, PSD_CLUSTER, "cluster %s; this is %s", theirs, mine);
    }
    if (peer->incarnation != self->step.args.incarnation) {
        return psd_error_set(err, PSD_INCARNATION,
                             "this is another incarnation of the node than the one asked for");
    }
    if (peer->shard != self->step.args.shard) {
        return psd_error_set(err, PSD_DENIED, "shard %" PRIu32 "; this is %" PRIu32, peer->shard,
                             self->step.args.shard);
    }
    return PSD_OK;
}

static void step_said(ps_shard_t *self, uint64_t conn, const ps_msg_peer_t *peer)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    psd_status_t rc = check_peer(self, peer, why);

    if (rc == PSD_OK) {
        rc = ps_shard_links_accept(
            &self->links, conn, (ps_shard_name_t){peer->from_incarnation, peer->from_shard}, why);
    }
    if (rc != PSD_OK) {
        ps_answer_refused_conn(&self->step, conn, rc, psd_error_text(why));
    } else {
        ps_answer_welcome(&self->step, conn, 0);
    }
}

static psd_status_t visit_relinked(ps_shard_t *self, ps_partition_t *partition, const void *arg,
                                   psd_error_t *err)
{
    const ps_shard_name_t *to = arg;

    (void)err;
    if (partition->replicas != NULL && partition->replicas->primary) {
        ps_replicas_relinked(&self->step, partition, *to);
    }
    return PSD_OK;
}

/* The other shard has accepted this one: sends what waited for that. */
static void step_welcome(ps_shard_t *self, ps_shard_link_t *link)
{
    const ps_shard_name_t to = {link->to.incarnation, link->to.shard};
    psd_status_t rc = PSD_OK;

    if (!link->welcome) {
        link->welcome = true;
        rc = ps_shard_visit(self, visit_relinked, &to, NULL);
    }
    (void)rc; /* no visit fails */
}

/* What comes by a connection that this shard has opened. */
static void step_answer(ps_shard_t *self, ps_shard_link_t *link, const ps_message_t *message)
{
    const ps_shard_name_t from = {link->to.incarnation, link->to.shard};
    ps_partition_t *partition = NULL;

    if (message->kind == PS_KIND_WELCOME) {
        step_welcome(self, link);
    } else if (message->kind == PS_KIND_APPENDED) {
        partition = copy_here(self, message->appended.table, message->appended.partition);
    } else if (message->kind == PS_KIND_TAKEN) {
        partition = copy_here(self, message->taken.table, message->taken.partition);
        if (partition != NULL) {
            ps_replicas_heard_taken(&self->step, partition, from, &message->taken);
            ps_partition_go_on(&self->step, partition);
        }
        return;
    } else if (message->kind == PS_KIND_REFUSED) {
        link->welcome = false; /* it has forgotten; PEER goes again in time */
    }
    if (partition != NULL) {
        ps_replicas_heard(&self->step, partition, from, &message->appended);
        ps_partition_go_on(&self->step, partition);
    }
}

static void step_append(ps_shard_t *self, const ps_event_t *event, ps_shard_name_t from)
{
    const ps_msg_append_t *append = &event->message->append;
    ps_partition_t *partition = copy_here(self, append->table, append->partition);

    if (partition != NULL) {
        ps_replicas_append(&self->step, partition, from, event->conn, append, event->payload);
        ps_partition_go_on(&self->step, partition);
    }
}

static void step_rows(ps_shard_t *self, const ps_event_t *event, ps_shard_name_t from)
{
    const ps_msg_rows_t *rows = &event->message->rows;
    ps_partition_t *partition = copy_here(self, rows->table, rows->partition);

    if (partition != NULL) {
        ps_rows_take(&self->step, partition, from, event->conn, rows, event->payload);
    }
}

/* What a primary sends. */
static void step_given(ps_shard_t *self, const ps_event_t *event)
{
    const ps_shard_name_t *from = ps_shard_links_from(&self->links, event->conn);

    if (from == NULL) {
        ps_answer_refused_conn(&self->step, event->conn, PSD_NO_SESSION, "say PEER first");
        return;
    }
    if (event->payload != NULL && event->payload->shared) {
        ps_answer_refused_conn(&self->step, event->conn, PSD_PROTO,
                               "records in memory that can change");
        return;
    }
    if (event->message->kind == PS_KIND_ROWS) {
        step_rows(self, event, *from);
    } else {
        step_append(self, event, *from);
    }
}

bool ps_shard_is_of_peer(const ps_event_t *event)
{
    return event->message->kind == PS_KIND_PEER || event->message->kind == PS_KIND_APPEND ||
           event->message->kind == PS_KIND_ROWS ||
           (event->conn >= PS_LINK_CONN && event->conn != PS_PEER_NO_CONN);
}

void ps_shard_step_peer(ps_shard_t *self, const ps_event_t *event)
{
    ps_shard_link_t *link = ps_shard_links_of_conn(&self->links, event->conn);

    if (link != NULL) {
        step_answer(self, link, event->message);
    } else if (event->conn >= PS_LINK_CONN) {
        return; /* late, by a link that was closed; no answer to an answer */
    } else if (event->message->kind == PS_KIND_PEER) {
        step_said(self, event->conn, &event->message->peer);
    } else {
        step_given(self, event);
    }
}

static psd_status_t visit_pump(ps_shard_t *self, ps_partition_t *partition, const void *arg,
                               psd_error_t *err)
{
    (void)arg;
    (void)err;
    if (partition->replicas != NULL) {
        ps_replicas_pump(&self->step, partition);
    }
    return PSD_OK;
}

void ps_shard_peer_gone(ps_shard_t *self, uint64_t conn)
{
    bool opened = ps_shard_links_of_conn(&self->links, conn) != NULL;
    psd_status_t rc = PSD_OK;

    ps_shard_links_gone(&self->links, conn, self->step.now_ms);
    if (opened) {
        rc = ps_shard_visit(self, visit_pump, NULL, NULL);
    }
    (void)rc; /* no visit fails */
}

static psd_status_t visit_used(ps_shard_t *self, ps_partition_t *partition, const void *arg,
                               psd_error_t *err)
{
    const ps_replicas_t *replicas = partition->replicas;

    (void)arg;
    (void)err;
    for (uint32_t i = 0; replicas != NULL && i < replicas->n_followers; i++) {
        ps_shard_link_t *link =
            ps_shard_links_find(&self->links, (ps_shard_name_t){replicas->followers[i].incarnation,
                                                                replicas->followers[i].shard});

        if (link != NULL) {
            link->used = true;
        }
    }
    return PSD_OK;
}

void ps_shard_close_links(ps_shard_t *self)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < self->links.n_out; i++) {
        self->links.out[i].used = false;
    }
    if (self->links.n_out > 0) {
        rc = ps_shard_visit(self, visit_used, NULL, NULL);
    }
    for (size_t i = self->links.n_out; i > 0; i--) {
        const ps_shard_link_t *link = &self->links.out[i - 1];
        ps_effect_t *effect = NULL;

        if (link->used) {
            continue;
        }
        effect = link->conn == 0 ? NULL : ps_outbox_add(self->step.outbox, PS_EFFECT_CLOSE);
        if (effect != NULL) {
            effect->to = link->conn;
        }
        if (effect != NULL || link->conn == 0) {
            ps_shard_links_remove(&self->links, i - 1);
        }
    }
    (void)rc; /* no visit fails */
}

void ps_shard_step_fence(ps_shard_t *self, const ps_event_t *event)
{
    ps_partition_t *partition = copy_here(self, event->table, event->partition);

    if (partition != NULL) {
        ps_replicas_fence(&self->step, partition, event->epoch);
    }
}
