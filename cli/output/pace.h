/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_pace - how far something is that somebody else does, as it is looked at
 *
 * What     From how many bytes are left: those that are done, the speed of the
 *          last seconds, and the time that the rest takes by it. A bar on a
 *          terminal; elsewhere a line when the number of things that are left
 *          has changed, and every PS_PACE_LINE_S.
 * Owner    The caller; embedded. Fits PSD_AUTO.
 */
#ifndef PS_CLI_PACE_H
#define PS_CLI_PACE_H

#include "cli/output/progress.h"

#define PS_PACE_LINE_S 5.0
#define PS_PACE_WHAT_SIZE 160 /* of what is said beside the numbers */
#define PS_PACE_TEXT_SIZE 160

typedef struct ps_pace {
    ps_progress_t bar;
    bool begun;
    uint64_t total; /* bytes; grows when more is left than before */
    uint64_t left;
    double bytes_s;  /* 0: nothing is known of it */
    double looked_s; /* the last look that the speed is from … */
    uint64_t looked; /* … and what was left then */
    uint64_t n_said; /* of the last line, … */
    double said_s;   /* … and its time */
} ps_pace_t;

/* words: of the bar; borrowed. */
void ps_pace_init(ps_pace_t *self, const ps_out_t *out, const char *words);
/* So many bytes are left now. */
void ps_pace_look(ps_pace_t *self, uint64_t left, double now_s);
/* "12.0 MiB of 1.00 GiB, 85.0 MB/s, 12.0 s left"; what is not known is left
 * out. */
void ps_pace_format(const ps_pace_t *self, char ret_text[PS_PACE_TEXT_SIZE]);
/* Looks and shows: n things are left, `what` says which. */
void ps_pace_show(ps_pace_t *self, const ps_out_t *out, const char *what, uint64_t n,
                  uint64_t left);
/* Takes the bar away. */
void ps_pace_done(ps_pace_t *self);
#endif
