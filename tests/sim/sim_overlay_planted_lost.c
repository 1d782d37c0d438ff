/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a bundle with a delta of a lost worker is taken after its loss. */
#include "protocol/admission/admission.h"
#include "sim_overlay_planted.h"

psd_status_t __real_ps_gate_check(const ps_gate_t *self, uint32_t worker, uint32_t joins,
                                  uint32_t member, psd_error_t *err);
psd_status_t __wrap_ps_gate_check(const ps_gate_t *self, uint32_t worker, uint32_t joins,
                                  uint32_t member, psd_error_t *err);
void __real_ps_partition_bundle(ps_step_t *step, ps_partition_t *self, const ps_request_t *request);
void __wrap_ps_partition_bundle(ps_step_t *step, ps_partition_t *self, const ps_request_t *request);

static bool is_bundle;

void __wrap_ps_partition_bundle(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    is_bundle = true;
    __real_ps_partition_bundle(step, self, request);
    is_bundle = false;
}

psd_status_t __wrap_ps_gate_check(const ps_gate_t *self, uint32_t worker, uint32_t joins,
                                  uint32_t member, psd_error_t *err)
{
    psd_status_t rc = __real_ps_gate_check(self, worker, joins, member, err);

    return is_bundle && rc == PSD_WORKER_LOST ? PSD_OK : rc;
}

int main(void)
{
    return overlay_planted_main("deltas of a lost worker are taken");
}
