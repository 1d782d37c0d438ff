/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of rows: the bandwidth limits, with priority for requests. */
#include "protocol/replica/rows_pace.h"

#define US_PER_S UINT64_C(1000000)
#define BUSY_MS 100      /* after the last request */
#define BURST_US 100000  /* rows beside requests go once in that time */
#define BEHIND_US 200000 /* a turn may be so late, and the next not wait */
#define BEGINS_US 20000  /* of time before it that is made good to others */

static bool is_within(uint64_t now_ms, uint64_t at_ms, uint64_t ms)
{
    return at_ms != 0 && now_ms < at_ms + ms;
}

bool ps_pace_is_busy(const ps_step_t *step)
{
    return is_within(step->now_ms, step->asked_ms, BUSY_MS);
}

/* Clients ask it, or the shard that takes, for something. */
static bool is_busy(const ps_step_t *step, const ps_giving_t *giving)
{
    return ps_pace_is_busy(step) || is_within(step->now_ms, giving->copy_busy_ms, BUSY_MS);
}

/* Bytes in a second that this shard may give now; 0: any. */
static uint64_t rate_now(const ps_step_t *step, const ps_giving_t *giving)
{
    uint64_t rate = step->args.copy_bytes_per_s;
    uint64_t busy = step->args.busy_copy_bytes_per_s;

    if (is_busy(step, giving) && busy > 0 && (rate == 0 || busy < rate)) {
        rate = busy;
    }
    if (rate == 0) {
        return 0;
    }
    rate /= 1 + step->other_giving;
    return rate == 0 ? 1 : rate;
}

static uint64_t time_of(uint64_t bytes, uint64_t rate)
{
    return bytes * US_PER_S / rate + 1;
}

/* The time of a turn that is due at slot_us by its rate: while there are
 * requests, together with all others of its burst, at the burst's end. Each
 * part that is sent delays requests for longer than its own CPU time, so parts
 * are sent close together, and between bursts requests are not delayed. */
static uint64_t turn_us(const ps_step_t *step, const ps_giving_t *giving)
{
    uint64_t slot_us = giving->slot_us;

    return is_busy(step, giving) ? (slot_us + BURST_US - 1) / BURST_US * BURST_US : slot_us;
}

bool ps_pace_has_turn(ps_step_t *step, ps_partition_t *partition, ps_giving_t *giving,
                      uint64_t bytes)
{
    uint64_t rate = rate_now(step, giving);
    uint64_t now_us = step->now_ms * 1000;
    uint64_t due_us = 0;

    if (rate == 0) {
        giving->slot_us = 0;
        return true;
    }
    if (giving->slot_us == 0) {
        uint64_t begins_us = now_us > BEGINS_US ? now_us - BEGINS_US : 1;

        giving->slot_us = step->give_free_us + BEHIND_US > now_us && step->give_free_us > 0
                              ? step->give_free_us
                              : begins_us;
        step->give_free_us = giving->slot_us + time_of(bytes, rate);
    }
    due_us = turn_us(step, giving);
    if (due_us > now_us + 999) {
        ps_partition_wake(step, partition, due_us / 1000);
        return false;
    }
    return true;
}

void ps_pace_gone(ps_step_t *step, ps_giving_t *giving, uint64_t asked, uint64_t bytes)
{
    uint64_t rate = rate_now(step, giving);

    if (giving->slot_us != 0 && rate != 0 && bytes < asked) {
        uint64_t unused_us = (asked - bytes) * US_PER_S / rate;

        step->give_free_us -= unused_us < step->give_free_us ? unused_us : step->give_free_us;
    }
    giving->slot_us = 0;
    step->gave_ms = step->now_ms;
}

void ps_pace_heard(const ps_step_t *step, ps_giving_t *giving, bool is_busy)
{
    giving->copy_busy_ms = is_busy ? step->now_ms : 0;
}
