/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainer - what the parts of the training share: the data by feature, the
 * weights, the tables
 *
 * What     slopes   f64 add, a row for each key: g and u, summed over all
 *                   samples
 *          passes   f64 add, a row for each pass: the sums that show its
 *                   progress
 *          weights  f32 assign, a row for each key: the model
 * Owner    bcd_trainer_done
 */
#ifndef BCD_TRAINER_H
#define BCD_TRAINER_H

#include "../common/job/job.h"
#include "../common/samples/columns.h"
#include "../common/samples/samples.h"
#include "blocks.h"
#include "options.h"
#include "psd.h"
#include "step.h"

/* A row of the table of passes. After these sums it has, for each worker,
 * the greatest violation that it has seen, and then, for each, whether it
 * has finished the pass. */
enum {
    PASS_LOSS,     /* of the samples */
    PASS_PENALTY,  /* |w|_1 */
    PASS_NONZEROS, /* weights that are not zero */
    PASS_ACTIVE,   /* features that are not skipped */
    PASS_SENT,     /* rows of slopes pushed, by all workers */
    N_PASS
};
#define BCD_PASS_COLS(n_workers) (N_PASS + 2 * (n_workers))

typedef struct bcd_trainer {
    ex_job_t *job;
    const bcd_options_t *options;
    const ex_samples_t *samples;
    ex_columns_t columns;
    bcd_blocks_t blocks;
    bcd_weight_t *weights; /* by feature */
    double *pushed;        /* by feature: g and u of the last push */
    float *saved;          /* by feature: as the table of weights has it */
    uint8_t *is_owned;     /* by feature */
    double n_samples;      /* of all workers */
    uint64_t n_rows;       /* for the greatest key; 0: hash keys */
    psd_table_t *slopes;
    psd_table_t *passes;
    psd_table_t *table; /* of weights */
} bcd_trainer_t;

/* Agrees with the other workers on everything, including the groups of the
 * samples' features, makes the tables, and takes the stored weights. Errors:
 * those of psd_table_ensure; PSD_SHAPE; PSD_NOMEM. After an error,
 * bcd_trainer_done frees what was made. */
PSD_MUST_CHECK psd_status_t bcd_trainer_init(bcd_trainer_t *self, ex_job_t *job,
                                             const bcd_options_t *options, ex_samples_t *samples,
                                             psd_error_t *err);
void bcd_trainer_done(bcd_trainer_t *self);
/* Puts the owned weights that have changed into the table. Does not wait. */
PSD_MUST_CHECK psd_status_t bcd_trainer_save(bcd_trainer_t *self, psd_error_t *err);
/* The name of a table of this run. */
void bcd_trainer_name(const bcd_trainer_t *self, const char *what, char ret_name[EX_NAME_SIZE]);
#endif
