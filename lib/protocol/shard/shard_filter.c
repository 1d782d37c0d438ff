/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes filtered requests into plain ones, and encodes their answers. Key
 * lists that a client caches here belong to one connection, and are dropped
 * with it. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "protocol/shard/shard_state.h"

/* A message being decoded. */
typedef struct passing {
    ps_shard_t *shard;
    ps_peer_t *peer;
    uint64_t conn;
    ps_message_t message;
    ps_payload_t *payload; /* held; may be NULL */
    ps_filter_t filter;    /* how the body was written */
    psd_error_t *err;
} passing_t;

/* The lists of the connection, made when there are none. */
static ps_key_cache_t *lists_of(const passing_t *self)
{
    ps_peer_t *peer = self->peer;
    ps_way_t way = peer->conns[PS_WAY_BULK] == self->conn ? PS_WAY_BULK : PS_WAY_FIRST;

    if (peer->lists[way] == NULL) {
        peer->lists[way] = ps_key_cache_new((size_t)self->shard->step.args.keys_bytes);
    }
    return peer->lists[way];
}

static psd_status_t no_memory(const passing_t *self)
{
    return psd_error_set(self->err, PSD_NOMEM, "no memory for a filter");
}

/* Reads a coded body. */
static psd_status_t decode(passing_t *self)
{
    ps_shard_t *shard = self->shard;
    ps_payload_t *plain = NULL;
    psd_status_t rc = PSD_OK;

    if (shard->step.coder == NULL) {
        shard->step.coder = ps_coder_new(shard->step.args.incarnation + shard->step.args.shard);
    }
    if (shard->step.coder == NULL) {
        return no_memory(self);
    }
    rc = ps_coder_decode(shard->step.coder, &self->message, self->payload,
                         shard->step.args.slice_bytes, &self->filter, &plain, self->err);
    if (rc == PSD_OK) {
        ps_payload_destroy(&self->payload);
        self->payload = plain;
    }
    return rc;
}

/* The list that a hash stands for takes its place. */
static psd_status_t find_list(passing_t *self, ps_slice_t *slice)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *list = NULL;
    ps_key_cache_t *lists = lists_of(self);
    ps_payload_t *whole = NULL;
    ps_id_t hash = {{0}};

    if (lists == NULL) {
        return no_memory(self);
    }
    memcpy(hash.bytes, self->payload->keys.data, sizeof hash.bytes);
    list = ps_key_cache_find(lists, &hash, slice->n_rows);
    for (size_t way = 0; list == NULL && way < PS_WAYS; way++) {
        if (self->peer->lists[way] != NULL) { /* or it came the other way */
            list = ps_key_cache_find(self->peer->lists[way], &hash, slice->n_rows);
        }
    }
    if (list == NULL) {
        return psd_error_set(self->err, PSD_KEYS,
                             "the list of %" PRIu64 " keys is not cached here, or no longer",
                             slice->n_rows);
    }
    whole = ps_key_list_put(self->payload, list);
    if (whole == NULL) {
        return no_memory(self);
    }
    ps_payload_destroy(&self->payload);
    self->payload = whole;
    slice->rows = PS_ROWS_LIST;
    ps_message_set_slice(&self->message, slice);
    return PSD_OK;
}

/* Without memory for it the list is not kept: it will be asked for. */
static void keep_list(const passing_t *self, const ps_slice_t *slice)
{
    ps_key_cache_t *lists =
        slice->rows == PS_ROWS_LIST && slice->n_rows > 0 ? lists_of(self) : NULL;
    ps_bytes_t keys;
    ps_id_t hash;
    psd_status_t rc = PSD_OK;

    if (lists != NULL) {
        keys = self->payload->keys;
        ps_hash_id(keys.data, keys.size, &hash);
        rc = ps_key_cache_put(lists, &hash, keys);
    }
    (void)rc;
}

/* Everything that it uses was offered to it. */
static psd_status_t check_offered(const passing_t *self, uint32_t used)
{
    if ((used & ~self->peer->filters) != 0) {
        return psd_error_set(self->err, PSD_PROTO,
                             "%s uses the filters 0x%" PRIx32 "; offered: 0x%" PRIx32,
                             ps_kind_name(self->message.kind), used, self->peer->filters);
    }
    return PSD_OK;
}

/* Refuses filters that were not offered. Shared values may change until they
 * are read, so they are checked again as read. */
static psd_status_t open_body(passing_t *self, bool uses_lists)
{
    bool coded = (self->message.flags & PS_FLAG_CODED) != 0;
    uint32_t lists = uses_lists ? PS_FILTER_BIT_CACHE : 0;
    uint32_t used = 0;
    psd_status_t rc = PSD_OK;

    if (coded) {
        rc = ps_coded_bits(self->payload, &used, self->err);
    }
    if (rc == PSD_OK) {
        rc = check_offered(self, used | lists);
    }
    if (rc == PSD_OK && coded) {
        rc = decode(self);
    }
    if (rc == PSD_OK && coded) {
        rc = check_offered(self, ps_filter_bits(&self->filter) | lists);
    }
    return rc;
}

static psd_status_t pass(passing_t *self)
{
    bool keep = (self->message.flags & PS_FLAG_KEEP) != 0;
    psd_status_t rc = PSD_OK;
    ps_slice_t slice;

    ps_message_slice(&self->message, &slice);
    rc = open_body(self, keep || slice.rows == PS_ROWS_CACHED);
    self->message.flags &= PS_FLAG_MARK | PS_FLAG_TIMES; /* the rest was about the body */
    if (rc != PSD_OK) {
        return rc;
    }
    if (slice.rows == PS_ROWS_CACHED) {
        return find_list(self, &slice);
    }
    if (keep) {
        keep_list(self, &slice);
    }
    return PSD_OK;
}

void ps_shard_step_filtered(ps_shard_t *self, ps_peer_t *peer, const ps_event_t *event)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    passing_t passing = {
        .shard = self, .peer = peer, .conn = event->conn, .message = *event->message, .err = err};
    ps_request_t request;
    psd_status_t rc = PSD_OK;

    if (event->payload != NULL) {
        passing.payload = ps_payload_keep(event->payload);
    }
    rc = pass(&passing);
    ps_request_read(&passing.message, &request);
    request.payload = passing.payload;
    request.session = peer->session;
    request.peer = peer;
    request.conn = event->conn;
    request.filtered = true;
    request.sending = event->sending;
    request.answer_delta = passing.filter.delta;
    request.answer_pack = (uint8_t)passing.filter.pack;
    request.answer_values_as = (uint8_t)passing.filter.values_as;
    if (passing.filter.pack == PS_PACK_NONE && passing.filter.values_as == PS_VALUES_RAW) {
        request.room = event->room; /* the answer's values lie as they are */
    }
    if (rc == PSD_OK) {
        ps_shard_request(self, &request);
    } else if (rc == PSD_NOMEM || rc == PSD_KEYS) {
        ps_answer_refused(&self->step, &request, rc, 0, psd_error_text(err));
    } else {
        ps_answer_refused_conn(&self->step, event->conn, PSD_PROTO, psd_error_text(err));
    }
    ps_payload_destroy(&passing.payload);
}
