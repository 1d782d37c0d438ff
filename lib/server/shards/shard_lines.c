/* SPDX-License-Identifier: Apache-2.0 */
/* Writes notes as log lines, and limits their number. */
#include "server/shards/shard_lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

#define NOTE_SIZE 512  /* bytes of a note's line */
#define QUIET_AFTER 20 /* lines that peers cause in one second */
#define QUIET_PERIOD_MS 1000

void ps_shard_lines_init(ps_shard_lines_t *self, uint32_t shard, atomic_int *log_level)
{
    char line[NOTE_SIZE];

    *self = (ps_shard_lines_t){.shard = shard, .log_level = log_level};
    for (int kind = 0; kind < PS_NOTE_KINDS; kind++) {
        const ps_note_t note = {.kind = (ps_note_kind_t)kind};

        ps_note_print(&note, line, sizeof line, &self->levels[kind]);
    }
}

bool ps_shard_lines_may(ps_shard_lines_t *self, uint64_t now_ms)
{
    if (now_ms - self->quiet_since_ms >= QUIET_PERIOD_MS) {
        if (self->n_lines > QUIET_AFTER) {
            ps_log(PS_LOG_WARN, "lines_left_out", "shard=%" PRIu32 " n=%" PRIu32, self->shard,
                   self->n_lines - QUIET_AFTER);
        }
        self->quiet_since_ms = now_ms;
        self->n_lines = 0;
    }
    return ++self->n_lines <= QUIET_AFTER;
}

void ps_shard_lines_print(ps_shard_lines_t *self, const ps_note_t *note, uint64_t now_ms)
{
    char line[NOTE_SIZE];
    char *rest = NULL;
    int level = note->kind < PS_NOTE_KINDS ? self->levels[note->kind] : 0;

    if (level > atomic_load_explicit(self->log_level, memory_order_relaxed) ||
        (level < PS_LOG_DEBUG && !ps_shard_lines_may(self, now_ms))) {
        return;
    }
    ps_note_print(note, line, sizeof line, &level);
    rest = strchr(line, ' ');
    if (rest != NULL) {
        *rest++ = '\0';
    }
    ps_log((ps_log_level_t)level, line, "shard=%" PRIu32 "%s%s", self->shard,
           rest == NULL ? "" : " ", rest == NULL ? "" : rest);
}
