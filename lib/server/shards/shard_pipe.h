/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_pipe - letters between a shard's thread and the control part
 *
 * What     Two ends, a socket of ZeroMQ each, so that either side sleeps on it
 *          beside its other sockets. A letter is a kind and a pointer.
 * Shape    The control part sends CALL and STOP, the shard READY (once, first),
 *          CALL (answered, in the order of asking) and NEWS.
 * Owner    Each end is its thread's as long as that runs. Pointers cross by
 *          ps_handover; the pipe never frees what they point to.
 */
#ifndef PS_SERVER_SHARD_PIPE_H
#define PS_SERVER_SHARD_PIPE_H

#include <stdbool.h>

#include "transport/sockets/socket.h"

typedef enum ps_letter_kind {
    PS_LETTER_READY, /* no pointer: the thread's port is open, or could not be opened */
    PS_LETTER_CALL,  /* a ps_shard_call_t */
    PS_LETTER_NEWS,  /* the ps_shard_news_t of the thread; to be given back */
    PS_LETTER_STOP   /* no pointer: end */
} ps_letter_kind_t;

typedef struct ps_letter {
    ps_letter_kind_t kind;
    void *pointer;
} ps_letter_t;

/* Opens both ends; `name` is the pipe's own among those of the context. Errors:
 * PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_shard_pipe_open(ps_context_t *context, const char *name,
                                               void **ret_here, void **ret_there, psd_error_t *err);
/* Takes NULL, nulls *end_p. */
void ps_shard_pipe_close(void **end_p);
/* Sends a letter. Waits while the other side has not taken 1000. */
void ps_shard_pipe_send(void *end, ps_letter_kind_t kind, void *pointer);
/* The next letter. false: there is none, or the context was stopped. */
PSD_MUST_CHECK bool ps_shard_pipe_take(void *end, ps_letter_t *ret_letter);
/* The same, and waits for it. false: the context was stopped. */
PSD_MUST_CHECK bool ps_shard_pipe_wait(void *end, ps_letter_t *ret_letter);
#endif
