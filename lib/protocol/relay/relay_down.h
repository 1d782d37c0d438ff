/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_relay_down - rows on their way out, at one relay
 *
 * What     When workers pull the same rows at the same clock, one gets them from a shard, and the
 *          others from each other: a worker's client hands its relay the rows that it has got
 *          (keep), and asks it for rows that it has not (ask); the relay asks the worker that the
 *          plan names, and answers those that ask it (want). Who asks before the rows are there
 *          waits for them, until its time is over, if this worker pulls them too, or pulled those
 *          of the clock before (begin); else it is refused at once.
 *          Nothing here is believed: a client takes rows only if their digest is the one that
 *          the shard itself has told it (client/requests/by_peer.h). So a relay may lose rows,
 *          mix them up, or die: that costs time.
 * Shape    A place is a table, a partition and a first row. A place has the rows of the last clock
 *          that was kept; who wants those of an earlier one is refused, of a later one may wait.
 * Memory   Rows count up to limit_bytes: the oldest ones go first, and rows beyond the limit are
 *          handed to those that wait for them, but not kept; their place and clock are.
 *          PS_DOWN_MAX bounds the numbers of places, of those that wait, and of what this worker
 *          has asked for.
 * Time     now_ms of any clock that does not go back.
 * Owner    The caller; ps_relay_down_destroy. Payloads are held, never changed.
 * Threads  One at a time.
 */
#ifndef PS_PROTOCOL_RELAY_DOWN_H
#define PS_PROTOCOL_RELAY_DOWN_H

#include "base/slice.h"

#define PS_DOWN_MAX 4096
#define PS_DOWN_AGAIN_MS 10 /* until rows that could not be sent are sent again */

typedef struct ps_down_key {
    uint32_t table;
    uint32_t partition;
    uint64_t first_row;
    uint64_t n_rows;
    uint64_t clock; /* of the worker, when it pulled */
} ps_down_key_t;

typedef enum ps_down_kind {
    PS_DOWN_SEND = 1, /* to the worker that wants it */
    PS_DOWN_GIVE = 2  /* to this relay's own client */
} ps_down_kind_t;

typedef struct ps_down_deed {
    ps_down_kind_t kind;
    uint32_t worker;  /* SEND */
    uint64_t request; /* the worker's, or the client's own number */
    ps_down_key_t key;
    uint64_t until_ms;     /* SEND: the worker waits no longer */
    ps_payload_t *payload; /* the caller's to drop; NULL: they are not to be had here */
} ps_down_deed_t;

typedef struct ps_relay_down ps_relay_down_t;

/* Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_relay_down_new(uint64_t limit_bytes, ps_relay_down_t **ret_down,
                                              psd_error_t *err);
void ps_relay_down_destroy(ps_relay_down_t **self_p);

/* The client has got these rows, and the shard's word for them. Rows of an earlier clock than
 * those that are there are ignored. payload NULL: it has them, and this relay is not to keep them,
 * as nobody is below it now. */
void ps_relay_down_keep(ps_relay_down_t *self, const ps_down_key_t *key, ps_payload_t *payload);
/* The client pulls these rows; whoever wants them, or those of the next clock, may wait. keep and
 * ask say it, too. */
void ps_relay_down_begin(ps_relay_down_t *self, const ps_down_key_t *key);
/* A worker wants rows, for wait_ms at most. Its earlier question about that place is forgotten. */
void ps_relay_down_want(ps_relay_down_t *self, uint64_t now_ms, uint32_t worker, uint64_t request,
                        const ps_down_key_t *key, uint32_t wait_ms);
/* Rows for a worker could not be sent now; they are tried again until its time is over. Takes the
 * deed's payload. */
void ps_relay_down_unsent(ps_relay_down_t *self, uint64_t now_ms, ps_down_deed_t *deed);
/* The client wants rows, and `worker` was asked for them. Without room it is refused at once. */
void ps_relay_down_ask(ps_relay_down_t *self, uint64_t now_ms, uint32_t worker, uint64_t request,
                       const ps_down_key_t *key, uint32_t wait_ms);
/* That worker's answer, with rows or without (NULL). Others' are ignored, also of rows that
 * nobody asked for. */
void ps_relay_down_heard(ps_relay_down_t *self, uint32_t worker, uint64_t request,
                         const ps_down_key_t *key, ps_payload_t *payload);
/* The connection to that worker is gone: what it was asked for is refused. */
void ps_relay_down_lost(ps_relay_down_t *self, uint32_t worker);
/* That worker is in no plan any more, or has connected again: it wants nothing. */
void ps_relay_down_without(ps_relay_down_t *self, uint32_t worker);

void ps_relay_down_tick(ps_relay_down_t *self, uint64_t now_ms);
/* When it wants to be told; UINT64_MAX: never. */
uint64_t ps_relay_down_due(const ps_relay_down_t *self);
/* The next deed; false: there is none. */
bool ps_relay_down_next(ps_relay_down_t *self, ps_down_deed_t *ret_deed);
/* Of the rows that are kept. */
uint64_t ps_relay_down_bytes(const ps_relay_down_t *self);
#endif
