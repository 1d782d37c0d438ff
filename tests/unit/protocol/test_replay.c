/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/partition/replay.h: what is applied is in the log, and what is not, is not,
 * whichever allocation fails. */
#include "copy_kit.h"
#include "protocol/partition/replay.h"
#include "support/fail_alloc.h"

#define RECORDS 40

/* There is room for n effects more. */
static void leave_room(ps_outbox_t *outbox, size_t n)
{
    cr_assert(ps_outbox_reserve(outbox, n));
    while (outbox->n_effects + n < outbox->capacity) {
        cr_assert_not_null(ps_outbox_add(outbox, PS_EFFECT_NOTE));
    }
}

static size_t count_records(const ps_outbox_t *outbox, uint64_t lsn)
{
    size_t n = 0;

    for (size_t i = 0; i < outbox->n_effects; i++) {
        const ps_effect_t *effect = &outbox->effects[i];

        n += effect->kind == PS_EFFECT_RECORD && effect->record.lsn == lsn ? 1 : 0;
    }
    return n;
}

/* The record at hand, with allocation 0, 1, 2 … failing until it is done. */
static size_t sweep(story_t *story, size_t room)
{
    side_t *side = &story->primary;
    const ps_partition_t *partition = side->partition;
    uint64_t lsn = partition->lsn;
    bool is_done = false;
    size_t at = 0;

    for (; !is_done; at++) {
        ps_record_t record = story->record;

        ps_outbox_done(&side->outbox);
        leave_room(&side->outbox, room);
        fail_alloc_at(at);
        is_done = ps_replicas_record(&side->shard->step, side->partition, &record, story->payload);
        fail_alloc_off();
        cr_assert_eq(partition->lsn, is_done ? lsn + 1 : lsn);
        cr_assert_eq(count_records(&side->outbox, lsn + 1), is_done ? 1 : 0,
                     "kind %d, allocation %zu, room %zu", (int)record.kind, at, room);
        cr_assert_eq(side->outbox.n_held, 0);
        cr_assert_lt(at, 1000);
    }
    return at;
}

Test(replay, applies_nothing_that_is_not_logged)
{
    bool seen[PS_RECORD_BUNDLE + 1] = {false};
    size_t n = 0;

    for (uint64_t seed = 0; seed < 20; seed++) {
        PSD_AUTO(story_close) story_t story;

        story_open(&story, seed);
        story.primary.shard->step.args.log = true;
        story.primary.shard->step.args.trace = true;
        for (int i = 0; i < RECORDS; i++) {
            story_next(&story);
            seen[story.record.kind] = true;
            n += sweep(&story, (size_t)i % 3);
        }
    }
    cr_assert(seen[PS_RECORD_PUSH] && seen[PS_RECORD_MARK] && seen[PS_RECORD_JOB] &&
              seen[PS_RECORD_REFUSAL] && seen[PS_RECORD_RETIRE] && seen[PS_RECORD_EPOCH] &&
              seen[PS_RECORD_SET] && seen[PS_RECORD_BUNDLE]);
    cr_assert_gt(n, 1000);
}
