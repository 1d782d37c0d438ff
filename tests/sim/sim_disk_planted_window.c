/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: the dedupe windows are not in the snapshot. */
#include "protocol/partition/partition_copy.h"
#include "protocol/partition/window.h"
#include "sim_disk_planted.h"

psd_status_t __real_ps_partition_take_state(ps_step_t *step, ps_partition_t *self, ps_bytes_t state,
                                            psd_error_t *err);
psd_status_t __wrap_ps_partition_take_state(ps_step_t *step, ps_partition_t *self, ps_bytes_t state,
                                            psd_error_t *err);

psd_status_t __wrap_ps_partition_take_state(ps_step_t *step, ps_partition_t *self, ps_bytes_t state,
                                            psd_error_t *err)
{
    psd_status_t rc = __real_ps_partition_take_state(step, self, state, err);
    size_t at = 0;
    uint64_t session = 0;
    void *value = NULL;

    while (rc == PSD_OK && ps_map_next(&self->windows, &at, &session, &value)) {
        ps_window_t *window = value;

        window->next = 1;
        window->arrived = 1;
    }
    return rc;
}

int main(void)
{
    return disk_planted_found("dedupe window not in the snapshot");
}
