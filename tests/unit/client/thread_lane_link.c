/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a client whose only link is a lane. A push over memory of the
 * caller's, whose list is named, is put off: when the caller takes it back,
 * nobody looks at it any more. A pull that is sent again offers no room. And
 * nothing is packed that a lane carries in less time. */
#include "base/alloc.h"
#include "base/hash.h"
#include "client/requests/pump.h"
#include "client/requests/table.h"
#include "client/requests/ticket.h"
#include "transport/sockets/socket_inner.h"
#include "unit/transport/lane_kit.h"
#include "wire/filters/keys_cache.h"

#define N_KEYS 10000
#define RESEND_MS 100000
#define KEYS_SIZE (N_KEYS * sizeof(uint64_t))
#define VALUES_SIZE (N_KEYS * sizeof(float))

typedef struct fixture {
    lane_kit_t kit;
    psd_client_t client;
    ps_known_table_t *table;
    ps_slice_request_t *request;
    uint8_t *keys;
    uint8_t *values; /* the caller's */
} fixture_t;

/* A client whose only link is ready, and grants all filters. */
static bool make_client(fixture_t *f)
{
    const ps_session_args_t args = {
        .session = 1, .resend_ms = RESEND_MS, .filters = PS_FILTER_BITS_ALL};
    const ps_message_t welcome = {.kind = PS_KIND_WELCOME,
                                  .welcome = {.version = PS_VERSION,
                                              .incarnation = 1,
                                              .credit_requests = 8,
                                              .credit_bytes = 1 << 30,
                                              .chunk_bytes = 1 << 20,
                                              .slice_bytes = 1 << 30,
                                              .filters = PS_FILTER_BITS_ALL}};
    ps_route_t route = {.epoch = 1, .incarnation = 1, .tcp = "tcp://127.0.0.1:9"};
    ps_op_start_t mark = {.kind = PS_KIND_MARK, .table = 1};
    psd_client_t *client = &f->client;
    uint64_t op = 0;

    ps_client_init(client);
    client->scratch = psd_error_new();
    client->options.transport = PS_TRANSPORT_TCP;
    client->now_ms = ps_now_ms();
    CHECK(ps_session_new(&args, &client->session, NULL) == PSD_OK);
    CHECK(ps_session_routes(client->session, 1, &route, 1, NULL) == PSD_OK);
    CHECK(ps_known_table_add(client, 1, "w", 1, &f->table, NULL) == PSD_OK);
    CHECK(ps_session_start(client->session, client->now_ms, &mark, &client->outbox, &op, NULL) ==
          PSD_OK);
    ps_links_open(client, 0);
    CHECK(client->n_links == 1);
    ps_session_received(client->session, client->now_ms, 0, &welcome, NULL, &client->outbox);
    ps_outbox_clear(&client->outbox);
    return true;
}

