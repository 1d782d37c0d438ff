/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: of the clocks that end in a bundle of a job with max_delay not 0, one counts. */
#include "wire/records/bundle.h"
#define SEEDS_MAX 500 /* most worlds have no bundles */
#ifdef SIM_OF_AN_OVERLAY
#include "sim_overlay_planted.h"
#define planted_main overlay_planted_main
#else
#include "sim_planted.h"
#define planted_main sim_planted_main
#endif

psd_status_t __real_ps_bundle_open(const ps_payload_t *payload, uint32_t n_from, uint32_t n_spans,
                                   ps_bundle_t *ret, psd_error_t *err);
psd_status_t __wrap_ps_bundle_open(const ps_payload_t *payload, uint32_t n_from, uint32_t n_spans,
                                   ps_bundle_t *ret, psd_error_t *err);

psd_status_t __wrap_ps_bundle_open(const ps_payload_t *payload, uint32_t n_from, uint32_t n_spans,
                                   ps_bundle_t *ret, psd_error_t *err)
{
    psd_status_t rc = __real_ps_bundle_open(payload, n_from, n_spans, ret, err);

    for (uint16_t i = 0; rc == PSD_OK && i < ret->n_from; i++) {
        ret->from[i].marks = ret->from[i].marks > 0 ? 1 : 0;
    }
    return rc;
}

int main(void)
{
    return planted_main("of many marks in a bundle one counts");
}
