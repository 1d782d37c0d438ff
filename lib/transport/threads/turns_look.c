/* SPDX-License-Identifier: Apache-2.0 */
/* Which threads are late: by the times in the page and the kernel's states. */
#include "transport/threads/turns_look.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "transport/threads/turns_proc.h"

static const ps_turn_t *place_at(const ps_turns_head_t *page, uint32_t i)
{
    const void *after_head = page + 1; /* at a multiple of 64 */
    const ps_turn_t *places = after_head;

    return places + i;
}

/* What the thread says, at one moment. */
typedef struct seen {
    pid_t tid;
    bool waits;
    uint64_t silent_ms;
} seen_t;

static seen_t look_at(const ps_turn_t *turn, uint64_t now_ms)
{
    seen_t seen = {.tid = atomic_load_explicit(&turn->tid, memory_order_acquire)};
    uint64_t turned = atomic_load_explicit(&turn->turned, memory_order_relaxed);

    seen.waits = turned % 2 != 0;
    seen.silent_ms = turned / 2 < now_ms ? now_ms - turned / 2 : 0;
    return seen;
}

static bool judge(const ps_turns_head_t *page, const ps_turn_t *turn, uint64_t now_ms,
                  ps_late_t *ret_late)
{
    const seen_t seen = look_at(turn, now_ms);
    bool is_busy = false;

    if (seen.tid == 0) {
        return false;
    }
    *ret_late = (ps_late_t){.tid = seen.tid,
                            .silent_ms = seen.silent_ms,
                            .state = ps_turns_state((pid_t)page->pid, seen.tid)};
    ps_turn_name(turn, ret_late->name);
    ret_late->is_stopped = ret_late->state == 't' || ret_late->state == 'T';
    is_busy = !seen.waits || ret_late->state == 'R' || ret_late->state == 'D';
    return ret_late->is_stopped || seen.silent_ms >= (is_busy ? PS_LATE_WORK_MS : PS_LATE_WAIT_MS);
}

/* The thread that writes for others turns: they are what it says. */
static bool is_watched(const ps_turns_head_t *page, uint64_t now_ms)
{
    for (uint32_t i = 0; i < page->n_places; i++) {
        const ps_turn_t *turn = place_at(page, i);
        char name[PS_TURN_NAME_SIZE];
        ps_late_t late;

        ps_turn_name(turn, name);
        if (strcmp(name, PS_TURNS_WATCH) == 0 && judge(page, turn, now_ms, &late)) {
            return false;
        }
    }
    return true;
}

static void insert(ps_late_t *all, size_t n, size_t most, const ps_late_t *late)
{
    size_t at = 0;

    while (at < n && all[at].silent_ms >= late->silent_ms) {
        at++;
    }
    if (at == most) {
        return;
    }
    memmove(&all[at + 1], &all[at], ((n < most ? n : most - 1) - at) * sizeof *all);
    all[at] = *late;
}

size_t ps_turns_late(const ps_turns_head_t *page, ps_late_t *ret_late, size_t most)
{
    uint64_t now_ms = ps_turn_now_ms();
    bool watched = is_watched(page, now_ms);
    size_t n = 0;

    for (uint32_t i = 0; i < page->n_places; i++) {
        const ps_turn_t *turn = place_at(page, i);
        ps_late_t late;

        if (judge(page, turn, now_ms, &late) && (watched || !turn->probed || late.is_stopped)) {
            insert(ret_late, n, most, &late);
            n += n < most ? 1 : 0;
        }
    }
    return n;
}

size_t ps_turns_all(const ps_turns_head_t *page, ps_late_t *ret_all, size_t most)
{
    uint64_t now_ms = ps_turn_now_ms();
    size_t n = 0;

    for (uint32_t i = 0; n < most && i < page->n_places; i++) {
        const ps_turn_t *turn = place_at(page, i);
        const seen_t seen = look_at(turn, now_ms);

        if (seen.tid != 0) {
            ret_all[n] = (ps_late_t){.tid = seen.tid, .silent_ms = seen.silent_ms, .state = '?'};
            ps_turn_name(turn, ret_all[n].name);
            n++;
        }
    }
    return n;
}

uint64_t ps_turns_oldest_ms(const ps_turns_head_t *page)
{
    uint64_t now_ms = ps_turn_now_ms();
    uint64_t oldest_ms = 0;

    for (uint32_t i = 0; i < page->n_places; i++) {
        const seen_t seen = look_at(place_at(page, i), now_ms);

        if (seen.tid != 0 && seen.silent_ms > oldest_ms &&
            (seen.silent_ms < PS_LATE_WAIT_MS ||
             ps_turns_state((pid_t)page->pid, seen.tid) != 'D')) {
            oldest_ms = seen.silent_ms;
        }
    }
    return oldest_ms;
}

/* The name may come from a page that anybody wrote. */
static void clean(const char *name, char ret_name[PS_TURN_NAME_SIZE])
{
    size_t i = 0;

    for (; i + 1 < PS_TURN_NAME_SIZE && name[i] != '\0'; i++) {
        ret_name[i] = name[i] > ' ' && name[i] <= '~' ? name[i] : '?';
    }
    ret_name[i] = '\0';
}

void ps_late_print(const ps_late_t *late, char *ret_text, size_t size)
{
    char name[PS_TURN_NAME_SIZE];
    const char *why = late->is_stopped     ? ": it is stopped"
                      : late->state == 'D' ? ": it waits for a disk"
                      : late->state == 'R' ? ": it is busy"
                                           : "";

    clean(late->name, name);
    (void)snprintf(ret_text, size, "thread %s has not turned for %.1f s%s", name,
                   (double)late->silent_ms / 1000.0, why);
}
