/* SPDX-License-Identifier: Apache-2.0 */
/* The words of /healthz and /readyz: one line for each reason. */
#include <inttypes.h>

#include "server/metrics/metrics_inner.h"
#include "transport/threads/turns_look.h"

#define LATE_MAX 64
#define LINE_SIZE 256

/* A line for each thread that hangs; gives how many. */
static size_t say_late(const ps_metrics_t *self, ps_buffer_t *text, bool *done)
{
    const ps_turns_t *turns = ps_metrics_turns(self);
    ps_late_t late[LATE_MAX];
    size_t n = turns == NULL ? 0 : ps_turns_late(ps_turns_page(turns), late, LATE_MAX);

    for (size_t i = 0; i < n; i++) {
        char line[LINE_SIZE];

        ps_late_print(&late[i], line, sizeof line);
        *done = *done && ps_buffer_print(text, "%s\n", line);
    }
    return n;
}

bool ps_metrics_say_health(ps_metrics_t *self, ps_buffer_t *text, bool *ret_done)
{
    bool done = true;
    bool is_healthy = say_late(self, text, &done) == 0;

    if (is_healthy) {
        done = ps_buffer_print(text, "healthy\n");
    }
    *ret_done = done;
    return is_healthy;
}

/* What it does before it serves, and after; NULL: it serves. */
static const char *stage_words(int stage)
{
    switch (stage) {
    case PS_STAGE_STARTING:
        return "psd starts";
    case PS_STAGE_RECOVERING:
        return "the shards read their logs";
    case PS_STAGE_JOINING:
        return "the registry does not know of this start yet";
    case PS_STAGE_STOPPING:
        return "psd stops";
    default:
        return NULL;
    }
}

static size_t say_shard(const ps_metrics_t *self, uint32_t i, ps_buffer_t *text, bool *done)
{
    const ps_shard_counts_t *counts = &self->shards[i].counts;
    uint64_t headless = ps_count_get(counts->headless);
    uint64_t restoring = ps_count_get(counts->restoring);

    if (headless > 0) {
        *done = *done && ps_buffer_print(text,
                                         "shard %" PRIu32 ": %" PRIu64
                                         " partition%s no primary now; the registry chooses one\n",
                                         i, headless, headless == 1 ? " has" : "s have");
    }
    if (restoring > 0) {
        *done = *done && ps_buffer_print(text,
                                         "shard %" PRIu32 ": rows of %" PRIu64
                                         " partition%s are still read from a checkpoint\n",
                                         i, restoring, restoring == 1 ? "" : "s");
    }
    return (size_t)(headless > 0 ? 1 : 0) + (size_t)(restoring > 0 ? 1 : 0);
}

bool ps_metrics_say_ready(ps_metrics_t *self, ps_buffer_t *text, bool *ret_done)
{
    const char *words = stage_words(atomic_load_explicit(&self->stage, memory_order_acquire));
    bool done = true;
    size_t n = 0;

    if (words != NULL) {
        n = 1;
        done = ps_buffer_print(text, "%s\n", words);
    }
    n += say_late(self, text, &done);
    for (uint32_t i = 0; words == NULL && i < self->is.n_shards; i++) {
        n += say_shard(self, i, text, &done);
    }
    if (n == 0) {
        done = ps_buffer_print(text, "ready\n");
    }
    *ret_done = done;
    return n == 0;
}
