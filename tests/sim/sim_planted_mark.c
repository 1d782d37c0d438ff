/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: the marks in a bundle count, also when it is refused. */
#include "base/alloc.h"
#include "protocol/admission/admission.h"
#include "protocol/partition/replay.h"
#define SEEDS_MAX 500 /* most worlds have no bundles */
#include "sim_planted.h"

void __real_ps_partition_bundle(ps_step_t *step, ps_partition_t *self, const ps_request_t *request);
void __wrap_ps_partition_bundle(ps_step_t *step, ps_partition_t *self, const ps_request_t *request);

void __wrap_ps_partition_bundle(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    PSD_AUTO(ps_bundle_done) ps_bundle_t bundle = {.from = NULL};
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = request->payload == NULL ? NULL : ps_payload_own(request->payload);
    ps_job_place_t *place = NULL;

    if (ps_bundle_open(payload, request->n_from, request->n_spans, &bundle, NULL) == PSD_OK &&
        ps_partition_place(step, self, request->job, &place, NULL) == PSD_OK && place != NULL) {
        for (uint16_t i = 0; i < bundle.n_from; i++) {
            if (bundle.from[i].marks) {
                ps_gate_mark(place->gate, bundle.from[i].worker, bundle.from[i].member,
                             request->clock + 1);
            }
        }
        if (!ps_partition_close_clocks(step, self, place)) {
            return; /* no memory */
        }
    }
    __real_ps_partition_bundle(step, self, request);
}

int main(void)
{
    return sim_planted_main("marks of a refused bundle count");
}
