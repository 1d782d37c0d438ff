/* SPDX-License-Identifier: Apache-2.0 */
/* Names of policies, and what fits together. */
#include "protocol/overlay/overlay_rules.h"

#include <math.h>
#include <string.h>

#define ROUNDING 1e-9 /* 0.29 of 100 are 29 */

static const char *const NAMES[] = {"tree", "auto", "pairs", "queue"};

const char *ps_policy_name(ps_policy_t policy)
{
    return NAMES[policy];
}

bool ps_policy_find(const char *name, ps_policy_t *ret)
{
    for (unsigned i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (strcmp(name, NAMES[i]) == 0) {
            *ret = (ps_policy_t)i;
            return true;
        }
    }
    return false;
}

bool ps_policy_has_turns(ps_policy_t policy)
{
    return policy == PS_POLICY_PAIRS || policy == PS_POLICY_QUEUE;
}

bool ps_overlay_rules_fit(const ps_overlay_rules_t *a, const ps_overlay_rules_t *b)
{
    if (!ps_policy_has_turns(a->policy)) {
        return !ps_policy_has_turns(b->policy);
    }
    return a->policy == b->policy && a->is_listed == b->is_listed && a->both_ways == b->both_ways &&
           a->num == b->num && a->ratio == b->ratio && a->expiry == b->expiry &&
           a->greed == b->greed;
}

uint32_t ps_overlay_rules_batch(const ps_overlay_rules_t *self, uint32_t n_workers)
{
    double n = self->num > 0 ? self->num : floor(n_workers * self->ratio + ROUNDING);

    if (n < 1 || self->policy == PS_POLICY_QUEUE) {
        return 1;
    }
    return n > n_workers ? n_workers : (uint32_t)n;
}
