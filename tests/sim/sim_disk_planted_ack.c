/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: answers leave before their records are flushed. */
#include "protocol/shard/shard_state.h"
#include "sim_disk_shard.h"

psd_status_t __real_ps_shard_step(ps_shard_t *self, const ps_event_t *event, ps_outbox_t *outbox,
                                  psd_error_t *err);
psd_status_t __wrap_ps_shard_step(ps_shard_t *self, const ps_event_t *event, ps_outbox_t *outbox,
                                  psd_error_t *err);

static uint64_t life_of(const ps_shard_t *self, const ps_record_t *record)
{
    const ps_local_table_t *table = ps_map_get(&self->step.tables, record->table);

    return table->partitions[record->partition]->life;
}

psd_status_t __wrap_ps_shard_step(ps_shard_t *self, const ps_event_t *event, ps_outbox_t *outbox,
                                  psd_error_t *err)
{
    ps_position_t positions[16];
    ps_event_t flushed = {.kind = PS_EVENT_FLUSHED, .now_ms = event->now_ms};
    psd_status_t rc = __real_ps_shard_step(self, event, outbox, err);

    for (size_t i = 0; i < outbox->n_effects && flushed.n_flushed < 16; i++) {
        const ps_effect_t *effect = &outbox->effects[i];

        if (effect->kind == PS_EFFECT_RECORD) {
            positions[flushed.n_flushed++] =
                (ps_position_t){effect->record.table, effect->record.partition, effect->record.lsn,
                                life_of(self, &effect->record)};
        }
    }
    flushed.flushed = positions;
    return rc == PSD_OK && flushed.n_flushed > 0 ? __real_ps_shard_step(self, &flushed, outbox, err)
                                                 : rc;
}

int main(void)
{
    return disk_planted_main("ack before the flush");
}
