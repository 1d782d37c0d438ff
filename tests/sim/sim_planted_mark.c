/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: the marks in a bundle count, also when it is refused. */
#include "base/alloc.h"
#include "protocol/admission/admission.h"
#include "protocol/partition/replay.h"
#define SEEDS_MAX 500 /* most worlds have no bundles */
#ifdef SIM_OF_AN_OVERLAY
#include "sim_overlay_planted.h"
#define planted_main overlay_planted_main
#else
#include "sim_planted.h"
#define planted_main sim_planted_main
#endif

void __real_ps_partition_bundle(ps_step_t *step, ps_partition_t *self, const ps_request_t *request);
void __wrap_ps_partition_bundle(ps_step_t *step, ps_partition_t *self, const ps_request_t *request);

static void mark_all(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    PSD_AUTO(ps_bundle_done) ps_bundle_t bundle = {.from = NULL};
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = request->payload == NULL ? NULL : ps_payload_own(request->payload);
    ps_job_place_t *place = ps_partition_find_place(self, request->job);
    bool closed = false;

    if (place == NULL ||
        ps_bundle_open(payload, request->n_from, request->n_spans, &bundle, NULL) != PSD_OK) {
        return;
    }
    for (uint16_t i = 0; i < bundle.n_from; i++) {
        if (bundle.from[i].marks) {
            ps_gate_mark(place->gate, bundle.from[i].worker, bundle.from[i].member,
                         request->clock + 1);
        }
    }
    closed = ps_partition_close_clocks(step, self, place);
    (void)closed; /* no memory: a tick does it */
}

void __wrap_ps_partition_bundle(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    size_t n_before = step->outbox->n_effects;

    __real_ps_partition_bundle(step, self, request);
    for (size_t i = n_before; i < step->outbox->n_effects; i++) {
        if (step->outbox->effects[i].kind == PS_EFFECT_SEND &&
            step->outbox->effects[i].message.kind == PS_KIND_REFUSED &&
            step->outbox->effects[i].message.refused.request == request->request &&
            step->outbox->effects[i].message.refused.status == PSD_SPLIT) {
            mark_all(step, self, request);
            return;
        }
    }
}

int main(void)
{
    return planted_main("marks of a refused bundle count");
}
