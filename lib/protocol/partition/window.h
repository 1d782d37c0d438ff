/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_window - a partition's state of one client's pushes and marks
 *
 * What     Decides whether a seq is new, a duplicate, or too early, and
 *          remembers refusals. So nothing is applied twice and every retry gets
 *          the same answer.
 * Shape    1 .. next-1 are finished; next .. arrived-1 are held at the gate;
 *          arrived is the next expected one
 * Owner    The partition. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_WINDOW_H
#define PS_PROTOCOL_WINDOW_H

#include "base/bytes.h"

typedef enum ps_admit {
    PS_ADMIT_NEXT = 1,      /* take it */
    PS_ADMIT_DUPLICATE = 2, /* it is finished: answer as before */
    PS_ADMIT_QUEUED = 3,    /* it is held: do nothing */
    PS_ADMIT_GAP = 4        /* an earlier one is missing */
} ps_admit_t;

typedef struct ps_refusal {
    uint64_t seq;
    psd_status_t status;
    char *text; /* owned; NULL: there was no memory for it */
} ps_refusal_t;

typedef struct ps_window {
    uint64_t session;
    uint64_t next;          /* lowest unfinished seq, from 1 */
    uint64_t arrived;       /* lowest seq that has not arrived, >= next */
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
/* Notes that the next seq is held. */
void ps_window_hold(ps_window_t *self);
/* Notes that the held requests were turned away. */
void ps_window_let_go(ps_window_t *self);
/* Finishes seq, which is `next`, without a refusal. */
void ps_window_finish(ps_window_t *self, uint64_t seq);
/* Makes room for one more refusal. false: no memory. */
PSD_MUST_CHECK bool ps_window_reserve(ps_window_t *self);
/* Finishes seq, which is `next`, with a refusal. Drops refusals more than
 * `keep` seqs back: the client has nothing that old in flight. false: no
 * memory, also if only the text does not fit, because every copy must have it;
 * nothing changed. */
PSD_MUST_CHECK bool ps_window_refuse(ps_window_t *self, uint64_t seq, psd_status_t status,
                                     const char *text, uint32_t keep);
/* True when it is no longer known whether seq, which is finished, was taken or
 * refused; ps_window_refusal then returns NULL. */
bool ps_window_is_unsure(const ps_window_t *self, uint64_t seq);
/* The refusal of seq, or NULL. */
const ps_refusal_t *ps_window_refusal(const ps_window_t *self, uint64_t seq);
#endif
