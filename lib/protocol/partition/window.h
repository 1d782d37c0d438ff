/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_window - what a partition knows of one client's pushes and marks
 *
 * What     Decides whether a seq is new, was here before, or came too early,
 *          and remembers refusals, so that nothing is applied twice and every
 *          repeated question gets the same answer.
 * Shape    1 .. next-1 have their end; next .. arrived-1 are held at the gate;
 *          arrived is the next one that may come
 * Owner    The partition. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_WINDOW_H
#define PS_PROTOCOL_WINDOW_H

#include "base/bytes.h"

typedef enum ps_admit {
    PS_ADMIT_NEXT = 1,      /* take it */
    PS_ADMIT_DUPLICATE = 2, /* it has its end: answer as before */
    PS_ADMIT_QUEUED = 3,    /* it is held: nothing to do */
    PS_ADMIT_GAP = 4        /* one before it is missing */
} ps_admit_t;

typedef struct ps_refusal {
    uint64_t seq;
    psd_status_t status;
    char *text; /* owned; NULL when there was no memory for it */
} ps_refusal_t;

typedef struct ps_window {
    uint64_t session;
    uint64_t next;          /* lowest seq without an end, from 1 */
    uint64_t arrived;       /* lowest seq that is not here, >= next */
    uint64_t used_ms;       /* last time that the client used it */
    uint64_t unsure;        /* the highest seq whose refusal was dropped */
    ps_refusal_t *refusals; /* owned; ascending by seq */
    size_t n_refusals;
    size_t capacity;
} ps_window_t;

/* NULL when there is no memory. */
ps_window_t *ps_window_new(uint64_t session);
void ps_window_destroy(ps_window_t **self_p);
ps_admit_t ps_window_admit(const ps_window_t *self, uint64_t seq);
/* The next seq was put on hold. */
void ps_window_hold(ps_window_t *self);
/* What was on hold was turned away. */
void ps_window_let_go(ps_window_t *self);
/* seq, which is `next`, has its end; no refusal. */
void ps_window_finish(ps_window_t *self, uint64_t seq);
/* Makes room for one more refusal. false: no memory. */
PSD_MUST_CHECK bool ps_window_reserve(ps_window_t *self);
/* seq, which is `next`, ends refused. Refusals more than `keep` seqs back are
 * dropped: the client has nothing that old in flight. false: no memory, not
 * even for the text, which every copy is to have; nothing changed. */
PSD_MUST_CHECK bool ps_window_refuse(ps_window_t *self, uint64_t seq, psd_status_t status,
                                     const char *text, uint32_t keep);
/* True when nobody can say any more whether seq, which has its end, was taken
 * or refused; ps_window_refusal then gives NULL. */
bool ps_window_is_unsure(const ps_window_t *self, uint64_t seq);
/* The refusal that seq ended with, or NULL. */
const ps_refusal_t *ps_window_refusal(const ps_window_t *self, uint64_t seq);
#endif
