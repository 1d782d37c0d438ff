/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuts - what a leader that was cut off did meanwhile
 *
 * What     The leader of the registry is cut off from all others, both ways or one.
 *          Whatever it logs as a change while it is, the others must have in
 *          their history; and a request for a table that reached it is either
 *          not acknowledged, or the table is there.
 * Owner    The caller. Threads: confined to one.
 */
#ifndef PS_TESTS_CUTS_H
#define PS_TESTS_CUTS_H

#include <psd.h>

#include "support/cluster.h"

#define CUTS_MAX 1000

typedef struct cut {
    unsigned node;
    unsigned number;
    int fd;         /* to its control port, from before */
    long from;      /* what it logged … */
    long to;        /* … while it was cut off */
    bool is_acked;  /* it acknowledged the table */
    bool was_asked; /* the question got an answer */
} cut_t;

/* Cuts the node off and asks it for a table. Of three rounds one is both ways, one in, one
 * out. false: why is on stderr. */
bool cut_begin(cut_t *self, cluster_t *cluster, unsigned node, unsigned number);
/* It is back; waits for the answer. */
bool cut_end(cut_t *self, cluster_t *cluster);
/* false: it said, or logged, a change that is not there. */
bool cut_check(const cut_t *self, const cluster_t *cluster, psd_client_t *client, psd_error_t *err);
#endif
