/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that a worker prints while it trains. */
#include "progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../program/program.h"

psd_status_t ex_progress_init(ex_progress_t *self, double every_s, size_t room, psd_error_t *err)
{
    memset(self, 0, sizeof(*self));
    self->every_s = every_s;
    self->start_s = ex_now_s();
    self->last_s = self->start_s;
    self->room = room;
    if (room == 0) {
        return PSD_OK;
    }
    self->margins = malloc(room * sizeof(*self->margins));
    self->labels = malloc(room * sizeof(*self->labels));
    if (self->margins == NULL || self->labels == NULL) {
        ex_progress_done(self);
        return psd_error_set(err, PSD_NOMEM, "scores of %zu examples", room);
    }
    return PSD_OK;
}

void ex_progress_done(ex_progress_t *self)
{
    free(self->margins);
    free(self->labels);
    memset(self, 0, sizeof(*self));
}

void ex_progress_add(ex_progress_t *self, double margin, float label, double loss)
{
    size_t at = self->sum.n % self->room;

    self->margins[at] = margin;
    self->labels[at] = label;
    ex_quality_add(&self->sum, margin, label, loss);
}

void ex_progress_add_loss(ex_progress_t *self, double loss, bool is_correct)
{
    self->sum.n++;
    self->sum.n_correct += is_correct ? 1 : 0;
    self->sum.loss += loss;
}

bool ex_progress_is_due(const ex_progress_t *self, const ex_place_t *place)
{
    if (self->sum.n == 0) {
        return false;
    }
    if (self->every_s == 0) {
        return place->epoch_ends;
    }
    return place->last || ex_now_s() - self->last_s >= self->every_s;
}

static void print_line(const ex_progress_t *self, const ex_place_t *place, double now_s)
{
    const ex_quality_t *sum = &self->sum;
    char text[32];

    (void)printf("%7.1f s  epoch %" PRIu32 "/%" PRIu32 "  clock %" PRIu64 "  %" PRIu64
                 " examples  %.0f/s  loss %.4f  accuracy %.4f",
                 now_s - self->start_s, place->epoch, place->epochs, place->clock, self->n_examples,
                 (double)sum->n / fmax(now_s - self->last_s, 1e-9), sum->loss / (double)sum->n,
                 (double)sum->n_correct / (double)sum->n);
    if (self->room > 0) {
        (void)printf("  AUC %s", ex_auc_text(sum->auc, text));
    }
    (void)printf("%s%s\n", place->note != NULL ? "  " : "", place->note != NULL ? place->note : "");
    (void)fflush(stdout); /* a pipe would keep it until the end */
}

psd_status_t ex_progress_tell(ex_progress_t *self, const ex_place_t *place, psd_error_t *err)
{
    ex_quality_t *sum = &self->sum;
    psd_status_t rc = PSD_OK;

    if (!ex_progress_is_due(self, place)) {
        return PSD_OK;
    }
    if (self->room > 0) {
        rc = ex_auc(self->margins, self->labels, sum->n < self->room ? sum->n : self->room,
                    &sum->auc, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    self->n_examples += sum->n;
    print_line(self, place, ex_now_s());
    self->last_s = ex_now_s();
    self->sum = (ex_quality_t){0};
    return PSD_OK;
}
