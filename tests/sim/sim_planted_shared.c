/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a shard keeps values in a client's memory without a copy, as if
 * they were its own. */
#include "sim_planted.h"

psd_status_t __real_ps_shard_step(ps_shard_t *self, const ps_event_t *event, ps_outbox_t *outbox,
                                  psd_error_t *err);
psd_status_t __wrap_ps_shard_step(ps_shard_t *self, const ps_event_t *event, ps_outbox_t *outbox,
                                  psd_error_t *err);

psd_status_t __wrap_ps_shard_step(ps_shard_t *self, const ps_event_t *event, ps_outbox_t *outbox,
                                  psd_error_t *err)
{
    if (event->kind == PS_EVENT_MESSAGE && event->payload != NULL) {
        event->payload->shared = false;
    }
    return __real_ps_shard_step(self, event, outbox, err);
}

int main(void)
{
    return sim_planted_main("shared values kept without a copy");
}
