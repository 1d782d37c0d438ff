/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads at the two ends of one lane, over one mapping, so that TSan sees
 * what orders their accesses. Each goes to sleep whenever it finds nothing: a
 * wake-up that gets lost leaves both asleep, and the patience runs out. */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "support/check.h"
#include "transport/lane/lane.h"
#include "transport/sockets/socket.h"

#define ROUNDS 60000
#define PATIENCE_MS 60000
#define VALUES_MAX 6000 /* f32; some go through the arena, most do not */
#define WINDOW 48       /* requests without an answer */
#define SILENT 3000     /* pushes that nobody answers */

typedef struct end {
    ps_lane_t *lane;
    uint64_t seed;
    bool ok;
} end_t;

/* Sleeps until the other end rings; what is to be said was flushed. */
static bool doze(ps_lane_t *lane)
{
    struct pollfd item = {.fd = lane->fd, .events = POLLIN};
    bool rang = true;

    if (ps_lane_sleep(lane)) {
        rang = poll(&item, 1, PATIENCE_MS) == 1;
        ps_lane_listen(lane);
    }
    ps_lane_wake(lane);
    return rang;
}

static float value_of(uint64_t request, size_t i)
{
    return (float)((request * 7 + i) % 1000);
}

static bool values_are(const ps_payload_t *payload, uint64_t request)
{
    size_t at = 0;

    for (size_t i = 0; i < payload->n_spans; i++) {
        for (size_t j = 0; j < payload->spans[i].size; j += sizeof(float)) {
            float value = 0;

            memcpy(&value, payload->spans[i].data + j, sizeof value);
            CHECK(value == value_of(request, at++));
        }
    }
    return true;
}

static ps_message_t message_of(ps_kind_t kind, uint64_t request, uint64_t n)
{
    ps_message_t message = {.kind = kind};
    const ps_slice_t slice = {.rows = PS_ROWS_RANGE,
                              .type = PS_TYPE_F32,
                              .n_rows = n,
                              .n_cols = 1,
                              .n_values = kind == PS_KIND_PULL ? 0 : n};

    if (kind == PS_KIND_VALUES) {
        message.values = (ps_msg_values_t){.request = request, .n_done = n};
    } else {
        message.pull = (ps_msg_pull_t){.request = request};
    }
    ps_message_set_slice(&message, &slice);
    return message;
}

