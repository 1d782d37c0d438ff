/* SPDX-License-Identifier: Apache-2.0 */
/* The records that a partition writes to its log. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "protocol/partition/answer.h"

void ps_partition_log(ps_step_t *step, const ps_partition_t *self, const ps_record_t *record,
                      ps_payload_t *payload)
{
    bool is_wanted = step->args.log || self->has_log;
    ps_effect_t *effect = is_wanted ? ps_outbox_add(step->outbox, PS_EFFECT_RECORD) : NULL;

    assert(!is_wanted || effect != NULL);

    if (effect != NULL) {
        step->unflushed_bytes += self->has_log ? ps_record_size(record, payload) : 0;
        effect->record = *record;
        effect->payload = payload == NULL ? NULL : ps_payload_keep(payload);
    }
}

/* false: no memory. */
static bool put_mark(ps_step_t *step, const ps_partition_t *self, ps_record_kind_t kind)
{
    const ps_record_t record = {.kind = kind,
                                .table = self->table,
                                .partition = self->number,
                                .lsn = self->lsn,
                                .epoch = self->lsn_epoch,
                                .seq = self->life};

    if (!ps_outbox_reserve(step->outbox, 1)) {
        return false;
    }
    ps_partition_log(step, self, &record, NULL);
    return true;
}

bool ps_partition_log_anew(ps_step_t *step, ps_partition_t *self)
{
    if (!self->has_log) {
        return true;
    }
    self->needs_base = self->lsn > 0; /* else records say it all */
    return put_mark(step, self, PS_RECORD_ANEW);
}

/* Without memory for it the log is kept until the next start, which finds a
 * partition that the map does not place here. */
void ps_partition_log_leave(ps_step_t *step, const ps_partition_t *self)
{
    bool is_told = !self->has_log || put_mark(step, self, PS_RECORD_LEAVE);

    (void)is_told;
}

void ps_partition_log_reason(const ps_step_t *step, char *ret_text, size_t size)
{
    (void)snprintf(ret_text, size,
                   "waiting for the disk of node %" PRIu64 " shard %" PRIu32 ": %" PRIu64
                   " bytes are not flushed; allowed: %" PRIu64 "%s%s",
                   step->args.incarnation, step->args.shard, step->unflushed_bytes,
                   step->args.log_queue_bytes, step->disk_trouble[0] == '\0' ? "" : "; ",
                   step->disk_trouble);
}
