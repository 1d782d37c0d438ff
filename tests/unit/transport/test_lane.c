/* SPDX-License-Identifier: Apache-2.0 */
/* One lane whose two ends are one thread's. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"
#include "transport/lane/lane.h"
#include "transport/lane/lane_record.h"

static const ps_lane_sizes_t SIZES = {
    .request_bytes = PS_LANE_RING_MIN, .reply_bytes = PS_LANE_RING_MIN, .arena_bytes = 1 << 18};
static const ps_lane_args_t ARGS = {.high_water = 16, .assembly_bytes = 1 << 20};

/* ---- a lane ------------------------------------------------------------- */

typedef struct ends {
    ps_lane_t *server;
    ps_lane_t *client;
} ends_t;

static psd_status_t open_ends(ends_t *self)
{
    ps_lane_share_t *share = NULL;
    ps_lane_share_t *other = NULL;
    int pair[2] = {-1, -1};
    int fd = -1;
    psd_status_t rc = ps_lane_share_new(&SIZES, &share, &fd, NULL);

    if (rc != PSD_OK) {
        return rc;
    }
    rc = ps_lane_share_adopt(fd, &SIZES, &other, NULL);
    cr_assert_eq(close(fd), 0);
    if (rc != PSD_OK) {
        ps_lane_share_drop(&share);
        return rc;
    }
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    rc = ps_lane_new(share, pair[0], true, &ARGS, &self->server, NULL);
    if (rc != PSD_OK) {
        ps_lane_share_drop(&other);
        cr_assert_eq(close(pair[1]), 0);
        return rc;
    }
    return ps_lane_new(other, pair[1], false, &ARGS, &self->client, NULL);
}

static void close_ends(ends_t *self)
{
    ps_lane_destroy(&self->client);
    ps_lane_destroy(&self->server);
}

static ps_message_t push_of(uint64_t request, uint64_t n)
{
    ps_message_t message = {.kind = PS_KIND_PUSH};

    message.push = (ps_msg_push_t){.request = request,
                                   .seq = 1,
                                   .rows = PS_ROWS_RANGE,
                                   .type = PS_TYPE_F32,
                                   .n_rows = n,
                                   .n_cols = 1,
                                   .n_values = n};
    return message;
}

static ps_message_t pull_of(uint64_t request, uint64_t n)
{
    ps_message_t message = {.kind = PS_KIND_PULL};

    message.pull = (ps_msg_pull_t){
        .request = request, .rows = PS_ROWS_RANGE, .type = PS_TYPE_F32, .n_rows = n, .n_cols = 1};
    return message;
}

