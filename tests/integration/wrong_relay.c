/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In front of what adds up lots in a relay: in the worker with rank WRONG_RELAY each sum has
 * the values of its first lot not at all, or twice, in turns. All else of the sum is as it
 * should be, also its checks.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "protocol/relay/relay_sum.h"

psd_status_t __real_ps_relay_sum_make(const ps_relay_sum_args_t *args,
                                      const ps_relay_lot_t *const *lots, size_t n_lots,
                                      bool *ret_fits, ps_relay_lot_t *ret_lot, psd_error_t *err);
psd_status_t __wrap_ps_relay_sum_make(const ps_relay_sum_args_t *args,
                                      const ps_relay_lot_t *const *lots, size_t n_lots,
                                      bool *ret_fits, ps_relay_lot_t *ret_lot, psd_error_t *err);

static bool is_wrong(void)
{
    const char *wrong = getenv("WRONG_RELAY");
    const char *worker = getenv("PSD_WORKER");

    return wrong != NULL && worker != NULL && strcmp(wrong, worker) == 0;
}

/* Values of i64, each times that number. false: no memory. */
static bool multiply(ps_relay_span_t *span, uint64_t times)
{
    ps_payload_t *payload = ps_payload_clone(span->payload);

    if (payload == NULL) {
        return false;
    }
    for (size_t i = 0; i < payload->spans[0].size; i += sizeof(int64_t)) {
        uint8_t *value = (uint8_t *)(uintptr_t)payload->spans[0].data + i;

        ps_store_u64(value, times * ps_load_u64(value));
    }
    ps_payload_destroy(&span->payload);
    span->payload = payload;
    return true;
}

psd_status_t __wrap_ps_relay_sum_make(const ps_relay_sum_args_t *args,
                                      const ps_relay_lot_t *const *lots, size_t n_lots,
                                      bool *ret_fits, ps_relay_lot_t *ret_lot, psd_error_t *err)
{
    static uint64_t n_sums; /* of the relay's only thread */
    PSD_AUTO(ps_free_at) const ps_relay_lot_t **all = NULL;
    PSD_AUTO(ps_relay_lot_done) ps_relay_lot_t first = {.from = NULL};

    if (!is_wrong() || n_lots < 2) {
        return __real_ps_relay_sum_make(args, lots, n_lots, ret_fits, ret_lot, err);
    }
    all = ps_alloc(n_lots, sizeof(ps_relay_lot_t *));
    if (all == NULL || ps_relay_lot_copy(lots[0], &first, err) != PSD_OK) {
        return PSD_NOMEM;
    }
    memcpy(all, lots, n_lots * sizeof(ps_relay_lot_t *));
    all[0] = &first;
    for (uint16_t i = 0; i < first.n_spans; i++) {
        if (!multiply(&first.spans[i], n_sums % 2 * 2)) {
            return PSD_NOMEM;
        }
    }
    n_sums++;
    return __real_ps_relay_sum_make(args, all, n_lots, ret_fits, ret_lot, err);
}
