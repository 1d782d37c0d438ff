/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options - what the command line asks for
 *
 * What     Strict: an option that is not known, has no value or a value outside
 *          of its range, and options that contradict each other are one line of
 *          error that names the option, its value and what is allowed.
 */
#ifndef LR_OPTIONS_H
#define LR_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "psd.h"

#define LR_AHEAD_MAX 16
#define LR_AHEAD_AUTO UINT32_MAX

typedef enum lr_updater { LR_SGD, LR_ADAGRAD, LR_FTRL } lr_updater_t;

typedef struct lr_options {
    bool help;
    const char *train;   /* NULL with --predict */
    const char *test;    /* NULL: none */
    const char *table;   /* name of the table of weights */
    const char *save;    /* NULL: the model is not written */
    const char *predict; /* a model to use instead of training one; NULL */
    const char *scores;  /* where probabilities go; NULL: nowhere */
    uint32_t features;   /* greatest index allowed; 0: as found */
    lr_updater_t updater;
    bool updater_given; /* a table that is there must then agree */
    double alpha;
    double beta;
    double l1;
    double l2;
    bool objective;       /* the exact L2 objective is added and reported */
    double objective_c;   /* its C */
    uint32_t epochs;      /* 1 .. 1000000 */
    uint32_t minibatch;   /* examples of one worker, 1 .. 1000000000 */
    uint32_t clock_every; /* minibatches of a clock */
    uint32_t meet_every;  /* epochs between barriers; 0: only at the end */
    uint32_t ahead;       /* pulls in advance; LR_AHEAD_AUTO: by max_delay */
    int32_t max_delay;    /* PSD_DELAY_ENV: as the environment says */
    uint32_t replicas;    /* copies of each partition, 1 .. 5 */
    const char *ack;      /* of pushes: "memory", "replica", "disk" */
    uint64_t seed;
    double report_s;     /* seconds between lines; 0: one for each epoch */
    uint32_t timeout_ms; /* of every call */
} lr_options_t;

/* Reads argv[1 .. argc - 1]. The texts are borrowed from argv.
 * Errors: PSD_USAGE. */
PSD_MUST_CHECK psd_status_t lr_options_read(lr_options_t *self,
                                            int argc,
                                            char **argv,
                                            psd_error_t *err);
/* "sgd", "adagrad" or "ftrl". */
const char *lr_updater_name(lr_updater_t updater);
/* Prints the help text. */
void lr_help(void);
#endif
