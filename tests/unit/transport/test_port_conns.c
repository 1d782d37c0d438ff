/* SPDX-License-Identifier: Apache-2.0 */
/* Who a port has greeted, and answers on their way there: each has an end,
 * whatever becomes of its frames and of its connection. */
#include "transport/sockets/port_conns.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/fail_alloc.h"

#define REQUEST 6
#define EPOCH 3
#define SIZE 1000
#define GRACE_MS 1000 /* that an answer is found when it has arrived */
#define MANY 1000

typedef struct bench {
    ps_port_conns_t conns;
    int ours; /* a TCP connection's ends */
    int theirs;
    uint64_t now_ms;
    uint64_t sent;
    uint64_t bytes;
} bench_t;

static bench_t bench;

/* Kernels that do not count what is acknowledged. */
static enum { COUNTS, IS_OLD, LEAVES_IT_0 } kernel;

int getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
    int rc = (int)syscall(SYS_getsockopt, fd, level, name, value, size);

    if (rc == 0 && level == IPPROTO_TCP && name == TCP_INFO) {
        struct tcp_info *info = value;

        if (kernel == IS_OLD) {
            *size = offsetof(struct tcp_info, tcpi_bytes_acked);
        } else if (kernel == LEAVES_IT_0) {
            info->tcpi_bytes_acked = 0;
        }
    }
    return rc;
}

