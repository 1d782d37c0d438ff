/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_match - who sends to whom next, decided while a clock runs
 *
 * What     The policies `pairs` and `queue`: no plan is made before; each worker asks
 *          when its sum is ready, and gets a receiver: another worker, or the nodes.
 *          Down the same way: each worker that has the new rows asks whom to pass them
 *          on to.
 * Pairs    Askers are gathered until `num` of them wait, or nobody else can come, and are
 *          matched together: as many as can be, and of such matchings one whose slowest
 *          link is fastest.
 * Queue    The same with one asker at a time: who comes first is served first.
 * Order    Sums are added in one fixed tree over the workers' positions. So a sum goes
 *          only to the worker that holds, or is, the other half of its interval. With
 *          `any_order` it goes to any worker that has not asked yet.
 * Owner    The caller; ps_match_destroy.
 * Threads  One at a time.
 * Source   LeMethod (pairs): batches, max-min matching, askers that become receivers
 *          where receivers are too few. TSEngine (queue).
 */
#ifndef PS_PROTOCOL_OVERLAY_MATCH_H
#define PS_PROTOCOL_OVERLAY_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "protocol/overlay/network.h"
#include "psd/status.h"

#define PS_MATCH_WORKERS_MAX 512u
#define PS_MATCH_NOBODY (UINT32_MAX - 1) /* all have the rows, or will */

typedef struct ps_match_settings {
    uint32_t n_workers;        /* 1 .. PS_MATCH_WORKERS_MAX */
    const uint32_t *positions; /* ascending; borrowed for the life of the match */
    uint32_t num;              /* askers that are matched together; 1: queue */
    bool any_order;
    double greed; /* 0 .. 1: how often the best receiver is taken, down */
    uint64_t seed;
} ps_match_settings_t;

typedef struct ps_match ps_match_t;

/* Errors: PSD_INVALID sizes; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_match_new(const ps_match_settings_t *settings,
                                         ps_match_t **ret_match, psd_error_t *err);
void ps_match_destroy(ps_match_t **self_p);

/* A new clock: nobody has asked. Those that are lost stay lost. */
void ps_match_begin(ps_match_t *self);
/* That worker is lost, or leaves: nothing is sent to it any more. What it held goes to
 * the nodes, from those that it came from; who was sending to it asks again. */
void ps_match_lost(ps_match_t *self, uint32_t worker);
void ps_match_returned(ps_match_t *self, uint32_t worker);

/* ---- up ---- */

/* The worker's sum is ready. Asking twice is asking once. */
void ps_match_ask(ps_match_t *self, uint32_t worker);
/* `to` has what `from` sent. Until then it is not matched, and cannot ask. */
void ps_match_taken(ps_match_t *self, uint32_t from, uint32_t to);
/* `to` did not take it: what `from` holds goes to the nodes. */
void ps_match_refused(ps_match_t *self, uint32_t from, uint32_t to);

/* from sends its sum to `to`: a worker, or PS_OVERLAY_NODES. */
typedef struct ps_match_answer {
    uint32_t from;
    uint32_t to;
} ps_match_answer_t;

/* Answers that can be given now, at most n_workers; to be called until there are none.
 * network: rates between all ends; its positions are not read. late: patience is over,
 * so that who waits goes to the nodes.
 * Errors: PSD_NOMEM; then nothing has changed. */
PSD_MUST_CHECK psd_status_t ps_match_decide(ps_match_t *self, const ps_network_t *network,
                                            bool late, ps_match_answer_t *ret_answers,
                                            uint32_t *ret_n, psd_error_t *err);

/* ---- down ---- */

/* `holder` has the rows: a worker, or PS_OVERLAY_NODES. Whom it passes them on to: the
 * unserved worker with the fastest link; with probability 1 - greed, when that link is
 * measured and others are left, a random one instead, those with unmeasured links first.
 * measured: [n_workers + n_nodes] squared, true for links that are. PS_MATCH_NOBODY: it is
 * done. */
uint32_t ps_match_receiver(ps_match_t *self, const ps_network_t *network, const bool *measured,
                           uint32_t holder);
/* That worker did not get them: another holder may serve it. */
void ps_match_unserved(ps_match_t *self, uint32_t worker);
#endif
