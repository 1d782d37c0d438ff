/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options - what the command line asks for
 *
 * What     Strict: an option that is unknown, has no value or one outside its
 *          range, and options that contradict each other give one line of error
 *          with the option, its value and the allowed values.
 */
#ifndef LR_OPTIONS_H
#define LR_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "../common/job/job.h"
#include "../common/samples/load.h"
#include "psd.h"

#define LR_AHEAD_MAX 16
#define LR_AHEAD_AUTO UINT32_MAX
#define LR_MEET_AUTO UINT32_MAX
#define LR_MEET_MOST 100
#define LR_MEET_PARTS 20

/* In the order of the words of --variant, and of --updater. */
enum { LR_UPDATER, LR_AVERAGE, LR_ADMM, LR_LBFGS };
enum { LR_FTRL, LR_ADAGRAD, LR_SGD };

typedef struct lr_options {
    bool help;
    const char *train;   /* NULL with --predict */
    const char *test;    /* NULL: none */
    const char *table;   /* name of the table of weights */
    const char *save;    /* NULL: the model is not written */
    const char *predict; /* a model to use instead of training one; NULL */
    const char *scores;  /* where probabilities go; NULL: nowhere */
    uint32_t features;   /* greatest index allowed; 0: as found */
    uint32_t loss;       /* LR_LOGIT, … */
    uint32_t updater;    /* LR_FTRL, … */
    bool updater_given;
    uint32_t variant; /* LR_UPDATER, … */
    double rho;       /* of admm */
    uint32_t local_passes;
    double alpha;
    double beta;
    double l1;
    double l2;
    const char *objective; /* NULL, or "l2:C": the exact one is trained for */
    double objective_c;    /* its C */
    uint32_t schedule;     /* 1: the learning rate decays */
    double tolerance;      /* 0: all epochs are trained, in steps as given */
    uint32_t epochs;       /* 1 .. 1000000 */
    uint32_t minibatch;    /* examples of one worker, 1 .. 1000000000 */
    uint32_t clock_every;  /* minibatches of a clock */
    uint32_t meet_every;   /* minibatches between barriers; 0: only one;
                              LR_MEET_AUTO: LR_MEET_MOST, or as many as make
                              LR_MEET_PARTS of the training */
    uint32_t ahead;        /* pulls in advance; LR_AHEAD_AUTO: by max_delay */
    uint64_t seed;
    double report_s; /* seconds between lines; 0: one for each epoch */
    ex_load_options_t data;
    ex_job_options_t job;
} lr_options_t;

/* Reads argv[1 .. argc - 1]. The texts are borrowed from argv.
 * Errors: PSD_USAGE. */
PSD_MUST_CHECK psd_status_t lr_options_read(lr_options_t *self, int argc, char **argv,
                                            psd_error_t *err);
/* "sgd", "adagrad" or "ftrl". */
const char *lr_updater_name(uint32_t updater);
/* Prints the help text. */
void lr_help(void);
#endif
