/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_route - where one partition lives: an entry of the map
 *
 * What     MOVED carries it in bytes, the registry's answers in JSON.
 * Shape    bytes of one entry: partition u32, epoch u64, incarnation u64,
 *          shard u32, tcp u8 length and text, ipc u8 length and text
 */
#ifndef PS_WIRE_ROUTE_H
#define PS_WIRE_ROUTE_H

#include "base/bytes.h"

#define PS_ENDPOINT_MAX 255

typedef struct ps_route {
    uint32_t partition;
    uint32_t shard;                /* number within the node */
    uint64_t epoch;                /* of the map when the partition came here */
    uint64_t incarnation;          /* of the node */
    char tcp[PS_ENDPOINT_MAX + 1]; /* "tcp://host:port", or "": ipc alone */
    char ipc[PS_ENDPOINT_MAX + 1]; /* "ipc://path", or "" */
} ps_route_t;

/* One address, for a client that can use only one: tcp, else ipc. */
const char *ps_route_any(const ps_route_t *self);
/* Appends one entry. false: no memory. */
PSD_MUST_CHECK bool ps_route_encode(const ps_route_t *self, ps_buffer_t *buffer);
/* Reads exactly n entries into a fresh array that the caller frees with
 * ps_free. Errors: PSD_PROTO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_routes_decode(ps_bytes_t bytes, uint32_t n, ps_route_t **ret_routes,
                                             psd_error_t *err);
#endif
