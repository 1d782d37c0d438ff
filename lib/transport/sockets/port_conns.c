/* SPDX-License-Identifier: Apache-2.0 */
/* The connections that a port has greeted, and the answers in flight to them.
 * ZeroMQ says when it is done with a frame: the kernel has it, or it was
 * dropped. The kernel says how many bytes of the connection the other end has
 * acknowledged. */
#include "transport/sockets/port_conns.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/alloc.h"

#define ANSWERS_MIN 64  /* before those that have arrived are looked for */
#define ARRIVED_MS 1000 /* that one which has arrived is still found */

struct ps_transit {
    atomic_uint n_holders;       /* the answer, and frames that are lent */
    atomic_uint_fast64_t n_done; /* bytes that have come back … */
    uint64_t n_lent;             /* … of this number; the socket's thread only */
};

typedef struct answer {
    uint64_t request;
    uint64_t epoch;
    uint64_t bytes;
    ps_transit_t *transit; /* held */
    bool is_written;       /* ZeroMQ is done with all of it … */
    uint64_t end;          /* … and at this acknowledged count all has arrived */
    uint64_t arrived_ms;   /* when that was seen first; 0: not yet */
} answer_t;

typedef struct ps_port_conn {
    uint64_t conn;
    int fd;
    bool is_welcome;
    answer_t *answers; /* owned; from the oldest on */
    size_t n_answers;
    size_t capacity;
    size_t prune_at; /* answers, before those that have arrived are dropped */
} ps_port_conn_t;

static void let_go(ps_transit_t *self)
{
    if (atomic_fetch_sub_explicit(&self->n_holders, 1, memory_order_acq_rel) == 1) {
        ps_free(self);
    }
}

void ps_transit_lend(ps_transit_t *self, uint64_t bytes)
{
    (void)atomic_fetch_add_explicit(&self->n_holders, 1, memory_order_relaxed);
    self->n_lent += bytes;
}

void ps_transit_done(ps_transit_t *self, uint64_t bytes)
{
    (void)atomic_fetch_add_explicit(&self->n_done, bytes, memory_order_release);
    let_go(self);
}

static uint64_t key_of(int fd)
{
    return (uint64_t)(unsigned)fd + 1;
}

static void conn_free(ps_port_conn_t *self)
{
    for (size_t i = 0; i < self->n_answers; i++) {
        let_go(self->answers[i].transit);
    }
    ps_free(self->answers);
    ps_free(self);
}

void ps_port_conns_done(ps_port_conns_t *self)
{
    size_t at = 0;
    uint64_t conn = 0;
    void *value = NULL;

    while (ps_map_next(&self->by_conn, &at, &conn, &value)) {
        conn_free(value);
    }
    ps_map_done(&self->by_conn);
    ps_map_done(&self->by_fd);
}

uint64_t ps_port_conns_closed(ps_port_conns_t *self, int fd)
{
    ps_port_conn_t *gone = ps_map_remove(&self->by_fd, key_of(fd));
    uint64_t conn = gone == NULL ? 0 : gone->conn;

    if (gone != NULL) {
        (void)ps_map_remove(&self->by_conn, conn);
        conn_free(gone);
    }
    return conn;
}

bool ps_port_conns_lost(ps_port_conns_t *self, uint64_t conn)
{
    const ps_port_conn_t *known = ps_map_get(&self->by_conn, conn);

    return known != NULL && ps_port_conns_closed(self, known->fd) == conn;
}

/* Whether ZeroMQ numbered it later: it counts connections round a circle of 32
 * bits. */
static bool is_later(uint64_t conn, uint64_t than)
{
    return (int32_t)(uint32_t)(conn - than) > 0;
}

bool ps_port_conns_greet(ps_port_conns_t *self, uint64_t conn, int fd, uint64_t *ret_gone)
{
    const ps_port_conn_t *had = ps_map_get(&self->by_fd, key_of(fd));
    ps_port_conn_t *made = NULL;

    *ret_gone = 0;
    if (ps_map_get(&self->by_conn, conn) != NULL) {
        return true; /* a connection is one descriptor for as long as it is */
    }
    if (had != NULL && !is_later(conn, had->conn)) {
        return true; /* what it said is read after its end: the descriptor was
                        free for the other one */
    }
    *ret_gone = ps_port_conns_closed(self, fd);
    made = ps_alloc(1, sizeof *made);
    if (made == NULL || !ps_map_put(&self->by_conn, conn, made)) {
        ps_free(made);
        return false;
    }
    if (!ps_map_put(&self->by_fd, key_of(fd), made)) {
        (void)ps_map_remove(&self->by_conn, conn);
        ps_free(made);
        return false;
    }
    made->conn = conn;
    made->fd = fd;
    made->prune_at = ANSWERS_MIN;
    return true;
}

bool ps_port_conns_has(const ps_port_conns_t *self, uint64_t conn)
{
    return ps_map_get(&self->by_conn, conn) != NULL;
}

void ps_port_conns_welcome(ps_port_conns_t *self, uint64_t conn)
{
    ps_port_conn_t *known = ps_map_get(&self->by_conn, conn);

    if (known != NULL) {
        known->is_welcome = true;
    }
}

