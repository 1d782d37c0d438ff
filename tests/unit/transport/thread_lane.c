/* SPDX-License-Identifier: Apache-2.0 */
/* A port and links that speak over lanes: bodies of every size, room, blocks,
 * full rings and arenas, and ends. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "lane_kit.h"
#include "transport/sockets/socket_inner.h"

/* There and back, with keys; the answer goes through the ring. */
static bool body_of(lane_kit_t *kit, uint64_t n)
{
    uint8_t *bytes = malloc(n * 12);
    ps_message_t sent = lane_kit_push(n + 1, n);
    ps_payload_t *payload = NULL;
    arrived_t got;
    ps_slice_t slice;

    CHECK(bytes != NULL);
    lane_kit_fill(bytes, n * 12);
    payload = ps_payload_new((ps_bytes_t){bytes, n * 8}, (ps_bytes_t){NULL, 0},
                             (ps_bytes_t){bytes, n * 4}, NULL, NULL);
    CHECK_OK(ps_socket_send(kit->link, 0, &sent, payload, kit->err), kit->err);
    CHECK_OK(lane_kit_receive(kit->port, kit->link, &got, kit->err), kit->err);
    ps_message_slice(&got.message, &slice);
    CHECK(got.message.kind == PS_KIND_PUSH && got.conn >= UINT64_C(1) << 40);
    CHECK(got.message.push.request == n + 1 && slice.n_rows == n);
    CHECK(got.payload->keys.size == n * 8 && memcmp(got.payload->keys.data, bytes, n * 8) == 0);
    CHECK(lane_kit_same(got.payload, n * 4) && got.payload->finite);

    /* The answer is made of the very bytes that came. */
    sent = (ps_message_t){.kind = PS_KIND_VALUES};
    sent.values = (ps_msg_values_t){.request = n + 1, .n_done = n};
    ps_message_set_slice(&sent, &slice);
    CHECK_OK(ps_socket_send(kit->port, got.conn, &sent, got.payload, kit->err), kit->err);
    ps_payload_destroy(&got.payload);
    CHECK_OK(lane_kit_receive(kit->link, kit->port, &got, kit->err), kit->err);
    CHECK(got.conn == 0 && got.message.kind == PS_KIND_VALUES);
    CHECK(lane_kit_same(got.payload, n * 4) && !got.payload->shared);
    ps_payload_destroy(&got.payload);
    ps_payload_destroy(&payload);
    free(bytes);
    return true;
}

