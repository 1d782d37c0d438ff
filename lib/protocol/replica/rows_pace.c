/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of rows, under the limits of bandwidth and behind requests. */
#include "protocol/replica/rows_pace.h"

#define US_PER_S UINT64_C(1000000)
#define BUSY_MS 100         /* behind the last request */
#define BURST_US 100000     /* rows beside requests go once in that time */
#define BEHIND_US 200000    /* a turn may be so late, and the next not wait */
#define BEGINS_US 20000     /* of time before it that is made good to others */
#define GIVES_AGAIN_MS 1000 /* that a shard has given rows counts so long */

static bool is_within(uint64_t now_ms, uint64_t at_ms, uint64_t ms)
{
    return at_ms != 0 && now_ms < at_ms + ms;
}

bool ps_pace_is_busy(const ps_shard_t *shard)
{
    return is_within(shard->now_ms, shard->asked_ms, BUSY_MS);
}

bool ps_shard_gives_rows(const ps_shard_t *shard, uint64_t now_ms)
{
    return is_within(now_ms, shard->gave_ms, GIVES_AGAIN_MS);
}

/* Clients ask it, or the shard that takes, for something. */
static bool is_busy(const ps_shard_t *shard, const ps_giving_t *giving)
{
    return ps_pace_is_busy(shard) || is_within(shard->now_ms, giving->copy_busy_ms, BUSY_MS);
}

/* Bytes in a second that this shard may give now; 0: any. */
static uint64_t rate_now(const ps_shard_t *shard, const ps_giving_t *giving)
{
    uint64_t rate = shard->args.copy_bytes_per_s;
    uint64_t busy = shard->args.busy_copy_bytes_per_s;

    if (is_busy(shard, giving) && busy > 0 && (rate == 0 || busy < rate)) {
        rate = busy;
    }
    if (rate == 0) {
        return 0;
    }
    rate /= 1 + shard->other_giving;
    return rate == 0 ? 1 : rate;
}

static uint64_t time_of(uint64_t bytes, uint64_t rate)
{
    return bytes * US_PER_S / rate + 1;
}

/* When a turn that would come at slot_us by its rate is had: beside requests
 * with all others of its burst, at the burst's end. Each part that travels
 * takes the cores from who waits for an answer, for longer than it needs them
 * itself; so the many go close together, and between bursts nobody notices. */
static uint64_t turn_us(const ps_shard_t *shard, const ps_giving_t *giving)
{
    uint64_t slot_us = giving->slot_us;

    return is_busy(shard, giving) ? (slot_us + BURST_US - 1) / BURST_US * BURST_US : slot_us;
}

bool ps_pace_has_turn(ps_shard_t *shard, ps_partition_t *partition, ps_giving_t *giving,
                      uint64_t bytes)
{
    uint64_t rate = rate_now(shard, giving);
    uint64_t now_us = shard->now_ms * 1000;
    uint64_t due_us = 0;

    if (rate == 0) {
        giving->slot_us = 0;
        return true;
    }
    if (giving->slot_us == 0) {
        uint64_t begins_us = now_us > BEGINS_US ? now_us - BEGINS_US : 1;

        giving->slot_us = shard->give_free_us + BEHIND_US > now_us && shard->give_free_us > 0
                              ? shard->give_free_us
                              : begins_us;
        shard->give_free_us = giving->slot_us + time_of(bytes, rate);
    }
    due_us = turn_us(shard, giving);
    if (due_us > now_us + 999) {
        ps_shard_wake(shard, partition, due_us / 1000);
        return false;
    }
    return true;
}

void ps_pace_gone(ps_shard_t *shard, ps_giving_t *giving, uint64_t asked, uint64_t bytes)
{
    uint64_t rate = rate_now(shard, giving);

    if (giving->slot_us != 0 && rate != 0 && bytes < asked) {
        uint64_t unused_us = (asked - bytes) * US_PER_S / rate;

        shard->give_free_us -= unused_us < shard->give_free_us ? unused_us : shard->give_free_us;
    }
    giving->slot_us = 0;
    shard->gave_ms = shard->now_ms;
}

void ps_pace_heard(const ps_shard_t *shard, ps_giving_t *giving, bool is_busy)
{
    giving->copy_busy_ms = is_busy ? shard->now_ms : 0;
}
