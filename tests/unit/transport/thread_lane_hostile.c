/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that write whatever they like over the shared memory while the server
 * reads it, and users who may not have a lane. Each costs itself its lane; the
 * well-behaved client beside them gets all of its answers. */
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/rng.h"
#include "lane_kit.h"
#include "transport/lane/lane_record.h"
#include "transport/sockets/socket_inner.h"

#define LANES 150     /* that are spoilt, one after the other */
#define TURNS 300     /* of the server, for each */
#define MEMBERS 54321 /* a group of nobody else */
#define NOBODY 65534

typedef struct vandal {
    ps_lane_share_t *share;
    uint64_t seed;
    atomic_bool stop;
} vandal_t;

static void write_word(uint8_t *at, uint64_t word)
{
    __atomic_store_n((uint64_t *)(void *)at, word, __ATOMIC_RELAXED);
}

/* A head that could be right, of any kind and with any numbers. */
static void write_record(uint8_t *at, ps_rng_t *rng)
{
    uint64_t size = 8 * (1 + ps_rng_below(rng, 40));

    write_word(at, ps_record_word((uint32_t)size, (uint16_t)ps_rng_below(rng, 200),
                                  (ps_lane_record_kind_t)(1 + ps_rng_below(rng, 3))));
    for (int i = 1; i < PS_LANE_RECORD_WORDS; i++) {
        uint64_t dice = ps_rng_u64(rng);

        write_word(at + 8 * i, dice % 3 == 0 ? dice : dice % 3 == 1 ? dice % (1 << 20) : 0);
    }
}

static void *spoil(void *arg)
{
    vandal_t *self = arg;
    ps_lane_counters_t *counters = self->share->counters;
    ps_rng_t rng = {.state = self->seed};

    while (!atomic_load(&self->stop)) {
        uint64_t at = 8 * ps_rng_below(&rng, 2000);

        switch (ps_rng_below(&rng, 8)) {
        case 0:
        case 1:
            write_record(self->share->requests + at, &rng);
            break;
        case 2:
            write_word(self->share->requests + at, ps_rng_u64(&rng));
            break;
        case 3:
        case 4:
            write_word(self->share->arena + at, ps_rng_u64(&rng));
            break;
        case 5:
            atomic_store(&counters->request_tail, atomic_load(&counters->request_head) + at / 8);
            break;
        case 6:
            atomic_store(&counters->reply_head, ps_rng_u64(&rng));
            atomic_store(&counters->request_passed, ps_rng_u64(&rng));
            break;
        default:
            atomic_store(&counters->server_waits, ps_rng_u64(&rng));
            atomic_store(&counters->client_waits, ps_rng_u64(&rng));
            break;
        }
    }
    return NULL;
}

/* Reads every byte, as the shard would. */
static uint64_t sum_of(const ps_payload_t *payload)
{
    uint64_t sum = 0;

    for (size_t i = 0; payload != NULL && i < payload->keys.size; i++) {
        sum += payload->keys.data[i];
    }
    for (size_t i = 0; payload != NULL && i < payload->n_spans; i++) {
        for (size_t j = 0; j < payload->spans[i].size; j++) {
            sum += payload->spans[i].data[j];
        }
    }
    return sum;
}

/* Answers whatever came, and fills the room that was offered. */
static bool answer(lane_kit_t *kit, const arrived_t *got)
{
    ps_message_t message = {.kind = PS_KIND_ACK};
    psd_status_t rc = PSD_OK;

    if (got->room.size > 0) {
        memset(got->room.data, 1, got->room.size);
    }
    message.ack = (ps_msg_ack_t){.request = got->message.push.request, .seq = 1, .level = 1};
    rc = ps_socket_send(kit->port, got->conn, &message, NULL, kit->err);
    CHECK(rc == PSD_OK || rc == PSD_BUSY);
    psd_error_clear(kit->err);
    return true;
}