static void connect_ends(int *ret_ours, int *ret_theirs)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert_eq(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    cr_assert_eq(listen(listener, 1), 0);
    cr_assert_eq(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    *ret_theirs = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(connect(*ret_theirs, (struct sockaddr *)&at, sizeof at), 0);
    *ret_ours = accept(listener, NULL, NULL);
    cr_assert_geq(*ret_ours, 0);
    (void)close(listener);
}

static void greet(uint64_t conn, int fd)
{
    uint64_t gone = 0;

    cr_assert(ps_port_conns_greet(&bench.conns, conn, fd, &gone));
    cr_assert_eq(gone, 0);
}

static void setup(void)
{
    bench = (bench_t){.now_ms = 5000};
    connect_ends(&bench.ours, &bench.theirs);
    greet(1, bench.ours);
}

static void teardown(void)
{
    ps_port_conns_done(&bench.conns);
    (void)close(bench.ours);
    (void)close(bench.theirs);
}

TestSuite(port_conns, .init = setup, .fini = teardown);

static bool find(uint64_t conn, uint64_t request)
{
    return ps_port_conns_find(&bench.conns, conn, request, EPOCH, bench.now_ms, &bench.sent,
                              &bench.bytes);
}

/* An answer of two frames. */
static ps_transit_t *begin(uint64_t conn, uint64_t request)
{
    ps_transit_t *transit =
        ps_port_conns_begin(&bench.conns, conn, request, EPOCH, (uint64_t)2 * SIZE);

    cr_assert_not_null(transit);
    ps_transit_lend(transit, SIZE);
    ps_transit_lend(transit, SIZE);
    return transit;
}

static void write_out(const void *bytes, size_t size)
{
    cr_assert_eq(send(bench.ours, bytes, size, MSG_DONTWAIT), (ssize_t)size);
}

/* It is found for the time of grace, and no longer. */
static void expect_it_ends(uint64_t conn, uint64_t request)
{
    cr_assert(find(conn, request));
    cr_expect_eq(bench.sent, bench.bytes);
    bench.now_ms += GRACE_MS - 1;
    cr_expect(find(conn, request));
    bench.now_ms++;
    cr_expect_not(find(conn, request));
}

Test(port_conns, an_answer_is_found_until_it_has_arrived)
{
    const uint8_t bytes[SIZE] = {0};
    ps_transit_t *transit = NULL;

    cr_expect_not(find(1, REQUEST));
    transit = begin(1, REQUEST);
    cr_expect_not(find(1, REQUEST + 1));
    cr_expect_not(find(2, REQUEST));
    cr_assert(find(1, REQUEST));
    cr_expect_eq(bench.sent, 0);
    cr_expect_eq(bench.bytes, 2 * SIZE);
    write_out(bytes, SIZE);
    ps_transit_done(transit, SIZE);
    bench.now_ms += 100 * GRACE_MS; /* a slow link may take long */
    cr_assert(find(1, REQUEST));
    cr_expect_lt(bench.sent, bench.bytes);
    write_out(bytes, SIZE);
    ps_transit_done(transit, SIZE);
    while (find(1, REQUEST) && bench.sent < bench.bytes) {
    }
    expect_it_ends(1, REQUEST);
}

/* The client asks with a later epoch: it refuses this answer when it comes. */
Test(port_conns, an_answer_of_an_earlier_epoch_is_not_found)
{
    ps_transit_t *transit = begin(1, REQUEST);

    cr_expect(find(1, REQUEST));
    cr_expect_not(ps_port_conns_find(&bench.conns, 1, REQUEST, EPOCH + 1, bench.now_ms, &bench.sent,
                                     &bench.bytes));
    ps_transit_done(transit, SIZE);
    ps_transit_done(transit, SIZE);
}

/* ZeroMQ drops what is queued, as when the connection ends, and gives the
 * frames back as if they had gone. */
Test(port_conns, dropped_frames_end_an_answer)
{
    ps_transit_t *transit = begin(1, REQUEST);

    ps_transit_done(transit, SIZE);
    ps_transit_done(transit, SIZE);
    expect_it_ends(1, REQUEST);
}

/* The queue was full in the middle of it; the frames that had gone still go. */
Test(port_conns, an_answer_that_was_cut_off_is_not_on_its_way)
{
    ps_transit_t *before = begin(1, REQUEST);
    ps_transit_t *cut = begin(1, REQUEST + 1);

    ps_transit_done(cut, SIZE); /* could not be queued */
    ps_port_conns_fail(&bench.conns, 1);
    cr_expect_not(find(1, REQUEST + 1));
    cr_assert(find(1, REQUEST), "what went before is not changed by that");
    cr_expect_eq(bench.sent, 0);
    ps_transit_done(before, SIZE);
    ps_transit_done(before, SIZE);
    ps_transit_done(cut, SIZE);
    expect_it_ends(1, REQUEST);
    ps_port_conns_fail(&bench.conns, 1); /* there is none */
    ps_port_conns_fail(&bench.conns, 2);
}

/* The other end reads nothing more: what is queued for later messages does not
 * keep an answer on its way that was acknowledged. */
Test(port_conns, later_messages_do_not_keep_an_answer_on_its_way)
{
    static const uint8_t bytes[1 << 20];
    ps_transit_t *transit = begin(1, REQUEST);

    write_out(bytes, SIZE);
    ps_transit_done(transit, SIZE);
    ps_transit_done(transit, SIZE);
    while (find(1, REQUEST) && bench.sent < bench.bytes) {
    }
    while (send(bench.ours, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
    expect_it_ends(1, REQUEST);
}

Test(port_conns, an_answer_goes_with_its_connection)
{
    ps_transit_t *transit = begin(1, REQUEST);

    cr_expect_eq(ps_port_conns_closed(&bench.conns, bench.theirs), 0);
    cr_expect_eq(ps_port_conns_closed(&bench.conns, bench.ours), 1);
    cr_expect_not(find(1, REQUEST));
    cr_expect_eq(ps_port_conns_closed(&bench.conns, bench.ours), 0);
    ps_transit_done(transit, SIZE); /* when ZeroMQ drops its pipe, later */
    ps_transit_done(transit, SIZE);
    greet(2, bench.ours); /* the same session comes back */
    cr_expect_not(find(2, REQUEST));
}

/* A HELLO that is read after the end of its connection. */
Test(port_conns, a_connection_that_is_lost_is_forgotten)
{
    ps_transit_t *transit = begin(1, REQUEST);

    ps_port_conns_welcome(&bench.conns, 1);
    cr_expect(ps_port_conns_is_welcome(&bench.conns, 1));
    cr_expect(ps_port_conns_lost(&bench.conns, 1));
    cr_expect_not(ps_port_conns_lost(&bench.conns, 1));
    cr_expect_not(ps_port_conns_is_welcome(&bench.conns, 1));
    cr_expect_not(find(1, REQUEST));
    ps_transit_done(transit, SIZE);
    ps_transit_done(transit, SIZE);
}

Test(port_conns, a_descriptor_is_one_connection)
{
    uint64_t gone = 0;

    ps_port_conns_welcome(&bench.conns, 1);
    greet(1, bench.ours); /* HELLO once more */
    cr_expect(ps_port_conns_is_welcome(&bench.conns, 1));
    cr_assert(ps_port_conns_greet(&bench.conns, 2, bench.ours, &gone));
    cr_expect_eq(gone, 1);
    cr_expect_not(ps_port_conns_is_welcome(&bench.conns, 1));
    cr_expect_not(ps_port_conns_is_welcome(&bench.conns, 2));
    cr_expect_null(ps_port_conns_begin(&bench.conns, 1, REQUEST, EPOCH, SIZE));
}

/* A ROUTER reads connections in turn: what the dead one said may come last. */
Test(port_conns, a_dead_connection_does_not_end_one_with_its_descriptor)
{
    uint64_t gone = 0;
    ps_transit_t *transit = NULL;

    cr_assert(ps_port_conns_greet(&bench.conns, 3, bench.ours, &gone));
    cr_expect_eq(gone, 1);
    ps_port_conns_welcome(&bench.conns, 3);
    transit = begin(3, REQUEST);
    for (uint64_t dead = 1; dead <= 2; dead++) {
        cr_assert(ps_port_conns_greet(&bench.conns, dead, bench.ours, &gone));
        cr_expect_eq(gone, 0);
        ps_port_conns_welcome(&bench.conns, dead); /* it is answered as any */
        cr_expect_not(ps_port_conns_is_welcome(&bench.conns, dead));
    }
    cr_expect(ps_port_conns_is_welcome(&bench.conns, 3));
    cr_expect(find(3, REQUEST));
    ps_transit_done(transit, SIZE);
    ps_transit_done(transit, SIZE);
    cr_expect_eq(ps_port_conns_closed(&bench.conns, bench.ours), 3);
}

/* They are counted round a circle. */
Test(port_conns, the_first_connection_of_a_circle_is_later_than_its_last)
{
    uint64_t gone = 0;

    cr_assert(ps_port_conns_greet(&bench.conns, (uint64_t)UINT32_MAX + 1, bench.theirs, &gone));
    cr_assert(ps_port_conns_greet(&bench.conns, 2, bench.theirs, &gone));
    cr_expect_eq(gone, (uint64_t)UINT32_MAX + 1);
}

/* To a unix socket it has arrived when it is written: there is no slow link. */
Test(port_conns, an_answer_to_a_unix_socket_ends)
{
    const uint8_t bytes[SIZE] = {0};
    int ends[2] = {-1, -1};
    ps_transit_t *transit = NULL;

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    greet(2, ends[0]);
    transit = begin(2, REQUEST);
    cr_assert_eq(write(ends[0], bytes, SIZE), SIZE); /* which nobody reads */
    cr_expect(find(2, REQUEST));
    ps_transit_done(transit, SIZE);
    cr_expect(find(2, REQUEST));
    ps_transit_done(transit, SIZE);
    expect_it_ends(2, REQUEST);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* Such an answer was on its way for ever while more was sent. */
Test(port_conns, an_answer_ends_where_nothing_is_known_of_acknowledgements)
{
    static const uint8_t bytes[1 << 20];

    while (send(bench.ours, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
    for (kernel = IS_OLD; kernel <= LEAVES_IT_0; kernel++) {
        ps_transit_t *transit = begin(1, REQUEST);

        ps_transit_done(transit, SIZE);
        cr_expect(find(1, REQUEST));
        cr_expect_lt(bench.sent, bench.bytes, "ZeroMQ has half of it");
        ps_transit_done(transit, SIZE);
        expect_it_ends(1, REQUEST);
    }
    kernel = COUNTS;
}

/* Answers that nobody asks for again do not add up. */
Test(port_conns, answers_that_have_arrived_are_dropped)
{
    ps_transit_t *slow = begin(1, REQUEST);

    for (uint64_t i = 1; i <= MANY; i++) {
        ps_transit_t *transit = begin(1, REQUEST + i);

        ps_transit_done(transit, SIZE);
        ps_transit_done(transit, SIZE);
    }
    cr_expect_not(find(1, REQUEST + 1));
    cr_expect(find(1, REQUEST + MANY));
    cr_expect(find(1, REQUEST));
    ps_transit_done(slow, SIZE);
    ps_transit_done(slow, SIZE);
    expect_it_ends(1, REQUEST);
}

Test(port_conns, nobody_keeps_count_without_memory)
{
    for (size_t at = 0; at < 2; at++) {
        fail_alloc_at(at);
        cr_expect_null(ps_port_conns_begin(&bench.conns, 1, REQUEST, EPOCH, SIZE));
        fail_alloc_off();
        cr_expect_not(find(1, REQUEST));
    }
}

Test(port_conns, nobody_is_greeted_without_memory)
{
    bool greeted = false;

    for (size_t at = 0; !greeted; at++) {
        uint64_t gone = 0;

        fail_alloc_at(at);
        greeted = ps_port_conns_greet(&bench.conns, 2, bench.theirs, &gone);
        cr_assert_neq(greeted, fail_alloc_happened());
        fail_alloc_off();
        cr_expect_eq(ps_port_conns_closed(&bench.conns, bench.theirs), greeted ? 2 : 0);
    }
}
