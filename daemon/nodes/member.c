/* SPDX-License-Identifier: Apache-2.0 */
/* The conversation with the registry, once the node has joined. */
#include "daemon/nodes/member.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/nodes/member_inner.h"
#include "wire/messages/formats.h"

#define ALONE_BEAT_MS 250   /* to a registry that does not answer */
#define GONE_AFTER_BEATS 10 /* of silence */
#define REFUSED_AGAIN_MS 3600000
#define BATCH 256
#define OP_MAX 64

/* ---- messages ---- */

ps_doc_t *ps_member_message(ps_member_t *self, const char *op)
{
    ps_doc_t *doc = ps_doc_new();
    ps_doc_t *versions = NULL;

    if (doc == NULL || !ps_doc_set_u64(doc, "v", 1) ||
        !ps_doc_set_u64(doc, "id", ++self->last_id) || !ps_doc_set_text(doc, "op", op)) {
        ps_doc_destroy(&doc);
        return NULL;
    }
    versions = ps_doc_add_array(doc, "versions");
    if (versions == NULL || !ps_doc_append_u64(versions, PS_NODE_FORMAT) ||
        !ps_doc_append_u64(versions, PS_NODE_FORMAT) || !ps_doc_set_text(doc, "name", self->name) ||
        !ps_doc_set_u64(doc, "incarnation", self->incarnation) ||
        (!ps_id_is_zero(&self->cluster) && !ps_doc_set_id(doc, "cluster", &self->cluster))) {
        ps_doc_destroy(&doc);
    }
    return doc;
}

psd_status_t ps_member_send(ps_member_t *self, const ps_doc_t *doc, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    if (!ps_doc_print(doc, &text)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a message");
    }
    if (text.size > PS_DOC_BYTES_MAX) {
        return psd_error_set(err, PSD_LIMIT, "%zu bytes of a control message; allowed: %d",
                             text.size, (int)PS_DOC_BYTES_MAX);
    }
    return ps_socket_send_text(self->link, 0, (ps_bytes_t){.data = text.data, .size = text.size},
                               err);
}

psd_status_t ps_member_status_of(const ps_doc_t *doc, psd_error_t *err)
{
    const char *name = NULL;
    const char *text = NULL;
    const ps_doc_t *error = NULL;
    psd_status_t rc = ps_doc_get_text(doc, "status", OP_MAX, &name, err);

    if (rc != PSD_OK || strcmp(name, "OK") == 0) {
        return rc;
    }
    if (ps_doc_get_object(doc, "error", &error, NULL) != PSD_OK ||
        ps_doc_get_text(error, "message", 2000, &text, NULL) != PSD_OK) {
        text = name;
    }
    for (int status = PSD_FAILED; status <= PSD_INTERRUPTED; status++) {
        if (strcmp(psd_status_name((psd_status_t)status), name) == 0) {
            return psd_error_set(err, (psd_status_t)status, "%s", text);
        }
    }
    return psd_error_set(err, PSD_PROTO, "%s", text);
}

void ps_member_destroy(ps_member_t **self_p)
{
    ps_member_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_socket_drop(&self->link);
    ps_sizes_done(&self->sizes);
    ps_free(self->tables);
    ps_free(self->deliveries);
    psd_error_destroy(&self->err);
    ps_free(self);
    *self_p = NULL;
}

/* ---- announce and live ---- */

static bool fill_announcement(const ps_member_t *self, ps_doc_t *doc)
{
    ps_doc_t *array = ps_doc_add_array(doc, "shards");
    bool done = array != NULL && ps_doc_set_text(doc, "control", self->is.control) &&
                ps_doc_set_id(doc, "secret", &self->secret) &&
                ps_doc_set_u64(doc, "weight", self->weight) &&
                ps_doc_set_bool(doc, "kept", ps_shards_kept(self->is.shards)) &&
                ps_node_damage_to_doc(self->is.damage, doc);

    for (uint32_t i = 0; done && i < ps_shards_n(self->is.shards); i++) {
        const ps_route_t *route = ps_shards_route(self->is.shards, i);
        ps_doc_t *shard = ps_doc_append_object(array);

        done = shard != NULL && ps_doc_set_text(shard, "tcp", route->tcp) &&
               ps_doc_set_text(shard, "ipc", route->ipc);
    }
    return done;
}

/* Sends a beat, or the announcement until it is answered. A beat that cannot
 * be sent is dropped, because the registry is gone or slow; the next one
 * carries its news. */