/* One turn of a server: everything that waits, and who is gone. */
static bool serve(lane_kit_t *kit, uint64_t *sum, size_t *n_gone)
{
    bool ready = false;
    uint64_t conn = 0;

    CHECK_OK(ps_socket_wait(&kit->port, 1, 0, &ready, kit->err), kit->err);
    for (int i = 0; i < 64; i++) {
        arrived_t got = {.payload = NULL};
        bool is_one = false;
        psd_status_t rc = ps_socket_receive(kit->port, &is_one, &got.conn, &got.message,
                                            &got.payload, &got.room, kit->err);

        if (rc == PSD_OK && !is_one) {
            break;
        }
        CHECK(rc != PSD_IO && rc != PSD_NOMEM);
        psd_error_clear(kit->err);
        if (rc != PSD_OK) {
            ps_socket_forget(kit->port, got.conn);
            continue;
        }
        *sum += sum_of(got.payload);
        CHECK(answer(kit, &got));
        ps_payload_destroy(&got.payload);
    }
    while (ps_socket_next_gone(kit->port, &conn)) {
        (*n_gone)++;
    }
    return true;
}

/* The good client: a push, and its answer. */
static bool good_turn(lane_kit_t *kit, uint64_t request, uint64_t *sum, size_t *n_gone)
{
    static uint8_t bytes[40000];
    uint64_t n = 1 + request % 10000;
    ps_message_t push = lane_kit_push(request, n);
    ps_payload_t *payload = NULL;
    bool got_one = false;
    arrived_t got = {.payload = NULL};

    push.push.rows = PS_ROWS_RANGE;
    payload = ps_payload_new((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                             (ps_bytes_t){bytes, n * 4}, NULL, NULL);
    CHECK_OK(ps_socket_send(kit->link, 0, &push, payload, kit->err), kit->err);
    ps_socket_flush(kit->link);
    ps_payload_destroy(&payload);
    for (int i = 0; i < 10000 && !got_one; i++) {
        CHECK(serve(kit, sum, n_gone));
        CHECK_OK(ps_socket_receive(kit->link, &got_one, &got.conn, &got.message, &got.payload,
                                   &got.room, kit->err),
                 kit->err);
    }
    CHECK(got_one && got.message.kind == PS_KIND_ACK && got.message.ack.request == request);
    return true;
}

/* Something that is right at first, so that what is spoilt has a meaning. */
static bool send_some(lane_kit_t *kit, ps_socket_t *link)
{
    static uint8_t bytes[600000];

    for (uint64_t i = 1; i <= 6; i++) {
        uint64_t n = i % 2 == 0 ? 100 : 30000 * (i + 1) / 2;
        ps_message_t push = lane_kit_push(i, n);
        ps_message_t pull = lane_kit_pull(100 + i, n);
        ps_payload_t *payload =
            ps_payload_new((ps_bytes_t){bytes, n * 8 > sizeof bytes ? 0 : n * 8},
                           (ps_bytes_t){NULL, 0}, (ps_bytes_t){bytes, n * 4}, NULL, NULL);

        if (payload->keys.size == 0) {
            push.push.rows = PS_ROWS_RANGE;
        }
        CHECK_OK(ps_socket_send(link, 0, &push, payload, kit->err), kit->err);
        CHECK_OK(ps_socket_send(link, 0, &pull, NULL, kit->err), kit->err);
        ps_payload_destroy(&payload);
    }
    return true;
}

static bool spoil_one(lane_kit_t *kit, uint64_t round, uint64_t *sum, size_t *n_gone)
{
    vandal_t vandal = {.seed = round};
    ps_socket_t *link = NULL;
    pthread_t thread;
    size_t gone_before = *n_gone;
    uint64_t until_ms = 0;

    CHECK_OK(lane_kit_connect(kit, &link), kit->err);
    CHECK(send_some(kit, link));
    vandal.share = link->lane->share;
    CHECK(pthread_create(&thread, NULL, spoil, &vandal) == 0);
    for (uint64_t i = 0; i < TURNS && *n_gone == gone_before; i++) {
        CHECK(good_turn(kit, round * TURNS + i + 1000, sum, n_gone));
    }
    atomic_store(&vandal.stop, true);
    CHECK(pthread_join(thread, NULL) == 0);
    ps_socket_drop(&link);
    until_ms = ps_now_ms() + PATIENCE_MS;
    while (*n_gone == gone_before) {
        CHECK(ps_now_ms() < until_ms);
        CHECK(serve(kit, sum, n_gone));
    }
    return true;
}

static bool vandals_harm_nobody(void)
{
    ps_socket_args_t args = lane_kit_args(0);
    lane_kit_t kit = {.port = NULL};
    uint64_t sum = 0;
    size_t n_gone = 0;
    bool ok = lane_kit_open(&kit, &args) && lane_kit_connect(&kit, &kit.link) == PSD_OK;

    for (uint64_t round = 1; ok && round <= LANES; round++) {
        ok = spoil_one(&kit, round, &sum, &n_gone);
    }
    ok = ok && n_gone == LANES && !ps_socket_is_gone(kit.link);
    lane_kit_done(&kit);
    return ok;
}

/* ---- records that are wrong on purpose ---- */

/* A MESSAGE whose header holds its body: nobody copies that, so it must not be
 * taken. The lane goes on. */
static bool body_in_a_header_is_refused(void)
{
    ps_socket_args_t args = lane_kit_args(0);
    ps_message_t push = lane_kit_push(5, 32);
    const ps_message_t pull = lane_kit_pull(6, 32);
    lane_kit_t kit = {.port = NULL};
    arrived_t got = {.payload = NULL};
    ps_lane_t *lane = NULL;
    uint8_t *record = NULL;
    size_t size = 0;
    uint64_t word = 0;
    bool ok = lane_kit_open(&kit, &args) && lane_kit_connect(&kit, &kit.link) == PSD_OK;

    CHECK(ok);
    lane = kit.link->lane;
    record = ps_ring_reserve(&lane->out, 1024);
    CHECK(record != NULL);
    memset(record, 0, 1024);
    push.push.rows = PS_ROWS_RANGE;
    size = ps_message_encode(&push, record + PS_LANE_RECORD_FULL_HEAD);
    size += 32 * sizeof(float);
    word = ps_record_word((uint32_t)(PS_LANE_RECORD_FULL_HEAD + size), (uint16_t)size,
                          PS_LANE_RECORD_MESSAGE);
    memcpy(record, &word, sizeof word);
    ps_ring_commit(&lane->out, ps_record_room(PS_LANE_RECORD_FULL_HEAD + size));
    lane->wrote = true;
    CHECK_ERROR(lane_kit_receive(kit.port, kit.link, &got, kit.err), PSD_PROTO,
                "lane: header has 128 bytes of body; allowed: 0", kit.err);
    CHECK(got.payload == NULL);
    psd_error_clear(kit.err);
    CHECK_OK(ps_socket_send(kit.link, 0, &pull, NULL, kit.err), kit.err);
    CHECK_OK(lane_kit_receive(kit.port, kit.link, &got, kit.err), kit.err);
    CHECK(got.message.kind == PS_KIND_PULL && got.payload == NULL);
    lane_kit_done(&kit);
    return true;
}

/* Pieces of keys as small as may be, as many as the ring has room for: the
 * server comes back from them while there are some left. */
static bool pieces_without_end_keep_nobody(void)
{
    ps_socket_args_t args = lane_kit_args(0);
    const ps_message_t pull = lane_kit_pull(6, 32);
    lane_kit_t kit = {.port = NULL};
    arrived_t got = {.payload = NULL};
    bool got_one = true;
    ps_lane_t *lane = NULL;
    bool ok = lane_kit_open(&kit, &args) && lane_kit_connect(&kit, &kit.link) == PSD_OK;

    CHECK(ok);
    lane = kit.link->lane;
    for (;;) {
        uint64_t word = ps_record_word(PS_LANE_RECORD_HEAD + 1, 0, PS_LANE_RECORD_PART);
        uint8_t *record = ps_ring_reserve(&lane->out, PS_LANE_RECORD_HEAD + 1);

        if (record == NULL) {
            break;
        }
        memcpy(record, &word, sizeof word);
        ps_ring_commit(&lane->out, ps_record_room(PS_LANE_RECORD_HEAD + 1));
    }
    CHECK_OK(ps_socket_receive(kit.port, &got_one, &got.conn, &got.message, &got.payload, &got.room,
                               kit.err),
             kit.err);
    CHECK(!got_one && ps_lane_port_is_ready(kit.port->lanes));
    while (ps_lane_port_is_ready(kit.port->lanes)) {
        CHECK_OK(ps_socket_receive(kit.port, &got_one, &got.conn, &got.message, &got.payload,
                                   &got.room, kit.err),
                 kit.err);
        CHECK(!got_one);
    }
    ps_socket_flush(kit.port);
    CHECK_OK(ps_socket_send(kit.link, 0, &pull, NULL, kit.err), kit.err);
    CHECK_OK(lane_kit_receive(kit.port, kit.link, &got, kit.err), kit.err);
    lane_kit_done(&kit);
    return true;
}

/* ---- who may have one ---- */

/* Connects as another user, of the group and beside it of another one; the
 * exit code is the status. */
static int connect_as_nobody(lane_kit_t *kit, gid_t group, gid_t other)
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        ps_socket_t *link = NULL;
        psd_status_t rc = PSD_FAILED;

        if (setgroups(1, &other) == 0 && setgid(group) == 0 && setuid(NOBODY) == 0) {
            rc = ps_socket_connect(kit->endpoint, &kit->args, &link, NULL);
        }
        _Exit((int)rc);
    }
    while (child > 0 && waitpid(child, &status, WNOHANG) == 0) {
        bool ready = false;

        if (ps_socket_wait(&kit->port, 1, 1, &ready, NULL) != PSD_OK) {
            return -1;
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The file is opened to all, so that it is the port who says no. */
static bool others_get(ps_door_peers_t peers, gid_t group, gid_t other, psd_status_t expected)
{
    ps_socket_args_t args = lane_kit_args(0);
    lane_kit_t kit = {.port = NULL};
    bool ok = false;

    args.peers = peers;
    ok = lane_kit_open(&kit, &args) && chmod(kit.dir.path, 0777) == 0 &&
         chmod(kit.endpoint + strlen(PS_LANE_PREFIX), 0666) == 0 &&
         connect_as_nobody(&kit, group, other) == (int)expected &&
         ps_socket_n_refused(kit.port) == (expected == PSD_OK ? 0 : 1);
    lane_kit_done(&kit);
    return ok;
}

/* The port's group is ours: its members come in, whichever of their groups it
 * is. */
static bool only_who_may_gets_one(void)
{
    bool ok = setegid(MEMBERS) == 0 && others_get(PS_PEERS_OWNER, MEMBERS, MEMBERS, PSD_DENIED) &&
              others_get(PS_PEERS_GROUP, MEMBERS, NOBODY, PSD_OK) &&
              others_get(PS_PEERS_GROUP, NOBODY, MEMBERS, PSD_OK) &&
              others_get(PS_PEERS_GROUP, NOBODY, NOBODY, PSD_DENIED) &&
              others_get(PS_PEERS_ANY, NOBODY, NOBODY, PSD_OK);

    return setegid(0) == 0 && ok;
}

int main(void)
{
    bool ok =
        vandals_harm_nobody() && body_in_a_header_is_refused() && pieces_without_end_keep_nobody();

    /* Only root can be somebody else. */
    if (ok && geteuid() == 0) {
        ok = only_who_may_gets_one();
    }
    return ok ? 0 : 1;
}
