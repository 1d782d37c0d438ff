/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a copy replays a bundle without moving the window of its last contributor. */
#include "base/alloc.h"
#include "protocol/partition/replay.h"
#define SEEDS_MAX 500 /* most worlds have no bundles */
#ifdef SIM_OF_AN_OVERLAY
#include "sim_overlay_planted.h"
#define planted_main overlay_planted_main
#else
#include "sim_planted.h"
#define planted_main sim_planted_main
#endif

bool __real_ps_partition_replay(ps_step_t *step, ps_partition_t *self, const ps_record_t *record,
                                ps_payload_t *payload);
bool __wrap_ps_partition_replay(ps_step_t *step, ps_partition_t *self, const ps_record_t *record,
                                ps_payload_t *payload);

/* Only copies come here: a primary's own calls are within one file. */
bool __wrap_ps_partition_replay(ps_step_t *step, ps_partition_t *self, const ps_record_t *record,
                                ps_payload_t *payload)
{
    PSD_AUTO(ps_bundle_done) ps_bundle_t bundle = {.from = NULL};
    bool done = __real_ps_partition_replay(step, self, record, payload);

    if (done && record->kind == PS_RECORD_BUNDLE &&
        ps_bundle_open(payload, record->worker, record->member, &bundle, NULL) == PSD_OK) {
        const ps_bundle_from_t *last = &bundle.from[bundle.n_from - 1];
        ps_window_t *window = ps_map_get(&self->windows, last->session);

        window->next = last->first_seq;
        window->arrived = last->first_seq;
    }
    return done;
}

int main(void)
{
    return planted_main("a copy does not move all windows of a bundle");
}
