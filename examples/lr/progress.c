/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that a worker prints while it trains. */
#include "progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double
lr_now_s(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

psd_status_t
lr_progress_init(lr_progress_t *self,
                 double every_s,
                 size_t room,
                 psd_error_t *err)
{
    memset(self, 0, sizeof(*self));
    self->every_s = every_s;
    self->start_s = lr_now_s();
    self->last_s = self->start_s;
    self->room = room;
    self->margins = malloc(room * sizeof(*self->margins));
    self->labels = malloc(room * sizeof(*self->labels));
    if (self->margins == NULL || self->labels == NULL) {
        lr_progress_done(self);
        return psd_error_set(err, PSD_NOMEM, "scores of %zu examples", room);
    }
    return PSD_OK;
}

void
lr_progress_done(lr_progress_t *self)
{
    free(self->margins);
    free(self->labels);
    memset(self, 0, sizeof(*self));
}

void
lr_progress_add(lr_progress_t *self, double margin, int8_t label)
{
    size_t at = self->sum.n % self->room;

    self->margins[at] = margin;
    self->labels[at] = label;
    lr_quality_add(&self->sum, margin, label);
}

static bool
is_due(const lr_progress_t *self, const lr_place_t *place, double now_s)
{
    if (self->sum.n == 0) {
        return false;
    }
    if (self->every_s == 0) {
        return place->epoch_ends;
    }
    return place->last || now_s - self->last_s >= self->every_s;
}

const char *
lr_auc_text(double auc, char ret_text[32])
{
    if (isnan(auc)) {
        return "-";
    }
    (void)snprintf(ret_text, 32, "%.4f", auc);
    return ret_text;
}

psd_status_t
lr_progress_tell(lr_progress_t *self, const lr_place_t *place, psd_error_t *err)
{
    double now_s = lr_now_s();
    double auc = NAN;
    char text[32];
    psd_status_t rc = PSD_OK;

    if (!is_due(self, place, now_s)) {
        return PSD_OK;
    }
    rc = lr_auc(self->margins, self->labels,
                self->sum.n < self->room ? self->sum.n : self->room, &auc, err);
    if (rc != PSD_OK) {
        return rc;
    }
    (void)printf("%7.1f s  epoch %" PRIu32 "/%" PRIu32 "  clock %" PRIu64
                 "  %.0f examples/s  loss %.4f  AUC %s\n",
                 now_s - self->start_s, place->epoch, place->epochs,
                 place->clock,
                 (double)self->sum.n / fmax(now_s - self->last_s, 1e-9),
                 self->sum.loss / (double)self->sum.n, lr_auc_text(auc, text));
    (void)fflush(stdout); /* a pipe would keep it until the end */
    self->last_s = now_s;
    self->sum = (lr_quality_t){0};
    return PSD_OK;
}