static void beat(ps_member_t *self)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *doc = ps_member_message(self, self->is_announced ? "node_beat" : "node_announce");
    bool sent = doc != NULL && ps_doc_set_u64(doc, "epoch", self->max_epoch) &&
                (!self->files_out || ps_doc_set_bool(doc, "files_out", true)) &&
                (self->is_announced ? ps_sizes_tell(&self->sizes, ps_now_ms(), doc)
                                    : fill_announcement(self, doc)) &&
                ps_member_send(self, doc, NULL) == PSD_OK;

    if (!sent) {
        ps_sizes_forget(&self->sizes);
    } else if (!self->is_announced) {
        self->announce_id = self->last_id;
    }
    self->beat_ms = ps_now_ms() + (self->is_heard ? self->heartbeat_ms : ALONE_BEAT_MS);
}

/* The tables that shard i read from its disk count as known to it: the
 * registry says which of them were dropped meanwhile. */
static psd_status_t know_recovered(ps_member_t *self, uint32_t i, psd_error_t *err)
{
    size_t n = 0;
    const uint32_t *tables = ps_shards_recovered(self->is.shards, i, &n);

    for (size_t k = 0; k < n; k++) {
        bool known = false;

        for (size_t at = 0; at < self->n_tables; at++) {
            known = known || self->tables[at] == tables[k];
        }
        if (!known && !ps_grow(&self->tables, &self->tables_capacity, self->n_tables + 1,
                               sizeof *self->tables)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for tables");
        }
        if (!known) {
            self->tables[self->n_tables++] = tables[k];
        }
    }
    return PSD_OK;
}

psd_status_t ps_member_start(ps_member_t *self, const ps_member_args_t *args, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    self->is = *args;
    for (uint32_t i = 0; i < ps_shards_n(self->is.shards); i++) {
        rc = know_recovered(self, i, err);
        if (rc != PSD_OK) {
            return rc;
        }
    }
    self->is_heard = true;
    self->heard_ms = ps_now_ms();
    beat(self);
    return self->is.damage->text[0] == '\0' ? PSD_OK : ps_member_await_word(self, err);
}

void *ps_member_handle(ps_member_t *self)
{
    return ps_socket_handle(self->link);
}

const char *ps_member_registry(const ps_member_t *self)
{
    return self->registry;
}

bool ps_member_is_heard(const ps_member_t *self)
{
    return self->is_heard;
}

bool ps_member_is_announced(const ps_member_t *self)
{
    return self->is_announced;
}

static void hear(ps_member_t *self)
{
    self->heard_ms = ps_now_ms();
    if (!self->is_heard) {
        self->is_heard = true;
        self->beat_ms = self->heard_ms;
        ps_log(PS_LOG_INFO, "registry_back", "registry=%s", self->registry);
    }
}

/* The registry does not know this incarnation (any more), or not on this
 * connection. Refusals of messages sent before the last announcement do not
 * count. */
static void announce_again(ps_member_t *self, uint64_t id)
{
    if (self->is_announced && id > self->announce_id) {
        self->is_announced = false;
        ps_sizes_forget(&self->sizes);
        self->beat_ms = 0;
    }
}

/* The registry refuses each beat while the reason lasts, for example because
 * another cluster's registry now has that address. The log says so once, and
 * again after an hour. */
static void take_refusal(ps_member_t *self, uint64_t id, psd_status_t status)
{
    uint64_t now_ms = ps_now_ms();
    char quoted[512];

    if (self->refused_ms != 0 && self->refused == status &&
        now_ms < self->refused_ms + REFUSED_AGAIN_MS) {
        return;
    }
    self->refused_ms = now_ms;
    self->refused = status;
    ps_log(PS_LOG_ERROR, "registry_refuses",
           "what=%s id=%" PRIu64 " registry=%s status=%s reason=%s",
           id == self->announce_id ? "announcement" : "message", id, self->registry,
           psd_status_name(status), ps_log_quote(psd_error_text(self->err), quoted, sizeof quoted));
}

/* An answer to the message with that id. */
static void take_reply(ps_member_t *self, const ps_doc_t *doc)
{
    uint64_t id = 0;
    psd_status_t rc = ps_doc_get_u64(doc, "id", 0, UINT64_MAX, &id, self->err);

    if (rc == PSD_OK) {
        rc = ps_member_status_of(doc, self->err);
    }
    if (rc == PSD_OK) {
        if (id == self->announce_id && !self->is_announced) {
            self->is_announced = true;
            self->refused_ms = 0;
            ps_shards_joined(self->is.shards);
        }
        return;
    }
    if (rc == PSD_NO_NODE) {
        announce_again(self, id);
    } else if (rc == PSD_DAMAGED && id == self->announce_id) {
        (void)snprintf(self->refusal, sizeof self->refusal, "%s", psd_error_text(self->err));
    } else {
        take_refusal(self, id, rc);
    }
    psd_error_clear(self->err);
}

