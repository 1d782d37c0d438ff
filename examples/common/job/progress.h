/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ex_progress - the lines that a worker prints while it trains
 *
 * What     Loss, accuracy and (of two classes) AUC of the examples since the
 *          last line, each measured before the model learnt from it: how well
 *          the model does on data that it has not just learnt.
 * Owner    the caller; ex_progress_done
 */
#ifndef EX_PROGRESS_H
#define EX_PROGRESS_H

#include "../samples/evaluate.h"
#include "psd.h"

typedef struct ex_progress {
    double every_s;      /* between lines; 0: at the end of each epoch */
    double start_s;      /* of the first example */
    double last_s;       /* of the last line */
    uint64_t n_examples; /* since the start */
    ex_quality_t sum;    /* since the last line */
    size_t room;
    double *margins; /* the last `room` examples, as a ring */
    float *labels;
} ex_progress_t;

/* Where training is; for the line. */
typedef struct ex_place {
    uint32_t epoch; /* from 1 */
    uint32_t epochs;
    uint64_t clock;
    bool epoch_ends;
    bool last;        /* nothing follows: print what has not been printed */
    const char *note; /* more for the end of the line; NULL: nothing */
} ex_place_t;

/* room: examples that the AUC covers at most; 0: there is none. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ex_progress_init(ex_progress_t *self, double every_s, size_t room,
                                             psd_error_t *err);
void ex_progress_done(ex_progress_t *self);
/* An example of two classes; see evaluate.h. */
void ex_progress_add(ex_progress_t *self, double margin, float label, double loss);
/* Any other, where there is no AUC. */
void ex_progress_add_loss(ex_progress_t *self, double loss, bool is_correct);
/* A line is due now. */
bool ex_progress_is_due(const ex_progress_t *self, const ex_place_t *place);
/* Prints a line when one is due. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ex_progress_tell(ex_progress_t *self, const ex_place_t *place,
                                             psd_error_t *err);
#endif
