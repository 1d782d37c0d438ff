/* SPDX-License-Identifier: Apache-2.0 */
/* A shard counts messages, and leaves looks at itself. */
#include "server/metrics/meter.h"

#include "base/alloc.h"

uint64_t ps_meter_taken(ps_meter_t *self, ps_kind_t kind, const ps_payload_t *payload)
{
    ps_counted_t counted = PS_COUNTED_PUSH;
    uint64_t now_ns = 0;
    uint64_t taken_ns = 0;

    if (self == NULL) {
        return 0;
    }
    now_ns = ps_meter_now_ns();
    taken_ns = now_ns - self->mark_ns;
    ps_count_add(self->counts.bytes_in, ps_payload_size(payload));
    if (ps_shard_counts_as(kind, &counted)) {
        ps_histogram_add(&self->counts.handled[counted], taken_ns);
    }
    self->mark_ns = now_ns;
    return taken_ns;
}

/* Memory for a look; NULL: there is none now. */
static ps_shard_look_t *take_spare(ps_meter_t *self)
{
    ps_shard_look_t *look = self->spare == NULL ? ps_alloc(1, sizeof *look) : self->spare;

    self->spare = NULL;
    return look;
}

void ps_meter_look(ps_meter_t *self, ps_shard_t *core, uint64_t now_ms)
{
    ps_shard_look_t *look = NULL;
    bool is_served = true;

    if (self == NULL || now_ms < self->look_ms) {
        return;
    }
    look = take_spare(self);
    if (look != NULL && ps_shard_look(core, now_ms, look, NULL) == PSD_OK) {
        look = ps_box_put(&self->look, look);
        is_served = ps_count_get(self->counts.headless) + ps_count_get(self->counts.restoring) == 0;
    }
    self->spare = look;
    self->look_ms = now_ms + (is_served ? PS_METER_LOOK_MS : PS_METER_LOOK_SOON_MS);
}
