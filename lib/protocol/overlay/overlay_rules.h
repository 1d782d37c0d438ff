/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_overlay_rules - what the workers of a job ask of its overlay
 *
 * What     The policy, where it holds when workers name sites, and the numbers that pairs and
 *          queue go by. Each worker says them; those of one plan say the same, but that tree and
 *          auto go together, as tree.
 * Threads  Plain values.
 */
#ifndef PS_PROTOCOL_OVERLAY_RULES_H
#define PS_PROTOCOL_OVERLAY_RULES_H

#include <stdbool.h>
#include <stdint.h>

typedef enum ps_policy {
    PS_POLICY_TREE = 0,
    PS_POLICY_AUTO,
    PS_POLICY_PAIRS,
    PS_POLICY_QUEUE
} ps_policy_t;

/* What follows the first three is of pairs and queue. */
typedef struct ps_overlay_rules {
    ps_policy_t policy;
    bool between;    /* sums of sites are added, too */
    bool apart;      /* workers of one site do not add up */
    bool is_listed;  /* a worker sends only to those that it names */
    bool both_ways;  /* rows go back: a way that is listed counts where its way back is, too */
    uint32_t num;    /* askers that are served together; 0: by the ratio. Not of queue */
    double ratio;    /* 0 .. 1, of all workers. Not of queue */
    uint32_t expiry; /* turns that a measured link is known */
    double greed;    /* 0 .. 1: how often the best way is taken */
} ps_overlay_rules_t;

#define PS_OVERLAY_RANKS 4096u /* ranks are below */

/* To which workers another one may send: a bit for each rank. */
typedef struct ps_may {
    uint64_t bits[PS_OVERLAY_RANKS / 64];
} ps_may_t;

static inline void ps_may_set(ps_may_t *self, uint32_t rank, bool is_in)
{
    uint64_t bit = UINT64_C(1) << rank % 64;

    self->bits[rank / 64] = is_in ? self->bits[rank / 64] | bit : self->bits[rank / 64] & ~bit;
}
static inline bool ps_may_has(const ps_may_t *self, uint32_t rank)
{
    return rank < PS_OVERLAY_RANKS && (self->bits[rank / 64] >> rank % 64 & 1) != 0;
}

/* "tree". */
const char *ps_policy_name(ps_policy_t policy);
/* False: there is none of that name; *ret is not touched. */
bool ps_policy_find(const char *name, ps_policy_t *ret);
/* Do workers take turns, by measured links? */
bool ps_policy_has_turns(ps_policy_t policy);

/* What differs between two workers that cannot be in one plan. */
typedef struct ps_overlay_misfit {
    const char *setting; /* its name; constant */
    char a[16];          /* its values, as people write them */
    char b[16];
} ps_overlay_misfit_t;

/* May workers that say these be in one plan? Only what the plan goes by counts: queue has no
 * number, and a number no ratio. False: *ret says the first setting that differs. */
bool ps_overlay_rules_fit(const ps_overlay_rules_t *a, const ps_overlay_rules_t *b,
                          ps_overlay_misfit_t *ret);
/* How many of n_workers that ask are served at once: 1 .. n_workers. */
uint32_t ps_overlay_rules_batch(const ps_overlay_rules_t *self, uint32_t n_workers);
#endif
