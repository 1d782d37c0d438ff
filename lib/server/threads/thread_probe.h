/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_thread_probe - makes ZeroMQ's own threads report that they turn
 *
 * What     ZeroMQ's I/O threads and its reaper run none of our code. An I/O
 *          thread gets a connection to a name that does not exist: it retries
 *          for ever and reports each try. The reaper reports when it has
 *          destroyed a closed socket. The probe writes these reports into the
 *          threads' places in the page.
 * Owner    The caller; ps_thread_probe_done before the context ends.
 * Threads  Confined to one, but for ps_thread_probe_init.
 */
#ifndef PS_SERVER_THREAD_PROBE_H
#define PS_SERVER_THREAD_PROBE_H

#include <stddef.h>
#include <zmq.h>

#include "transport/threads/turns.h"

#define PS_PROBE_IO_MAX 16

/* One I/O thread, or the reaper. */
typedef struct ps_probe {
    void *socket;  /* of the I/O thread, that connects; NULL: the reaper's */
    void *monitor; /* reports its events; NULL: none, or none now */
    ps_turn_t *turn;
} ps_probe_t;

typedef struct ps_thread_probe {
    void *context;     /* ZeroMQ's; borrowed */
    const char *name;  /* "zmq": the threads are zmq-io-0, …, zmq-reaper */
    uint64_t serial;   /* of the sockets that were closed */
    uint64_t asked_ms; /* when the reaper was asked last */
    size_t n;
    ps_probe_t probes[PS_PROBE_IO_MAX + 1]; /* the last one is the reaper */
} ps_thread_probe_t;

/* Finds the threads of the context, whose names ZeroMQ begins with `prefix`,
 * renames them and gives them places. Errors: PSD_IO they are not found or no
 * socket can be opened. */
PSD_MUST_CHECK psd_status_t ps_thread_probe_init(ps_thread_probe_t *self, void *context,
                                                 const char *prefix, const char *name,
                                                 ps_turns_t *turns, psd_error_t *err);
void ps_thread_probe_done(ps_thread_probe_t *self);
/* The sockets to wait for; returns how many. Room for PS_PROBE_IO_MAX + 1. */
size_t ps_thread_probe_items(const ps_thread_probe_t *self, zmq_pollitem_t *items);
/* Takes in the threads' reports, and asks the reaper when it is due. */
void ps_thread_probe_turn(ps_thread_probe_t *self, uint64_t now_ms);
#endif
