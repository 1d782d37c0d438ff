/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of rows, under the limits of bandwidth and behind requests. */
#include "protocol/rows_pace.h"

#define US_PER_S UINT64_C(1000000)
#define BUSY_MS 100         /* behind the last request */
#define BEHIND_US 20000     /* of time that has passed unused is made good */
#define GIVES_AGAIN_MS 1000 /* that a shard has given rows counts so long */

static bool
is_within(uint64_t now_ms, uint64_t at_ms, uint64_t ms)
{
    return at_ms != 0 && now_ms < at_ms + ms;
}

bool
ps_pace_is_busy(const ps_shard_t *shard)
{
    return is_within(shard->now_ms, shard->asked_ms, BUSY_MS);
}

bool
ps_shard_gives_rows(const ps_shard_t *shard, uint64_t now_ms)
{
    return is_within(now_ms, shard->gave_ms, GIVES_AGAIN_MS);
}

/* Bytes in a second that this shard may give now; 0: any. */
static uint64_t
rate_now(const ps_shard_t *shard, const ps_giving_t *giving)
{
    uint64_t rate = shard->args.copy_bytes_per_s;
    uint64_t busy = shard->args.busy_copy_bytes_per_s;
    bool is_busy = ps_pace_is_busy(shard) ||
                   is_within(shard->now_ms, giving->copy_busy_ms, BUSY_MS);

    if (is_busy && busy > 0 && (rate == 0 || busy < rate)) {
        rate = busy;
    }
    if (rate == 0) {
        return 0;
    }
    rate /= 1 + shard->other_giving;
    return rate == 0 ? 1 : rate;
}

static uint64_t
time_of(uint64_t bytes, uint64_t rate)
{
    return bytes * US_PER_S / rate + 1;
}

bool
ps_pace_has_turn(ps_shard_t *shard,
                 ps_partition_t *partition,
                 ps_giving_t *giving,
                 uint64_t bytes)
{
    uint64_t rate = rate_now(shard, giving);
    uint64_t now_us = shard->now_ms * 1000;
    uint64_t least_us = now_us > BEHIND_US ? now_us - BEHIND_US : 1;

    if (rate == 0) {
        giving->slot_us = 0;
        return true;
    }
    if (giving->slot_us == 0) {
        giving->slot_us =
            shard->give_free_us > least_us ? shard->give_free_us : least_us;
        shard->give_free_us = giving->slot_us + time_of(bytes, rate);
    }
    if (giving->slot_us > now_us + 999) {
        ps_shard_wake(shard, partition, giving->slot_us / 1000);
        return false;
    }
    return true;
}

void
ps_pace_gone(ps_shard_t *shard,
             ps_giving_t *giving,
             uint64_t asked,
             uint64_t bytes)
{
    uint64_t rate = rate_now(shard, giving);

    if (giving->slot_us != 0 && rate != 0 && bytes < asked) {
        uint64_t unused_us = (asked - bytes) * US_PER_S / rate;

        shard->give_free_us -=
            unused_us < shard->give_free_us ? unused_us : shard->give_free_us;
    }
    giving->slot_us = 0;
    shard->gave_ms = shard->now_ms;
}

void
ps_pace_heard(const ps_shard_t *shard, ps_giving_t *giving, bool is_busy)
{
    giving->copy_busy_ms = is_busy ? shard->now_ms : 0;
}