static psd_status_t send_push(ps_lane_t *lane, uint64_t request, uint64_t n)
{
    static float values[1 << 16];
    ps_message_t message = push_of(request, n);
    ps_payload_t *payload =
        ps_payload_new((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                       (ps_bytes_t){(const uint8_t *)values, 4 * n}, NULL, NULL);
    psd_status_t rc =
        payload == NULL ? PSD_NOMEM : ps_lane_send(lane, &message, payload, false, NULL);

    ps_payload_destroy(&payload);
    return rc;
}

static psd_status_t take(ps_lane_t *lane, ps_message_t *message, ps_payload_t **payload, bool *got)
{
    ps_room_t room;

    *payload = NULL;
    return ps_lane_receive(lane, got, message, payload, &room, NULL);
}

/* Large and small pushes there, acknowledged. */
static psd_status_t push_there_and_back(void *fixture)
{
    const uint64_t sizes[] = {10, 900, 20000, 1 << 16};
    ends_t ends = {.server = NULL};
    psd_status_t rc = open_ends(&ends);

    (void)fixture;
    for (size_t i = 0; rc == PSD_OK && i < 4; i++) {
        ps_message_t message = {.kind = 0};
        ps_payload_t *payload = NULL;
        bool got = false;

        rc = send_push(ends.client, i + 1, sizes[i]);
        for (int turn = 0; rc == PSD_OK && !got && turn < 100; turn++) {
            rc = take(ends.server, &message, &payload, &got);
            ps_lane_flush(ends.server);
            ps_lane_flush(ends.client);
        }
        if (rc == PSD_OK) {
            cr_assert(got);
            cr_assert_eq(ps_payload_size(payload), 4 * sizes[i]);
        }
        ps_payload_destroy(&payload);
    }
    close_ends(&ends);
    return rc;
}

Test(lane, gives_everything_back_when_memory_is_short)
{
    cr_assert_null(fail_alloc_sweep(push_there_and_back, NULL));
}

/* Without memory for room, the answer comes through the ring. */
Test(lane, asks_without_room_when_memory_is_short)
{
    for (size_t at = 0; at < 4; at++) {
        ends_t ends = {.server = NULL};
        ps_message_t pull = pull_of(9, 5000);
        ps_payload_t *payload = NULL;
        ps_room_t room = {NULL, 0};
        psd_status_t rc = PSD_OK;
        bool got = false;

        cr_assert_eq(open_ends(&ends), PSD_OK);
        fail_alloc_at(at);
        rc = ps_lane_send(ends.client, &pull, NULL, false, NULL);
        fail_alloc_off();
        if (rc == PSD_OK) {
            cr_assert_eq(ps_lane_receive(ends.server, &got, &pull, &payload, &room, NULL), PSD_OK);
            cr_assert(got);
            cr_assert_null(payload);
        } else {
            cr_assert_eq(rc, PSD_NOMEM);
        }
        close_ends(&ends);
    }
}

/* The client dies between two pieces of a push. */
Test(lane, ends_amid_a_message)
{
    ends_t ends = {.server = NULL};
    ps_message_t message;
    ps_payload_t *payload = NULL;
    bool got = true;

    cr_assert_eq(open_ends(&ends), PSD_OK);
    cr_assert_eq(send_push(ends.client, 1, 1 << 16), PSD_OK);
    cr_assert_gt(ends.client->n_items, 0); /* its ring is full */
    ps_lane_destroy(&ends.client);
    cr_assert_eq(take(ends.server, &message, &payload, &got), PSD_OK);
    cr_assert_not(got);
    cr_assert_eq(ends.server->assembly.n_open, 1);
    ps_lane_listen(ends.server);
    cr_assert(ends.server->gone);
    cr_assert_eq(take(ends.server, &message, &payload, &got), PSD_OK);
    cr_assert_not(got);
    cr_assert_eq(ps_lane_send(ends.server, &message, NULL, false, NULL), PSD_BUSY);
    close_ends(&ends);
}

/* The server's payload outlives its lane. */
Test(lane, body_outlives_the_lane)
{
    ends_t ends = {.server = NULL};
    ps_message_t message;
    ps_payload_t *payload = NULL;
    bool got = false;

    cr_assert_eq(open_ends(&ends), PSD_OK);
    cr_assert_eq(send_push(ends.client, 1, 20000), PSD_OK);
    cr_assert_eq(take(ends.server, &message, &payload, &got), PSD_OK);
    cr_assert(got && payload->shared);
    close_ends(&ends);
    cr_assert_eq(payload->spans[0].data[0], 0);
    ps_payload_destroy(&payload);
}

/* Memory of a push is not used again while the server may read it. */
Test(lane, body_is_free_when_the_server_has_passed_it)
{
    ends_t ends = {.server = NULL};
    ps_message_t message;
    ps_payload_t *payload = NULL;
    bool got = false;

    cr_assert_eq(open_ends(&ends), PSD_OK);
    cr_assert_eq(send_push(ends.client, 1, 20000), PSD_OK);
    cr_assert_eq(take(ends.server, &message, &payload, &got), PSD_OK);
    ps_lane_flush(ends.server); /* it is still held */
    ps_lane_reclaim(ends.client);
    cr_assert_eq(ends.client->n_bodies, 1);
    cr_assert_gt(ps_lane_work_us(ends.client), 0);
    ps_payload_destroy(&payload);
    ps_lane_reclaim(ends.client);
    cr_assert_eq(ends.client->n_bodies, 1);
    ps_lane_flush(ends.server);
    ps_lane_reclaim(ends.client);
    cr_assert_eq(ends.client->n_bodies, 0);
    cr_assert_eq(ps_lane_work_us(ends.client), 0);
    cr_assert_eq(ends.client->share->free.n_taken, 0);
    close_ends(&ends);
}

/* A push that the server keeps holds its place in the arena; what comes behind
 * it goes on through the ring, many times around. */
Test(lane, held_body_keeps_no_ring)
{
    ends_t ends = {.server = NULL};
    ps_message_t message;
    ps_payload_t *held = NULL;
    ps_payload_t *payload = NULL;
    bool got = false;

    cr_assert_eq(open_ends(&ends), PSD_OK);
    cr_assert_eq(send_push(ends.client, 1, 20000), PSD_OK);
    cr_assert_eq(take(ends.server, &message, &held, &got), PSD_OK);
    cr_assert(got && held->shared);
    for (uint64_t i = 0; i < 3000; i++) {
        const ps_message_t pull = pull_of(i + 2, 1);

        cr_assert_eq(ps_lane_send(ends.client, &pull, NULL, false, NULL), PSD_OK);
        cr_assert_eq(ends.client->n_items, 0);
        cr_assert_eq(take(ends.server, &message, &payload, &got), PSD_OK);
        cr_assert(got && message.pull.request == i + 2);
        ps_lane_flush(ends.server);
    }
    ps_lane_reclaim(ends.client);
    cr_assert_eq(ends.client->n_bodies, 1);
    ps_payload_destroy(&held);
    ps_lane_flush(ends.server);
    ps_lane_reclaim(ends.client);
    cr_assert_eq(ends.client->n_bodies, 0);
    close_ends(&ends);
}

/* More pieces than the ring has room for, each of which is kept until the last
 * one has come. */
Test(lane, pieces_of_one_push_may_fill_the_ring_many_times)
{
    enum { N_PIECES = 2000, PIECE = 64 };
    ends_t ends = {.server = NULL};
    ps_message_t message = push_of(1, (uint64_t)N_PIECES * PIECE / 4);
    ps_bytes_t *spans = ps_alloc(N_PIECES, sizeof *spans);
    ps_payload_t *payload = NULL;
    uint64_t at = 0;
    bool got = false;

    cr_assert_eq(open_ends(&ends), PSD_OK);
    cr_assert(ps_arena_take(&ends.client->share->free, (uint64_t)N_PIECES * PIECE, &at));
    payload = ps_payload_new((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                             NULL, NULL);
    for (size_t i = 0; i < N_PIECES; i++) {
        spans[i] = (ps_bytes_t){ends.client->share->arena + at + i * PIECE, PIECE};
    }
    payload->spans = spans;
    payload->n_spans = N_PIECES;
    cr_assert_eq(ps_lane_send(ends.client, &message, payload, false, NULL), PSD_OK);
    ps_payload_destroy(&payload);
    for (int i = 0; i < 100 && !got; i++) {
        cr_assert_eq(take(ends.server, &message, &payload, &got), PSD_OK);
        ps_lane_flush(ends.server);
        ps_lane_flush(ends.client);
    }
    cr_assert(got);
    cr_assert_eq(ps_payload_size(payload), (uint64_t)N_PIECES * PIECE);
    ps_payload_destroy(&payload);
    close_ends(&ends);
}

/* Nobody can pass what was not sent. */
Test(lane, passing_too_much_ends_it)
{
    ends_t ends = {.server = NULL};

    cr_assert_eq(open_ends(&ends), PSD_OK);
    cr_assert_eq(send_push(ends.client, 1, 20000), PSD_OK);
    atomic_store(&ends.client->share->counters->request_passed, ends.client->out.at + 8);
    ps_lane_reclaim(ends.client);
    cr_assert_eq(ends.client->n_bodies, 1);
    ps_lane_flush(ends.client);
    cr_assert(ends.client->gone);
    close_ends(&ends);
}

/* The server looks at the first push while it comes; at those behind it, which
 * have to wait, the client looks. Both see the same. */
Test(lane, finite_is_seen_at_either_end)
{
    static float values[20000];
    static const size_t BAD[] = {SIZE_MAX, 0, 19999, SIZE_MAX};

    for (size_t first = 0; first < 4; first++) {
        ends_t ends = {.server = NULL};

        cr_assert_eq(open_ends(&ends), PSD_OK);
        for (size_t i = 0; i < 3; i++) {
            ps_message_t message = push_of(i + 1, 20000);
            size_t bad = BAD[(first + i) % 4];
            ps_payload_t *payload =
                ps_payload_new((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                               (ps_bytes_t){(const uint8_t *)values, sizeof values}, NULL, NULL);

            if (bad != SIZE_MAX) {
                values[bad] = INFINITY;
            }
            cr_assert_eq(ps_lane_send(ends.client, &message, payload, false, NULL), PSD_OK);
            ps_payload_destroy(&payload);
            if (bad != SIZE_MAX) {
                values[bad] = 0;
            }
        }
        for (size_t i = 0; i < 3; i++) {
            ps_message_t message;
            ps_payload_t *payload = NULL;
            bool got = false;

            cr_assert_eq(take(ends.server, &message, &payload, &got), PSD_OK);
            cr_assert(got);
            cr_assert_eq(payload->finite, BAD[(first + i) % 4] == SIZE_MAX);
            ps_payload_destroy(&payload);
        }
        close_ends(&ends);
    }
}

/* ---- rubbish ------------------------------------------------------------ */

/* Writes words as the client's next record and says that `n` bytes are there.
 * Returns what the server makes of it. */
static psd_status_t feed(const uint64_t *words, size_t n_words, uint64_t n, psd_error_t *err)
{
    ends_t ends = {.server = NULL};
    ps_message_t message;
    ps_payload_t *payload = NULL;
    ps_room_t room;
    bool got = false;
    psd_status_t rc = PSD_OK;

    cr_assert_eq(open_ends(&ends), PSD_OK);
    memcpy(ends.client->share->requests, words, 8 * n_words);
    atomic_store(&ends.client->share->counters->request_tail, n);
    cr_assert(ps_lane_is_ready(ends.server));
    rc = ps_lane_receive(ends.server, &got, &message, &payload, &room, err);
    cr_assert_not(got);
    cr_assert(ends.server->gone);
    /* It is not followed any further. */
    cr_assert_not(ps_lane_has_record(ends.server));
    cr_assert_eq(ps_lane_receive(ends.server, &got, &message, &payload, &room, NULL), PSD_OK);
    cr_assert_not(got);
    close_ends(&ends);
    return rc;
}

#define WORD(size, header, kind) \
    ((uint64_t)(size) | (uint64_t)(header) << 32 | (uint64_t)(kind) << 48)
#define ARENA (UINT64_C(1) << 18)

Test(lane, is_closed_at_what_is_no_record)
{
    static const struct {
        uint64_t words[8];
        uint64_t n;
        const char *why;
    } CASES[] = {
        {{0}, 8, "size of a record is 0"},
        {{WORD(7, 0, 1)}, 8, "size of a record is 7"},
        {{WORD(8, 0, 1)}, 8, "size of a record is 8"},
        {{WORD(16, 0, 1)}, 8, "size of a record is 16"},
        {{WORD(UINT32_MAX, 0, 1)}, 64, "size of a record is 4294967295"},
        {{WORD(16, 0, 0)}, 16, "kind of a record is 0"},
        {{WORD(16, 0, 4)}, 16, "kind of a record is 4"},
        {{WORD(2000, 0, 1)}, 2000, "size of a small record is 2000"},
        {{WORD(63, 0, 3)}, 64, "size of a record is 63"},
        {{WORD(64, 513, 3)}, 64, "size of a header is 513"},
        {{WORD(64, 1, 3)}, 64, "size of a record is 64"},
        {{WORD(64, 0, 3), UINT64_MAX, 1}, 64, "size of keys and index is 0"},
        {{WORD(64, 0, 3), 8, 0, 8}, 64, "size of keys and index is 8"},
        {{WORD(64, 0, 3), 8, 0, 0}, 64, "size of a record is 64"},
        {{WORD(72, 0, 3), 8, 0, 0, UINT64_MAX, 8}, 72, "size of a record is 72"},
        {{WORD(64, 0, 3), 0, 0, 0, ARENA - 3, 4}, 64, "place of values is 262141"},
        {{WORD(64, 0, 3), 0, 0, 0, UINT64_MAX - 1, 4}, 64, "place of values"},
        {{WORD(64, 0, 3), 0, 0, 0, 0, 0, 32, 64}, 64, "place of room is 32"},
        {{WORD(64, 0, 3), 0, 0, 0, 0, 0, ARENA - 64, 65}, 64, "place of room is 262080"},
        {{WORD(16, 0, 1)}, (1 << 16) + 8, "position in the ring"},
        {{WORD(16, 0, 1)}, 17, "position in the ring"},
        {{WORD(16, 0, 1)}, UINT64_MAX - 7, "position in the ring"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        psd_error_t *err = psd_error_new();

        cr_assert_eq(feed(CASES[i].words, 8, CASES[i].n, err), PSD_PROTO, "case %zu", i);
        cr_assert_neq(strstr(psd_error_text(err), CASES[i].why), NULL, "case %zu: %s", i,
                      psd_error_text(err));
        psd_error_destroy(&err);
    }
}

/* A record that is one, with a message that is none: as over tcp, the message
 * is refused and the lane goes on. */
Test(lane, goes_on_behind_a_bad_message)
{
    ends_t ends = {.server = NULL};
    ps_message_t message;
    ps_payload_t *payload = NULL;
    const uint64_t word = WORD(16, 8, 1);
    uint8_t *record = NULL;
    bool got = false;

    cr_assert_eq(open_ends(&ends), PSD_OK);
    record = ps_ring_reserve(&ends.client->out, 16);
    cr_assert_not_null(record);
    memcpy(record, &word, sizeof word);
    ps_ring_commit(&ends.client->out, 16);
    cr_assert_eq(send_push(ends.client, 5, 10), PSD_OK);
    cr_assert_eq(take(ends.server, &message, &payload, &got), PSD_PROTO);
    cr_assert_eq(take(ends.server, &message, &payload, &got), PSD_OK);
    cr_assert(got);
    cr_assert_eq(message.push.request, 5);
    ps_payload_destroy(&payload);
    close_ends(&ends);
}

/* A client that says of a NaN that it is finite: values that are copied out of
 * the ring would be looked at by nobody afterwards. */
Test(lane, copied_values_are_looked_at_whatever_is_said_of_them)
{
    ends_t ends = {.server = NULL};
    const float nan = NAN;
    ps_message_t message = push_of(7, 1);
    ps_payload_t *payload = NULL;
    uint8_t header[PS_HEADER_MAX];
    size_t size = ps_message_encode(&message, header);
    uint64_t word =
        ps_record_word((uint32_t)(8 + size + sizeof nan), (uint16_t)size, PS_LANE_RECORD_INLINE) |
        ps_record_flags(PS_LANE_RECORD_FINITE);
    uint8_t *record = NULL;
    bool got = false;

    cr_assert_eq(open_ends(&ends), PSD_OK);
    record = ps_ring_reserve(&ends.client->out, ps_record_room(8 + size + sizeof nan));
    cr_assert_not_null(record);
    memcpy(record, &word, sizeof word);
    memcpy(record + 8, header, size);
    memcpy(record + 8 + size, &nan, sizeof nan);
    ps_ring_commit(&ends.client->out, ps_record_room(8 + size + sizeof nan));
    cr_assert_eq(take(ends.server, &message, &payload, &got), PSD_OK);
    cr_assert(got && payload != NULL);
    cr_assert_not(payload->shared);
    cr_assert_not(payload->finite);
    ps_payload_destroy(&payload);
    close_ends(&ends);
}

/* Keys in PARTs are counted before they are kept. */
Test(lane, is_closed_at_keys_without_end)
{
    ends_t ends = {.server = NULL};
    ps_message_t message;
    ps_payload_t *payload = NULL;
    psd_status_t rc = PSD_OK;
    bool got = false;

    cr_assert_eq(open_ends(&ends), PSD_OK);
    for (int i = 0; rc == PSD_OK && i < 1000; i++) {
        const uint64_t word = WORD(8008, 0, 2);
        uint8_t *record = ps_ring_reserve(&ends.client->out, 8008);

        cr_assert_not_null(record);
        memcpy(record, &word, sizeof word);
        ps_ring_commit(&ends.client->out, 8008);
        rc = take(ends.server, &message, &payload, &got);
        ps_lane_flush(ends.server);
    }
    cr_assert_eq(rc, PSD_PROTO);
    cr_assert(ends.server->gone);
    close_ends(&ends);
}

/* The reader's counter is the peer's word too. */
Test(lane, is_closed_at_a_head_that_cannot_be)
{
    ends_t ends = {.server = NULL};
    const ps_message_t bye = {.kind = PS_KIND_BYE};
    psd_status_t rc = PSD_OK;

    cr_assert_eq(open_ends(&ends), PSD_OK);
    atomic_store(&ends.client->share->counters->reply_head, UINT64_MAX / 2);
    for (int i = 0; rc == PSD_OK && i < 100000; i++) {
        rc = ps_lane_send(ends.server, &bye, NULL, false, NULL);
        ps_lane_flush(ends.server);
    }
    cr_assert_eq(rc, PSD_BUSY);
    cr_assert(ends.server->gone);
    close_ends(&ends);
}
