/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a relay adds by arrival, not by position: each lot to the sum of those before it. */
#include "protocol/relay/relay_sum.h"
#include "sim_overlay_planted.h"

psd_status_t __real_ps_relay_sum_make(const ps_relay_sum_args_t *args,
                                      const ps_relay_lot_t *const *lots, size_t n_lots,
                                      bool *ret_fits, ps_relay_lot_t *ret_lot, psd_error_t *err);
psd_status_t __wrap_ps_relay_sum_make(const ps_relay_sum_args_t *args,
                                      const ps_relay_lot_t *const *lots, size_t n_lots,
                                      bool *ret_fits, ps_relay_lot_t *ret_lot, psd_error_t *err);

psd_status_t __wrap_ps_relay_sum_make(const ps_relay_sum_args_t *args,
                                      const ps_relay_lot_t *const *lots, size_t n_lots,
                                      bool *ret_fits, ps_relay_lot_t *ret_lot, psd_error_t *err)
{
    ps_relay_sum_args_t any = *args;
    psd_status_t rc = __real_ps_relay_sum_make(args, lots, n_lots, ret_fits, ret_lot, err);
    ps_relay_lot_t sum = {.from = NULL};

    /* where all of it is one sum anyway, in the order of positions */
    if (rc != PSD_OK || !*ret_fits || ret_lot->n_spans != 1 || n_lots < 2) {
        return rc;
    }
    ps_relay_lot_done(ret_lot);
    any.any_order = true;
    rc = ps_relay_lot_copy(lots[0], &sum, err);
    for (size_t i = 1; rc == PSD_OK && *ret_fits && i < n_lots; i++) {
        const ps_relay_lot_t *pair[] = {&sum, lots[i]};
        ps_relay_lot_t next = {.from = NULL};

        rc = __real_ps_relay_sum_make(&any, pair, 2, ret_fits, &next, err);
        ps_relay_lot_done(&sum);
        sum = next;
    }
    *ret_lot = sum;
    return rc;
}

int main(void)
{
    return overlay_planted_main("a relay adds in the order of arrival");
}
