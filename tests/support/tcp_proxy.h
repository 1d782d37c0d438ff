/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_proxy - a link between two programs, with the faults of networks
 *
 * What     Doors on one loopback address, each with a target. Bytes that enter
 *          a door go to its target and back, until an order says hold, drop,
 *          delay, slow down, cut or refuse. When the call of an order returns,
 *          the order applies to all present and future connections.
 * Units    milliseconds; bytes; bytes in a second
 * Owner    The caller; tcp_proxy_destroy ends the thread and every connection.
 * Threads  A thread of its own moves the bytes; orders from any thread.
 */
#ifndef PS_TESTS_TCP_PROXY_H
#define PS_TESTS_TCP_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tcp_proxy tcp_proxy_t;

typedef enum tcp_way {
    TCP_WAY_IN = 0, /* from the client at the door to the target */
    TCP_WAY_OUT = 1 /* back */
} tcp_way_t;

typedef enum tcp_flow {
    TCP_FLOW_PASS = 0,
    TCP_FLOW_HOLD = 1, /* nothing moves; it arrives after the next PASS */
    TCP_FLOW_DROP = 2  /* taken and thrown away. TCP has no holes: connections
                          that lost something are reset at the next PASS */
} tcp_flow_t;

typedef struct tcp_counts {
    uint64_t n_accepted;
    uint64_t n_open;
    uint64_t n_cut;      /* by tcp_proxy_cut_after */
    uint64_t bytes[2];   /* passed on, by way */
    uint64_t dropped[2]; /* bytes thrown away, by way */
} tcp_counts_t;

/* A proxy whose doors will be on host ("127.0.0.1"). NULL: the reason is on stderr. */
tcp_proxy_t *tcp_proxy_new(const char *host);
void tcp_proxy_destroy(tcp_proxy_t **self_p);

/* Opens a door to target_host:target_port. port 0: a free one. Returns the
 * door's port; 0: it cannot be opened; the reason is on stderr. */
uint16_t tcp_proxy_open_door(tcp_proxy_t *self, uint16_t port, const char *target_host,
                             uint16_t target_port);
/* Closes all doors for good and resets their connections. */
void tcp_proxy_forget_doors(tcp_proxy_t *self);

/* false: connections are refused from now on; those there are stay. true: as
 * before. Returns false when it could not get a port again. */
bool tcp_proxy_accept(tcp_proxy_t *self, bool accepts);
void tcp_proxy_set_flow(tcp_proxy_t *self, tcp_way_t way, tcp_flow_t flow);
void tcp_proxy_set_delay(tcp_proxy_t *self, tcp_way_t way, uint32_t delay_ms);
/* 0: no limit. The connections share it. */
void tcp_proxy_set_rate(tcp_proxy_t *self, tcp_way_t way, uint64_t bytes_per_s);
/* Lets n_bytes more pass that way, all connections counted together, and then
 * cuts the connection that carried the last of them, be that in the middle of a
 * frame: by RST, or by FIN both ways. Once. */
void tcp_proxy_cut_after(tcp_proxy_t *self, tcp_way_t way, uint64_t n_bytes, bool by_reset);
/* Resets every connection; new ones may come. */
void tcp_proxy_reset(tcp_proxy_t *self);
/* Back to the initial state: everything passes, at once; cut connections stay cut. */
bool tcp_proxy_heal(tcp_proxy_t *self);

/* From now on keeps the first max_bytes that come from each end. false: no memory. Once. */
bool tcp_proxy_record(tcp_proxy_t *self, size_t max_bytes);
/* How often they hold these bytes. */
size_t tcp_proxy_find(tcp_proxy_t *self, tcp_way_t way, const void *bytes, size_t size);

void tcp_proxy_counts(tcp_proxy_t *self, tcp_counts_t *ret_counts);
/* Waits until `until` returns true for the counts. false: not within timeout_ms. */
bool tcp_proxy_wait(tcp_proxy_t *self, bool (*until)(const tcp_counts_t *counts, uint64_t number),
                    uint64_t number, uint32_t timeout_ms);
#endif
