/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options - what the command line asks for
 */
#ifndef FM_OPTIONS_H
#define FM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "../common/job/job.h"
#include "../common/samples/load.h"
#include "psd.h"

#define FM_DIM_MAX 1024

typedef struct fm_options {
    bool help;
    const char *train;    /* NULL with --predict */
    const char *valid;    /* NULL: all epochs are run */
    const char *test;     /* NULL: none */
    const char *table;    /* of the weights; others are NAME.what */
    const char *save;     /* NULL: the model is not written */
    const char *predict;  /* a model to use instead of training one; NULL */
    const char *scores;   /* where probabilities go; NULL: nowhere */
    uint32_t dim;         /* of an embedding, 1 .. FM_DIM_MAX */
    uint32_t embed_after; /* samples with a feature before it has one */
    double init;          /* first factors lie within this of 0 */
    double alpha;         /* of the weights: FTRL */
    double beta;
    double l1;
    double l2;
    double factor_alpha; /* of the embeddings: AdaGrad */
    double factor_beta;
    double factor_l2;
    uint32_t epochs;
    uint32_t patience;  /* epochs without a better validation */
    uint32_t minibatch; /* samples of one worker */
    uint64_t seed;
    double report_s; /* seconds between lines; 0: one for each epoch */
    ex_load_options_t data;
    ex_job_options_t job;
} fm_options_t;

/* Reads argv[1 .. argc - 1]. The texts are borrowed from argv. Errors:
 * PSD_USAGE. */
PSD_MUST_CHECK psd_status_t fm_options_read(fm_options_t *self, int argc, char **argv,
                                            psd_error_t *err);
/* Prints the help text. */
void fm_help(void);
#endif
