/* SPDX-License-Identifier: Apache-2.0 */
/* Names of policies, and what fits together. */
#include "protocol/overlay/overlay_rules.h"

#include <math.h>
#include <stdio.h>
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

/* ---- what fits ---- */

static bool same_words(const char *setting, const char *a, const char *b, ps_overlay_misfit_t *ret)
{
    bool same = strcmp(a, b) == 0;

    if (!same) {
        ret->setting = setting;
        (void)snprintf(ret->a, sizeof ret->a, "%s", a);
        (void)snprintf(ret->b, sizeof ret->b, "%s", b);
    }
    return same;
}

static bool same_numbers(const char *setting, double a, double b, ps_overlay_misfit_t *ret)
{
    bool same = a == b;

    if (!same) {
        ret->setting = setting;
        (void)snprintf(ret->a, sizeof ret->a, "%.9g", a);
        (void)snprintf(ret->b, sizeof ret->b, "%.9g", b);
    }
    return same;
}

static const char *on(bool is_on)
{
    return is_on ? "on" : "off";
}

/* The policy there. */
static const char *where(const ps_overlay_rules_t *rules, bool is_on)
{
    return is_on ? NAMES[rules->policy] : "off";
}

static const char *links(bool is_listed)
{
    return is_listed ? "listed" : "complete";
}

bool ps_overlay_rules_fit(const ps_overlay_rules_t *a, const ps_overlay_rules_t *b,
                          ps_overlay_misfit_t *ret)
{
    bool counts = a->policy == PS_POLICY_PAIRS;
    bool turns = ps_policy_has_turns(a->policy) || ps_policy_has_turns(b->policy);

    if (turns && !same_words("PSD_OVERLAY", NAMES[a->policy], NAMES[b->policy], ret)) {
        return false;
    }
    if ((a->between != b->between &&
         !same_words("PSD_OVERLAY_BETWEEN", where(a, a->between), where(b, b->between), ret)) ||
        (a->apart != b->apart &&
         !same_words("PSD_OVERLAY_WITHIN", where(a, !a->apart), where(b, !b->apart), ret))) {
        return false;
    }
    return !turns ||
           (same_words("PSD_OVERLAY_LINKS", links(a->is_listed), links(b->is_listed), ret) &&
            same_words("PSD_OVERLAY_DOWN", on(a->both_ways), on(b->both_ways), ret) &&
            same_numbers("PSD_OVERLAY_GREED", a->greed, b->greed, ret) &&
            same_numbers("SET_BANDWIDTH_EXPIRATION", a->expiry, b->expiry, ret) &&
            (!counts || same_numbers("SET_SCHEDULE_NUM", a->num, b->num, ret)) &&
            (!counts || a->num > 0 || same_numbers("SET_SCHEDULE_RATIO", a->ratio, b->ratio, ret)));
}

/* ---- numbers ---- */

uint32_t ps_overlay_rules_batch(const ps_overlay_rules_t *self, uint32_t n_workers)
{
    double n = self->num > 0 ? self->num : floor(n_workers * self->ratio + ROUNDING);

    if (n < 1 || self->policy == PS_POLICY_QUEUE) {
        return 1;
    }
    return n > n_workers ? n_workers : (uint32_t)n;
}
