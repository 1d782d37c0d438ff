/* SPDX-License-Identifier: Apache-2.0 */
/*
 * asker - asks for whoever waits long, while he waits: is he told why?
 *
 * What     A thread that looks at the workers' waits. Of one that takes longer
 *          than ASKER_LONG_MS three are asked: the client's own last error,
 *          `why` of the job, and `cluster status`. Each must name a cause: a
 *          node, by its name or its address, a copy, a lease, or a disk; the
 *          first two may name other workers, who are asked themselves.
 * Owner    The caller; asker_stop. Borrows the cluster's addresses, and the
 *          adders until then.
 * Threads  Its own one, besides the caller's.
 */
#ifndef PS_TESTS_ASKER_H
#define PS_TESTS_ASKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "adders.h"
#include "support/cluster.h"
#include "view.h"

#define ASKER_LONG_MS 1000

typedef struct asker {
    const cluster_t *cluster;
    const adders_t *adders;
    pthread_t thread;
    bool runs;
    atomic_bool stop;
    atomic_uint bad; /* answers that named nothing */
    view_t view;
    uint64_t n_waits;  /* that were long */
    uint64_t n_asked;  /* questions answered while the wait went on */
    uint64_t n_silent; /* that the registry did not answer */
    uint64_t longest_ms;
    uint64_t known[ADDERS_MAX];      /* the waits that are counted */
    unsigned unnamed[ADDERS_MAX][3]; /* how often in a row each was silent */
} asker_t;

/* false: why is on stderr. */
bool asker_start(asker_t *self, const cluster_t *cluster, const adders_t *adders);
/* Ends it. false: somebody waited and was not told why; that is on stderr. */
bool asker_stop(asker_t *self);
#endif
