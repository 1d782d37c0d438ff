/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and answers through filters, as clients send them: bodies encoded
 * again, and lists of keys named by their hash. These filters are lossless,
 * so that the ledger stays exact. */
#include "base/alloc.h"
#include "base/hash.h"
#include "sim.h"

#define LIST_MIN 2   /* keys of a list that is named */
#define MISSES_MAX 4 /* unknown lists, after which no more are named */

void sim_filter_choose(sim_t *sim, sim_client_t *client)
{
    static const char *const words[] = {"none",  "none",       "delta",       "lz4",      "zstd",
                                        "cache", "delta+zstd", "cache+delta", "cache+lz4"};
    size_t i = ps_rng_below(&sim->net, sizeof words / sizeof *words);

    sim_need(ps_filter_parse(words[i], &client->filter, NULL) == PSD_OK, "a filter");
    if (!ps_filter_is_none(&client->filter)) {
        client->coder = ps_coder_new(client->number);
        sim_need(client->coder != NULL, "memory for a coder");
    }
    sim_trace(sim, "client %u filters by %s", client->number, words[i]);
}

void sim_filter_done(sim_client_t *client)
{
    ps_coder_destroy(&client->coder);
    for (size_t i = 0; i < SIM_LINKS_MAX; i++) {
        ps_key_cache_destroy(&client->lists[i]);
    }
}

/* A list that the shard should know becomes its name; the shard keeps any
 * other. NULL: the body stays as it is. */
static ps_payload_t *name_list(sim_client_t *client, uint64_t link, ps_message_t *message,
                               ps_payload_t *payload)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *name = NULL;
    ps_payload_t *named = NULL;
    ps_key_cache_t **lists = &client->lists[link];
    ps_id_t hash = {{0}};
    ps_slice_t slice;

    ps_message_slice(message, &slice);
    if (slice.rows != PS_ROWS_LIST || slice.n_rows < LIST_MIN) {
        return NULL;
    }
    if (*lists == NULL) {
        *lists = ps_key_cache_new(PS_KEY_CACHE_BYTES);
    }
    sim_need(*lists != NULL, "memory for lists");
    ps_hash_id(payload->keys.data, payload->keys.size, &hash);
    if (!ps_key_cache_knows(*lists, &hash, payload->keys.size)) {
        message->flags |= PS_FLAG_KEEP;
        sim_need(ps_key_cache_note(*lists, &hash, payload->keys.size) == PSD_OK,
                 "memory for a list");
        return NULL;
    }
    name = ps_payload_copy((ps_bytes_t){hash.bytes, sizeof hash.bytes}, (ps_bytes_t){NULL, 0},
                           (ps_bytes_t){NULL, 0});
    named = name == NULL ? NULL : ps_key_list_put(payload, name);
    sim_need(named != NULL, "memory for a name");
    slice.rows = PS_ROWS_CACHED;
    ps_message_set_slice(message, &slice);
    return named;
}

void sim_filter_send(sim_t *sim, sim_client_t *client, uint64_t link, const ps_message_t *plain,
                     ps_payload_t *payload)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *named = NULL;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *coded = NULL;
    ps_filter_t filter =
        ps_filter_within(&client->filter, ps_session_filters(client->session, link));
    uint32_t chunk_bytes = ps_session_chunk_bytes(client->session, link);
    ps_message_t message = *plain;
    bool goes_through = (plain->kind == PS_KIND_PUSH || plain->kind == PS_KIND_PULL) &&
                        !ps_filter_is_none(&filter) && payload != NULL &&
                        ps_payload_size(payload) <= sim->plan.shard.slice_bytes;

    if (goes_through && filter.cache && client->misses[link] < MISSES_MAX) {
        named = name_list(client, link, &message, payload);
        payload = named != NULL ? named : payload;
    }
    if (goes_through) {
        sim_need(ps_coder_encode(client->coder, &filter, &message, payload, &coded, NULL) == PSD_OK,
                 "memory to encode");
        sim->n_coded += coded != NULL || named != NULL ? 1 : 0;
    }
    sim_send(sim, client->conn_of[link], true, &message, coded != NULL ? coded : payload,
             chunk_bytes);
}

/* A refusal comes on the first connection, also for a list named on the bulk
 * one. */
static void lists_are_missed(sim_client_t *client, uint64_t link)
{
    const ps_route_t *place = ps_session_link(client->session, link);

    for (size_t i = 0; i < client->n_links; i++) {
        if (ps_session_link(client->session, i) == place) {
            ps_key_cache_destroy(&client->lists[i]);
            client->misses[i]++;
        }
    }
}

ps_payload_t *sim_filter_received(sim_t *sim, sim_client_t *client, uint64_t link,
                                  ps_message_t *message, ps_payload_t *payload)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_payload_t *plain = NULL;
    ps_filter_t filter;

    if (message->kind == PS_KIND_WELCOME) {
        ps_key_cache_destroy(&client->lists[link]);
    } else if (message->kind == PS_KIND_REFUSED && message->refused.status == PSD_KEYS) {
        lists_are_missed(client, link);
    }
    if ((message->flags & PS_FLAG_CODED) == 0) {
        return payload == NULL ? NULL : ps_payload_keep(payload);
    }
    if (client->coder == NULL || ps_coder_decode(client->coder, message, payload, UINT32_MAX,
                                                 &filter, &plain, err) != PSD_OK) {
        sim_fail(sim, "client %u: an answer cannot be read: %s", client->number,
                 client->coder == NULL ? "it asked for no filter" : psd_error_text(err));
    }
    return plain;
}
