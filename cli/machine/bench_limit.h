/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room cli/machine: what the machine can do without psd
 *
 * It is       Limits of memory, look-ups, rings, tcp and ZeroMQ, measured in a
 *             process of their own; statistics; lists of keys.
 * It uses     output, lib/base; zmq in bench_zmq.c.
 * It ignores  psd, the client, and what a figure is compared with.
 * Start at    bench_limit.h, bench_machine.h.
 */
/*
 * ps_limit - what the machine can do without psd
 *
 * What     Each row of the list is one limit, under the name that it has in
 *          JSON. A limit between two processes is measured between two
 *          processes that do nothing else.
 * Units    bytes, messages or floats a second; seconds
 */
#ifndef PS_CLI_BENCH_LIMIT_H
#define PS_CLI_BENCH_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

/* X(NAME, "name in JSON", unit, "what it is") */
#define PS_LIMIT_MAP(X)                                                        \
    X(MEMCPY_4M, "memcpy_4m_bytes_s", RATE,                                    \
      "memcpy of 4 MB, another 4 MB "                                          \
      "each time")                                                             \
    X(MEMCPY, "memcpy_bytes_s", RATE, "memcpy of 30 MB")                       \
    X(ADD, "add_bytes_s", RATE,                                                \
      "30 MB of floats added to 30 MB; bytes of "                              \
      "the source")                                                            \
    X(LOOKUP, "lookup_keys_s", NONE,                                           \
      "a float added at random keys of 1 M in a local flat table, one by one") \
    X(RING, "ring_bytes_s", RATE,                                              \
      "shared-memory ring, 1 MB messages copied "                              \
      "in and out")                                                            \
    X(RING_SMALL, "ring_messages_s", NONE,                                     \
      "shared-memory ring, 64-byte "                                           \
      "messages")                                                              \
    X(SPIN, "spin_round_trip_s", SECONDS,                                      \
      "round trip over shared memory, "                                        \
      "both sides spinning, p50")                                              \
    X(TCP, "tcp_loopback_bytes_s", RATE,                                       \
      "tcp stream over loopback, 1 MB "                                        \
      "writes")                                                                \
    X(ZMQ, "zmq_bytes_s", RATE,                                                \
      "libzmq over tcp, 1 MB messages without "                                \
      "copies")                                                                \
    X(ZMQ_SMALL, "zmq_messages_s", NONE, "libzmq over tcp, 64-byte messages")  \
    X(ZMQ_TRIP, "zmq_round_trip_s", SECONDS,                                   \
      "round trip of 64 bytes over "                                           \
      "libzmq and tcp, p50")

#define PS_LIMIT_ENUM(name, json, unit, what) PS_LIMIT_##name,
typedef enum ps_limit { PS_LIMIT_MAP(PS_LIMIT_ENUM) PS_LIMIT_COUNT } ps_limit_t;
#undef PS_LIMIT_ENUM

/* The limit's name in JSON and its text; static. */
const char *ps_limit_name(ps_limit_t limit);
const char *ps_limit_text(ps_limit_t limit);

/* The sides of the limits, each called in a process of its own. Each runs
 * for about duration_ms after a warm-up. false: with errno set. */
bool ps_limit_memcpy(size_t bytes, uint32_t duration_ms, double *ret);
bool ps_limit_add(uint32_t duration_ms, double *ret);
bool ps_limit_lookup(uint32_t duration_ms, double *ret);
bool ps_limit_ring(size_t bytes, uint32_t duration_ms, double *ret);
bool ps_limit_spin(uint32_t duration_ms, double *ret);
bool ps_limit_tcp(uint32_t duration_ms, double *ret);
bool ps_limit_zmq(size_t bytes, uint32_t duration_ms, double *ret);
bool ps_limit_zmq_trip(uint32_t duration_ms, double *ret);

/* Nanoseconds of the monotonic clock. */
uint64_t ps_bench_now_ns(void);
/* Zeroed memory that a child shares; NULL with errno set. */
void *ps_limit_share(size_t bytes);
/* Runs other(arg) in a child that ends with it, or with this process.
 * false: with errno set. */
bool ps_limit_fork(void (*other)(void *arg), void *arg);
/* Pins this process to one processor, each side (0, 1) to a different one
 * where there are two: sides that spin on one processor would measure the
 * scheduler. */
void ps_limit_keep_apart(unsigned side);
/* A pause between two reads of memory that another process writes. */
void ps_limit_pause(uint32_t *n_looks);
#endif
