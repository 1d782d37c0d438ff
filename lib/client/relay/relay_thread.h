/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/client/relay: a worker's relay, for real
 *
 * It is       The thread that takes deltas of this worker and of others, adds them up by the
 *             machine of protocol/relay, and passes them on; its port, its connections to other
 *             relays, and a client of its own that brings bundles to the nodes.
 * It uses     requests, connection, lib/protocol/relay, lib/transport.
 * It ignores  Which pushes are lent, and how a job is joined.
 * Start at    relay_thread.c, then relay_inner.h.
 */
/*
 * ps_relay_thread - one worker's relay
 *
 * What     Opened before the worker joins, since the join says where it listens; started after,
 *          when the worker has its names. A relay owes nobody anything: it may be stopped, or
 *          die, at any time (protocol/relay/relay.h).
 * Owner    The caller; ps_relay_thread_stop.
 * Threads  Of its owner, except the desk.
 */
#ifndef PS_CLIENT_RELAY_THREAD_H
#define PS_CLIENT_RELAY_THREAD_H

#include "client/connection/desk.h"
#include "protocol/overlay/overlay_conf.h"
#include "protocol/relay/relay_message.h"
#include "psd/client.h"

typedef struct ps_relay_thread ps_relay_thread_t;

/* How the client that brings bundles to the nodes is made and ended: psd_connect and psd_close,
 * which stand above this room. */
typedef struct ps_relay_calls {
    psd_status_t (*connect)(const char *endpoint, const psd_options_t *options,
                            psd_client_t **ret_client, psd_error_t *err);
    void (*close)(psd_client_t **client_p);
} ps_relay_calls_t;

typedef struct ps_relay_wish {
    const char *listen; /* tcp with port 0 or * for any */
    const char *trace;  /* the path of a file of what it does, as in relay_trace.h; NULL: none */
    bool rows_go_on;    /* it also has rows from other workers, and for them
                           (client/requests/by_peer.h) */
    bool verifies;      /* who gets a sum with deltas of its worker can tell whether it is right */
    bool encrypts;      /* it speaks CURVE alone, under a new pair of keys that is never stored, and
                           with workers of its plan alone */
} ps_relay_wish_t;

/* Opens the port and connects to psd as the worker did. `calls` must last as long as the thread.
 * *ret_thread NULL: it is to encrypt and cannot, which the log says. Errors: PSD_INVALID an address
 * that others cannot use; PSD_IO it cannot be bound; those of psd_connect. */
PSD_MUST_CHECK psd_status_t ps_relay_thread_open(const char *endpoint, const psd_options_t *options,
                                                 const ps_relay_calls_t *calls,
                                                 const ps_relay_wish_t *wish,
                                                 ps_relay_thread_t **ret_thread, psd_error_t *err);
/* What its worker asks for; takes the edges of conf. sites: a text for ps_site_find, or NULL. To be
 * called before it is started. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_relay_thread_follow(ps_relay_thread_t *self,
                                                   const ps_overlay_rules_t *rules,
                                                   const char *sites, ps_overlay_conf_t *conf,
                                                   psd_error_t *err);
/* Opens the file of its trace, where one is wished, for the worker of that rank. To be called
 * before the worker joins: then psd_join fails where the file cannot be written. Errors: as
 * ps_relay_trace_open. */
PSD_MUST_CHECK psd_status_t ps_relay_thread_trace(ps_relay_thread_t *self, uint32_t worker,
                                                  psd_error_t *err);
/* Borrowed. */
ps_desk_t *ps_relay_thread_desk(const ps_relay_thread_t *self);
/* Errors: PSD_IO; PSD_INVALID; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_relay_thread_start(ps_relay_thread_t *self,
                                                  const ps_relay_speaker_t *speaker,
                                                  psd_error_t *err);
/* Passes on what it has, for wait_ms at most, and ends. Takes NULL, nulls *self_p. In a forked
 * child it only forgets. */
void ps_relay_thread_stop(ps_relay_thread_t **self_p, uint32_t wait_ms);
#endif
