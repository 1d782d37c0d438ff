/* SPDX-License-Identifier: Apache-2.0 */
/* Keys sorted from the most significant bit that differs. */
#include "data/feed/key_sort.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define FIRST_BITS 8
#define SHORT_PART 24 /* items that insertion sorts faster than counting */
/* A part beyond this does not fit the second cache, so it is cut into a few
 * large parts first: 2^8 streams of writing keep to the first cache. */
#define LARGE_PART ((size_t)40000)
#define MOST_BITS 11

typedef struct task {
    ps_crew_t *crew;
    ps_key_counts_t *counts;
    const uint64_t *keys;
    size_t n;
    ps_key_item_t *items;
    ps_key_item_t *spare;
    int shift;                          /* of the first cut */
    _Atomic uint64_t vary;              /* bits in which keys differ */
    uint32_t starts[PS_KEY_DIGITS + 1]; /* of the parts */
    _Atomic uint32_t next;              /* part to sort */
} task_t;

/* The lowest of `bits` bits whose highest is the highest of vary. */
static int shift_of(uint64_t vary, int bits)
{
    int top = vary == 0 ? 0 : 63 - __builtin_clzll(vary);

    return top + 1 > bits ? top + 1 - bits : 0;
}

static void sort_short(ps_key_item_t *items, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        ps_key_item_t item = items[i];
        size_t at = i;

        while (at > 0 && items[at - 1].key > item.key) {
            items[at] = items[at - 1];
            at--;
        }
        items[at] = item;
    }
}

/* As many bits as leave one or two items of each digit. */
static int bits_for(size_t n)
{
    int log2n = 63 - __builtin_clzll(n);

    if (n > LARGE_PART) {
        return FIRST_BITS;
    }
    return log2n - 1 > MOST_BITS ? MOST_BITS : log2n - 1;
}

/* Cuts items by a digit into spare; ends[d] is where digit d ends there. What
 * the largest part has. */
static size_t cut(const ps_key_item_t *items, ps_key_item_t *spare, size_t n, int shift,
                  uint32_t *ends, uint64_t n_digits)
{
    uint32_t sum = 0;
    uint32_t most = 0;

    memset(ends, 0, n_digits * sizeof *ends);
    for (size_t i = 0; i < n; i++) {
        ends[(items[i].key >> shift) & (n_digits - 1)]++;
    }
    for (uint64_t d = 0; d < n_digits; d++) {
        uint32_t count = ends[d];

        most = count > most ? count : most;
        ends[d] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++) {
        spare[ends[(items[i].key >> shift) & (n_digits - 1)]++] = items[i];
    }
    return most;
}

static void put_back(ps_key_item_t *to, const ps_key_item_t *from, size_t n)
{
    memcpy(to, from, n * sizeof *to);
}

/* Sorts items; the result stands in spare when into_spare, else in items. A
 * level takes 4 to 11 bits of 64, so that there are at most 16. */
static void sort_part(ps_key_item_t *items, ps_key_item_t *spare, size_t n, bool into_spare)
{
    uint32_t ends[1 << MOST_BITS];
    uint64_t vary = 0;
    uint64_t n_digits = 0;
    int shift = 0;
    size_t most = 0;
    uint32_t at = 0;

    for (size_t i = 1; n > SHORT_PART && i < n; i++) {
        vary |= items[i].key ^ items[0].key;
    }
    if (vary == 0) { /* a short part, or equal keys */
        if (n <= SHORT_PART) {
            sort_short(items, n);
        }
        if (into_spare) {
            put_back(spare, items, n);
        }
        return;
    }
    n_digits = UINT64_C(1) << bits_for(n);
    shift = shift_of(vary, bits_for(n));
    most = cut(items, spare, n, shift, ends, n_digits);
    if (shift == 0 || most <= SHORT_PART) {
        if (shift > 0) {
            sort_short(spare, n);
        }
        if (!into_spare) {
            put_back(items, spare, n);
        }
        return;
    }
    for (uint64_t d = 0; d < n_digits; d++) {
        if (ends[d] > at) {
            sort_part(spare + at, items + at, ends[d] - at, !into_spare);
        }
        at = ends[d];
    }
}

/* ---- what the members do, one function a round ---- */

static void look_what_varies(void *arg, uint32_t member, uint32_t n_members)
{
    task_t *task = arg;
    size_t end = ps_crew_cut(task->n, member + 1, n_members);
    uint64_t vary = 0;

    for (size_t i = ps_crew_cut(task->n, member, n_members); i < end; i++) {
        vary |= task->keys[i] ^ task->keys[0];
    }
    atomic_fetch_or(&task->vary, vary);
}

static void count_digits(void *arg, uint32_t member, uint32_t n_members)
{
    task_t *task = arg;
    size_t end = ps_crew_cut(task->n, member + 1, n_members);
    ps_key_counts_t counts = {{0}};

    for (size_t i = ps_crew_cut(task->n, member, n_members); i < end; i++) {
        counts.of[(task->keys[i] >> task->shift) & (PS_KEY_DIGITS - 1)]++;
    }
    task->counts[member] = counts;
}

/* Makes of each member's counts where it puts its first item of a digit. */
static void place_digits(task_t *task)
{
    uint32_t sum = 0;

    for (uint32_t d = 0; d < PS_KEY_DIGITS; d++) {
        task->starts[d] = sum;
        for (uint32_t m = 0; m < ps_crew_size(task->crew); m++) {
            uint32_t count = task->counts[m].of[d];

            task->counts[m].of[d] = sum;
            sum += count;
        }
    }
    task->starts[PS_KEY_DIGITS] = sum;
}

static void deal_out(void *arg, uint32_t member, uint32_t n_members)
{
    task_t *task = arg;
    size_t end = ps_crew_cut(task->n, member + 1, n_members);
    ps_key_counts_t at = task->counts[member];

    for (size_t i = ps_crew_cut(task->n, member, n_members); i < end; i++) {
        uint64_t key = task->keys[i];
        uint32_t *place = &at.of[(key >> task->shift) & (PS_KEY_DIGITS - 1)];

        task->items[*place].key = key;
        task->items[*place].place = (uint32_t)i;
        (*place)++;
    }
}

static void sort_parts(void *arg, uint32_t member, uint32_t n_members)
{
    task_t *task = arg;

    (void)member;
    (void)n_members;
    for (;;) {
        uint32_t d = atomic_fetch_add(&task->next, 1);
        uint32_t start = 0;

        if (d >= PS_KEY_DIGITS) {
            return;
        }
        start = task->starts[d];
        if (task->shift > 0) {
            sort_part(task->items + start, task->spare + start, task->starts[d + 1] - start, false);
        }
    }
}

void ps_key_sort(ps_crew_t *crew, ps_key_counts_t *counts, const uint64_t *keys, size_t n,
                 ps_key_item_t *items, ps_key_item_t *spare)
{
    task_t task = {
        .crew = crew,
        .counts = counts,
        .keys = keys,
        .n = n,
        .items = items,
        .spare = spare,
    };

    ps_crew_run(crew, look_what_varies, &task);
    task.shift = shift_of(atomic_load(&task.vary), FIRST_BITS);
    ps_crew_run(crew, count_digits, &task);
    place_digits(&task);
    ps_crew_run(crew, deal_out, &task);
    ps_crew_run(crew, sort_parts, &task);
}