/* Now the link is a lane, whose server takes nothing. */
static bool fill_lane(fixture_t *f)
{
    ps_client_link_t *link = &f->client.links[0];
    ps_payload_t *payload = ps_payload_copy((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                                            (ps_bytes_t){f->values, VALUES_SIZE});

    ps_socket_drop(&link->socket);
    link->socket = f->kit.link;
    f->kit.link = NULL;
    CHECK(payload != NULL);
    for (uint64_t i = 1000; link->socket->lane->n_items == 0; i++) {
        ps_message_t push = lane_kit_push(i, N_KEYS);

        push.push.rows = PS_ROWS_RANGE;
        CHECK(ps_socket_send(link->socket, 0, &push, payload, NULL) == PSD_OK);
    }
    ps_payload_destroy(&payload);
    return true;
}

/* A push over the caller's memory, whose list the server knows. */
static bool send_named(fixture_t *f)
{
    const ps_bytes_t keys = {f->keys, KEYS_SIZE};
    ps_client_link_t *link = &f->client.links[0];
    ps_message_t like = lane_kit_push(1, N_KEYS);
    ps_cut_t cut = {.borrows = true};
    ps_id_t hash = {{0}};

    ps_message_slice(&like, &cut.slice);
    cut.payload = ps_payload_new(keys, (ps_bytes_t){NULL, 0}, (ps_bytes_t){f->values, VALUES_SIZE},
                                 NULL, NULL);
    CHECK(cut.payload != NULL);
    ps_hash_id(keys.data, keys.size, &hash);
    link->sent_lists = ps_key_cache_new(PS_KEY_CACHE_BYTES);
    CHECK(ps_key_cache_note(link->sent_lists, &hash, keys.size) == PSD_OK);
    f->request = ps_slice_request_new(&f->client, PS_REQUEST_PUSH, &cut);
    f->request->queue = &f->table->queues[0];
    f->request->filter.cache = true;
    f->request->detour = PS_DETOUR_FILTER;
    ps_slice_request_send(&f->client, f->request);
    CHECK(f->request->op != 0);
    ps_perform(&f->client);
    CHECK(link->socket->lane->n_items == 2);
    return true;
}

static bool nobody_looks_any_more(fixture_t *f)
{
    const ps_payload_t *payload = f->request->payload;

    /* ours, the session's, and that of what the lane put off */
    CHECK(atomic_load(&payload->n_holders) == 3);
    ps_loan_call_in(&f->client, f->request);
    CHECK(atomic_load(&payload->n_holders) == 2);
    CHECK(payload->spans[0].data != f->values);
    CHECK(f->client.broken == PSD_OK);
    return true;
}

/* ---- a pull that is sent again ---- */

/* The first send finds no room, the second would. */
static bool no_room_is_offered_late(fixture_t *f)
{
    ps_client_link_t *link = &f->client.links[0];
    const ps_message_t like = lane_kit_pull(1, N_KEYS);
    ps_lane_t *lane = f->kit.link->lane;
    ps_cut_t cut = {.borrows = false};
    uint64_t written = 0;

    ps_socket_drop(&link->socket);
    link->socket = f->kit.link;
    f->kit.link = NULL;
    ps_message_slice(&like, &cut.slice);
    f->request = ps_slice_request_new(&f->client, PS_REQUEST_PULL, &cut);
    f->request->queue = &f->table->queues[0];
    lane->share->room_bytes = lane->share->sizes.arena_bytes / 2;
    ps_slice_request_send(&f->client, f->request);
    ps_perform(&f->client);
    CHECK(f->request->n_sends == 1 && lane->rooms.count == 0);
    lane->share->room_bytes = 0;
    written = lane->out.at;
    f->client.now_ms += 10 * RESEND_MS;
    ps_session_tick(f->client.session, f->client.now_ms, &f->client.outbox);
    ps_perform(&f->client);
    CHECK(f->request->n_sends == 2 && lane->out.at > written);
    CHECK(lane->rooms.count == 0 && lane->share->room_bytes == 0);
    return true;
}

/* ---- what is packed ---- */

/* Sends a push of zeros through the filter. */
static bool sends(fixture_t *f, const char *words, bool *ret_coded)
{
    ps_client_link_t *link = &f->client.links[0];
    const ps_message_t push = lane_kit_push(1, N_KEYS);
    ps_payload_t *payload = ps_payload_copy((ps_bytes_t){f->keys, KEYS_SIZE}, (ps_bytes_t){NULL, 0},
                                            (ps_bytes_t){f->values, VALUES_SIZE});
    arrived_t arrived = {.conn = 0};
    ps_filter_t filter;

    CHECK(payload != NULL);
    CHECK_OK(ps_filter_parse(words, &filter, f->kit.err), f->kit.err);
    CHECK(ps_link_send_filtered(&f->client, 0, &filter, &push, payload, false) == PSD_OK);
    CHECK_OK(lane_kit_receive(f->kit.port, link->socket, &arrived, f->kit.err), f->kit.err);
    *ret_coded = (arrived.message.flags & PS_FLAG_CODED) != 0;
    ps_payload_destroy(&arrived.payload);
    ps_payload_destroy(&payload);
    return true;
}

static bool only_what_pays_is_used(fixture_t *f)
{
    ps_client_link_t *link = &f->client.links[0];
    bool coded = false;

    for (uint64_t i = 0; i < N_KEYS; i++) {
        memcpy(f->keys + i * sizeof i, &i, sizeof i);
    }
    ps_socket_drop(&link->socket);
    link->socket = f->kit.link;
    f->kit.link = NULL;
    CHECK(sends(f, "delta+zstd", &coded) && !coded);
    CHECK(sends(f, "lz4", &coded) && !coded);
    CHECK(sends(f, "lz4+f16", &coded) && coded);
    return true;
}

static void done(fixture_t *f)
{
    ps_slice_requests_done(&f->client);
    ps_outbox_done(&f->client.outbox);
    ps_outbox_done(&f->client.batch);
    ps_session_destroy(&f->client.session);
    for (size_t i = 0; i < f->client.n_links; i++) {
        ps_socket_drop(&f->client.links[i].socket);
        ps_link_filter_done(&f->client.links[i]);
    }
    ps_free(f->client.links);
    ps_free(f->client.polled);
    ps_free(f->client.ready);
    ps_coder_destroy(&f->client.coder);
    psd_error_destroy(&f->client.scratch);
    if (f->table != NULL) {
        ps_free(f->table->queues);
        ps_free(f->table);
        ps_free(f->client.tables);
    }
    lane_kit_done(&f->kit);
    free(f->keys);
    free(f->values);
}

static bool loan_is_called_in(fixture_t *f)
{
    return fill_lane(f) && send_named(f) && nobody_looks_any_more(f);
}

static bool run(bool (*test)(fixture_t *f))
{
    ps_socket_args_t args = lane_kit_args(0);
    fixture_t f = {.table = NULL};
    bool ok = false;

    f.keys = calloc(1, KEYS_SIZE);
    f.values = calloc(1, VALUES_SIZE);
    ok = f.keys != NULL && f.values != NULL && lane_kit_open(&f.kit, &args) &&
         lane_kit_connect(&f.kit, &f.kit.link) == PSD_OK && make_client(&f) && test(&f);
    done(&f);
    return ok;
}

int main(void)
{
    return run(loan_is_called_in) && run(no_room_is_offered_late) && run(only_what_pays_is_used)
               ? 0
               : 1;
}
