/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the checks of spans with those of the workers at their positions. */
#include "protocol/relay/relay_verify.h"

#include "model/combine/combine_check.h"

static bool is_at(const ps_relay_span_t *span, uint32_t worker)
{
    return worker >= span->first && worker - span->first < span->n;
}

static bool is_span_right(const ps_relay_lot_t *lot, const ps_relay_span_t *span,
                          uint32_t first_col)
{
    uint64_t wanted = 0;

    for (uint16_t i = 0; i < lot->n_from; i++) {
        wanted += is_at(span, lot->from[i].worker) ? lot->from[i].check : 0;
    }
    return ps_combine_checks_agree(
        span->slice.type, ps_combine_check(&span->slice, span->payload, first_col), wanted);
}

/* Has it brought rows, which are in no span? */
static bool is_lost(const ps_relay_lot_t *lot, const ps_bundle_from_t *from, ps_type_t type)
{
    for (uint16_t i = 0; i < lot->n_spans; i++) {
        if (is_at(&lot->spans[i], from->worker)) {
            return false;
        }
    }
    return !ps_combine_checks_agree(type, from->check, 0);
}

bool ps_relay_lot_is_right(const ps_relay_lot_t *lot, ps_type_t type, uint32_t first_col)
{
    bool right = true;

    if (!ps_combine_has_check(type) || !ps_bundle_is_checked(lot->from, lot->n_from)) {
        return true;
    }
    for (uint16_t i = 0; right && i < lot->n_from; i++) {
        right = !is_lost(lot, &lot->from[i], type);
    }
    for (uint16_t i = 0; right && i < lot->n_spans; i++) {
        right = lot->spans[i].slice.type == type && is_span_right(lot, &lot->spans[i], first_col);
    }
    return right;
}
