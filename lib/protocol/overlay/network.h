/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_network, ps_load - what a job's deltas must pass, and how long that takes
 *
 * What     Ends with links between them, and what each worker sends. Traffic is what a
 *          tree puts on them.
 * Cost     In the steady state a tree is as slow as its slowest part: bytes in and out
 *          of each end, and bytes over each link, over all colours. Data flows in
 *          chunks, so depth costs one chunk and one latency for each step. The time of
 *          a tree is the sum of both.
 * Shape    Ends 0 .. n_workers - 1 are workers in the order of their positions; then
 *          come n_nodes nodes. Parents of one colour: for each worker the worker that it
 *          sends to, or PS_OVERLAY_NODES.
 * Units    Bytes, seconds.
 * Threads  Pure functions.
 */
#ifndef PS_PROTOCOL_OVERLAY_NETWORK_H
#define PS_PROTOCOL_OVERLAY_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PS_OVERLAY_NODES UINT32_MAX /* parent of a worker that sends to the nodes */

/* Bytes per second; 0 as the rate of a link: there is no way. */
typedef struct ps_network {
    uint32_t n_workers;
    uint32_t n_nodes;
    const uint32_t *positions; /* of the workers, ascending, without repeats */
    const double *rates;       /* [n_workers + n_nodes] squared, row to column */
    const double *out;         /* of each end; INFINITY: only its links limit it */
    const double *in;
    double latency_s; /* of one message */
} ps_network_t;

typedef struct ps_load {
    uint32_t n_colours;    /* 1 .. PS_OVERLAY_COLOURS_MAX */
    const uint64_t *bytes; /* [n_colours][n_nodes]: a worker's delta, by where it ends */
    uint64_t chunk_bytes;  /* what is passed on at once; from 1 */
} ps_load_t;

/* Bytes over the links and ends of a network. */
typedef struct ps_traffic {
    double *out;   /* owned, of each end */
    double *in;    /* owned */
    double *links; /* owned, [end][end] */
} ps_traffic_t;

/* false: no memory. done takes what init left in either case. */
bool ps_traffic_init(ps_traffic_t *self, const ps_network_t *network);
void ps_traffic_done(ps_traffic_t *self);
/* Adds what these parents of a colour bring; sign -1: takes it away. */
void ps_traffic_add(ps_traffic_t *self, const ps_network_t *network, const ps_load_t *load,
                    uint32_t colour, const uint32_t *parents, double sign);
/* Seconds of all colours' trees, whose traffic this is; INFINITY: somebody has no way. */
double ps_traffic_seconds(const ps_traffic_t *self, const ps_network_t *network,
                          const ps_load_t *load, const uint32_t *parents);

/* A worker's delta of that colour, to all nodes. */
uint64_t ps_load_bytes(const ps_load_t *load, uint32_t n_nodes, uint32_t colour);

/* Of a link; 0: there is no way. */
double ps_network_rate(const ps_network_t *network, uint32_t from, uint32_t to);
/* A first chunk over a link of that rate. */
double ps_network_hop_s(const ps_network_t *network, const ps_load_t *load, double rate);
/* The slowest way of a chunk of that colour to its nodes; INFINITY: there is none. */
double ps_network_direct_hop_s(const ps_network_t *network, const ps_load_t *load, uint32_t colour,
                               uint32_t from);
#endif
