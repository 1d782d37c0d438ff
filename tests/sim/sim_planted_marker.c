/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a mark counts when it arrives, before earlier pushes that were
 * lost or are held. */
#include "protocol/admission/admission.h"
#include "protocol/partition/replay.h"
#include "sim_planted.h"

void __real_ps_partition_request(ps_step_t *step, ps_partition_t *self,
                                 const ps_request_t *request);
void __wrap_ps_partition_request(ps_step_t *step, ps_partition_t *self,
                                 const ps_request_t *request);

void __wrap_ps_partition_request(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    ps_job_place_t *place = NULL;

    if (ps_request_marks(request) &&
        ps_partition_place(step, self, request->job, &place, NULL) == PSD_OK && place != NULL) {
        ps_gate_mark(place->gate, request->worker, request->member, ps_request_finishes(request));
        if (!ps_partition_close_clocks(step, self, place)) {
            return; /* no memory */
        }
    }
    __real_ps_partition_request(step, self, request);
}

int main(void)
{
    return sim_planted_main("the marker overtakes pushes");
}
