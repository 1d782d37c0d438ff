/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes done, their speed, and the time that is left. */
#include "cli/run/pace.h"

#include <stdio.h>

#include "cli/output/json_text.h"
#include "cli/run/cli.h"

#define EVERY_S 0.5  /* interval of the speed measurement */
#define NEWEST 0.3   /* that the last one counts */
#define SLOWEST 1e-3 /* B/s; less takes for ever */

void ps_pace_init(ps_pace_t *self, const ps_out_t *out, const char *words)
{
    *self = (ps_pace_t){0};
    ps_progress_init(&self->bar, out, words, 0);
}

void ps_pace_look(ps_pace_t *self, uint64_t left, double now_s)
{
    double speed = 0;

    if (!self->begun) {
        self->begun = true;
        self->total = left;
        self->left = left;
        self->looked = left;
        self->looked_s = now_s;
    }
    if (left > self->left) { /* more work has come: that is not a step back */
        self->total += left - self->left;
        self->looked += left - self->left;
    }
    self->left = left;
    if (now_s - self->looked_s < EVERY_S) {
        return;
    }
    speed = (double)(self->looked - left) / (now_s - self->looked_s);
    self->bytes_s = self->bytes_s <= 0 ? speed : self->bytes_s + NEWEST * (speed - self->bytes_s);
    self->looked = left;
    self->looked_s = now_s;
}

void ps_pace_format(const ps_pace_t *self, char ret_text[PS_PACE_TEXT_SIZE])
{
    char done[PS_NUMBER_SIZE];
    char total[PS_NUMBER_SIZE];
    char rate[PS_NUMBER_SIZE];
    char rest[PS_NUMBER_SIZE];

    ps_bytes_format((double)(self->total - self->left), done);
    ps_bytes_format((double)self->total, total);
    if (self->bytes_s < SLOWEST) {
        (void)snprintf(ret_text, PS_PACE_TEXT_SIZE, "%s of %s", done, total);
        return;
    }
    ps_rate_format(self->bytes_s, rate);
    ps_seconds_format((double)self->left / self->bytes_s, rest);
    (void)snprintf(ret_text, PS_PACE_TEXT_SIZE, "%s of %s, %s, %s left", done, total, rate, rest);
}

void ps_pace_show(ps_pace_t *self, const ps_out_t *out, const char *what, uint64_t n, uint64_t left)
{
    double now_s = ps_cli_now_s();
    char text[PS_PACE_TEXT_SIZE];
    char line[PS_PACE_TEXT_SIZE + PS_PACE_WHAT_SIZE + 8];

    ps_pace_look(self, left, now_s);
    ps_pace_format(self, text);
    (void)snprintf(line, sizeof line, "%s; %s", what, text);
    self->bar.total = self->total;
    if (ps_progress_bar(&self->bar, self->total - self->left, line)) {
        return;
    }
    if (self->said_s <= 0 || n != self->n_said || now_s - self->said_s >= PS_PACE_LINE_S) {
        ps_say(out, "%s", line);
        self->n_said = n;
        self->said_s = now_s;
    }
}

void ps_pace_done(ps_pace_t *self)
{
    ps_progress_done(&self->bar);
}