/* Answers a pull with as many values as it asks for. */
static bool answer(ps_lane_t *lane, const ps_message_t *pull, ps_room_t room)
{
    uint64_t n = pull->pull.n_rows;
    ps_message_t message = message_of(PS_KIND_VALUES, pull->pull.request, n);
    uint8_t *bytes = room.size > 0 ? room.data : ps_alloc_raw(n, 4);
    ps_payload_t *payload = NULL;

    CHECK(bytes != NULL && (room.size == 0 || room.size >= n * 4));
    for (size_t i = 0; i < n; i++) {
        float value = value_of(pull->pull.request, i);

        memcpy(bytes + 4 * i, &value, sizeof value);
    }
    payload = ps_payload_new((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                             (ps_bytes_t){bytes, n * 4}, bytes, room.size > 0 ? NULL : ps_free);
    CHECK(payload != NULL);
    CHECK(ps_lane_send(lane, &message, payload, false, NULL) == PSD_OK);
    ps_payload_destroy(&payload);
    return true;
}

static bool acknowledge(ps_lane_t *lane, uint64_t request)
{
    ps_message_t message = {.kind = PS_KIND_ACK};

    message.ack = (ps_msg_ack_t){.request = request, .seq = 1, .level = 1};
    CHECK(ps_lane_send(lane, &message, NULL, false, NULL) == PSD_OK);
    return true;
}

static bool serve(end_t *self)
{
    uint64_t n_taken = 0;

    while (n_taken < ROUNDS + SILENT) {
        ps_message_t message;
        ps_payload_t *payload = NULL;
        ps_room_t room = {NULL, 0};
        bool got = false;

        CHECK(ps_lane_receive(self->lane, &got, &message, &payload, &room, NULL) == PSD_OK);
        if (!got) {
            ps_lane_flush(self->lane);
            CHECK(doze(self->lane));
            continue;
        }
        if (message.kind == PS_KIND_PUSH) {
            CHECK(payload->finite && values_are(payload, message.push.request));
            CHECK(message.push.request > ROUNDS || acknowledge(self->lane, message.push.request));
        } else {
            CHECK(answer(self->lane, &message, room));
        }
        ps_payload_destroy(&payload);
        n_taken++;
    }
    ps_lane_flush(self->lane);
    return true;
}

static bool ask(ps_lane_t *lane, uint64_t request, uint64_t n, bool is_push)
{
    static float values[VALUES_MAX];
    ps_message_t message = message_of(is_push ? PS_KIND_PUSH : PS_KIND_PULL, request, n);
    ps_payload_t *payload = NULL;

    if (is_push) {
        message.push = (ps_msg_push_t){.request = request, .seq = 1};
        message.push.rows = PS_ROWS_RANGE;
        message.push.type = PS_TYPE_F32;
        message.push.n_rows = n;
        message.push.n_cols = 1;
        message.push.n_values = n;
        for (size_t i = 0; i < n; i++) {
            values[i] = value_of(request, i);
        }
        payload = ps_payload_copy((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                                  (ps_bytes_t){(uint8_t *)values, n * 4});
        CHECK(payload != NULL);
    }
    CHECK(ps_lane_send(lane, &message, payload, false, NULL) == PSD_OK);
    ps_payload_destroy(&payload);
    return true;
}

static bool take_answers(ps_lane_t *lane, uint64_t *n_answered)
{
    for (;;) {
        ps_message_t message;
        ps_payload_t *payload = NULL;
        ps_room_t room = {NULL, 0};
        bool got = false;

        CHECK(ps_lane_receive(lane, &got, &message, &payload, &room, NULL) == PSD_OK);
        if (!got) {
            return true;
        }
        if (message.kind == PS_KIND_VALUES) {
            CHECK(values_are(payload, message.values.request));
        }
        ps_payload_destroy(&payload);
        (*n_answered)++;
    }
}

static bool work(end_t *self)
{
    ps_rng_t rng = {.state = self->seed};
    uint64_t n_sent = 0;
    uint64_t n_answered = 0;

    while (n_answered < ROUNDS) {
        uint64_t window = 1 + ps_rng_u64(&rng) % WINDOW;

        while (n_sent < ROUNDS && n_sent - n_answered < window) {
            uint64_t dice = ps_rng_u64(&rng);
            uint64_t n = 1 + (dice % 16 == 0 ? dice / 32 % VALUES_MAX : dice / 32 % 16);

            CHECK(ask(self->lane, ++n_sent, n, dice % 32 < 16));
        }
        ps_lane_flush(self->lane);
        CHECK(doze(self->lane));
        CHECK(take_answers(self->lane, &n_answered));
    }
    return true;
}

/* Sleeps until no more than so many are put off. */
static bool send_on(ps_lane_t *lane, size_t most)
{
    for (ps_lane_flush(lane); lane->n_items > most; ps_lane_flush(lane)) {
        CHECK(doze(lane));
    }
    return true;
}

/* Large pushes without answers: what wakes us is that there is room again. */
static bool work_in_silence(end_t *self)
{
    for (uint64_t i = 1; i <= SILENT; i++) {
        CHECK(ask(self->lane, ROUNDS + i, VALUES_MAX, true));
        CHECK(send_on(self->lane, 4));
    }
    return send_on(self->lane, 0);
}

static void *run_server(void *arg)
{
    end_t *self = arg;

    self->ok = serve(self);
    return NULL;
}

static bool open_ends(end_t *server, end_t *client)
{
    const ps_lane_sizes_t sizes = {
        .request_bytes = PS_LANE_RING_MIN, .reply_bytes = PS_LANE_RING_MIN, .arena_bytes = 1 << 17};
    const ps_lane_args_t args = {.high_water = 1000, .assembly_bytes = 1 << 20};
    ps_lane_share_t *share = NULL;
    int memory = -1;
    int pair[2];

    CHECK(ps_lane_share_new(&sizes, &share, &memory, NULL) == PSD_OK);
    CHECK(close(memory) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    CHECK(ps_lane_new(ps_lane_share_keep(share), pair[0], true, &args, &server->lane, NULL) ==
          PSD_OK);
    CHECK(ps_lane_new(share, pair[1], false, &args, &client->lane, NULL) == PSD_OK);
    return true;
}

int main(void)
{
    end_t server = {.lane = NULL};
    end_t client = {.seed = 20260101};
    pthread_t thread;
    bool ok =
        open_ends(&server, &client) && pthread_create(&thread, NULL, run_server, &server) == 0;

    if (ok) {
        client.ok = work(&client) && work_in_silence(&client);
        ok = pthread_join(thread, NULL) == 0 && client.ok && server.ok;
    }
    ps_lane_destroy(&client.lane);
    ps_lane_destroy(&server.lane);
    return ok ? 0 : 1;
}
