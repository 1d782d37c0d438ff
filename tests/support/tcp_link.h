/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_link - one connection through a tcp_proxy: two sockets, a stretch of
 * bytes each way
 *
 * What     Reads, keeps until the delay is over, writes as the orders of that
 *          direction allow. Nothing in here blocks.
 * Owner    The proxy; tcp_link_close.
 * Threads  The proxy's, under its lock.
 */
#ifndef PS_TESTS_TCP_LINK_H
#define PS_TESTS_TCP_LINK_H

#include <stddef.h>

#include "support/tcp_proxy.h"

#define TCP_STRETCH_BYTES 65536
#define TCP_STRETCH_PIECES 64

/* The orders for one direction. */
typedef struct tcp_orders {
    tcp_flow_t flow;
    uint32_t delay_ms;
    uint64_t bytes_per_s; /* 0: no limit */
    uint64_t credit;      /* bytes that may go now; with a limit only */
    uint64_t credit_ms;   /* when it was counted */
    uint64_t cut_left;    /* UINT64_MAX: no cut */
    bool cut_by_reset;
} tcp_orders_t;

typedef struct tcp_piece { /* that came at once */
    size_t size;
    uint64_t due_ms;
} tcp_piece_t;

typedef struct tcp_stretch {
    char data[TCP_STRETCH_BYTES];
    size_t size;
    tcp_piece_t pieces[TCP_STRETCH_PIECES];
    size_t n_pieces;
    bool has_ended; /* its source sends no more */
    bool is_told;   /* … and its target knows */
    bool has_hole;  /* something was thrown away */
} tcp_stretch_t;

typedef struct tcp_link {
    int fds[2]; /* by way: where it is read from */
    bool is_connected;
    tcp_stretch_t ways[2];
} tcp_link_t;

/* Takes fd, a connection that was accepted, and begins one to the target.
 * NULL: it failed; fd is closed. */
tcp_link_t *tcp_link_open(int fd, const char *host, uint16_t port);
void tcp_link_close(tcp_link_t **self_p, bool by_reset);

/* The credit that a direction with a limit has earned since the last call. */
void tcp_orders_earn(tcp_orders_t *self, uint64_t now_ms);

/* Whether that direction wants to read from its source; whether to write
 * now, and if not, when (UINT64_MAX: after an order). */
bool tcp_link_wants_read(const tcp_link_t *self, tcp_way_t way, const tcp_orders_t *orders);
uint64_t tcp_link_writes_at(const tcp_link_t *self, tcp_way_t way, const tcp_orders_t *orders,
                            uint64_t now_ms);

typedef enum tcp_fate {
    TCP_FATE_LIVES,
    TCP_FATE_ENDED, /* both ends have closed */
    TCP_FATE_RESET  /* it broke, or must break: orders->cut_left is 0 then */
} tcp_fate_t;

/* Reads what has arrived. */
tcp_fate_t tcp_link_read(tcp_link_t *self, tcp_way_t way, const tcp_orders_t *orders,
                         uint64_t now_ms, uint64_t *dropped);
/* Writes what may go; orders' credit and cut are counted down. */
tcp_fate_t tcp_link_write(tcp_link_t *self, tcp_way_t way, tcp_orders_t *orders, uint64_t now_ms,
                          uint64_t *passed);
#endif
