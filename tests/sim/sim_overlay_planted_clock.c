/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a relay adds deltas of two clocks, and the shard does not look at whose clock it is. */
#include "protocol/partition/gate.h"
#include "sim_overlay_planted.h"

psd_status_t __real_ps_relay_give(ps_relay_t *self, uint64_t now_ms, const ps_relay_giver_t *giver,
                                  const ps_relay_key_t *key, const ps_relay_lot_t *lot,
                                  psd_error_t *err);
psd_status_t __wrap_ps_relay_give(ps_relay_t *self, uint64_t now_ms, const ps_relay_giver_t *giver,
                                  const ps_relay_key_t *key, const ps_relay_lot_t *lot,
                                  psd_error_t *err);
bool __wrap_ps_gate_is_at(const ps_gate_t *self, uint32_t worker, uint32_t member, uint64_t clock);

psd_status_t __wrap_ps_relay_give(ps_relay_t *self, uint64_t now_ms, const ps_relay_giver_t *giver,
                                  const ps_relay_key_t *key, const ps_relay_lot_t *lot,
                                  psd_error_t *err)
{
    ps_relay_key_t both = *key;

    both.clock -= both.is_timed ? 0 : both.clock % 2;
    return __real_ps_relay_give(self, now_ms, giver, &both, lot, err);
}

bool __wrap_ps_gate_is_at(const ps_gate_t *self, uint32_t worker, uint32_t member, uint64_t clock)
{
    (void)self;
    (void)worker;
    (void)member;
    (void)clock;
    return true;
}

int main(void)
{
    return overlay_planted_main("a relay adds deltas of two clocks");
}