/* It comes whole, in memory that is the server's alone. */
static bool bundle_of(lane_kit_t *kit, size_t size)
{
    uint8_t *bytes = malloc(size);
    const ps_message_t sent = {.kind = PS_KIND_BUNDLE,
                               .bundle = {.request = size, .job = 1, .n_from = 1, .n_spans = 1}};
    ps_payload_t *payload = NULL;
    arrived_t got;

    CHECK(bytes != NULL);
    lane_kit_fill(bytes, size);
    payload = ps_payload_new((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                             (ps_bytes_t){bytes, size}, NULL, NULL);
    CHECK_OK(ps_socket_send(kit->link, 0, &sent, payload, kit->err), kit->err);
    CHECK_OK(lane_kit_receive(kit->port, kit->link, &got, kit->err), kit->err);
    CHECK(got.message.kind == PS_KIND_BUNDLE && got.message.bundle.request == size);
    CHECK(got.payload->n_spans == 1 && lane_kit_same(got.payload, size) && !got.payload->shared);
    ps_payload_destroy(&got.payload);
    ps_payload_destroy(&payload);
    free(bytes);
    return true;
}

static bool bundles_of_every_size_arrive(lane_kit_t *kit)
{
    return bundle_of(kit, 400) && bundle_of(kit, 2 << 10) && bundle_of(kit, 100 << 10) &&
           bundle_of(kit, 2 << 20) && body_of(kit, 100);
}

/* Small, in the ring, in the arena, in pieces; keys longer than a ring; more
 * values than the arena has. */
static bool bodies_of_every_size_arrive(lane_kit_t *kit)
{
    const uint64_t sizes[] = {1,     85,     86,     1000,   1024,   1025,   5000,
                              50000, 100000, 131072, 200000, 500000, 1000000};
    const ps_message_t bye = {.kind = PS_KIND_BYE, .bye = {.session = 3}};
    arrived_t got;

    CHECK_OK(ps_socket_send(kit->link, 0, &bye, NULL, kit->err), kit->err);
    CHECK_OK(lane_kit_receive(kit->port, kit->link, &got, kit->err), kit->err);
    CHECK(got.message.kind == PS_KIND_BYE && got.payload == NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CHECK(body_of(kit, sizes[i]));
    }
    CHECK(ps_socket_n_unfinished(kit->port) == 0);
    return true;
}

/* The server writes where the client will read. */
static bool answer_lies_in_its_room(lane_kit_t *kit)
{
    const uint64_t n = 20000;
    ps_message_t pull = lane_kit_pull(900, n);
    ps_message_t values = lane_kit_values(&pull);
    ps_payload_t *answer = NULL;
    ps_payload_t *last = NULL;
    arrived_t got;

    for (int i = 0; i < 100; i++) {
        const uint8_t *room = NULL;

        pull.pull.request++;
        values.values.request++;
        CHECK_OK(ps_socket_send(kit->link, 0, &pull, NULL, kit->err), kit->err);
        CHECK_OK(lane_kit_receive(kit->port, kit->link, &got, kit->err), kit->err);
        CHECK(got.room.size >= n * 4 && (uintptr_t)got.room.data % 64 == 0);
        lane_kit_fill(got.room.data, n * 4);
        room = got.room.data;
        answer = ps_payload_new((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                                (ps_bytes_t){room, n * 4}, NULL, NULL);
        CHECK_OK(ps_socket_send(kit->port, got.conn, &values, answer, kit->err), kit->err);
        ps_payload_destroy(&answer);
        CHECK_OK(lane_kit_receive(kit->link, kit->port, &got, kit->err), kit->err);
        CHECK(got.payload->n_spans == 1 && lane_kit_same(got.payload, n * 4));
        ps_payload_destroy(&last);
        last = got.payload;
    }
    ps_payload_destroy(&last);
    return true;
}

static bool refuse(lane_kit_t *kit, uint64_t conn, uint64_t request, psd_status_t status)
{
    ps_message_t refused = {.kind = PS_KIND_REFUSED};
    arrived_t got;

    refused.refused = (ps_msg_refused_t){.request = request, .status = (uint16_t)status};
    CHECK_OK(ps_socket_send(kit->port, conn, &refused, NULL, kit->err), kit->err);
    CHECK_OK(lane_kit_receive(kit->link, kit->port, &got, kit->err), kit->err);
    CHECK(got.message.kind == PS_KIND_REFUSED);
    return true;
}

static bool pull_room(lane_kit_t *kit, uint64_t request, arrived_t *ret)
{
    ps_message_t pull = lane_kit_pull(request, 20000);

    CHECK_OK(ps_socket_send(kit->link, 0, &pull, NULL, kit->err), kit->err);
    CHECK_OK(lane_kit_receive(kit->port, kit->link, ret, kit->err), kit->err);
    CHECK(ret->message.pull.request == request);
    return true;
}

/* A late answer to the first may still be written: the second of two sends of
 * a request names no room, and the room is not given to anybody else before an
 * end came that is of both. */
static bool room_is_offered_once(lane_kit_t *kit)
{
    arrived_t first;
    arrived_t again;
    arrived_t other;

    CHECK(pull_room(kit, 2000, &first) && pull_room(kit, 2000, &again));
    CHECK(first.room.size > 0 && again.room.size == 0);
    CHECK(refuse(kit, first.conn, 2000, PSD_BUSY));
    CHECK(pull_room(kit, 2001, &other));
    CHECK(other.room.size > 0 && other.room.data != first.room.data);
    CHECK(refuse(kit, first.conn, 2001, PSD_BUSY));
    CHECK(refuse(kit, first.conn, 2000, PSD_DEADLINE));
    CHECK(pull_room(kit, 2002, &other));
    CHECK(other.room.data == first.room.data);
    return refuse(kit, first.conn, 2002, PSD_SHAPE);
}

/* The first send found no room, for there was none then; the second could have
 * some, but its answer would come behind the end of the request. */
static bool room_is_not_offered_late(lane_kit_t *kit)
{
    ps_message_t pull = lane_kit_pull(2003, 20000);
    uint64_t *lent = &kit->link->lane->share->room_bytes;
    uint64_t lent_before = *lent;
    arrived_t got;

    *lent = kit->link->lane->share->sizes.arena_bytes / 2;
    CHECK(pull_room(kit, 2003, &got) && got.room.size == 0);
    *lent = lent_before;
    CHECK_OK(ps_socket_send_again(kit->link, &pull, NULL, kit->err), kit->err);
    CHECK_OK(lane_kit_receive(kit->port, kit->link, &got, kit->err), kit->err);
    CHECK(got.message.pull.request == 2003 && got.room.size == 0);
    CHECK(pull_room(kit, 2004, &got) && got.room.size > 0);
    return refuse(kit, got.conn, 2004, PSD_SHAPE);
}

/* What the caller wrote into the arena is read there. */
static bool block_is_not_copied(lane_kit_t *kit)
{
    const uint64_t n = 10000;
    ps_message_t push = lane_kit_push(3000, n);
    ps_block_t block = {.data = NULL};
    ps_block_t none = {.data = NULL};
    ps_payload_t *payload = NULL;
    uint8_t keys[8] = {0};
    arrived_t got;

    CHECK(!ps_socket_take_block(kit->link, 1 << 19, &none));
    CHECK(!ps_socket_take_block(kit->port, 64, &none) && none.data == NULL);
    CHECK(ps_socket_take_block(kit->link, n * 4, &block));
    lane_kit_fill(block.data, n * 4);
    push.push.rows = PS_ROWS_RANGE;
    payload = ps_payload_new((ps_bytes_t){keys, 0}, (ps_bytes_t){NULL, 0},
                             (ps_bytes_t){block.data, n * 4}, NULL, NULL);
    CHECK_OK(ps_socket_send(kit->link, 0, &push, payload, kit->err), kit->err);
    CHECK_OK(lane_kit_receive(kit->port, kit->link, &got, kit->err), kit->err);
    CHECK(got.payload->shared && got.payload->finite);
    CHECK(lane_kit_same(got.payload, n * 4));
    block.data[n] ^= 1; /* the same memory, for the server too */
    CHECK(got.payload->spans[0].data[n] == (lane_kit_byte(n) ^ 1));
    CHECK(atomic_load(&payload->n_holders) == 2); /* it is being read */
    ps_payload_destroy(&got.payload);
    ps_payload_destroy(&payload);
    ps_block_done(&block);
    ps_block_done(&block);
    return block.data == NULL;
}

static bool not_finite_is_seen(lane_kit_t *kit)
{
    static float values[200000];
    const size_t bad[] = {0, 65536, 199999};
    ps_message_t push = lane_kit_push(4000, 200000);
    arrived_t got;

    push.push.rows = PS_ROWS_RANGE;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ps_payload_t *payload =
            ps_payload_new((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                           (ps_bytes_t){(const uint8_t *)values, sizeof values}, NULL, NULL);

        values[bad[i]] = 1.0f / 0.0f;
        CHECK_OK(ps_socket_send(kit->link, 0, &push, payload, kit->err), kit->err);
        CHECK_OK(lane_kit_receive(kit->port, kit->link, &got, kit->err), kit->err);
        CHECK(!got.payload->finite);
        ps_payload_destroy(&got.payload);
        ps_payload_destroy(&payload);
        values[bad[i]] = 0;
    }
    return true;
}

/* More than the ring, the arena and the queue hold: it is BUSY, in order, and
 * all of it arrives that was taken. */
static bool full_queue_is_busy(lane_kit_t *kit)
{
    static uint8_t bytes[100000];
    ps_message_t push = lane_kit_push(1, 25000);
    ps_payload_t *payload = ps_payload_new((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                                           (ps_bytes_t){bytes, sizeof bytes}, NULL, NULL);
    uint64_t n_sent = 0;
    psd_status_t rc = PSD_OK;
    arrived_t got;

    push.push.rows = PS_ROWS_RANGE;
    while (rc == PSD_OK && n_sent < 10000) {
        push.push.request = 5000 + n_sent;
        rc = ps_socket_send(kit->link, 0, &push, payload, kit->err);
        n_sent += rc == PSD_OK;
    }
    CHECK(rc == PSD_BUSY && n_sent > 100);
    psd_error_clear(kit->err);
    for (uint64_t i = 0; i < n_sent; i++) {
        CHECK_OK(lane_kit_receive(kit->port, kit->link, &got, kit->err), kit->err);
        CHECK(got.message.push.request == 5000 + i);
        ps_payload_destroy(&got.payload);
        ps_socket_flush(kit->port);
    }
    CHECK(atomic_load(&payload->n_holders) == 1);
    ps_payload_destroy(&payload);
    return true;
}

/* The same for answers, to a client that does not read. */
static bool full_answers_are_busy(lane_kit_t *kit)
{
    static uint8_t bytes[400000];
    ps_message_t pull = lane_kit_pull(1, 100000);
    ps_message_t values = lane_kit_values(&pull);
    ps_payload_t *payload = ps_payload_new((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                                           (ps_bytes_t){bytes, sizeof bytes}, NULL, NULL);
    const ps_message_t bye = {.kind = PS_KIND_BYE};
    uint64_t n_sent = 0;
    psd_status_t rc = PSD_OK;
    arrived_t got;

    CHECK_OK(ps_socket_send(kit->link, 0, &bye, NULL, kit->err), kit->err);
    CHECK_OK(lane_kit_receive(kit->port, kit->link, &got, kit->err), kit->err);
    while (rc == PSD_OK && n_sent < 10000) {
        values.values.request = 6000 + n_sent;
        rc = ps_socket_send(kit->port, got.conn, &values, payload, kit->err);
        n_sent += rc == PSD_OK;
    }
    CHECK(rc == PSD_BUSY && n_sent > 100);
    psd_error_clear(kit->err);
    for (uint64_t i = 0; i < n_sent; i++) {
        CHECK_OK(lane_kit_receive(kit->link, kit->port, &got, kit->err), kit->err);
        CHECK(got.message.values.request == 6000 + i);
        CHECK(ps_payload_size(got.payload) == sizeof bytes);
        ps_payload_destroy(&got.payload);
    }
    CHECK(atomic_load(&payload->n_holders) == 1);
    ps_payload_destroy(&payload);
    return true;
}

static bool wait_for_gone(lane_kit_t *kit, uint64_t *ret_conn)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;

    while (ps_now_ms() < until_ms) {
        bool ready = false;

        CHECK_OK(ps_socket_wait(&kit->port, 1, 100, &ready, kit->err), kit->err);
        if (ps_socket_next_gone(kit->port, ret_conn)) {
            return true;
        }
    }
    return false;
}

/* A link that goes is told of, behind its last message; what lies in its memory
 * stays as long as somebody holds it. */
static bool end_of_a_link_is_told(lane_kit_t *kit)
{
    const uint64_t n = 50000;
    ps_message_t push = lane_kit_push(7000, n);
    uint8_t *bytes = malloc(n * 4);
    ps_payload_t *payload = NULL;
    ps_socket_t *other = NULL;
    uint64_t conn = 0;
    uint64_t none = 0;
    arrived_t got;

    CHECK(bytes != NULL);
    lane_kit_fill(bytes, n * 4);
    push.push.rows = PS_ROWS_RANGE;
    payload = ps_payload_new((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                             (ps_bytes_t){bytes, n * 4}, NULL, NULL);
    CHECK_OK(lane_kit_connect(kit, &other), kit->err);
    CHECK_OK(ps_socket_send(other, 0, &push, payload, kit->err), kit->err);
    ps_payload_destroy(&payload);
    free(bytes);
    ps_socket_close(&other);
    CHECK_OK(lane_kit_receive(kit->port, kit->link, &got, kit->err), kit->err);
    CHECK(wait_for_gone(kit, &conn) && conn == got.conn);
    CHECK(!ps_socket_next_gone(kit->port, &none));
    CHECK_ERROR(ps_socket_send(kit->port, conn, &push, NULL, kit->err), PSD_BUSY, "peer is gone",
                kit->err);
    CHECK(lane_kit_same(got.payload, n * 4));
    ps_payload_destroy(&got.payload);
    return true;
}

static bool more_than_most_are_turned_away(lane_kit_t *kit)
{
    ps_socket_t *links[4] = {NULL};
    uint64_t conn = 0;

    for (int i = 0; i < 3; i++) {
        CHECK_OK(lane_kit_connect(kit, &links[i]), kit->err);
    }
    CHECK_ERROR(lane_kit_connect(kit, &links[3]), PSD_BUSY, "4 lanes are open; allowed: 4",
                kit->err);
    CHECK(ps_socket_n_refused(kit->port) == 1);
    for (int i = 0; i < 3; i++) {
        ps_socket_close(&links[i]);
        CHECK(wait_for_gone(kit, &conn));
    }
    CHECK_OK(lane_kit_connect(kit, &links[3]), kit->err);
    ps_socket_close(&links[3]);
    CHECK(wait_for_gone(kit, &conn));
    return true;
}

/* The port has no files left: who comes is hung up on, and does not wake it for
 * ever. */
static bool without_files_all_are_hung_up_on(lane_kit_t *kit)
{
    int files[256];
    size_t n = 0;
    struct rlimit before;
    struct rlimit few;
    ps_socket_t *link = NULL;
    psd_status_t rc = PSD_OK;
    uint64_t n_refused = ps_socket_n_refused(kit->port);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    bool ready = false;

    CHECK(fd >= 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
    few = before;
    few.rlim_cur = 256;
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    while (n < 256 && (files[n] = dup(fd)) >= 0) {
        n++;
    }
    CHECK(n > 0 && n < 256);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.100s",
                   kit->endpoint + strlen("lane://"));
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    for (int i = 0; i < 100 && ps_socket_n_refused(kit->port) == n_refused; i++) {
        CHECK_OK(ps_socket_wait(&kit->port, 1, 100, &ready, kit->err), kit->err);
    }
    CHECK(ps_socket_n_refused(kit->port) == n_refused + 1);
    CHECK(read(fd, &address, 1) == 0);
    while (n > 0) {
        CHECK(close(files[--n]) == 0);
    }
    CHECK(close(fd) == 0 && setrlimit(RLIMIT_NOFILE, &before) == 0);
    rc = lane_kit_connect(kit, &link);
    CHECK(rc == PSD_OK);
    ps_socket_close(&link);
    return true;
}

static bool endpoints_are_checked(lane_kit_t *kit)
{
    ps_socket_t *socket = NULL;
    char path[PATH_MAX + 64];
    struct stat about;

    CHECK(stat(kit->endpoint + 7, &about) == 0 && (about.st_mode & 0777) == 0600);
    CHECK_ERROR(ps_socket_connect("lane://", &kit->args, &socket, kit->err), PSD_INVALID,
                "lane://PATH of 1..107 bytes", kit->err);
    (void)snprintf(path, sizeof path, "lane://%s/none", kit->dir.path);
    CHECK_ERROR(ps_socket_connect(path, &kit->args, &socket, kit->err), PSD_CONNECT, "No such file",
                kit->err);
    CHECK_ERROR(ps_socket_bind_more(kit->port, kit->endpoint, kit->err), PSD_IO,
                "Address already in use", kit->err);
    CHECK(!ps_socket_is_lane(kit->port) && ps_socket_is_lane(kit->link));
    CHECK_ERROR(ps_socket_send_text(kit->link, 0, (ps_bytes_t){(const uint8_t *)"{}", 2}, kit->err),
                PSD_UNSUPPORTED, "over a lane", kit->err);
    return true;
}

/* A port that ends is noticed; its file is gone. A file that one left who died
 * is replaced. */
static bool end_of_the_port_is_noticed(lane_kit_t *kit)
{
    const ps_message_t bye = {.kind = PS_KIND_BYE};
    const char *endpoints[] = {kit->endpoint};
    struct stat about;
    bool ready = false;

    CHECK(!ps_socket_is_gone(kit->link));
    ps_socket_close(&kit->port);
    CHECK(stat(kit->endpoint + 7, &about) != 0);
    CHECK_OK(ps_socket_wait(&kit->link, 1, PATIENCE_MS, &ready, kit->err), kit->err);
    CHECK(ready && ps_socket_is_gone(kit->link));
    CHECK_ERROR(ps_socket_send(kit->link, 0, &bye, NULL, kit->err), PSD_BUSY, "peer is gone",
                kit->err);
    CHECK_OK(ps_socket_bind(endpoints, 1, &kit->args, &kit->port, kit->err), kit->err);
    ps_socket_drop(&kit->link);
    CHECK_OK(lane_kit_connect(kit, &kit->link), kit->err);
    return true;
}

static bool run(uint32_t spin_us)
{
    ps_socket_args_t args = lane_kit_args(spin_us);
    lane_kit_t kit = {.port = NULL};
    bool ok = lane_kit_open(&kit, &args);

    if (ok && lane_kit_connect(&kit, &kit.link) != PSD_OK) {
        (void)fprintf(stderr, "connect: %s\n", psd_error_text(kit.err));
        ok = false;
    }
    ok = ok && bodies_of_every_size_arrive(&kit) && bundles_of_every_size_arrive(&kit) &&
         answer_lies_in_its_room(&kit) && room_is_offered_once(&kit) &&
         room_is_not_offered_late(&kit) && block_is_not_copied(&kit) && not_finite_is_seen(&kit) &&
         full_queue_is_busy(&kit) && full_answers_are_busy(&kit) && end_of_a_link_is_told(&kit) &&
         more_than_most_are_turned_away(&kit) && without_files_all_are_hung_up_on(&kit) &&
         endpoints_are_checked(&kit) && end_of_the_port_is_noticed(&kit) &&
         bodies_of_every_size_arrive(&kit);
    lane_kit_done(&kit);
    return ok;
}

int main(void)
{
    return run(0) && run(50) ? 0 : 1;
}
