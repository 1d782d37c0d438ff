/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lr_progress - the lines that a worker prints while it trains
 *
 * What     Loss and AUC of the examples since the last line, each measured
 *          before the model was changed by it: what the model does with data
 *          that it has not just learnt.
 * Owner    the caller; lr_progress_done
 */
#ifndef LR_PROGRESS_H
#define LR_PROGRESS_H

#include "evaluate.h"
#include "psd.h"

typedef struct lr_progress {
    double every_s;   /* between lines; 0: at the end of each epoch */
    double start_s;   /* of the first example */
    double last_s;    /* of the last line */
    lr_quality_t sum; /* since then */
    size_t room;
    double *margins; /* the last `room` examples, as a ring */
    int8_t *labels;
} lr_progress_t;

/* Where training is; for the line. */
typedef struct lr_place {
    uint32_t epoch; /* from 1 */
    uint32_t epochs;
    uint64_t clock;
    bool epoch_ends;
    bool last; /* nothing follows: print what has not been printed */
} lr_place_t;

/* room: examples that the AUC covers at most, at least 1. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lr_progress_init(lr_progress_t *self,
                                             double every_s,
                                             size_t room,
                                             psd_error_t *err);
void lr_progress_done(lr_progress_t *self);
void lr_progress_add(lr_progress_t *self, double margin, int8_t label);
/* Prints a line when one is due. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lr_progress_tell(lr_progress_t *self,
                                             const lr_place_t *place,
                                             psd_error_t *err);
/* "0.9321", or "-" where there is none. */
const char *lr_auc_text(double auc, char ret_text[32]);
/* Seconds since some moment; never goes back. */
double lr_now_s(void);
#endif
