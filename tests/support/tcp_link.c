/* SPDX-License-Identifier: Apache-2.0 */
/* One connection through a tcp_proxy. */
#include "support/tcp_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RATE_STEP_MS 5

static int begin_connection(const char *host, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || inet_pton(AF_INET, host, &to.sin_addr) != 1 ||
        (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS)) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return -1;
    }
    return fd;
}

static void close_socket(int fd, bool by_reset)
{
    const struct linger at_once = {.l_onoff = 1};

    if (by_reset) {
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    (void)close(fd);
}

tcp_link_t *tcp_link_open(int fd, const char *host, uint16_t port)
{
    tcp_link_t *self = calloc(1, sizeof *self);
    int other = self == NULL ? -1 : begin_connection(host, port);

    if (other < 0) {
        free(self);
        close_socket(fd, true);
        return NULL;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    (void)setsockopt(other, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    self->fds[TCP_WAY_IN] = fd;
    self->fds[TCP_WAY_OUT] = other;
    return self;
}

void tcp_link_close(tcp_link_t **self_p, bool by_reset)
{
    tcp_link_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    close_socket(self->fds[0], by_reset);
    close_socket(self->fds[1], by_reset);
    free(self);
    *self_p = NULL;
}

bool tcp_link_wants_read(const tcp_link_t *self, tcp_way_t way, const tcp_orders_t *orders)
{
    const tcp_stretch_t *stretch = &self->ways[way];

    return self->is_connected && !stretch->has_ended && orders->flow != TCP_FLOW_HOLD &&
           stretch->size < TCP_STRETCH_BYTES && stretch->n_pieces < TCP_STRETCH_PIECES;
}

/* At most a step's worth is kept, or one byte. */
void tcp_orders_earn(tcp_orders_t *self, uint64_t now_ms)
{
    uint64_t most = self->bytes_per_s * RATE_STEP_MS / 1000 + 1;
    uint64_t earned = (now_ms - self->credit_ms) * self->bytes_per_s / 1000;

    if (earned > 0) {
        self->credit_ms = now_ms;
        self->credit += earned;
    }
    if (self->credit > most) {
        self->credit = most;
    }
}

uint64_t tcp_link_writes_at(const tcp_link_t *self, tcp_way_t way, const tcp_orders_t *orders,
                            uint64_t now_ms)
{
    const tcp_stretch_t *stretch = &self->ways[way];

    if (!self->is_connected) {
        return way == TCP_WAY_IN ? now_ms : UINT64_MAX;
    }
    if (orders->flow != TCP_FLOW_PASS) {
        return UINT64_MAX;
    }
    if (stretch->n_pieces == 0) {
        return stretch->has_ended && !stretch->is_told ? now_ms : UINT64_MAX;
    }
    if (stretch->pieces[0].due_ms > now_ms) {
        return stretch->pieces[0].due_ms;
    }
    return orders->bytes_per_s > 0 && orders->credit == 0 ? now_ms + RATE_STEP_MS : now_ms;
}

tcp_fate_t tcp_link_read(tcp_link_t *self, tcp_way_t way, const tcp_orders_t *orders,
                         uint64_t now_ms, uint64_t *dropped)
{
    tcp_stretch_t *stretch = &self->ways[way];
    ssize_t n = recv(self->fds[way], stretch->data + stretch->size,
                     TCP_STRETCH_BYTES - stretch->size, MSG_DONTWAIT);

    if (n < 0) {
        return errno == EAGAIN || errno == EINTR ? TCP_FATE_LIVES : TCP_FATE_RESET;
    }
    if (n == 0) {
        stretch->has_ended = true;
    } else if (orders->flow == TCP_FLOW_DROP) {
        stretch->has_hole = true;
        *dropped += (uint64_t)n;
    } else {
        stretch->pieces[stretch->n_pieces++] =
            (tcp_piece_t){.size = (size_t)n, .due_ms = now_ms + orders->delay_ms};
        stretch->size += (size_t)n;
    }
    return TCP_FATE_LIVES;
}

static tcp_fate_t end_connecting(tcp_link_t *self)
{
    int error = 0;
    socklen_t size = sizeof error;

    if (getsockopt(self->fds[TCP_WAY_OUT], SOL_SOCKET, SO_ERROR, &error, &size) != 0 ||
        error != 0) {
        return TCP_FATE_RESET;
    }
    self->is_connected = true;
    return TCP_FATE_LIVES;
}

static void take_out(tcp_stretch_t *stretch, size_t n)
{
    stretch->size -= n;
    memmove(stretch->data, stretch->data + n, stretch->size);
    stretch->pieces[0].size -= n;
    if (stretch->pieces[0].size == 0) {
        stretch->n_pieces--;
        memmove(stretch->pieces, stretch->pieces + 1,
                stretch->n_pieces * sizeof stretch->pieces[0]);
    }
}

/* Forwards the end of the stream, after all bytes. */
static tcp_fate_t tell_end(tcp_link_t *self, tcp_way_t way)
{
    self->ways[way].is_told = true;
    (void)shutdown(self->fds[1 - way], SHUT_WR);
    return self->ways[1 - way].is_told ? TCP_FATE_ENDED : TCP_FATE_LIVES;
}

static tcp_fate_t write_piece(tcp_link_t *self, tcp_way_t way, tcp_orders_t *orders,
                              uint64_t *passed)
{
    tcp_stretch_t *stretch = &self->ways[way];
    size_t most = stretch->pieces[0].size;
    ssize_t n = 0;

    if (orders->bytes_per_s > 0 && orders->credit < most) {
        most = (size_t)orders->credit;
    }
    if (orders->cut_left < most) {
        most = (size_t)orders->cut_left;
    }
    n = send(self->fds[1 - way], stretch->data, most, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR ? TCP_FATE_LIVES : TCP_FATE_RESET;
    }
    take_out(stretch, (size_t)n);
    *passed += (uint64_t)n;
    orders->credit -= orders->bytes_per_s > 0 ? (uint64_t)n : 0;
    if (orders->cut_left != UINT64_MAX) {
        orders->cut_left -= (uint64_t)n;
    }
    return orders->cut_left == 0 ? TCP_FATE_RESET : TCP_FATE_LIVES;
}

tcp_fate_t tcp_link_write(tcp_link_t *self, tcp_way_t way, tcp_orders_t *orders, uint64_t now_ms,
                          uint64_t *passed)
{
    if (!self->is_connected) {
        return end_connecting(self);
    }
    if (tcp_link_writes_at(self, way, orders, now_ms) > now_ms) {
        return TCP_FATE_LIVES;
    }
    if (self->ways[way].n_pieces == 0) {
        return tell_end(self, way);
    }
    return write_piece(self, way, orders, passed);
}
