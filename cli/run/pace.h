/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_pace - progress of work that psd does, seen by polling
 *
 * What     From the bytes left it computes the bytes done, the speed of the
 *          last seconds, and the time left. Shows a bar on a terminal;
 *          elsewhere a line when the number of things left has changed, and
 *          every PS_PACE_LINE_S.
 * Owner    The caller; embedded. Fits PSD_AUTO.
 */
#ifndef PS_CLI_PACE_H
#define PS_CLI_PACE_H

#include "cli/run/progress.h"

#define PS_PACE_LINE_S 5.0
#define PS_PACE_WHAT_SIZE 160 /* of the text beside the numbers */
#define PS_PACE_TEXT_SIZE 160

typedef struct ps_pace {
    ps_progress_t bar;
    bool begun;
    uint64_t total; /* bytes; grows when more is left than before */
    uint64_t left;
    double bytes_s;  /* 0: not known */
    double looked_s; /* the last poll that the speed is from … */
    uint64_t looked; /* … and what was left then */
    uint64_t n_said; /* of the last line, … */
    double said_s;   /* … and its time */
} ps_pace_t;

/* words: of the bar; borrowed. */
void ps_pace_init(ps_pace_t *self, const ps_out_t *out, const char *words);
/* Sets the bytes that are left now. */
void ps_pace_look(ps_pace_t *self, uint64_t left, double now_s);
/* "12.0 MiB of 1.00 GiB, 85.0 MB/s, 12.0 s left"; leaves out what is not
 * known. */
void ps_pace_format(const ps_pace_t *self, char ret_text[PS_PACE_TEXT_SIZE]);
/* Takes a measurement and shows it: n things are left, `what` names them. */
void ps_pace_show(ps_pace_t *self, const ps_out_t *out, const char *what, uint64_t n,
                  uint64_t left);
/* Removes the bar. */
void ps_pace_done(ps_pace_t *self);
#endif