static void take_text(ps_member_t *self, const ps_buffer_t *text)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    const char *op = NULL;
    psd_status_t rc =
        ps_doc_parse((ps_bytes_t){.data = text->data, .size = text->size}, &doc, self->err);

    if (rc != PSD_OK) {
        ps_log(PS_LOG_WARN, "registry_not_understood", "status=%s", psd_status_name(rc));
        psd_error_clear(self->err);
        return;
    }
    hear(self);
    if (ps_doc_get_text(doc, "op", OP_MAX, &op, NULL) == PSD_OK) {
        ps_member_obey(self, op, doc);
    } else {
        take_reply(self, doc);
    }
}

void ps_member_receive(ps_member_t *self)
{
    for (int i = 0; i < BATCH; i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
        uint64_t conn = 0;
        bool got = false;
        psd_status_t rc = ps_socket_receive_text(self->link, &got, &conn, &text, self->err);

        if (rc != PSD_OK) {
            psd_error_clear(self->err);
            continue;
        }
        if (!got) {
            return;
        }
        take_text(self, &text);
    }
}

void ps_member_set_files_out(ps_member_t *self, bool is_out)
{
    self->files_out = is_out;
}

void ps_member_end(ps_member_t *self)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *doc = self->is_announced ? ps_member_message(self, "node_end") : NULL;

    if (doc != NULL && ps_member_send(self, doc, NULL) != PSD_OK) {
        ps_log(PS_LOG_WARN, "end_not_told", "registry=%s", self->registry);
    }
    self->is_announced = false;
}

/* What the partitions take goes with the next beats. */
static void look_at_sizes(ps_member_t *self, uint64_t now_ms)
{
    if (self->look != 0 || now_ms < self->look_ms) {
        return;
    }
    self->look_ms = now_ms + PS_SIZES_EVERY_MS;
    if (ps_shards_send_ask(self->is.shards, PS_CALL_SIZES, 0, &self->look, NULL) != PSD_OK) {
        self->look = 0; /* retried at the next tick */
    }
}

void ps_member_tick(ps_member_t *self)
{
    uint64_t now_ms = ps_now_ms();

    ps_member_receive(self);
    ps_member_receive_shards(self);
    if (self->is_heard && now_ms > self->heard_ms + GONE_AFTER_BEATS * self->heartbeat_ms) {
        self->is_heard = false;
        ps_log(PS_LOG_WARN, "registry_gone",
               "registry=%s silent_ms=%" PRIu64
               " hint=\"partitions are served as before; tables and jobs "
               "cannot change\"",
               self->registry, now_ms - self->heard_ms);
    }
    look_at_sizes(self, now_ms);
    if (now_ms >= self->beat_ms) {
        beat(self);
    }
}

uint64_t ps_member_deadline(const ps_member_t *self)
{
    return self->beat_ms;
}

/* ---- the node's own control port ---- */

static void refuse(ps_member_t *self, uint64_t conn, uint64_t id)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t out = {0};
    const psd_status_t rc = PSD_UNSUPPORTED;
    ps_doc_t *error = NULL;
    char line[600];

    (void)snprintf(line, sizeof line, "node \"%s\" is not the registry; ask %s, which %s",
                   self->name, self->registry,
                   self->is_heard ? "answers" : "is silent at the moment");
    if (doc == NULL || !ps_doc_set_u64(doc, "v", 1) || !ps_doc_set_u64(doc, "id", id) ||
        !ps_doc_set_text(doc, "status", psd_status_name(rc))) {
        return;
    }
    error = ps_doc_add_object(doc, "error");
    if (error == NULL || !ps_doc_set_text(error, "code", psd_status_code(rc)) ||
        !ps_doc_set_i64(error, "exit", psd_status_exit(rc)) ||
        !ps_doc_set_text(error, "message", line) ||
        !ps_doc_set_text(error, "hint", "set --endpoint to the registry's") ||
        !ps_doc_print(doc, &out)) {
        return;
    }
    if (ps_socket_send_text(self->is.port, conn, (ps_bytes_t){.data = out.data, .size = out.size},
                            NULL) != PSD_OK) {
        ps_log(PS_LOG_DEBUG, "answer_dropped", "conn=%" PRIu64, conn);
    }
}

void ps_member_receive_port(ps_member_t *self)
{
    for (int i = 0; i < BATCH; i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
        PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
        uint64_t conn = 0;
        uint64_t id = 0;
        bool got = false;
        psd_status_t rc = ps_socket_receive_text(self->is.port, &got, &conn, &text, NULL);

        if (rc == PSD_OK && !got) {
            return;
        }
        if (rc == PSD_OK &&
            ps_doc_parse((ps_bytes_t){.data = text.data, .size = text.size}, &doc, NULL) ==
                PSD_OK &&
            ps_doc_get_u64(doc, "id", 0, UINT64_MAX, &id, NULL) != PSD_OK) {
            id = 0;
        }
        refuse(self, conn, id);
    }
}
