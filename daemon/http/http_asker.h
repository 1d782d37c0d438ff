/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_http_asker - asks this node's control port for those who come by HTTP
 *
 * What     A client of libpsd, which finds the registry wherever it is, asks all
 *          questions that wait, at the same time. So the thread of the HTTP port never
 *          waits, and there is one telling of each document: the control port's.
 * Owner    The caller; ps_http_asker_stop ends the thread.
 * Threads  Its own, "api", from the first question until none came for half a minute;
 *          so long there is a client, too. ask from one thread.
 */
#ifndef PS_DAEMON_HTTP_ASKER_H
#define PS_DAEMON_HTTP_ASKER_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "base/bytes.h"

#define PS_HTTP_ASK_MS 3000 /* for an answer */

typedef struct ps_http_asker ps_http_asker_t;
struct ps_client_question;

/* One question, from its request to its answer; the asker's from ask until is_done. */
typedef struct ps_http_work {
    TAILQ_ENTRY(ps_http_work) link;
    ps_buffer_t question;        /* owned; JSON with its '\0' */
    void (*on_done)(void *user); /* called once, by the asker's thread or by stop */
    void *user;
    struct ps_client_question *asked; /* the asker's */
    unsigned status;                  /* of the answer, in HTTP's numbers */
    ps_buffer_t text;                 /* owned; the answer */
    atomic_bool is_done;              /* the last thing that is set, before on_done */
} ps_http_work_t;

/* endpoint: of this node's control port. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_http_asker_new(const char *endpoint, ps_http_asker_t **ret_asker,
                                              psd_error_t *err);
/* Asks. on_done may be called before it returns. */
void ps_http_asker_ask(ps_http_asker_t *self, ps_http_work_t *work);
/* Answers what waits, and from now on everything, with 503, and ends the thread. The
 * asker stays: others may still ask. Takes NULL. */
void ps_http_asker_stop(ps_http_asker_t *self);
/* Takes NULL, nulls *self_p. After the stop, when nobody asks any more. */
void ps_http_asker_destroy(ps_http_asker_t **self_p);
#endif
