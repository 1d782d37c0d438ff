/* SPDX-License-Identifier: Apache-2.0 */
/* Messages through filters, between the session and the sockets: the session
 * keeps plain messages, and encodes a message again when it resends it. */
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "client/connection/client_state.h"
#include "wire/filters/keys_cache.h"

/* Shorter lists are not worth a name. */
#define LIST_MIN 8
/* After this number of lists that the server did not know any more the client
 * sends no more names: the server has no room for them. */
#define MISSES_MAX 16

static ps_coder_t *coder_of(psd_client_t *self)
{
    if (self->coder == NULL) {
        self->coder = ps_coder_new(ps_load_u64(self->id.bytes));
    }
    return self->coder;
}

/* A list that the server knows becomes its name; any other is to be kept there.
 * ret_named: NULL when the body stays as it is. */
static psd_status_t name_list(ps_client_link_t *link, ps_message_t *message, ps_payload_t *payload,
                              ps_payload_t **ret_named)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *name = NULL;
    ps_id_t hash = {{0}};
    ps_slice_t slice;

    ps_message_slice(message, &slice);
    if (slice.rows != PS_ROWS_LIST || slice.n_rows < LIST_MIN) {
        return PSD_OK;
    }
    if (link->sent_lists == NULL) {
        link->sent_lists = ps_key_cache_new(PS_KEY_CACHE_BYTES);
    }
    if (link->sent_lists == NULL) {
        return PSD_NOMEM;
    }
    ps_hash_id(payload->keys.data, payload->keys.size, &hash);
    if (!ps_key_cache_knows(link->sent_lists, &hash, payload->keys.size)) {
        message->flags |= PS_FLAG_KEEP;
        return ps_key_cache_note(link->sent_lists, &hash, payload->keys.size);
    }
    name = ps_payload_copy((ps_bytes_t){hash.bytes, sizeof hash.bytes}, (ps_bytes_t){NULL, 0},
                           (ps_bytes_t){NULL, 0});
    *ret_named = name == NULL ? NULL : ps_key_list_put(payload, name);
    if (*ret_named == NULL) {
        return PSD_NOMEM;
    }
    slice.rows = PS_ROWS_CACHED;
    ps_message_set_slice(message, &slice);
    return PSD_OK;
}

/* The parts of the filter that both ends support, and that pay on this
 * transport. */
static ps_filter_t filter_of(psd_client_t *self, uint64_t number, const ps_filter_t *asked)
{
    uint32_t bits = ps_session_filters(self->session, number);

    if (ps_socket_is_lane(self->links[number].socket)) {
        bits &= PS_FILTER_BITS_LANE;
    }
    return ps_filter_within(asked, bits);
}

psd_status_t ps_link_send_filtered(psd_client_t *self, uint64_t number, const ps_filter_t *asked,
                                   const ps_message_t *plain, ps_payload_t *payload, bool repeated)
{
    ps_client_link_t *link = &self->links[number];
    ps_filter_t filter = filter_of(self, number, asked);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *named = NULL;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *coded = NULL;
    ps_message_t message = *plain;
    psd_status_t rc = coder_of(self) == NULL ? PSD_NOMEM : PSD_OK;

    if (rc == PSD_OK && filter.cache && link->n_misses < MISSES_MAX) {
        rc = name_list(link, &message, payload, &named);
    }
    if (named != NULL) {
        payload = named;
    }
    if (rc == PSD_OK) {
        rc = ps_coder_encode(self->coder, &filter, &message, payload, &coded, NULL);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    payload = coded != NULL ? coded : payload;
    return repeated ? ps_socket_send_again(link->socket, &message, payload, NULL)
                    : ps_socket_send(link->socket, 0, &message, payload, NULL);
}

/* What the server cached for this connection is gone. */
static void forget_lists(ps_client_link_t *link)
{
    ps_key_cache_destroy(&link->sent_lists);
}

/* A refusal comes over the first connection, even if the list was named on the
 * one for large bodies. */
static void lists_are_missed(psd_client_t *self, uint64_t number)
{
    const ps_route_t *place = ps_session_link(self->session, number);

    for (size_t i = 0; i < self->n_links; i++) {
        if (ps_session_link(self->session, i) == place) {
            forget_lists(&self->links[i]);
            self->links[i].n_misses++;
        }
    }
}

psd_status_t ps_link_receive_filtered(psd_client_t *self, uint64_t number, ps_message_t *message,
                                      ps_payload_t **payload_p, psd_error_t *err)
{
    ps_client_link_t *link = &self->links[number];
    ps_payload_t *plain = NULL;
    ps_filter_t filter;
    psd_status_t rc = PSD_OK;

    if (message->kind == PS_KIND_WELCOME) {
        forget_lists(link);
        link->n_misses = 0;
    } else if (message->kind == PS_KIND_REFUSED) {
        if (message->refused.status == PSD_KEYS) {
            lists_are_missed(self, number);
        }
    } else if ((message->flags & PS_FLAG_CODED) != 0) {
        if (coder_of(self) == NULL) {
            return psd_error_set(err, PSD_NOMEM, "no memory for a filter");
        }
        rc = ps_coder_decode(self->coder, message, *payload_p,
                             ps_session_slice_bytes(self->session), &filter, &plain, err);
        if (rc == PSD_OK) {
            ps_payload_destroy(payload_p);
            *payload_p = plain;
        }
    }
    return rc;
}

void ps_link_filter_done(ps_client_link_t *link)
{
    forget_lists(link);
}
