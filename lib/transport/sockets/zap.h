/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_zap - the thread that ZeroMQ asks who a peer is, before it lets it in
 *
 * What     ZeroMQ asks by its protocol ZAP (RFC 27), at an address of the
 *          context, for each connection to a port that has a ZAP domain. The
 *          answer is the connection's User-Id, which stands on each of its
 *          messages: "uid:1000" of a user of this host, "key:" and the public key
 *          that CURVE has proven, or "" of an unknown peer over tcp. With a list
 *          of keys (ps_zap_admit) it lets in those alone.
 * Order    It starts before the first port of the context is bound, and stops
 *          after the last one is closed. A port whose context has no such thread
 *          lets nobody in.
 * Owner    The context (ps_context_guard).
 * Threads  start and stop from one thread, admit from any; it is a thread of its own.
 */
#ifndef PS_TRANSPORT_ZAP_H
#define PS_TRANSPORT_ZAP_H

#include "psd/status.h"

#include "transport/keys/key_file.h"
#include "transport/threads/turns.h"

#define PS_ZAP_DOMAIN "psd"
#define PS_ZAP_UID "uid:"
#define PS_ZAP_KEY "key:"

typedef struct ps_zap ps_zap_t;

/* zmq: a ZeroMQ context. Errors: PSD_NOMEM; PSD_IO the address is taken, or there is no
 * thread. */
PSD_MUST_CHECK psd_status_t ps_zap_start(void *zmq, ps_zap_t **ret_zap, psd_error_t *err);
/* From now on the thread reports that it turns, as "zap". turns: outlives it. */
void ps_zap_watch(ps_zap_t *self, ps_turns_t *turns);
/*
 * From now on who connects must have proven one of these keys. Connections that stand go on.
 *
 * keys  copied; n_keys 0: nobody gets in
 *
 * Errors: PSD_NOMEM: nobody gets in.
 */
PSD_MUST_CHECK psd_status_t ps_zap_admit(ps_zap_t *self, const ps_public_key_t *keys, size_t n_keys,
                                         psd_error_t *err);
/* Ends the thread and waits for it. Takes NULL, nulls *self_p. */
void ps_zap_stop(ps_zap_t **self_p);
#endif