bool ps_port_conns_is_welcome(const ps_port_conns_t *self, uint64_t conn)
{
    const ps_port_conn_t *known = ps_map_get(&self->by_conn, conn);

    return known != NULL && known->is_welcome;
}

/* ---- answers on their way ----------------------------------------------- */

/* Bytes of the connection that the other end has acknowledged. false: it is not
 * TCP, or closed, which the monitor will report; or the kernel does not count
 * them: an old kernel answers with a shorter struct, others leave the count 0,
 * which is impossible after HELLO and its answer. */
static bool acknowledged(int fd, uint64_t *ret)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        size < offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked ||
        info.tcpi_bytes_acked == 0) {
        return false;
    }
    *ret = info.tcpi_bytes_acked;
    return true;
}

/* Bytes that the kernel has and the other end not yet, of whatever message. */
static uint64_t queued(int fd)
{
    int n = 0;

    return ioctl(fd, SIOCOUTQ, &n) == 0 && n > 0 ? (uint64_t)n : 0;
}

/*
 * Bytes of an answer that have not arrived. Once ZeroMQ is done with it, it has
 * arrived when all that the kernel had then is acknowledged: that comes, or the
 * connection ends, whatever else is sent. To a unix socket, and where the
 * kernel does not say, it has arrived by then.
 */
static uint64_t left_of(const ps_port_conn_t *self, answer_t *answer)
{
    uint64_t n_done = atomic_load_explicit(&answer->transit->n_done, memory_order_acquire);
    uint64_t n_acked = 0;

    if (n_done < answer->transit->n_lent) {
        uint64_t n_queued = queued(self->fd);

        return answer->transit->n_lent - n_done + (n_queued < n_done ? n_queued : n_done);
    }
    if (!acknowledged(self->fd, &n_acked)) {
        return 0;
    }
    if (!answer->is_written) {
        answer->is_written = true;
        /* In this order: what is acknowledged between the two is not counted
         * twice, or it would never be reached. */
        answer->end = n_acked + queued(self->fd);
    }
    return answer->end > n_acked ? answer->end - n_acked : 0;
}

/* Takes out the answers that have arrived. */
static void prune(ps_port_conn_t *self)
{
    size_t n = 0;

    for (size_t i = 0; i < self->n_answers; i++) {
        if (left_of(self, &self->answers[i]) > 0) {
            self->answers[n++] = self->answers[i];
        } else {
            let_go(self->answers[i].transit);
        }
    }
    self->n_answers = n;
    self->prune_at = 2 * n > ANSWERS_MIN ? 2 * n : ANSWERS_MIN;
}

ps_transit_t *ps_port_conns_begin(ps_port_conns_t *self, uint64_t conn, uint64_t request,
                                  uint64_t epoch, uint64_t bytes)
{
    ps_port_conn_t *to = ps_map_get(&self->by_conn, conn);
    ps_transit_t *transit = NULL;

    if (to == NULL) {
        return NULL;
    }
    if (to->n_answers >= to->prune_at) {
        prune(to);
    }
    if (!ps_grow(&to->answers, &to->capacity, to->n_answers + 1, sizeof *to->answers)) {
        return NULL;
    }
    transit = ps_alloc(1, sizeof *transit);
    if (transit == NULL) {
        return NULL;
    }
    atomic_init(&transit->n_holders, 1);
    atomic_init(&transit->n_done, 0);
    to->answers[to->n_answers++] =
        (answer_t){.request = request, .epoch = epoch, .bytes = bytes, .transit = transit};
    return transit;
}

static void take_out(ps_port_conn_t *self, size_t at)
{
    let_go(self->answers[at].transit);
    self->n_answers--;
    for (size_t i = at; i < self->n_answers; i++) {
        self->answers[i] = self->answers[i + 1];
    }
}

void ps_port_conns_fail(ps_port_conns_t *self, uint64_t conn)
{
    ps_port_conn_t *to = ps_map_get(&self->by_conn, conn);

    if (to != NULL && to->n_answers > 0) {
        take_out(to, to->n_answers - 1);
    }
}

bool ps_port_conns_find(ps_port_conns_t *self, uint64_t conn, uint64_t request, uint64_t epoch,
                        uint64_t now_ms, uint64_t *ret_sent, uint64_t *ret_bytes)
{
    ps_port_conn_t *to = ps_map_get(&self->by_conn, conn);
    uint64_t left = 0;
    size_t at = to == NULL ? 0 : to->n_answers;
    answer_t *answer = NULL;

    while (at > 0 && to->answers[at - 1].request != request) {
        at--;
    }
    if (at == 0 || to->answers[at - 1].epoch < epoch) {
        return false;
    }
    answer = &to->answers[at - 1];
    left = left_of(to, answer);
    if (left == 0 && answer->arrived_ms == 0) {
        answer->arrived_ms = now_ms;
    } else if (left == 0 && now_ms - answer->arrived_ms >= ARRIVED_MS) {
        take_out(to, at - 1);
        return false;
    }
    *ret_bytes = answer->bytes;
    *ret_sent = left < answer->bytes ? answer->bytes - left : 0;
    return true;
}
