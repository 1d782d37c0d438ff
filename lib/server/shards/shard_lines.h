/* SPDX-License-Identifier: Apache-2.0 */
/* ps_shard_lines - the log lines of a shard; limits lines that peers cause,
 * so that they cannot fill the disk of the log */
#ifndef PS_SERVER_SHARD_LINES_H
#define PS_SERVER_SHARD_LINES_H

#include <stdatomic.h>

#include "protocol/core/outbox.h"

#define PS_NOTE_KINDS 32 /* kinds of notes are smaller numbers */

typedef struct ps_shard_lines {
    uint32_t shard;
    atomic_int *log_level;     /* borrowed; ps_log_level_t */
    int levels[PS_NOTE_KINDS]; /* by kind */
    uint64_t quiet_since_ms;   /* start of the second being counted */
    uint32_t n_lines;          /* that peers caused, in it */
} ps_shard_lines_t;

/* Learns the level of each kind of note, so that a line is formatted only
 * when it is written. */
void ps_shard_lines_init(ps_shard_lines_t *self, uint32_t shard, atomic_int *log_level);
/* True when one more line that a peer causes may be written. */
bool ps_shard_lines_may(ps_shard_lines_t *self, uint64_t now_ms);
void ps_shard_lines_print(ps_shard_lines_t *self, const ps_note_t *note, uint64_t now_ms);
#endif
