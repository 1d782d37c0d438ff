/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_thread_watch - the thread that checks whether all others turn
 *
 * What     Reads the page of turns.h twice a second and more. Logs a late
 *          thread by name, once until it turns again. Feeds the host's watchdog,
 *          where there is one, only while every thread has turned lately. That
 *          covers this thread too, since no other thread feeds it. It also
 *          writes for ZeroMQ's threads (thread_probe.h).
 * Owner    The caller; stopped before what it looks at ends.
 * Threads  It is one; the calls are its owner's.
 */
#ifndef PS_SERVER_THREAD_WATCH_H
#define PS_SERVER_THREAD_WATCH_H

#include "server/config/host.h"
#include "transport/threads/turns_look.h"

typedef struct ps_thread_watch ps_thread_watch_t;

/* Call it before the context's first socket is opened, from the thread that calls
 * ps_thread_watch_start: so its threads are found among those of other contexts. */
void ps_thread_watch_prepare(void *context);
/*
 * Starts it, when the node's other threads run.
 *
 * turns    borrowed until the stop
 * context  ZeroMQ's, of the transport
 * host     copied
 *
 * Errors: PSD_NOMEM; PSD_IO.
 */
PSD_MUST_CHECK psd_status_t ps_thread_watch_start(ps_turns_t *turns, void *context,
                                                  const ps_server_host_t *host,
                                                  ps_thread_watch_t **ret_watch, psd_error_t *err);
/* Takes NULL, nulls *self_p. */
void ps_thread_watch_stop(ps_thread_watch_t **self_p);
#endif
