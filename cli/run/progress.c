/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of a long operation. */
#include "cli/run/progress.h"

#include <string.h>
#include <unistd.h>

#include "cli/output/json_text.h"
#include "cli/run/cli.h"

#define EVERY_S 0.2

void ps_progress_init(ps_progress_t *self, const ps_out_t *out, const char *words, uint64_t total)
{
    *self = (ps_progress_t){.words = words, .total = total};
    if (words != NULL && !out->quiet && isatty(fileno(out->err))) {
        self->file = out->err;
        self->start_s = ps_cli_now_s();
        self->shown_s = self->start_s;
    }
}

void ps_progress_add(ps_progress_t *self, uint64_t bytes)
{
    char done[PS_NUMBER_SIZE];
    char total[PS_NUMBER_SIZE];
    char rate[PS_NUMBER_SIZE];
    double now = 0;

    self->done += bytes;
    if (self->file == NULL) {
        return;
    }
    now = ps_cli_now_s();
    if (now - self->shown_s < EVERY_S) {
        return;
    }
    self->shown_s = now;
    ps_bytes_format((double)self->done, done);
    ps_bytes_format((double)self->total, total);
    ps_rate_format((double)self->done / (now - self->start_s), rate);
    ps_print(self->file, "\r\033[K%s: %s%s%s, %s", self->words, done, self->total > 0 ? " of " : "",
             self->total > 0 ? total : "", rate);
    (void)fflush(self->file);
}

void ps_progress_told(void *arg, uint64_t bytes)
{
    ps_progress_add(arg, bytes);
}

void ps_bar_format(uint64_t done, uint64_t total, char ret_text[PS_BAR_SIZE])
{
    size_t full = done >= total ? PS_BAR_WIDTH
                                : (size_t)((double)PS_BAR_WIDTH * (double)done / (double)total);

    ret_text[0] = '[';
    memset(ret_text + 1, '#', full);
    memset(ret_text + 1 + full, '.', PS_BAR_WIDTH - full);
    memcpy(ret_text + 1 + PS_BAR_WIDTH, "]", 2);
}

bool ps_progress_bar(ps_progress_t *self, uint64_t done, const char *behind)
{
    char bar[PS_BAR_SIZE];

    if (self->file == NULL) {
        return false;
    }
    self->done = done;
    self->shown_s = ps_cli_now_s();
    ps_bar_format(done, self->total, bar);
    ps_print(self->file, "\r\033[K%s %s %s", self->words, bar, behind);
    (void)fflush(self->file);
    return true;
}

void ps_progress_done(ps_progress_t *self)
{
    if (self->file != NULL && self->shown_s > self->start_s) {
        ps_print(self->file, "\r\033[K");
    }
    self->file = NULL;
}
