/* SPDX-License-Identifier: Apache-2.0 */
/* ps_progress - one line on stderr that moves, on a terminal only */
#ifndef PS_CLI_PROGRESS_H
#define PS_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/output/output.h"

typedef struct ps_progress {
    FILE *file;        /* NULL: nothing is shown */
    const char *words; /* borrowed */
    uint64_t total;    /* bytes, or of a bar; 0: not known */
    uint64_t done;     /* bytes */
    double start_s;
    double shown_s; /* when it was written last */
} ps_progress_t;

/* words NULL: nothing is shown. */
void ps_progress_init(ps_progress_t *self, const ps_out_t *out, const char *words, uint64_t total);
void ps_progress_add(ps_progress_t *self, uint64_t bytes);
/* The same as a callback; arg: the ps_progress_t. */
void ps_progress_told(void *arg, uint64_t bytes);
/* Instead of ps_progress_add: a bar of `done` out of `total`, followed by
 * the text. true: it is shown. */
bool ps_progress_bar(ps_progress_t *self, uint64_t done, const char *behind);
/* "[######..............]": the part done; full for 0 of 0. */
#define PS_BAR_WIDTH 20
#define PS_BAR_SIZE (PS_BAR_WIDTH + 3)
void ps_bar_format(uint64_t done, uint64_t total, char ret_text[PS_BAR_SIZE]);
/* Removes the line. */
void ps_progress_done(ps_progress_t *self);
#endif
