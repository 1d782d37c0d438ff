/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options - what the command line asks for
 */
#ifndef BCD_OPTIONS_H
#define BCD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "../common/job/job.h"
#include "../common/samples/load.h"
#include "psd.h"

#define BCD_PRIOR_MAX 64
#define BCD_DELAY_MAX 64

typedef struct bcd_options {
    bool help;
    const char *train;   /* NULL with --predict */
    const char *test;    /* NULL: none */
    const char *table;   /* name of the table of weights */
    const char *save;    /* NULL: the model is not written */
    const char *predict; /* a model to use instead of training one; NULL */
    const char *scores;  /* where probabilities go; NULL: nowhere */
    double c;            /* F = C sum log(1 + exp(-y w.x)) + |w|_1 */
    double eta;          /* fraction of a step to take */
    double block_ratio;  /* blocks for each entry of a sample */
    uint32_t delay;      /* blocks that a step may miss */
    uint32_t passes;     /* at most */
    double epsilon;      /* stops when F changes by less, relatively */
    double delta_init;   /* trust region of a weight */
    double delta_max;
    uint32_t kkt;      /* EX_YES: weights that stay zero are skipped */
    double kkt_ratio;  /* of the threshold for that */
    uint32_t order;    /* 0: blocks in random order; 1: as they are */
    const char *prior; /* NULL, or groups that come first: "127,120" */
    uint32_t prior_passes;
    int64_t prior_groups[BCD_PRIOR_MAX];
    size_t n_prior;
    uint64_t seed;
    ex_load_options_t data;
    ex_job_options_t job;
} bcd_options_t;

/* Reads argv[1 .. argc - 1]. The texts are borrowed from argv.
 * Errors: PSD_USAGE. */
PSD_MUST_CHECK psd_status_t bcd_options_read(bcd_options_t *self, int argc, char **argv,
                                             psd_error_t *err);
/* Prints the help text. */
void bcd_help(void);
#endif
